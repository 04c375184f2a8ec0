"""A transaction at its near node, and how its writes are mapped to primaries and backups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nodes.iproto.packing import pack
from nodes.twophase.agreed import Agreed
from nodes.twophase.configuration import Configuration
from nodes.twophase.data import Place, partition_of
from nodes.twophase.states import State, changed

Answer = Callable[[dict[str, Any]], None]


@dataclass(eq=False)
class Transaction:
    xid: str
    steps: list[list[Any]]
    version: int
    answer: Answer | None
    pause_ns: int = 0
    state: State = State.ACTIVE
    number: int = 0
    """The number of the next step."""
    values: dict[Place, tuple[object, int]] = field(default_factory=dict)
    """Place → the value and version before the transaction."""
    now: dict[Place, object] = field(default_factory=dict)
    """Place → the value after the steps so far."""
    results: list[object] = field(default_factory=list)
    asked: set[Place] = field(default_factory=set)
    locked: set[Place] = field(default_factory=set)
    """The places that were asked for with their lock."""
    contacted: dict[str, int] = field(default_factory=dict)
    """Primary that knows of the transaction → its life."""
    backups: dict[str, list[str]] = field(default_factory=dict)
    """Preparing primary → the backups of the partitions that are prepared there."""
    unprepared: set[str] = field(default_factory=set)
    one_phase: bool = False
    was_prepared: bool = False
    """Prepare requests were sent: from now on a rollback is certain only when it is acknowledged."""
    confirmed: set[str] = field(default_factory=set)
    unfinished: dict[str, int] = field(default_factory=dict)
    participants: list[tuple[int, list[str]]] = field(default_factory=list)
    """The partitions with prepared writes or guards, and their owners in sync."""
    rolled_back: set[str] = field(default_factory=set)
    """Participants that have reported a rollback."""
    sign: object = None
    outcome: dict[str, Any] = field(default_factory=dict)
    is_atomic: bool = False
    """A write to an atomic space, which is no transaction for clients and cuts."""
    atomic_at: tuple[str, int] | None = None
    """The primary, and its life, of a write to an atomic space without an answer yet."""
    askers: list[str] = field(default_factory=list)

    def change(self, state: State) -> None:
        self.state = changed(self.state, state)

    def forget(self, place: Place) -> None:
        """The next access asks for the value anew."""
        self.values.pop(place)
        self.asked.discard(place)

    def writes(self, *, are_certain: bool) -> dict[Place, object]:
        """The values after the steps; `are_certain`: the old values are certain, so unchanged ones are left out."""
        return {
            place: value
            for place, value in self.now.items()
            if not are_certain or _differ(value, self.values[place][0])
        }


def _differ(value: object, old: object) -> bool:
    return pack(value) != pack(old)  # True is 1, in lists too


def mapped(transaction: Transaction, agreed: Agreed, configuration: Configuration) -> dict[str, list[Any]]:
    """Primary → the payload of its prepare request; empty if there is nothing to prepare.

    The topology is the one on which the transaction has asked for its values: every partition has a primary. One phase
    must cover every partition that is read: otherwise its owners take no part, and a different one may be primary by
    now. It must cover every key, locked or compared: a primary that does not know that it has left may have returned
    an old value.

    A single read is compared at the prepare, too: a transaction that is committed on one partition and prepared on this
    one may have been read there already.

    Where there is more than one partition, keys that are only read are prepared with the writes: *guards*. Without its
    near node, a transaction may commit only if no primary has refused it or has lost its locks, and if each is still
    the primary. Recovery checks that by the PREPARED records, and asks only nodes that should have one.
    """
    is_optimistic = configuration.concurrency == "optimistic"
    validates = is_optimistic and configuration.isolation == "serializable"
    partitions, values = configuration.partitions, transaction.values
    writes = transaction.writes(are_certain=validates or not is_optimistic)
    reads = values if validates else {}
    guards = sorted({*(reads if validates else transaction.locked)} - writes.keys(), key=str)
    by_primary: dict[str, tuple[list[Any], list[Any], list[Any]]] = {}
    owners: dict[int, list[str]] = {}

    def of(place: Place) -> str:
        primary = agreed.primary(partition_of(place, partitions))
        assert primary is not None, place
        return primary

    for place, (_, version) in reads.items():
        by_primary.setdefault(of(place), ([], [], []))[0].append([*place, version])
    for place, value in writes.items():
        by_primary.setdefault(of(place), ([], [], []))[1].append([*place, value])
    if not writes or len({partition_of(place, partitions) for place in (*writes, *guards)}) == 1:
        guards = []
    for place in guards:
        by_primary.setdefault(of(place), ([], [], []))[2].append(list(place))
    for place in (*writes, *guards):
        partition = partition_of(place, partitions)
        owners[partition] = list(agreed.in_sync[partition])
        backups = transaction.backups.setdefault(of(place), [])
        backups += [node for node in owners[partition] if node not in (of(place), *backups)]
    transaction.participants = sorted(owners.items())
    transaction.one_phase = (
        configuration.one_phase
        and bool(writes)
        and len({*by_primary, *transaction.contacted}) == 1
        and all(len(backups) <= 1 for backups in transaction.backups.values())
        and owners.keys() >= {partition_of((step[1], step[2]), partitions) for step in transaction.steps}
        and {*writes, *reads, *transaction.locked} >= {(step[1], step[2]) for step in transaction.steps}
    )
    participants = [list(pair) for pair in transaction.participants]
    head = [transaction.xid, transaction.version, transaction.one_phase, participants]
    return {primary: [*head, *of_primary] for primary, of_primary in by_primary.items()}
