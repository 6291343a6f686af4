"""The programs of the control plane: versions, Go modules, and how each names its version."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

KUBERNETES = "1.34.4"
PROVIDER = "4.25.0"  # that of the pinned Python package `pulumi-kubernetes`

GITHUB = "https://github.com"
KUBERNETES_RELEASES = "https://dl.k8s.io/release"

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Release:
    """The program's own release: one file for each executable, or an archive with a folder that holds them.

    `url`, `checksums` and `folder` are templates with `{system}`, `{machine}` and the executable's `{name}`;
    `folder` is the archive's, None where the file is the executable itself.
    """

    url: str
    checksums: str
    folder: str | None = None


@dataclass(frozen=True)
class Part:
    """One Go module, the executables that are built from it, and the files of it that they need.

    `packages` maps an executable to its package. `files` maps a file's place in the finished folder to its place
    in the module; `embedded` are files of the module that the build wants beside our own `main.go`.
    `fits` is matched against what an executable on PATH answers, `ours` against what the built one answers.
    """

    name: str
    version: str
    module: str
    module_version: str
    packages: dict[str, str]
    ask: tuple[str, ...]
    ours: re.Pattern[str]
    fits: re.Pattern[str]
    about: str
    files: dict[str, str] = field(default_factory=dict)
    embedded: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    release: Release | None = None

    @property
    def module_folder(self) -> Path:
        """The folder with the pinned go.mod and go.sum."""
        return _FOLDER / self.name


def _exactly(version: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\d.]){re.escape(version)}(?![\d.])")


ETCD = Part(
    name="etcd",
    version="3.7.3",
    module="go.etcd.io/etcd/server/v3",
    module_version="v3.7.3",
    packages={"etcd": "go.etcd.io/etcd/server/v3"},
    ask=("--version",),
    ours=_exactly("3.7.3"),
    fits=re.compile(r"etcd Version: 3\.([5-9]|\d\d)\."),
    about="1 to 2 minutes on two cores the first time; 25 MB are kept",
    release=Release(
        url=f"{GITHUB}/etcd-io/etcd/releases/download/v3.7.3/etcd-v3.7.3-{{system}}-{{machine}}.tar.gz",
        checksums=f"{GITHUB}/etcd-io/etcd/releases/download/v3.7.3/SHA256SUMS",
        folder="etcd-v3.7.3-{system}-{machine}",
    ),
)

_VERSION_PACKAGE = "k8s.io/component-base/version"
CONTROL_PLANE = Part(
    name="kubernetes",
    version=KUBERNETES,
    module="k8s.io/kubernetes",
    module_version=f"v{KUBERNETES}",
    packages={
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    },
    ask=("--version",),
    ours=_exactly(f"v{KUBERNETES}"),
    fits=re.compile(r"v1\.34\.\d+(?![\d.])"),
    about="12 minutes on two cores the first time; 270 MB are kept",
    variables={
        f"{_VERSION_PACKAGE}.gitVersion": f"v{KUBERNETES}",
        f"{_VERSION_PACKAGE}.gitMajor": "1",
        f"{_VERSION_PACKAGE}.gitMinor": "34",
    },
    release=Release(
        url=f"{KUBERNETES_RELEASES}/v{KUBERNETES}/bin/{{system}}/{{machine}}/{{name}}",
        checksums=f"{KUBERNETES_RELEASES}/v{KUBERNETES}/bin/{{system}}/{{machine}}/{{name}}.sha256",
    ),
)

_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat/node-heartbeat.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
    "volume/fast/pv-bind.yaml",
    "volume/fast/pv-delete.yaml",
    "volume/fast/pvc-provision.yaml",
    "volume/fast/pvc-delete.yaml",
)
KWOK = Part(
    name="kwok",
    version="0.8.0",
    module="sigs.k8s.io/kwok",
    module_version="v0.8.0",
    packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
    ask=("--version",),
    ours=_exactly("v0.8.0"),
    fits=_exactly("v0.8.0"),  # the stages are of this version
    about="4 minutes on two cores the first time; 85 MB are kept",
    files={
        **{f"stages/{Path(stage).name}": f"kustomize/stage/{stage}" for stage in _STAGES},
        "crds/portforwards.yaml": "kustomize/crd/bases/kwok.x-k8s.io_portforwards.yaml",
    },
)

_PROVIDER_MODULE = "github.com/pulumi/pulumi-kubernetes/provider/v4"
PULUMI_PROVIDER = Part(
    name="pulumi-resource-kubernetes",
    version=PROVIDER,
    module=_PROVIDER_MODULE,
    module_version="v4.0.0-20260115033456-f47bc2d6f199",  # the module's newest, of the day before the release
    packages={"pulumi-resource-kubernetes": "."},
    ask=("--version",),
    ours=_exactly(PROVIDER),
    fits=_exactly(PROVIDER),
    about="11 minutes on two cores the first time; 300 MB are kept",
    embedded={name: f"cmd/pulumi-resource-kubernetes/{name}" for name in ("schema.json", "terraform-mapping.json")},
    variables={f"{_PROVIDER_MODULE}/pkg/version.Version": PROVIDER},
)

PARTS = (ETCD, CONTROL_PLANE, KWOK, PULUMI_PROVIDER)
