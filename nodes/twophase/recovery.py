"""The fate of transactions that have lost their near node.

A participant in doubt asks all owners in sync of all partitions of the transaction (`check`). One that committed →
commit. Else one that rolled back, or has no PREPARED record → roll back. Else all are prepared → commit. A full copy of
a partition replaces the writes that were prepared on it before, as if there were no PREPARED record.

An answer counts only for the version of the topology of its question. A node that has learned that the near node left
takes no prepare and no finish from it any more, but it may get a copy, and be in sync by that.

Two participants may ask different nodes, because owners leave and join meanwhile, and would decide differently. So the
decision goes into the discovery log ("resolved"): the first one counts, for all.

A participant that has restarted may be in doubt about a transaction with a near node that lives: it asks that one
(`outcome?`). In one phase the near node decides nothing, and is not asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from nodes.twophase.agreed import Agreed, Entry
from nodes.twophase.finishing import Finishing
from nodes.twophase.sometimes import ASKED_NEAR, CHECK_WAITED, IN_DOUBT_AT_START
from nodes.twophase.stock import Local, Send, Stock

COMMITTED, ROLLED_BACK, PREPARED, ABSENT = "committed", "rolled back", "prepared", "absent"


@dataclass(slots=True)
class Doubt:
    local: Local
    answers: dict[tuple[str, int], tuple[str, list[int]]] = field(default_factory=dict)
    """(node, life) → the state of the transaction, and its partitions that are prepared there."""
    asked: set[tuple[str, int]] = field(default_factory=set)
    """The lives that were asked. Asking once is enough: sessions lose no message while a life lasts."""
    version: int = 0
    """The version of the topology on which this node asks."""

    def begin_anew(self, version: int) -> None:
        self.version = version
        self.answers.clear()
        self.asked.clear()


class Recovery:
    def __init__(
        self,
        stock: Stock,
        agreed: Agreed,
        finishing: Finishing,
        send: Send,
        propose: Callable[[Entry], None],
    ) -> None:
        self._stock = stock
        self._agreed = agreed
        self._finishing = finishing
        self._send = send
        self._propose = propose
        self.doubts: dict[str, Doubt] = {}

    def doubt(self, local: Local) -> None:
        self.doubts.setdefault(local.xid, Doubt(local))

    def doubt_at_start(self, local: Local) -> None:
        self._stock.site.sometimes.note(IN_DOUBT_AT_START)
        self.doubt(local)

    def pursue(self) -> None:
        """Ask the owners that were not asked, and decide when all have answered; at each beat and change of members."""
        if self._agreed.is_member(self._stock.site.name, self._stock.site.life):
            for xid in list(self.doubts):
                self._pursue(xid)

    def _pursue(self, xid: str) -> None:
        doubt, agreed = self.doubts[xid], self._agreed
        local = doubt.local
        near = (local.near, local.near_life)
        if local.commits is not None:
            del self.doubts[xid]
        elif xid in agreed.resolved:
            self.resolve(xid)
        elif local.one_phase or agreed.has_left(*near):
            self._ask(doubt)
        elif near not in doubt.asked:
            doubt.asked.add(near)
            self._stock.site.sometimes.note(ASKED_NEAR)
            self._send(local.near, "outcome?", [xid, agreed.version])

    def _ask(self, doubt: Doubt) -> None:
        agreed, local = self._agreed, doubt.local
        if doubt.version != agreed.version:
            doubt.begin_anew(agreed.version)
        owners = [agreed.in_sync[partition] for partition in local.partitions]
        here = (self._stock.site.name, self._stock.site.life)
        doubt.answers[here] = self.state_of(local.xid)
        is_complete = True
        for node in dict.fromkeys(owner for in_sync in owners for owner in in_sync):
            life = agreed.life_of(node)
            if not life:
                is_complete = False  # an owner has to come back: only it knows
            elif (node, life) not in doubt.answers:
                is_complete = False
                if (node, life) not in doubt.asked:
                    doubt.asked.add((node, life))
                    self._send(node, "check", [local.xid, agreed.version])
        if is_complete:
            self._propose(["resolved", local.xid, self._commits(doubt)])

    def _commits(self, doubt: Doubt) -> bool:
        agreed = self._agreed
        states = {node: answer for (node, _), answer in doubt.answers.items()}
        owners = {p: agreed.in_sync[p] for p in doubt.local.partitions}
        of_owners = [states[node][0] for in_sync in owners.values() for node in in_sync]
        # First: a commit may have been answered, whatever the other owners have.
        if COMMITTED in of_owners:
            return True
        if ROLLED_BACK in of_owners:
            return False
        return all(p in states[node][1] for p, in_sync in owners.items() for node in in_sync)

    def state_of(self, xid: str) -> tuple[str, list[int]]:
        local = self._stock.locals.get(xid)
        committed = self._stock.outcomes.get(xid)
        if local is not None and local.commits is not None:
            committed = local.commits
        if committed is not None:
            return (COMMITTED if committed else ROLLED_BACK), []
        if local is not None and local.prepared:
            return PREPARED, [partition for partition in local.prepared if partition not in local.replaced]
        return ABSENT, []

    # ---- messages and entries

    def take_check(self, peer: str, xid: str, version: int) -> None:
        """Answer a check. In one phase a backup decides by its record: before that it may die without a trace."""
        local = self._stock.locals.get(xid)
        if local is not None and local.one_phase and local.commits and local.position < 0:
            self._stock.site.sometimes.note(CHECK_WAITED)
            return local.readers.append(lambda: self.take_check(peer, xid, version))
        return self._send(peer, "checked", [xid, version, *self.state_of(xid)])

    def take_checked(
        self, peer: str, life: int, xid: str, version: int, state: str, prepared: list[int]
    ) -> None:
        doubt = self.doubts.get(xid)
        if doubt is not None and doubt.version == version:
            doubt.answers[peer, life] = (state, prepared)
            self._pursue(xid)

    def take_outcome(self, xid: str, commits: bool, sign: object) -> None:
        doubt = self.doubts.pop(xid, None)
        if doubt is not None:
            self._finishing.finish(doubt.local, commits, sign)

    def resolve(self, xid: str) -> None:
        """The discovery log has the outcome of a transaction."""
        doubt = self.doubts.pop(xid, None)
        if doubt is not None:
            commits = self._agreed.resolved.get(xid)
            assert commits is not None, xid
            self._finishing.finish(doubt.local, commits, is_recovered=True)

    def rebalanced(self, committed: Collection[str]) -> None:
        """A full copy came with the transactions that its source has committed."""
        for xid in committed:
            if xid in self.doubts:
                self._finishing.finish(self.doubts.pop(xid).local, True, is_recovered=True)
