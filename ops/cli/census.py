"""`comemory census`: how much there is, per collection, tenant and scope."""

from __future__ import annotations

from ops.cli.execute import execute
from ops.cli.options import AsJson, Collection, Scope, SettingsFile, Tenant, read_settings, selection
from ops.jobs.census import CensusJob
from ops.jobs.registry import Registered


def census(
    *,
    settings_file: SettingsFile = None,
    collection: Collection = None,
    tenant: Tenant = None,
    scope: Scope = None,
    as_json: AsJson = False,
) -> None:
    """Count points by collection, tenant and scope; it changes nothing."""
    settings = read_settings(settings_file)
    execute(
        Registered("census", CensusJob(), "census"), settings, selection(collection, tenant, scope), as_json=as_json
    )
