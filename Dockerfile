# The ops daemon and its command line. No secret belongs in here: keys are read from files when it runs.
#
#     docker build -t REGISTRY/comemory-daemon:TAG .
#
# Pin the base further with --build-arg PYTHON=docker.io/library/python:3.14.2-slim-trixie@sha256:...
ARG PYTHON=docker.io/library/python:3.14.2-slim-trixie

FROM ${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/comemory
WORKDIR /build
# The packages first: they change less often than the program, and a layer is kept for them.
COPY requirements/daemon.lock requirements/
RUN /opt/comemory/bin/python -m pip install --require-hashes --only-binary :all: -r requirements/daemon.lock
COPY pyproject.toml README.md ./
COPY comemory/ comemory/
COPY ops/ ops/
RUN /opt/comemory/bin/python -m pip install --no-deps . \
    && /opt/comemory/bin/python -m pip uninstall --yes pip

FROM ${PYTHON}
LABEL org.opencontainers.image.title="Co-Memory Ops daemon"
COPY --from=build /opt/comemory /opt/comemory
# Everything is compiled already, and the root file system may be read-only.
ENV PATH=/opt/comemory/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 10001:10001
WORKDIR /var/empty
EXPOSE 9464
ENTRYPOINT ["comemory"]
CMD ["daemon"]
