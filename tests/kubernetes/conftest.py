"""The control plane that the tests of this folder share; they are skipped, with the reason, where it is not built.

    def test_something(kubernetes: ControlPlane, namespace: str, stack: Callable[..., KubernetesStack]) -> None:
        deployed = stack(lambda options: StatefulSet("it", ..., opts=options))
        deployed.up()
        assert len(kubernetes.items(f"/api/v1/namespaces/{namespace}/pods")) == 3

`kubernetes` is the running control plane (session), `namespace` a namespace of the test's own that enforces Pod
Security `restricted`, `stack` makes a stack of the real Pulumi engine with the real Kubernetes provider.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.control_plane import ControlPlane, control_plane
from tests.support.kubernetes_stack import KubernetesStack, Program
from tools import pulumi_cli
from tools.control_plane.provision import Toolbox, find, missing

HERE = Path(__file__).resolve().parent
LEFT_OUT = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; skip them, with the reason printed, where the control plane is not built."""
    ours = [item for item in items if HERE in item.path.parents]
    lacking = missing() if ours else []
    for item in ours:
        item.add_marker(pytest.mark.kubernetes)
        if lacking:
            item.add_marker(pytest.mark.skip(reason=f"not on this machine: {', '.join(lacking)}"))
    if lacking:
        config.stash[LEFT_OUT] = (
            f"left out: {len(ours)} tests on a Kubernetes control plane, since {', '.join(lacking)} "
            f"{'is' if len(lacking) == 1 else 'are'} not on this machine; "
            "`make test-kubernetes` builds what is missing (half an hour, once) and runs them"
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line what was left out, and how to run it."""
    if LEFT_OUT in config.stash:
        terminalreporter.write_line(config.stash[LEFT_OUT], yellow=True)


@pytest.fixture(scope="session")
def toolbox() -> Toolbox:
    """Every program of the control plane."""
    tools = find()
    assert tools is not None, "pytest_collection_modifyitems skips these tests when a program is missing"
    return tools


@pytest.fixture(scope="session")
def kubernetes(toolbox: Toolbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The control plane of this run."""
    with control_plane(toolbox, tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(autouse=True)
def _alive(request: pytest.FixtureRequest) -> Iterator[None]:
    """Name the component that died, where one did, instead of what came of it."""
    yield
    if "kubernetes" in request.fixturenames:
        request.getfixturevalue("kubernetes").check()


@pytest.fixture
def namespace(kubernetes: ControlPlane) -> Iterator[str]:
    """A namespace of the test's own; its pods must meet Pod Security `restricted`."""
    with kubernetes.namespace() as name:
        yield name


@pytest.fixture
def stack(toolbox: Toolbox, kubernetes: ControlPlane, tmp_path: Path) -> Iterator[Callable[..., KubernetesStack]]:
    """Make a stack from a program that takes the resource options to use; what is up is destroyed at the end."""
    cli = pulumi_cli.find()
    if cli is None:
        pytest.skip("there is no Pulumi CLI on PATH or in the cache; `make test-kubernetes` gets one")
    made: list[KubernetesStack] = []

    def make(program: Program, name: str = "test") -> KubernetesStack:
        folder = tmp_path / f"stack-{len(made)}"
        made.append(KubernetesStack(cli, toolbox, kubernetes.kubeconfig, folder, program, name))
        return made[-1]

    yield make
    for each in made:
        each.destroy()
