"""The ops daemon on Kubernetes: what a person may set (`settings`), the daemon's own settings file
(`configuration`), its pod (`workload`), and the component that puts them together with a token, a Lease and a
network policy.
"""

from infra.components.ops_daemon.component import OpsDaemon
from infra.components.ops_daemon.settings import OpsDaemonSettings

__all__ = ["OpsDaemon", "OpsDaemonSettings"]
