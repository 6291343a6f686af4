"""The typed stack configuration: what `Pulumi.<stack>.yaml` says under `comemory:`, validated.

Every error names the key as it stands in the file, for example `comemory:collections[1].dimension`.
docs/configuration.md is generated from the models here.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator

from comemory.declaration import CollectionSettings, Declared
from comemory.errors import CoMemoryError
from comemory.indexes import PAYLOAD_INDEXES
from comemory.naming import DEFAULT_TYPES, CollectionName
from comemory.specs import Spec
from infra.address import key_problem, url_problem
from infra.components.monitoring.settings import MonitoringSettings
from infra.components.ops_daemon.settings import OpsDaemonSettings
from infra.components.qdrant_cluster.settings import QdrantClusterSettings
from infra.kubernetes_values import Labels, Name
from infra.placement import placement_problems

NAMESPACE = "comemory"
DEFAULT_PORT = 6333
TEXTS = frozenset({"cluster_stack"})
"""Keys whose value is a plain text."""


class ConfigurationError(Exception):
    """The stack configuration is wrong; the text has one line per key that is."""


def checked_address(value: str) -> str:
    """The address without a slash at its end. Raises ValueError for what is no address, or carries a password."""
    if problem := url_problem(value):
        raise ValueError(problem)
    return value.rstrip("/")


class EndpointSettings(Spec):
    """Where Qdrant answers, and how to get in."""

    url: str | None = Field(
        None,
        description="Address, http or https. Default: `QDRANT_URL`, else the endpoint of `make up` "
        "(`http://127.0.0.1:6333`, or the port in `COMEMORY_PORT`).",
    )
    api_key: SecretStr | None = Field(
        None,
        description="Key with the right to manage collections. Set it with `pulumi config set --secret --path "
        "'comemory:endpoint.api_key'`, which encrypts it. Default: `QDRANT_API_KEY`, which no file ever holds.",
    )
    timeout: float = Field(60.0, gt=0, le=3600, description="Seconds that one request may take.")
    tls_ca: str | None = Field(
        None, min_length=1, description="Path or text of a PEM file with the authority that signed the certificate."
    )

    @field_validator("url")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        return None if value is None else checked_address(value)

    @field_validator("api_key")
    @classmethod
    def _a_key(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and (problem := key_problem(value.get_secret_value())):
            raise ValueError(problem)
        return value

    def authority(self) -> str | None:
        """The text of `tls_ca`. Raises ConfigurationError when it is a path that cannot be read."""
        if self.tls_ca is None or self.tls_ca.lstrip().startswith("-----BEGIN"):
            return self.tls_ca
        try:
            return Path(self.tls_ca).expanduser().read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(f"{NAMESPACE}:endpoint.tls_ca: cannot be read ({error.strerror})") from error

    def address(self, environment: Mapping[str, str]) -> str:
        """The address to use: the one configured, that in `QDRANT_URL`, or the laptop endpoint's.

        Raises ConfigurationError when the environment's is no address.
        """
        if self.url:
            return self.url
        given = (
            environment.get("QDRANT_URL") or f"http://127.0.0.1:{environment.get('COMEMORY_PORT') or DEFAULT_PORT}"
        )
        try:
            return checked_address(given)
        except ValueError as error:
            raise ConfigurationError(f"the address in QDRANT_URL {error}") from error


DEFAULT_COLLECTIONS = (
    CollectionSettings(name="cm_text_1024_v1", embedding_model="cohere-embed-v3", dimension=1024),
    CollectionSettings(name="cm_code_768_v1", embedding_model="jina-embeddings-v2-base-code", dimension=768),
    CollectionSettings(name="cm_mm_512_v1", embedding_model="clip-vit-base-patch32", dimension=512),
)


class NamespaceSettings(Spec):
    """The namespace of Kubernetes that cluster, daemon and monitoring live in."""

    name: Name = Field("comemory", description="Name of the namespace.")
    create: bool = Field(
        True,
        description="Make it, if it is not there. It is never deleted, as others may use it. False: it is there.",
    )
    pod_security: Literal["restricted", "baseline", "privileged"] = Field(
        "restricted", description="Pod Security standard that a namespace made here enforces on every pod."
    )
    labels: Labels = Field({}, description="Further labels of a namespace made here.")

    def all_labels(self) -> dict[str, str]:
        """The labels of a namespace made here."""
        return {"pod-security.kubernetes.io/enforce": self.pod_security, **self.labels}


class StackSettings(Spec):
    """All that a stack can say under `comemory:`."""

    endpoint: EndpointSettings = Field(EndpointSettings(), description="Where Qdrant answers.")
    types: tuple[str, ...] = Field(
        (), description="Types of embedding that collection names may use beside `text`, `code` and `mm`."
    )
    collections: tuple[CollectionSettings, ...] = Field(
        DEFAULT_COLLECTIONS,
        description="The collections. Default: `cm_text_1024_v1`, `cm_code_768_v1` and `cm_mm_512_v1`. An empty "
        "list for a stack that is the cluster alone.",
    )
    namespace: NamespaceSettings = Field(
        NamespaceSettings(),
        description="Where `cluster`, `daemon` and `monitoring` are; with `cluster_stack` it is the cluster's.",
    )
    cluster: QdrantClusterSettings | None = Field(
        None, description="A Qdrant cluster on Kubernetes. Default: none; Qdrant is at `endpoint`."
    )
    cluster_stack: str | None = Field(
        None,
        pattern=r"^[^/\s]+/[^/\s]+/[^/\s]+$",
        description="Stack that made the cluster, `organization/project/stack`, where this stack is not the one. "
        "Address, key and authority are taken from its outputs.",
    )
    daemon: OpsDaemonSettings | None = Field(
        None, description="The ops daemon on Kubernetes, for the collections of this stack. Default: none."
    )
    monitoring: MonitoringSettings | None = Field(
        None, description="Monitors of what this stack makes on Kubernetes, rules and dashboards. Default: none."
    )

    @property
    def on_kubernetes(self) -> bool:
        """Whether anything of this stack is on Kubernetes."""
        return bool(self.cluster or self.cluster_stack or self.daemon or self.monitoring)

    def resolved(self) -> tuple[Declared, ...]:
        """The collections as the domain declares them.

        Raises ConfigurationError, one line per key, where a collection contradicts itself or another.
        """
        problems = [*self._names(), *self._aliases(), *placement_problems(self, NAMESPACE, environment())]
        declared: list[Declared] = []
        for number, one in enumerate(self.collections):
            at = f"{NAMESPACE}:collections[{number}]"
            problems += _indexes(at, one)
            if any(problem.startswith(at) for problem in problems):
                continue
            try:
                declared.append(Declared(one.spec(), one.all_indexes(), one.alias))
            except ValidationError as error:
                problems += _lines(error, at)
        if problems:
            raise ConfigurationError("\n".join(problems))
        return tuple(declared)

    def _names(self) -> list[str]:
        problems = []
        seen: dict[str, int] = {}
        for number, one in enumerate(self.collections):
            at = f"{NAMESPACE}:collections[{number}]"
            try:
                name = CollectionName.parse(one.name, DEFAULT_TYPES | set(self.types))
            except CoMemoryError as error:
                problems.append(f"{at}.name: {error}; further types are declared in {NAMESPACE}:types")
                continue
            if one.name in seen:
                problems.append(f"{at}.name: {one.name} is declared already by collections[{seen[one.name]}]")
            elif name.dim != one.dimension:
                problems.append(
                    f"{at}.dimension: {one.dimension} is not the dimension in the name {one.name}; make them equal"
                )
            seen.setdefault(one.name, number)
        return problems

    def _aliases(self) -> list[str]:
        names = {one.name for one in self.collections}
        count = Counter(one.alias for one in self.collections if one.alias)
        return [
            f"{NAMESPACE}:collections[{number}].alias: {one.alias} is "
            + ("the name of a collection" if one.alias in names else "given to more than one collection")
            for number, one in enumerate(self.collections)
            if one.alias and (one.alias in names or count[one.alias] > 1)
        ]


def _indexes(at: str, one: CollectionSettings) -> list[str]:
    standard = {index.field: index.type for index in PAYLOAD_INDEXES}
    count = Counter(index.field for index in one.indexes)
    problems = []
    for number, index in enumerate(one.indexes):
        key = f"{at}.indexes[{number}]"
        if count[index.field] > 1:
            problems.append(f"{key}.field: {index.field} is given more than once")
        elif standard.get(index.field, index.type) != index.type:
            problems.append(
                f"{key}.type: {index.field} is filtered on as {standard[index.field]} and cannot be {index.type}"
            )
    return problems


def load(configuration: Mapping[str, str]) -> StackSettings:
    """Validate a stack's configuration as Pulumi hands it over: full key to text, objects as JSON.

    Keys of other projects and providers (`qdrant:url`, `kubernetes:context`) are not looked at.
    Raises ConfigurationError, one line per key that is wrong; the text never holds a value that may be secret.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, text in configuration.items():
        space, _, name = key.partition(":")
        if space != NAMESPACE:
            continue
        if name in TEXTS:
            values[name] = text
            continue
        try:
            values[name] = json.loads(text)
        except (TypeError, ValueError):
            problems.append(f"{key}: should be a YAML list or mapping, not a plain text")
    if not problems:
        try:
            settings = StackSettings.model_validate(values)
            settings.resolved()
        except ValidationError as error:
            problems += _lines(error, NAMESPACE)
        else:
            return settings
    raise ConfigurationError("\n".join(problems))


def environment() -> Mapping[str, str]:
    """The process's environment, the one place that address and key may come from beside the configuration."""
    return os.environ


def _lines(error: ValidationError, at: str) -> list[str]:
    """One line per error: the key, what is wrong, and the value where it cannot be a secret."""
    lines = []
    for one in error.errors(include_url=False):
        location = [part for part in one["loc"] if not (isinstance(part, str) and part in ("str", "StopwordsSpec"))]
        key = at
        for part in location:
            separator = ":" if key == NAMESPACE else "."
            key += f"[{part}]" if isinstance(part, int) else f"{separator}{part}"
        message = one["msg"].removeprefix("Value error, ")
        if one["type"] == "extra_forbidden":
            message = "there is no such key"
        value = one["input"]
        secret = "api_key" in location or location == ["endpoint"]
        shown = f", not {value!r}" if isinstance(value, str | int | float) and not secret else ""
        if one["type"] in ("value_error", "extra_forbidden", "missing"):
            shown = ""
        lines.append(f"{key}: {message}{shown}")
    return lines
