"""Which of many points share a hash, in little memory: 8 bytes for the hash and 8 or 16 for the id of each.

A million points take 16 to 24 MB, and finding those that share a hash about 50 MB more for a moment, however many
there are, because it is done for a part of all hashes at a time.
"""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise

from ops.session import PointId

PART = 250_000
"""About how many hashes are sorted at a time."""

Places = Sequence[int]
"""Where the points of one hash stand in a `PointGroups`; `PointGroups.ids` reads them."""


class PointGroups:
    """Points by hash. Numbers and UUIDs are kept apart, numbers first."""

    def __init__(self) -> None:
        self._number_hashes, self._numbers = array("Q"), array("Q")
        self._uuid_hashes, self._uuids = array("Q"), bytearray()

    def __len__(self) -> int:
        return len(self._number_hashes) + len(self._uuid_hashes)

    def add(self, points: Iterable[tuple[int, PointId]]) -> None:
        """Add points, each with its hash: 64 bits, no sign."""
        uuids = []
        for code, point in points:
            if isinstance(point, int):
                self._number_hashes.append(code)
                self._numbers.append(point)
            else:
                self._uuid_hashes.append(code)
                uuids.append(point)
        self._uuids += bytes.fromhex("".join(uuids).replace("-", ""))

    def shared(self) -> Iterator[Places]:
        """The places of the points of each hash that more than one has."""
        parts = 1 << (len(self) // PART).bit_length() if len(self) > PART else 1
        shift = 65 - parts.bit_length()
        for part in range(parts):
            yield from self._shared(part, shift)

    def _shared(self, part: int, shift: int) -> Iterator[Places]:
        everything = chain(self._number_hashes, self._uuid_hashes)
        codes = sorted(code for code in everything if code >> shift == part)
        several = {code for code, following in pairwise(codes) if code == following}
        del codes
        if not several:
            return
        found: dict[int, array[int]] = {}
        for place, code in enumerate(chain(self._number_hashes, self._uuid_hashes)):
            if code in several:
                found.setdefault(code, array("Q")).append(place)
        yield from found.values()

    def ids(self, places: Places) -> list[PointId]:
        """The ids of points at these places."""
        return [self._id(place) for place in places]

    def _id(self, place: int) -> PointId:
        numbers = len(self._numbers)
        if place < numbers:
            return self._numbers[place]
        start = (place - numbers) * 16
        return str(uuid.UUID(bytes=bytes(self._uuids[start : start + 16])))
