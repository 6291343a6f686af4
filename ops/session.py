"""What the jobs ask of Qdrant, with paging and with filters of `qdrant-client` sent as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

import orjson
from qdrant_client import models

from ops.errors import PageTooLarge
from ops.transport import Json, Transport

PointId = int | str

FACET_PAGE = 10_000
"""How many distinct values one facet request asks for; the server's own default is 10."""


class Session(Transport):
    """A client of one Qdrant endpoint that speaks in collections and points."""

    def version(self) -> str:
        """The server's version, such as `1.19.0`."""
        return str(self.request("GET", "/")["version"])

    def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        return sorted(c["name"] for c in self.request("GET", "/collections")["collections"])

    def aliases(self) -> dict[str, str]:
        """Alias to collection name."""
        found = self.request("GET", "/aliases")["aliases"]
        return {a["alias_name"]: a["collection_name"] for a in found}

    def collection(self, name: str) -> dict[str, Any]:
        """What the server says of a collection: status, counts, config and payload_schema."""
        info: dict[str, Any] = self.request("GET", _path(name), collection=name)
        return info

    def count(self, name: str, condition: models.Filter | None = None) -> int:
        """The exact number of points that match."""
        body = {"exact": True, **_filter(condition)}
        return int(self.request("POST", _path(name, "points/count"), body, collection=name)["count"])

    def facet(
        self,
        name: str,
        key: str,
        condition: models.Filter | None = None,
        *,
        exact: bool = True,
        most: int | None = None,
    ) -> dict[Any, int]:
        """Every distinct value of `key` with its count, most frequent first, however many there are.

        With `most` it stops when it has so many, or more.

        Without `exact` it is some thirty times faster, and a point that is just being moved from one segment to
        another may be counted twice.

        The server has no cursor for facets, so a further page asks for what the pages before did not show. Past the
        first page, a value that only ever stands in a list beside values already seen is not found.
        """
        found: dict[Any, int] = {}
        page = FACET_PAGE
        while True:
            unseen = condition
            if found:
                seen = models.FieldCondition(key=key, match=models.MatchAny(any=list(found)))
                must = [condition] if condition is not None else None
                unseen = models.Filter(must=must, must_not=[seen])
            body = {"key": key, "exact": exact, "limit": page, **_filter(unseen)}
            try:
                hits = self.request("POST", _path(name, "facet"), body, collection=name)["hits"]
            except PageTooLarge as smaller:
                page = smaller.limit
                continue
            new = {hit["value"]: hit["count"] for hit in hits if hit["value"] not in found}
            found.update(new)
            if len(hits) < page or not new or (most is not None and len(found) >= most):
                # Values whose last point was deleted linger in the index for a while, with a count of 0.
                return {value: count for value, count in found.items() if count}

    def scroll(
        self,
        name: str,
        condition: models.Filter | None = None,
        *,
        payload: bool | Sequence[str] = False,
        vector: bool | Sequence[str] = False,
        page: int = 1000,
        start: PointId | None = None,
    ) -> Iterator[list[dict[str, Any]]]:
        """Pages of points in order of id, as the server's JSON: `id`, and `payload` and `vector` when asked for.

        `start` is the lowest id wanted; numbers come before UUIDs.
        """
        offset = start
        while True:
            body = {"limit": page, "offset": offset, "with_payload": payload, "with_vector": vector}
            try:
                answer = self.request(
                    "POST", _path(name, "points/scroll"), body | _filter(condition), collection=name
                )
            except PageTooLarge as smaller:
                page = smaller.limit
                continue
            if answer["points"]:
                yield answer["points"]
            offset = answer.get("next_page_offset")
            if offset is None:
                return

    def first_by(
        self, name: str, key: str, conditions: Sequence[models.Filter], *, payload: bool | Sequence[str] = False
    ) -> list[dict[str, Any] | None]:
        """For each condition the matching point with the lowest `key`, or None; one request for all of them."""
        searches = [
            {
                "query": {"order_by": {"key": key, "direction": "asc"}},
                "limit": 1,
                "with_payload": payload,
                **_filter(c),
            }
            for c in conditions
        ]
        path = _path(name, "points/query/batch")
        answers = self.request("POST", path, {"searches": searches}, collection=name)
        return [answer["points"][0] if answer["points"] else None for answer in answers]

    def retrieve(
        self,
        name: str,
        ids: Sequence[PointId],
        *,
        payload: bool | Sequence[str] = False,
        vector: bool | Sequence[str] = False,
    ) -> list[dict[str, Any]]:
        """The points of these ids that exist."""
        body = {"ids": list(ids), "with_payload": payload, "with_vector": vector}
        points: list[dict[str, Any]] = self.request("POST", _path(name, "points"), body, collection=name)
        return points

    def delete(self, name: str, condition: models.Filter | Callable[[], models.Filter | None]) -> None:
        """Delete every point that matches, and return when it is done.

        Args:
            condition: Or a function that gives it (None: nothing is to be deleted any more), asked before each try:
                what it looks at may change while a busy server is waited for.

        Raises:
            ValueError: the filter has no clause; it would delete everything.
        """
        path = _path(name, "points/delete?wait=true")

        def attempt() -> Json:
            made = condition if isinstance(condition, models.Filter) else condition()
            if made is None:
                return None
            body = _filter(made)
            if not body.get("filter"):
                raise ValueError("refusing to delete by an empty filter: it matches every point")
            return self.send("POST", path, orjson.dumps(body), name)

        self.again(attempt, f"POST {path}")


def _path(collection: str, rest: str = "") -> str:
    return f"/collections/{quote(collection, safe='')}" + (f"/{rest}" if rest else "")


def _filter(condition: models.Filter | None) -> dict[str, Any]:
    if condition is None:
        return {}
    return {"filter": condition.model_dump(mode="json", exclude_none=True, by_alias=True)}
