"""Watches nodes while they run, and notes each change of state of their parts: see `nodes.qsync.states`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from nodes.iproto.messages import Ack, Call, ClientRequest, RaftState, Rows
from nodes.kernel.effects import Effect
from nodes.kernel.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Instant,
    Persisted,
    PersistFailed,
    Received,
    Started,
    TimerFired,
)
from nodes.qsync import fates
from nodes.qsync.election import STATE_NAMES
from nodes.qsync.limbo import UNWRITTEN
from nodes.qsync.replica import Replica
from nodes.qsync.spaces import Transaction

Seen = dict[tuple[str, str, str, str], str]
"""(part, before, by, after) → where it was seen first."""


def kind(event: Event) -> str:
    """What happened, in the words of the tables."""
    match event:
        case Received(_, Rows()):
            return "rows"
        case Received(_, Ack()):
            return "acknowledgement"
        case Received(_, RaftState()):
            return "election"
        case Received(_, message) if isinstance(message, Call | ClientRequest):
            return "request"
        case Received():
            return "peer"
        case Persisted():
            return "written"
        case PersistFailed():
            return "disk fails"
        case TimerFired():
            return "time"
        case Started():
            return "start"
        case Connected() | ConnectFailed() | Disconnected():
            return "link"
        case _:
            return "nothing"


def queue_state(node: Replica) -> str:
    owner = node.commits.limbo.owner_id
    if owner == 0:
        return "unclaimed"
    if not node.commits.is_owner:
        return "foreign"
    return "ours" if node.commits.ownership.may_decide else "frozen"


class Watch:
    """All that was seen so far; `place` names what is being played."""

    def __init__(self) -> None:
        self.seen: Seen = {}
        self.place = ""
        self._ended: dict[int, tuple[Transaction, str]] = {}

    def ended(self, transaction: Transaction, state: str) -> None:
        self._ended[id(transaction)] = (transaction, state)

    def transactions(self, node: Replica) -> dict[int, tuple[Transaction, str]]:
        found: dict[int, tuple[Transaction, str]] = {}
        limbo = node.commits.limbo
        for waiting, *_ in node.commits.records.under_way.values():
            if isinstance(waiting, Transaction):
                found[id(waiting)] = (waiting, "prepared")
        for entry in limbo.entries:
            if entry.lsn == UNWRITTEN:
                state = "queued"
            else:
                state = "confirming" if entry.wait_ack and entry.lsn <= limbo.confirming_lsn else "waiting"
            found[id(entry.transaction)] = (entry.transaction, state)
        return found

    def note(self, part: str, before: str, by: str, after: str) -> None:
        if before != after:
            self.seen.setdefault((part, before, by, after), self.place)

    def step(self, node: Replica, event: Event, take: Any, now: Instant) -> Sequence[Effect]:
        by, parts = kind(event), node.commits
        before, role, queue = self.transactions(node), node.election.state, queue_state(node)
        appliers = {name: applier.state for name, applier in node.appliers.items()}
        effects: Sequence[Effect] = take(node, event, now)
        self.note("queue", queue, by, queue_state(node))
        if node.commits is not parts:  # it has joined, and all parts are new
            return effects
        self.note("role", STATE_NAMES[role], by, STATE_NAMES[node.election.state])
        for name, state in appliers.items():
            self.note("applier", state, by, node.appliers[name].state)
        self._compare(before, self.transactions(node), by)
        return effects

    def _compare(
        self,
        before: Mapping[int, tuple[Transaction, str]],
        after: Mapping[int, tuple[Transaction, str]],
        by: str,
    ) -> None:
        for key, (transaction, state) in after.items():
            self.note("transaction", before.get(key, (transaction, "new"))[1], by, state)
        for key, (_, state) in before.items():
            if key not in after:
                self.note("transaction", state, by, self._ended.get(key, (None, "lost"))[1])


@contextmanager
def watching() -> Iterator[Watch]:
    """Every node that takes a step meanwhile is watched."""
    watch, take = Watch(), Replica.step
    commit, roll_back = fates.commit, fates.roll_back

    def step(node: Replica, event: Event, now: Instant) -> Sequence[Effect]:
        return watch.step(node, event, take, now)

    def committed(transaction: Transaction) -> None:
        watch.ended(transaction, "committed")
        commit(transaction)

    def rolled_back(transaction: Transaction) -> None:
        watch.ended(transaction, "rolled back")
        roll_back(transaction)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replica, "step", step)
        patch.setattr(fates, "commit", committed)
        patch.setattr(fates, "roll_back", rolled_back)
        yield watch
