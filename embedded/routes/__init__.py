"""The parts of the REST interface: each module lists its routes, and `table` is all of them."""

from __future__ import annotations

from embedded.routes import aliases, collections, indexes, points, query, service, unsupported, vectors, writes
from embedded.routes.base import Route

table: list[Route] = [
    *service.ROUTES,
    *aliases.ROUTES,
    *collections.ROUTES,
    *indexes.ROUTES,
    *points.ROUTES,
    *vectors.ROUTES,
    *writes.ROUTES,
    *query.ROUTES,
    *unsupported.ROUTES,
]
