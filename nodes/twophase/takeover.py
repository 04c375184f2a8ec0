"""A new primary serves a partition only when no transaction of the former primary is undecided there.

The former primary may have left in the middle of a prepare: one backup has it, and the next primary does not. Recovery
may still commit it, once the new primary has left, too. So each owner in sync sends `clear` when no transaction with
writes in the partition is open on it, and the new primary lets locks and prepares wait until all have sent it. Apache
Ignite does the same: its exchange of partitions waits for the transactions of the old topology.
"""

from __future__ import annotations

from nodes.twophase.agreed import Agreed
from nodes.twophase.sometimes import TAKEOVER_WAITED
from nodes.twophase.stock import Send, Stock


class Takeover:
    def __init__(self, stock: Stock, agreed: Agreed, send: Send) -> None:
        self._stock = stock
        self._agreed = agreed
        self._send = send
        self._since = [0] * len(agreed.in_sync)
        """`Agreed.since` at the last call of `changed`."""
        self._waits: dict[int, set[str]] = {}
        """Partition of which this node is the new primary → the owners that have not sent `clear`."""
        self._owes: set[int] = set()
        """Partitions whose new primary waits for this node's `clear`."""

    @property
    def is_over(self) -> bool:
        return not self._waits

    def changed(self) -> None:
        """The topology is newer."""
        name, agreed = self._stock.site.name, self._agreed
        for partition, in_sync in enumerate(agreed.in_sync):
            if self._since[partition] != agreed.since[partition]:
                self._since[partition], primary = agreed.since[partition], agreed.primary(partition)
                self._owes.discard(partition)
                self._waits.pop(partition, None)
                if primary == name:
                    self._waits[partition] = set(in_sync)
                elif primary is not None and name in in_sync:
                    self._owes.add(partition)
            if partition in self._waits:
                self._waits[partition] &= {*in_sync} - {name}  # who has left is not in sync when it is back
                self._drop_if_clear(partition)
        self._stock.site.sometimes.note(TAKEOVER_WAITED, len(self._owes & self._stock.busy()))
        self.look()

    def look(self) -> None:
        """Send `clear` where it is due, after a transaction has ended on this node."""
        if not self._owes:
            return
        clear: dict[tuple[str, int], list[int]] = {}
        for partition in sorted(self._owes - self._stock.busy()):
            primary = self._agreed.primary(partition)
            if primary is None:
                continue
            clear.setdefault((primary, self._since[partition]), []).append(partition)
            self._owes.discard(partition)
        for (primary, since), partitions in clear.items():
            self._send(primary, "clear", ["clear", since, partitions])

    def take_clear(self, owner: str, since: int, partitions: list[int]) -> None:
        for partition in partitions:
            if partition in self._waits and self._since[partition] == since:
                self._waits[partition].discard(owner)
                self._drop_if_clear(partition)

    def _drop_if_clear(self, partition: int) -> None:
        if not self._waits[partition]:
            del self._waits[partition]
