"""The messages of transactions: which role takes which, and which have to wait for a newer topology.

| word | from → to | payload |
|---|---|---|
| lock, locked, refused | near → primary → near | xid, version, space, key, mode; xid, space, key, value, version |
| prepare, prepared | near → primary → near | see `preparing.py`; xid, ok, why, sign |
| backup-prepare, backup-prepared | primary → backup → primary | the same |
| finish, finished | near → primary → near | xid, commits, sign; xid |
| backup-finish, backup-finished | primary → backup → primary | the same, and true if recovery has decided |
| check, checked | participant → participant | xid, version; the same, state, prepared partitions |
| outcome?, outcome | participant → near → participant | xid, version; xid, commits, sign |
| atomic, atomic-done | near → primary → near | xid, version, step; xid, "ok", "mismatch" or "fail", result or why |
| atomic-copy, atomic-copied | primary → backup → primary | xid, version, row; xid, ok, why |
| copy?, copy | owner → primary → owner | "copy", version, …; see `rebalance.py` |
| clear | owner → new primary | "clear", version, partitions; see `takeover.py` |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nodes.twophase.agreed import NOT_YET, Agreed
from nodes.twophase.atomic import Atomic
from nodes.twophase.finishing import Finishing
from nodes.twophase.links import ATOMIC
from nodes.twophase.near import Near
from nodes.twophase.preparing import Preparing
from nodes.twophase.rebalance import Rebalance
from nodes.twophase.recovery import Recovery
from nodes.twophase.site import Site
from nodes.twophase.sometimes import HELD_FOR_TOPOLOGY
from nodes.twophase.takeover import Takeover

VERSIONED = frozenset(
    {
        "lock",
        "prepare",
        "backup-prepare",
        "check",
        "outcome?",
        "copy?",
        "copy",
        "clear",
        "atomic",
        "atomic-copy",
    }
)
"""Their second field is the version of the topology on which they rest: their receiver knows the sender's life."""

PREPARES = frozenset({"lock", "prepare", "backup-prepare"})
SERVED = frozenset({"lock", "prepare", "atomic"})
"""What a new primary lets wait."""
FINISHES = frozenset({"finish", "backup-finish"})
WORDS = (
    (VERSIONED - ATOMIC)
    | FINISHES
    | {"locked", "refused", "prepared", "backup-prepared", "finished", "backup-finished"}
    | {"checked", "outcome", "copy"}
)
Takes = Callable[[str, int, list[Any]], None]
Held = tuple[str, int, str, list[Any]]


def described(message: object) -> tuple[str, str] | None:
    """For a host that records messages: word and xid. Those of atomic spaces are none of a cut's."""
    match message:
        case [str() as word, int(), _, str() as xid, *_] if word in WORDS:
            return word, xid
    return None


class Dispatch:
    def __init__(
        self,
        site: Site,
        agreed: Agreed,
        near: Near,
        preparing: Preparing,
        finishing: Finishing,
        recovery: Recovery,
        rebalance: Rebalance,
        takeover: Takeover,
        atomic: Atomic,
    ) -> None:
        self._site = site
        self._agreed = agreed
        self._takeover = takeover
        self._takes: dict[str, Takes] = {
            "lock": lambda peer, life, told: preparing.take_lock(peer, life, *told),
            "locked": lambda peer, life, told: near.take_locked(*told),
            "refused": lambda peer, life, told: near.take_refused(*told),
            "prepare": lambda peer, life, told: preparing.take_prepare(peer, life, *told),
            "prepared": lambda peer, life, told: near.take_prepared(peer, *told),
            "backup-prepare": lambda peer, life, told: preparing.take_backup_prepare(peer, life, *told),
            "backup-prepared": lambda peer, life, told: preparing.take_backup_prepared(peer, *told),
            "finish": lambda peer, life, told: finishing.take_finish(peer, life, "finished", *told),
            "finished": lambda peer, life, told: near.take_finished(peer, *told),
            "backup-finish": lambda peer, life, told: finishing.take_finish(
                peer, life, "backup-finished", *told
            ),
            "backup-finished": lambda peer, life, told: finishing.take_backup_finished(peer, *told),
            "check": lambda peer, life, told: recovery.take_check(peer, *told),
            "checked": lambda peer, life, told: recovery.take_checked(peer, life, *told),
            "outcome?": lambda peer, life, told: near.take_outcome_question(peer, told[0]),
            "outcome": lambda peer, life, told: recovery.take_outcome(*told),
            "atomic": lambda peer, life, told: atomic.take(peer, life, *told),
            "atomic-done": lambda peer, life, told: near.take_atomic_done(*told),
            "atomic-copy": lambda peer, life, told: atomic.take_copy(peer, *told),
            "atomic-copied": lambda peer, life, told: atomic.take_copied(*told),
            "copy?": lambda peer, life, told: rebalance.take_request(peer, life, *told[1:]),
            "copy": lambda peer, life, told: rebalance.take_copy(peer, life, *told[2:]),
            "clear": lambda peer, life, told: self._take_clear(peer, *told[1:]),
        }
        self._held: list[Held] = []

    def take(self, peer: str, life: int, word: str, payload: list[Any]) -> None:
        is_unknown = life > self._agreed.lives.get(peer, NOT_YET)  # no answer would reach it
        is_newer = is_unknown or (word in VERSIONED and payload[1] > self._agreed.version)
        self._site.sometimes.note(HELD_FOR_TOPOLOGY, is_newer)
        if is_newer or (word in SERVED and not self._takeover.is_over):
            self._held.append((peer, life, word, payload))
            return
        if word in FINISHES and not payload[1]:
            self._held = [each for each in self._held if each[3][0] != payload[0] or each[2] not in PREPARES]
        takes = self._takes.get(word)
        if takes is None:
            self._site.log("unknown message", "warning", word=word, peer=peer)
        else:
            takes(peer, life, payload)

    def _take_clear(self, peer: str, since: int, partitions: list[int]) -> None:
        self._takeover.take_clear(peer, since, partitions)
        if self._takeover.is_over:
            self.release()

    def release(self) -> None:
        """The topology is newer, or a takeover is over."""
        held, self._held = self._held, []
        for peer, life, word, payload in held:
            if not self._agreed.has_left(peer, life):
                self.take(peer, life, word, payload)
