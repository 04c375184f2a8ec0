"""A server that owns partitions without being in sync fetches full copies of them from their primaries.

The primary stops prepares on these partitions, waits until all prepared transactions there have ended, and sends the
rows and the transactions that it has committed. It allows prepares again when the log has "rebalanced", when the other
node leaves, or when it is not the primary any more. A copy and its entry count only if the source has been the primary
since it was asked: a different primary has not waited. Messages and entries carry the version of that request.

A copy does not contain rollbacks. The source may have rolled back as the owner of a partition in which it is not in
sync any more; recovery does not ask it there, and may commit.

The copy goes into the log as one record. From then on the log of this node does not contain its data as of an earlier
cut: the node refuses cuts until the next base snapshot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.twophase.agreed import Agreed, Entry
from nodes.twophase.preparing import Preparing
from nodes.twophase.recovery import Recovery
from nodes.twophase.sometimes import COPY_TOO_LATE, REBALANCE_REFUSED, REBALANCED
from nodes.twophase.stock import Send, Stock

Request = tuple[str, int, int]
"""The node that asked, its life, and the version of the topology then."""


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
        self._serving: dict[Request, list[int]] = {}
        """Request → the partitions of a copy that is being made, or that is not in the discovery log yet."""
        self._unsent: set[Request] = set()

    # ---- the node that lacks data

    def pursue(self) -> None:
        """Ask for the missing partitions, at each beat."""
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

    def take_copy(
        self, source: str, life: int, version: int, copies: list[Any], committed: list[str]
    ) -> None:
        """`copies`: [[partition, rows], …]; none if the source refuses. Only the answer to the last request counts."""
        site, stock, agreed = self._stock.site, self._stock, self._agreed
        if not self._is_asked(source, life, version):
            return
        missing = agreed.missing(site.name)
        late = [p for p, _ in copies if p not in missing or not agreed.is_primary_since(source, p, version)]
        site.sometimes.note(COPY_TOO_LATE, len(late))
        copies = [copy for copy in copies if copy[0] not in late]
        if not copies:
            site.sometimes.note(REBALANCE_REFUSED)
            del self._asked[source]
            return
        entry = ["rebalanced", site.name, site.life, source, life, version, [p for p, _ in copies]]

        def on_disk() -> None:
            # Only now: this node counts as in sync with the copy, so it must not lose it.
            stock.install(copies, committed)
            self._recovery.rebalanced(committed)
            if self._is_asked(source, life, version):
                self._entries.append(entry)
                self._propose(entry)

        stock.wal.append(["rebalanced", copies, committed], on_disk)

    def _is_asked(self, source: str, life: int, version: int) -> bool:
        return self._asked.get(source) == (life, version)

    # ---- the primary

    def take_request(self, node: str, life: int, version: int, partitions: list[int]) -> None:
        agreed = self._agreed
        if version < agreed.version or any(agreed.primary(p) != self._stock.site.name for p in partitions):
            return self._refuse(node, version)
        self._serving[node, life, version] = partitions
        self._unsent.add((node, life, version))
        self._note_copying()
        return self.send_if_quiet()

    def _refuse(self, node: str, version: int) -> None:
        self._send(node, "copy", ["copy", self._agreed.version, version, [], []])

    def send_if_quiet(self) -> None:
        """Send the copies of partitions without prepared transactions."""
        if not self._unsent:
            return
        busy = self._stock.busy()
        for request in sorted(self._unsent):
            partitions = self._serving[request]
            if busy.isdisjoint(partitions):
                self._unsent.discard(request)
                copies = [[partition, self._stock.data.rows(partition)] for partition in partitions]
                committed = [xid for xid, commits in self._stock.outcomes.items() if commits]
                node, _, version = request
                self._send(node, "copy", ["copy", self._agreed.version, version, copies, committed])

    def _note_copying(self) -> None:
        self._preparing.copying.clear()
        self._preparing.copying.update(p for partitions in self._serving.values() for p in partitions)

    # ---- the topology

    def changed(self, entry: Entry) -> None:
        """An entry that changes members or owners in sync was delivered."""
        agreed, name = self._agreed, self._stock.site.name
        if entry[0] == "rebalanced":
            _, node, life, source, source_life, version, _ = entry
            if entry in self._entries:
                self._entries.remove(entry)
                self._stock.site.sometimes.note(REBALANCED)
                if self._is_asked(source, source_life, version):
                    del self._asked[source]
            if source == name:
                self._let_go((node, life, version))
        for source, (life, _) in list(self._asked.items()):
            if not agreed.is_member(source, life):
                del self._asked[source]
                for stale in [proposed for proposed in self._entries if proposed[3] == source]:
                    self._entries.remove(stale)
                    self._withdraw(stale)
        for request, partitions in list(self._serving.items()):
            node, life, version = request
            unmoved = [p for p in partitions if agreed.is_primary_since(name, p, version)]
            if not agreed.is_member(node, life):
                self._let_go(request)
            elif len(unmoved) < len(partitions):
                if request in self._unsent:
                    self._refuse(node, version)
                    unmoved = []
                self._serving[request] = unmoved
                if not unmoved:
                    self._let_go(request)
        self._note_copying()

    def _let_go(self, request: Request) -> None:
        self._serving.pop(request, None)
        self._unsent.discard(request)
