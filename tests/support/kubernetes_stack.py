"""A stack of the real Pulumi engine with the real Kubernetes provider, on the control plane of the tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pulumi
import pulumi_kubernetes
import yaml
from pulumi import automation

from tools.control_plane.provision import Toolbox

ROOT = Path(__file__).resolve().parents[2]
Program = Callable[[pulumi.ResourceOptions], None]


class KubernetesStack:
    """A stack whose `program` a test may replace between runs.

    Each run raises `automation.CommandError` with everything that Pulumi printed when it fails. The program gets
    resource options with the Kubernetes provider; exports are in `outputs`.
    """

    def __init__(
        self, cli: Path, tools: Toolbox, kubeconfig: Path, folder: Path, program: Program, name: str
    ) -> None:
        self.program, self.folder, self._kubeconfig = program, folder, kubeconfig
        (folder / "state").mkdir(parents=True)
        project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
        del project["main"]
        for provider in project["plugins"]["providers"]:
            provider["path"] = str(ROOT / provider["path"])
        # The engine takes the plugin from here, whatever its version, and asks no server for one.
        plugin = tools["pulumi-resource-kubernetes"].parent
        project["plugins"]["providers"].append({"name": "kubernetes", "path": str(plugin)})
        (folder / "Pulumi.yaml").write_text(yaml.safe_dump(project))
        self.stack = automation.create_or_select_stack(
            stack_name=name,
            project_name=project["name"],
            program=self._run,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(folder),
                pulumi_command=automation.PulumiCommand(root=str(cli.parent.parent)),
                env_vars={
                    "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
                    "PULUMI_CONFIG_PASSPHRASE": "correct horse",
                    "PULUMI_SKIP_UPDATE_CHECK": "true",
                    "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
                },
            ),
        )

    def _run(self) -> None:
        provider = pulumi_kubernetes.Provider(
            "control-plane",  # the program under test may make one named kubernetes
            kubeconfig=str(self._kubeconfig),
            enable_config_map_mutable=True,
            enable_secret_mutable=True,
        )
        self.program(pulumi.ResourceOptions(provider=provider))

    def up(self) -> dict[str, int]:
        """`pulumi up`; how many resources met which fate ("create": 3)."""
        return dict(self.stack.up(color="never").summary.resource_changes or {})

    def preview(self) -> dict[str, int]:
        """`pulumi preview`; the same counts."""
        summary = self.stack.preview(color="never").change_summary
        return {str(getattr(kind, "value", kind)): count for kind, count in summary.items()}

    def refresh(self) -> dict[str, int]:
        """`pulumi refresh`."""
        return dict(self.stack.refresh(color="never").summary.resource_changes or {})

    def destroy(self) -> dict[str, int]:
        """`pulumi destroy`."""
        return dict(self.stack.destroy(color="never").summary.resource_changes or {})

    @property
    def outputs(self) -> dict[str, object]:
        """What the program exported."""
        return {name: output.value for name, output in self.stack.outputs().items()}
