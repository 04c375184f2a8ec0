"""The messages of transactions: the role that takes each, and the messages that wait for a newer topology.

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
from nodes.twophase.deciding import Deciding
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
"""Messages with the version of the topology as their second field: so the receiver knows the sender's life."""

PREPARES = frozenset({"lock", "prepare", "backup-prepare"})
SERVED = frozenset({"lock", "prepare", "atomic"})
"""Messages that wait while a new primary does not serve yet."""
FINISHES = frozenset({"finish", "backup-finish"})
LENGTHS = frozenset(
    {
        *(("lock", 5), ("locked", 5), ("refused", 2), ("prepare", 7), ("prepared", 4)),
        *(("backup-prepare", 7), ("backup-prepared", 4), ("finish", 3), ("finished", 1)),
        *(("backup-finish", 3), ("backup-finish", 4), ("backup-finished", 1), ("check", 2), ("checked", 4)),
        *(("outcome?", 2), ("outcome", 3), ("atomic", 3), ("atomic-done", 3), ("atomic-copy", 3)),
        *(("atomic-copied", 3), ("copy?", 3), ("copy", 5), ("clear", 3)),
    }
)
"""Word and number of fields of each payload."""
WORDS = {word for word, _ in LENGTHS} - ATOMIC
"""Those of transactions."""
Takes = Callable[[str, int, list[Any]], None]
Held = tuple[str, int, str, list[Any]]


def described(message: object) -> tuple[str, str] | None:
    """Word and xid, for a host that records messages. Messages of atomic spaces are not recorded."""
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
        deciding: Deciding,
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
            "lock": lambda peer, life, fields: preparing.take_lock(peer, life, *fields),
            "locked": lambda peer, life, fields: near.take_locked(*fields),
            "refused": lambda peer, life, fields: near.take_refused(*fields),
            "prepare": lambda peer, life, fields: preparing.take_prepare(peer, life, *fields),
            "prepared": lambda peer, life, fields: deciding.take_prepared(peer, *fields),
            "backup-prepare": lambda peer, life, fields: preparing.take_backup_prepare(peer, life, *fields),
            "backup-prepared": lambda peer, life, fields: preparing.take_backup_prepared(peer, *fields),
            "finish": lambda peer, life, fields: finishing.take_finish(peer, life, "finished", *fields),
            "finished": lambda peer, life, fields: deciding.take_finished(peer, *fields),
            "backup-finish": lambda peer, life, fields: finishing.take_finish(
                peer, life, "backup-finished", *fields
            ),
            "backup-finished": lambda peer, life, fields: finishing.take_backup_finished(peer, *fields),
            "check": lambda peer, life, fields: recovery.take_check(peer, *fields),
            "checked": lambda peer, life, fields: recovery.take_checked(peer, life, *fields),
            "outcome?": lambda peer, life, fields: deciding.take_outcome_question(peer, fields[0]),
            "outcome": lambda peer, life, fields: recovery.take_outcome(*fields),
            "atomic": lambda peer, life, fields: atomic.take(peer, life, *fields),
            "atomic-done": lambda peer, life, fields: near.take_atomic_done(*fields),
            "atomic-copy": lambda peer, life, fields: atomic.take_copy(peer, *fields),
            "atomic-copied": lambda peer, life, fields: atomic.take_copied(*fields),
            "copy?": lambda peer, life, fields: rebalance.take_request(peer, life, *fields[1:]),
            "copy": lambda peer, life, fields: rebalance.take_copy(peer, life, *fields[2:]),
            "clear": lambda peer, life, fields: self._take_clear(peer, *fields[1:]),
        }
        self._held: list[Held] = []

    def take(self, peer: str, life: int, word: str, payload: list[Any]) -> None:
        if (word, len(payload)) not in LENGTHS:
            why = "unknown message, or with fields of another version"
            return self._site.log(why, "warning", word=word, fields=len(payload), peer=peer)
        is_unknown = life > self._agreed.lives.get(peer, NOT_YET)  # no answer would reach it
        is_newer = is_unknown or (word in VERSIONED and payload[1] > self._agreed.version)
        self._site.sometimes.note(HELD_FOR_TOPOLOGY, is_newer)
        if is_newer or (word in SERVED and not self._takeover.is_over):
            return self._held.append((peer, life, word, payload))
        # A rollback overtakes the prepare that it ends: nothing would end what is prepared behind it.
        if word in FINISHES and not payload[1]:
            self._held = [held for held in self._held if held[3][0] != payload[0] or held[2] not in PREPARES]
        return self._takes[word](peer, life, payload)

    def _take_clear(self, peer: str, since: int, partitions: list[int]) -> None:
        self._takeover.take_clear(peer, since, partitions)
        if self._takeover.is_over:
            self.release()

    def release(self) -> None:
        """Handle the messages that waited: the topology is newer, or a takeover is over."""
        waiting, self._held = self._held, []
        for peer, life, word, payload in waiting:
            if not self._agreed.has_left(peer, life):
                self.take(peer, life, word, payload)
