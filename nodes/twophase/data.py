"""The rows of one server, by partition, and the partition of a key."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from nodes.iproto.packing import pack

Place = tuple[str, str | int]
"""Space and key."""

Row = Sequence[Any]
"""[space, key, value, version]; versions of a key count its commits."""

GUARD = 0
"""The version of a guard, a write that changes nothing: the transaction only reads the key, which stays locked."""


def partition_of(place: Place, partitions: int) -> int:
    return crc32(pack(place)) % partitions


class Data:
    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._rows: list[dict[Place, tuple[object, int]]] = [{} for _ in range(partitions)]

    def get(self, place: Place) -> tuple[object, int]:
        """Value and version; None and 0 if there is none."""
        return self._rows[partition_of(place, self._partitions)].get(place, (None, 0))

    def apply(self, writes: Iterable[Row]) -> None:
        """Apply writes. A backup may get two commits in the wrong order: the newer version stays."""
        for space, key, value, version in writes:
            place = (space, key)
            if version > self.get(place)[1]:
                self._rows[partition_of(place, self._partitions)][place] = (value, version)

    def rows(self, partition: int) -> list[list[Any]]:
        return [
            [space, key, value, version]
            for (space, key), (value, version) in sorted(
                self._rows[partition].items(), key=lambda row: (row[0][0], str(row[0][1]))
            )
        ]

    def replace(self, partition: int, rows: Iterable[Row]) -> None:
        self._rows[partition] = {(space, key): (value, version) for space, key, value, version in rows}
