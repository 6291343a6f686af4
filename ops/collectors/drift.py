"""Drift: how many things of a collection, and of the server's layout, are not as they should be."""

from __future__ import annotations

from collections import Counter

from comemory.declaration import Declared
from comemory.live import LiveCollection
from ops.collectors.base import Target
from ops.declared import read_declared
from ops.drift import COLLECTION_KINDS, LAYOUT_KINDS, collection_drift, layout_drift
from ops.metrics import SCHEMA_DRIFT
from ops.settings import Settings
from ops.snapshot import Sample


class DriftCollector:
    """One request per collection; every kind of drift has a series, at 0 where there is none."""

    name = "drift"

    def collect(self, target: Target) -> list[Sample]:
        """Compare the collection with its declaration, or with what every one needs."""
        name = target.collection
        live = LiveCollection.from_rest(name, target.session.collection(name))
        found = Counter(d.kind for d in collection_drift(live, declared_as(target.settings, name)))
        return [Sample(SCHEMA_DRIFT, (name, kind), found[kind]) for kind in COLLECTION_KINDS]


class LayoutCollector:
    """Two requests: collections that are missing, and aliases that are wrong or lead nowhere."""

    name = "layout"

    def collect(self, target: Target) -> list[Sample]:
        """Compare names and aliases; declared collections have series at 0 where all is well."""
        declared = all_declared(target.settings)
        session, settings = target.session, target.settings.collections
        drifts = layout_drift(settings, declared, session.collections(), session.aliases())
        found = Counter({(one.spec.name, kind): 0 for one in declared for kind in LAYOUT_KINDS})
        found.update((d.collection, d.kind) for d in drifts)
        return [Sample(SCHEMA_DRIFT, key, count) for key, count in sorted(found.items())]


def all_declared(settings: Settings) -> tuple[Declared, ...]:
    """What the settings' file declares; empty when they name none. Raises SettingsError for an unusable file."""
    file = settings.collections.declared
    return () if file is None else read_declared(file)


def declared_as(settings: Settings, name: str) -> Declared | None:
    """The declaration of one collection, or None."""
    return next((one for one in all_declared(settings) if one.spec.name == name), None)
