"""The states of a transaction, as a table; the code may change a state only along it.

A transaction is *active* for a cut from its first message at a node until COMMITTING or MARKED_ROLLBACK.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    ACTIVE = "collects locks and values"
    SUSPENDED = "active, and its client pauses"
    CONFIRMING = "near: nothing to prepare, the topology is to be confirmed"
    PREPARING = "the writes are being prepared"
    PREPARED = "promised: only the near node, or recovery, decides now"
    COMMITTING = "committed, with its sign; the record is not on disk"
    COMMITTED = "the record is on disk, the writes are visible"
    MARKED_ROLLBACK = "will be rolled back"
    ROLLED_BACK = "gone"


CHANGES: tuple[tuple[State, State, str], ...] = (
    (State.ACTIVE, State.SUSPENDED, "the client asked for a pause"),
    (State.SUSPENDED, State.ACTIVE, "the pause is over"),
    (State.ACTIVE, State.PREPARING, "prepare request"),
    (State.ACTIVE, State.MARKED_ROLLBACK, "refused, timed out, or the near node left"),
    (State.SUSPENDED, State.MARKED_ROLLBACK, "a participant left"),
    (State.ACTIVE, State.CONFIRMING, "nothing to prepare: it only read, or a step did not fit"),
    (State.ACTIVE, State.COMMITTING, "an atomic write has its answer, or will get none"),
    (State.CONFIRMING, State.COMMITTING, "the topology is confirmed"),
    (State.CONFIRMING, State.MARKED_ROLLBACK, "the topology changed, timed out, or the near node left"),
    (State.PREPARING, State.PREPARED, "the record is on disk, the backups have answered"),
    (
        State.PREPARING,
        State.COMMITTING,
        "one phase: the backup has committed, or is the one that commits first",
    ),
    (State.PREPARING, State.MARKED_ROLLBACK, "refused, timed out, or the near node left"),
    (State.PREPARED, State.COMMITTING, "finish request, or recovery"),
    (State.PREPARED, State.MARKED_ROLLBACK, "finish request, or recovery"),
    (State.COMMITTING, State.COMMITTED, "the record is on disk"),
    (State.MARKED_ROLLBACK, State.ROLLED_BACK, "the record is on disk, if there has to be one"),
)
ALLOWED = frozenset((before, after) for before, after, _ in CHANGES)


def changed(before: State, after: State) -> State:
    """`after`, if the table has the change."""
    assert (before, after) in ALLOWED, f"{before.name} → {after.name}"
    return after
