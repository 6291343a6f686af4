"""The collections and aliases in one folder, each collection an engine shard with its settings beside it.

A collection is there once its `collection.json` is; a folder without one was left by a crash, and is removed at
start.
Every write is in the engine's write-ahead log before it is acknowledged, and loading a shard replays the log.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as engine

from embedded import optimize, settings
from embedded.convert import to_json
from embedded.errors import ApiError, NotFound, WrongInput, engine_errors
from embedded.files import Counter, FolderLock, free_bytes, read_json, size_of, sync_folder, write_json

Result = TypeVar("Result")
Update = engine.UpdateOperation
IDLE_FLUSH_SECONDS = 30.0
# Optimizing begins when this much was written since the last time, and then nothing for a while.
OPTIMIZE_POINTS = 10_000
OPTIMIZE_SHARE = 0.2
OPTIMIZE_QUIET_SECONDS = 10.0
# A copy that misses more than this is given up: somebody is loading data.
_MISSED_AT_MOST = 500
# The engine writes to mapped files, and a page that finds no room ends the process with no word.
RESERVED_BYTES = 64 * 2**20
logger = logging.getLogger(__name__)


class Collection:
    """One collection: its settings, its shard (loaded at first use) and the number of its next operation."""

    def __init__(
        self, folder: Path, name: str, config: dict[str, Any], shard: engine.EdgeShard | None = None
    ) -> None:
        self.folder = folder
        self.name = name
        self.config = config
        self.lock = threading.RLock()
        self.dirty_since: float | None = None
        self.deleted = False
        self._shard = shard
        self._schema: dict[str, dict[str, Any]] | None = None
        self._operations = Counter(folder / "operations")
        self._touched = 0
        self._last_write = time.monotonic()
        self._missed: list[engine.UpdateOperation] | None = None
        self._copy: optimize.Copy | None = None
        self._describe()

    def _describe(self) -> None:
        self.dense = settings.dense(self.config)
        self.sparse = settings.sparse(self.config)
        self.strict = self.config.get("strict_mode_config") or {}

    @classmethod
    def create(cls, folder: Path, name: str, config: dict[str, Any]) -> Collection:
        """Make the folder, the shard and, last, the file that says the collection is there."""
        edge = settings.edge_config(config)
        require_room(folder.parent)
        folder.mkdir(parents=True)
        try:
            with engine_errors():
                shard = engine.EdgeShard.create(str(folder / "shard"), edge)
            collection = cls(folder, name, config, shard)
            # A server numbers the first write 1; the engine's log, and with it the version of a point, begins at 0.
            collection.update(Update.delete_points([]))
            collection.save()
            sync_folder(folder.parent)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return collection

    @classmethod
    def open(cls, folder: Path) -> Collection:
        """Read the settings; the shard is loaded when something asks for it."""
        optimize.recover(folder)
        stored = read_json(folder / "collection.json")
        return cls(folder, stored["name"], stored["config"])

    def save(self) -> None:
        """Write the settings."""
        write_json(self.folder / "collection.json", {"name": self.name, "config": self.config})

    def change(self, config: dict[str, Any]) -> None:
        """Replace the settings."""
        settings.edge_config(config)  # refuses what the engine cannot take
        with self.lock:
            self.config = config
            self._describe()
            self.save()

    @property
    def shard(self) -> engine.EdgeShard:
        """The engine's shard."""
        shard = self._shard
        if shard is None:
            with self.lock:
                if self.deleted:
                    raise NotFound.collection(self.name)
                if self._shard is None:
                    with engine_errors():
                        self._shard = engine.EdgeShard.load(str(self.folder / "shard"))
                shard = self._shard
        return shard

    def read(self, call: Callable[[engine.EdgeShard], Result]) -> Result:
        """Call the engine; a refusal is worded as the server words it."""
        while True:
            shard = self.shard
            try:
                with engine_errors():
                    return call(shard)
            except Exception:
                if self.deleted:
                    raise NotFound.collection(self.name) from None
                if self._shard is shard:
                    raise
                # An optimized copy has taken its place in between.

    def update(self, *operations: engine.UpdateOperation, points: int = 1) -> int:
        """Apply operations in order, which write about so many points; the number of the last one."""
        require_room(self.folder)
        with self.lock:
            shard = self.shard
            number = 0
            self._touched += points
            self._last_write = time.monotonic()
            if self._missed is not None:
                self._missed.extend(operations)
                if len(self._missed) > _MISSED_AT_MOST:
                    self._missed = None
            for operation in operations:
                number = self._operations.next()
                if self.dirty_since is None:
                    self.dirty_since = time.monotonic()
                with engine_errors():
                    shard.update(operation)
            return number

    def index_schema(self) -> dict[str, dict[str, Any]]:
        """Each indexed field with its `data_type` and, where it was given with parameters, its `params`."""
        schema = self._schema
        if schema is None:
            with self.lock:
                info = self.read(lambda shard: shard.info())
                schema = {field: index_json(index) for field, index in info.payload_schema.items()}
                self._schema = schema
        return schema

    def create_index(self, field: str, schema: Any) -> int:
        """Index a field. The same index again changes nothing; another one is dropped and built anew."""
        with self.lock:
            known = self.index_schema().get(field)
            changes = known is not None and known != described(schema)
            # A server numbers two operations here: dropping what does not fit, and building.
            first = Update.delete_field_index(field) if changes else Update.delete_points([])
            self._schema = None
            return self.update(first, Update.create_field_index(field, schema))

    def drop_index(self, field: str) -> int:
        """Drop a field's index; a field without one is no error."""
        with self.lock:
            self._schema = None
            return self.update(Update.delete_points([]), Update.delete_field_index(field))

    def counts(self) -> tuple[int, dict[str, int]]:
        """How many points there are, and how many of them have each vector."""
        points = self.read(lambda shard: shard.info()).points_count
        vectors = {}
        for name in (*self.dense, *self.sparse):
            vectors[name] = self._having(name) if points else 0
        return points, vectors

    def _having(self, vector: str) -> int:
        request = engine.CountRequest(False, engine.Filter(must=[engine.HasVectorCondition(vector)]))
        return self.read(lambda shard: shard.count(request))

    def flush(self) -> None:
        """Bring the segments to disk, so that less of the log is replayed and a power cut costs nothing."""
        with self.lock:
            if self._shard is not None and self.dirty_since is not None:
                self.dirty_since = None
                self._shard.flush()

    def wants_optimizing(self) -> bool:
        """Whether enough was written, and then nothing for a while."""
        if self._touched < OPTIMIZE_POINTS or time.monotonic() - self._last_write < OPTIMIZE_QUIET_SECONDS:
            return False
        return self._touched >= OPTIMIZE_SHARE * self.read(lambda shard: shard.info()).points_count

    def optimize(self) -> bool:
        """Optimize a copy of the shard and put it in place; whether that came about. Reads and writes go on."""
        with self.lock:
            if self.deleted:
                return False
            self._touched = 0
            # The copy, and what the process that optimizes it writes anew.
            require_room(self.folder, 2 * size_of(self.folder / "shard"))
            self.shard.flush()
            copy = self._copy = optimize.Copy(self.folder)
            self._missed = []
            config = self.config
        try:
            changed = copy.optimize(config)
            with self.lock:
                if self.deleted or not changed or self._missed is None:
                    return False
                shard, self._shard = self.shard, None
                shard.close()
                self._shard = copy.put_in_place(self._missed)
                self._schema = None
                return True
        finally:
            with self.lock:
                self._missed = self._copy = None
                copy.discard()

    def stop_optimizing(self) -> None:
        """Give up optimizing, if it is under way."""
        copy = self._copy
        if copy is not None:
            copy.stop()

    def close(self) -> None:
        """Flush and let go of the shard."""
        with self.lock:
            if self._shard is not None:
                self._shard.close()
                self._shard = None
            self._operations.close()

    def remove(self) -> None:
        """Delete everything: first the file that says the collection is there."""
        with self.lock:
            self.deleted = True
            self.stop_optimizing()
            (self.folder / "collection.json").unlink()
            sync_folder(self.folder)
            self.close()
            shutil.rmtree(self.folder, ignore_errors=True)


def require_room(folder: Path, more: int = 0) -> None:
    """Refuse what would fill the disk, as a server does; reading goes on."""
    free, needed = free_bytes(folder), RESERVED_BYTES + more
    if free < needed:
        raise ApiError(
            500,
            f"Service internal error: No space left on device: {free >> 20} MB are free and {needed >> 20} MB are "
            f"needed in {folder}",
        )


def described(schema: Any) -> dict[str, Any]:
    """An index to be made, in the form in which the engine reports it."""
    if isinstance(schema, engine.PayloadSchemaType):
        return {"data_type": to_json(schema)}
    kind = type(schema).__name__.removesuffix("IndexParams").lower()
    return {"data_type": kind, "params": _params(kind, schema)}


def _params(kind: str, schema: Any) -> dict[str, Any]:
    # A server always writes these three of an integer index, as null where they were not given.
    always = dict.fromkeys(("is_principal", "lookup", "range")) if kind == "integer" else {}
    given: dict[str, Any] = to_json(schema)
    return always | {"type": kind} | given


def index_json(index: Any) -> dict[str, Any]:
    """An index as the engine reports it, without the number of points."""
    kind = to_json(index.data_type)
    found: dict[str, Any] = {"data_type": kind}
    if index.params is not None:
        found["params"] = _params(kind, index.params)
    return found


class Store:
    """Every collection and alias of one data folder. Only one process may have a folder open."""

    def __init__(self, folder: Path) -> None:
        self._lock = FolderLock(folder)
        self.folder = folder
        self.lock = threading.RLock()
        self._making: set[str] = set()
        (folder / "collections").mkdir(exist_ok=True)
        self.collections: dict[str, Collection] = {}
        for path in sorted((folder / "collections").iterdir()):
            if (path / "collection.json").exists():
                collection = Collection.open(path)
                self.collections[collection.name] = collection
            else:
                shutil.rmtree(path)
        aliases = folder / "aliases.json"
        self.aliases: dict[str, str] = read_json(aliases) if aliases.exists() else {}
        # A crash between deleting a collection and writing the aliases leaves an alias of nothing.
        self.aliases = {alias: name for alias, name in self.aliases.items() if name in self.collections}

    def get(self, name: str) -> Collection:
        """The collection of that name or alias."""
        found = self.collections.get(name) or self.collections.get(self.aliases.get(name, ""))
        if found is None:
            raise NotFound.collection(name)
        return found

    @contextmanager
    def _reserve(self, name: str) -> Iterator[None]:
        with self.lock:
            if name in self.collections or name in self._making:
                raise WrongInput(f"Collection `{name}` already exists!", status=409)
            if name in self.aliases:
                raise WrongInput(
                    f"Can't create collection with name {name}. Alias with the same name already exists"
                )
            self._making.add(name)
        try:
            yield
        finally:
            with self.lock:
                self._making.discard(name)

    def create(self, name: str, config: dict[str, Any]) -> Collection:
        """Make a collection."""
        with self._reserve(name):
            collection = Collection.create(self.folder / "collections" / uuid.uuid4().hex, name, config)
            with self.lock:
                self.collections[name] = collection
            return collection

    def delete(self, name: str) -> bool:
        """Delete a collection by its own name, and its aliases; whether there was one."""
        with self.lock:
            collection = self.collections.pop(name, None)
            if collection is None:
                return False
            left = {alias: target for alias, target in self.aliases.items() if target != collection.name}
            if left != self.aliases:
                self.set_aliases(left)
        collection.remove()
        return True

    def set_aliases(self, aliases: dict[str, str]) -> None:
        """Replace all aliases in one step."""
        with self.lock:
            write_json(self.folder / "aliases.json", aliases)
            self.aliases = aliases

    def flush_idle(self) -> None:
        """Flush what was written a while ago."""
        for collection in list(self.collections.values()):
            since = collection.dirty_since
            if since is not None and time.monotonic() - since > IDLE_FLUSH_SECONDS:
                collection.flush()

    def optimize_quiet(self) -> None:
        """Optimize what was written to a lot and is quiet now."""
        for collection in list(self.collections.values()):
            try:
                if collection.wants_optimizing():
                    collection.optimize()
            except NotFound:
                continue  # deleted in between
            except Exception:
                logger.exception("collection %s was not optimized and serves as before", collection.name)

    def stop_optimizing(self) -> None:
        """Give up optimizing, so that the endpoint can stop."""
        for collection in list(self.collections.values()):
            collection.stop_optimizing()

    def close(self) -> None:
        """Flush and close everything."""
        for collection in self.collections.values():
            collection.close()
        self._lock.release()
