"""A node's configuration, of itself and its cluster; the same plan gives every node its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

MILLISECOND = 1_000_000

Role = Literal["server", "client"]
Concurrency = Literal["pessimistic", "optimistic"]
Isolation = Literal["read-committed", "repeatable-read", "serializable"]
LockOrder = Literal["keys", "steps"]
Variant = Literal["shipped", "seed-counter", "seed-colour"]
Layout = list[Any]
"""[partitions, backups, server, …]: what decides which server holds which rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Times are nanoseconds on the monotonic clock."""

    name: str
    role: Role = "server"
    baseline: tuple[str, ...]
    """The servers, in the order in which partitions are dealt out to them."""
    clients: tuple[str, ...] = ()
    """The nodes that coordinate transactions and have no log."""
    partitions: int = 8
    backups: int = 1
    """Copies of a partition besides the primary."""
    concurrency: Concurrency = "pessimistic"
    isolation: Isolation = "serializable"
    lock_order: LockOrder = "keys"
    """Transactions lock in one order of all keys, so that none waits in a circle; or as their steps come."""
    one_phase: bool = True
    """A transaction with one primary and at most one backup commits in one round (backup first)."""
    variant: Variant = "shipped"
    """How a cut is named in messages: its id and the topology's version; a counter; a colour and a timestamp."""
    atomic_spaces: tuple[str, ...] = ()
    """Spaces that take one step at a time, outside of transactions and of cuts (`atomic.py`)."""
    recovery_rollback_fails_cut: bool = False
    """A transaction that recovery rolls back makes a running cut fail as well."""
    lanes: int = 2
    """Connections for transactions to each peer: messages of different transactions overtake each other."""
    beat_ns: int = 100 * MILLISECOND
    """How often nodes report to each other."""
    election_ns: int = 500 * MILLISECOND
    """How long a server hears no coordinator before it stands; up to twice as long, by chance."""
    leave_ns: int = 1_500 * MILLISECOND
    """How long the coordinator hears nothing of a node before the node has left."""
    lock_ns: int = 500 * MILLISECOND
    """How long a transaction may collect locks and values."""
    prepare_ns: int = 1_000 * MILLISECOND
    """How long a transaction may prepare."""
    sweep_ns: int = 2_000 * MILLISECOND
    """The least time between two sweeps. Sweeps drop outcomes that no node can ask for any more."""
    trim_entries: int = 64
    """The discovery log is trimmed by so many entries at least."""
    step_ns: int = 0
    """How long each step of a cut and of a commit may take, by chance: other messages come in between."""
    delivery_ns: int = 0
    """How long each entry of the discovery log may take from the moment a node has it to its delivery, by chance."""
    suspending: float = 0.0
    """The share of transactions that pause before they prepare, as their clients may also ask for."""
    segment_bytes: int = 4 << 20
    """The size after which a new file of the log begins."""
    bugs: tuple[str, ...] = ()
    """Names of files in `nodes.twophase.bugs`."""
    restore: str | None = None
    """The cut that the data begin with: what the log holds behind it is not taken."""
    seed: int = 0
    """Decides what a node leaves to chance: its election time-outs."""

    def __post_init__(self) -> None:
        nodes = (*self.baseline, *self.clients)
        if len(set(nodes)) < len(nodes):
            raise ValueError(f"expected every node once, got {', '.join(nodes)}")
        peers = self.baseline if self.role == "server" else self.clients
        if self.name not in peers:
            raise ValueError(f"expected a {self.role} named {self.name!r} among {', '.join(peers) or 'none'}")
        if not 0 <= self.backups < len(self.baseline):
            raise ValueError(f"expected backups from 0 to {len(self.baseline) - 1}, got {self.backups}")
        if self.atomic_spaces and self.backups > 1:
            raise ValueError(
                f"expected at most 1 backup with atomic spaces, got {self.backups}: copies could differ for good"
            )
        for name in ("partitions", "lanes", "segment_bytes", "trim_entries"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, got {getattr(self, name)}")
        if not 0 <= self.suspending <= 1:
            raise ValueError(f"expected a share of suspended transactions from 0 to 1, got {self.suspending}")
        times = (
            *(self.beat_ns, self.election_ns, self.leave_ns),
            *(self.lock_ns, self.prepare_ns, self.sweep_ns),
        )
        if min(times) <= 0:
            raise ValueError(f"expected times above 0, got {min(times)} ns")
        if min(self.step_ns, self.delivery_ns) < 0:
            raise ValueError(f"expected delays of at least 0, got {min(self.step_ns, self.delivery_ns)} ns")

    @property
    def layout(self) -> Layout:
        return [self.partitions, self.backups, *self.baseline]

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Configuration:
        """ValueError says in one sentence what is wrong."""
        try:
            given = json.loads(data)
            accepts = {field.name: IS_OF_TYPE[field.type] for field in fields(cls)}  # type: ignore[index]  # types are texts here
            for name, value in given.items():
                if name not in accepts:
                    raise ValueError(f"there is no option {name!r}")
                if not accepts[name](value):
                    raise ValueError(f"{name!r} cannot be {value!r}")
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
            }
            return cls(**values)
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(f"not a configuration of a two-phase node: {error}") from error


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


IS_OF_TYPE: Mapping[str, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "str | None": lambda value: value is None or isinstance(value, str),
    "int": lambda value: type(value) is int,
    "float": lambda value: type(value) in (int, float),
    "bool": lambda value: isinstance(value, bool),
    "tuple[str, ...]": _is_texts,
    "Role": lambda value: value in get_args(Role),
    "Concurrency": lambda value: value in get_args(Concurrency),
    "Isolation": lambda value: value in get_args(Isolation),
    "LockOrder": lambda value: value in get_args(LockOrder),
    "Variant": lambda value: value in get_args(Variant),
}
"""By the type of a field, as it is written above: whether a JSON value is one."""
