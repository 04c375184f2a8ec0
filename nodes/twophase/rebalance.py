"""A server that owns partitions without being in sync fetches full copies of them from their primaries.

The primary lets nothing prepare on these partitions, waits until what is prepared there is over, and sends rows and the
fates of transactions. It lets go when the log says "rebalanced", when the other node leaves, or when it is primary no
more. The entry counts only where the source is primary still: a new primary has not waited.

The copy goes into the log as one record. From then on the log of this node alone does not make its data as of an
earlier cut: the node refuses cuts until the next base snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.twophase.agreed import Agreed, Entry
from nodes.twophase.preparing import Preparing
from nodes.twophase.recovery import Recovery
from nodes.twophase.sometimes import REBALANCE_REFUSED, REBALANCED
from nodes.twophase.stock import Send, Stock


class Rebalance:
    def __init__(
        self,
        stock: Stock,
        agreed: Agreed,
        preparing: Preparing,
        recovery: Recovery,
        send: Send,
        propose: Callable[[Entry], None],
        withdraw: Callable[[Entry], None],
    ) -> None:
        self._stock = stock
        self._agreed = agreed
        self._preparing = preparing
        self._recovery = recovery
        self._send = send
        self._propose = propose
        self._withdraw = withdraw
        self._asked: dict[str, tuple[int, int]] = {}
        """Source → its life, and the version at which we asked it."""
        self._entries: list[Entry] = []
        self._serving: dict[tuple[str, int], list[int]] = {}
        """(node, life) → partitions of which it gets a copy, or has one that is not in the log yet."""
        self._unsent: set[tuple[str, int]] = set()

    # ---- the node that lacks data

    def pursue(self) -> None:
        """At each beat: ask for what we lack."""
        site, agreed = self._stock.site, self._agreed
        if not agreed.is_member(site.name, site.life):
            return
        wanted: dict[str, list[int]] = {}
        for partition in agreed.missing(site.name):
            source = agreed.primary(partition)
            if source is not None:
                wanted.setdefault(source, []).append(partition)
        for source, partitions in wanted.items():
            asked = (agreed.life_of(source), agreed.version)
            if source not in self._asked:
                self._asked[source] = asked
                self._send(source, "copy?", ["copy", agreed.version, partitions])

    def take_copy(self, source: str, life: int, ok: bool, copies: list[Any], outcomes: list[Any]) -> None:
        site, stock = self._stock.site, self._stock
        if not ok:
            site.sometimes.note(REBALANCE_REFUSED)
            self._asked.pop(source, None)
            return
        partitions = [partition for partition, _ in copies]
        entry = ["rebalanced", site.name, site.life, source, life, partitions]

        def on_disk() -> None:
            stock.install(copies, outcomes)
            self._recovery.rebalanced(outcomes)
            self._entries.append(entry)
            self._propose(entry)

        stock.wal.append(["rebalanced", copies, outcomes], on_disk)

    # ---- the primary

    def take_request(self, node: str, life: int, version: int, partitions: list[int]) -> None:
        agreed = self._agreed
        if version < agreed.version or any(agreed.primary(p) != self._stock.site.name for p in partitions):
            self._send(node, "copy", ["copy", False, [], []])
            return
        self._serving[node, life] = partitions
        self._unsent.add((node, life))
        self._note_copying()
        self.send_if_quiet()

    def send_if_quiet(self) -> None:
        """When nothing is prepared on the partitions any more."""
        if not self._unsent:
            return
        busy = self._stock.busy()
        for node, life in sorted(self._unsent):
            partitions = self._serving[node, life]
            if busy.isdisjoint(partitions):
                self._unsent.discard((node, life))
                copies = [[partition, self._stock.data.rows(partition)] for partition in partitions]
                outcomes = [[xid, committed] for xid, committed in self._stock.outcomes.items()]
                self._send(node, "copy", ["copy", True, copies, outcomes])

    def _note_copying(self) -> None:
        self._preparing.copying.clear()
        self._preparing.copying.update(p for partitions in self._serving.values() for p in partitions)

    # ---- the topology

    def changed(self, entry: Entry) -> None:
        """An entry that changes members or owners in sync was delivered."""
        agreed, name = self._agreed, self._stock.site.name
        if entry[0] == "rebalanced":
            if entry in self._entries:
                self._entries.remove(entry)
                self._asked.pop(entry[3], None)
                self._stock.site.sometimes.note(REBALANCED)
            if entry[3] == name:
                self._serving.pop((entry[1], entry[2]), None)
                self._unsent.discard((entry[1], entry[2]))
        for source, (life, _) in list(self._asked.items()):
            if not agreed.is_member(source, life):
                del self._asked[source]
                for stale in [each for each in self._entries if each[3] == source]:
                    self._entries.remove(stale)
                    self._withdraw(stale)
        for (node, life), partitions in list(self._serving.items()):
            if not agreed.is_member(node, life):
                self._serving.pop((node, life))
                self._unsent.discard((node, life))
            elif any(agreed.primary(partition) != name for partition in partitions):
                kept = [partition for partition in partitions if agreed.primary(partition) == name]
                if (node, life) in self._unsent:
                    self._unsent.discard((node, life))
                    self._send(node, "copy", ["copy", False, [], []])
                    kept = []
                self._serving[node, life] = kept
                if not kept:
                    del self._serving[node, life]
        self._note_copying()
