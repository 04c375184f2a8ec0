"""Options that can be changed while a node runs, by the names of `box.cfg`.

| option | values |
|---|---|
| `replication_synchro_quorum` | 1 … 31, or a formula of N (`nodes.qsync.quorum`); empty: the default one |
| `replication_synchro_timeout` | seconds, above 0 |
| `replication_synchro_queue_max_size` | bytes, 0 means no limit |
| `replication_timeout` | seconds, above 0; a node that is silent for four of them is given up |
| `election_mode` | off, voter, manual, candidate |
| `election_timeout` | seconds, above 0 |
| `election_fencing_mode` | off, soft, strict |
| `read_only` | true or false |
| `box_cfg_replication_synchro_timeout` | old: a timeout rolls back; new: it only tells the client (a compat option) |

All options of a call are checked before any is set. Refusals are Tarantool's error 59 with its messages (58 for what
cannot be changed while the node runs).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from nodes.iproto.codes import Code
from nodes.qsync.configuration import Configuration, quorum_size
from nodes.qsync.election import Fencing, Mode
from nodes.qsync.keys import Rejected
from nodes.qsync.quorum import check

SECOND_NS = 1_000_000_000
STATIC = frozenset(
    {"memtx_use_mvcc_engine", "listen", "instance_uuid", "replicaset_uuid", "replication", "wal_dir"}
)

_LATER = frozenset(
    {
        *("election_mode", "election_timeout", "election_fencing_mode"),
        *("replication_synchro_queue_max_size", "box_cfg_replication_synchro_timeout"),
    }
)
"""What 2.6 does not know."""


@dataclass(slots=True)
class Options:
    """What holds now. Times are nanoseconds."""

    members: int
    """How many have an id; others than at the start when `_cluster` says so."""
    bugs: tuple[str, ...]
    knows_elections: bool
    quorum: int | str
    synchro_timeout_ns: int
    queue_max_size: int
    replication_timeout_ns: int
    election_mode: Mode
    election_timeout_ns: int
    election_fencing: Fencing
    read_only: bool
    rollback_on_timeout: bool
    quorum_size: int = field(init=False)

    @classmethod
    def of(cls, configuration: Configuration) -> Options:
        return cls(
            members=len(configuration.registered),
            bugs=configuration.bugs,
            knows_elections=configuration.protocol != "2.6",
            quorum=configuration.quorum,
            synchro_timeout_ns=configuration.synchro_timeout_ns,
            queue_max_size=configuration.synchro_queue_max_size,
            replication_timeout_ns=configuration.replication_timeout_ns,
            election_mode=configuration.election_mode,
            election_timeout_ns=configuration.election_timeout_ns,
            election_fencing=configuration.election_fencing,
            read_only=configuration.read_only,
            rollback_on_timeout=configuration.rollback_on_timeout,
        )

    def __post_init__(self) -> None:
        self.counts(self.members)

    def counts(self, members: int) -> None:
        """The cluster has so many members from now on."""
        self.members = members
        self.quorum_size = quorum_size(self.quorum, members, self.bugs)

    @property
    def has_elections(self) -> bool:
        return self.election_mode != "off"

    def set(self, changes: Mapping[object, object]) -> None:
        """Change options by their names in `box.cfg`; `Rejected`, and nothing changed, if one is wrong."""
        for name in changes:
            if name in _LATER and not self.knows_elections:
                raise _refused(name, "unexpected option")
        checked = [_checked(name, value) for name, value in changes.items()]
        for field_name, value in checked:
            setattr(self, field_name, value)
        self.counts(self.members)

    def told(self) -> dict[str, object]:
        """All options by their names in `box.cfg`."""
        found = {
            "replication_synchro_quorum": self.quorum,
            "replication_synchro_timeout": self.synchro_timeout_ns / SECOND_NS,
            "replication_synchro_queue_max_size": self.queue_max_size,
            "replication_timeout": self.replication_timeout_ns / SECOND_NS,
            "election_mode": self.election_mode,
            "election_timeout": self.election_timeout_ns / SECOND_NS,
            "election_fencing_mode": self.election_fencing,
            "read_only": self.read_only,
            "box_cfg_replication_synchro_timeout": "old" if self.rollback_on_timeout else "new",
        }
        return {name: value for name, value in found.items() if self.knows_elections or name not in _LATER}


def _refused(name: object, why: str) -> Rejected:
    return Rejected(Code.CFG, name, why)


def _checked(name: object, value: object) -> tuple[str, object]:
    """The field and its new value."""
    if name in STATIC:
        raise Rejected(Code.RELOAD_CFG, name)
    if name not in _CHECKS:
        raise _refused(name, "unexpected option")
    field_name, convert = _CHECKS[str(name)]
    try:
        return field_name, convert(value)
    except ValueError as error:  # BadQuorum is one
        raise _refused(name, str(error)) from error


def _seconds(why: str) -> Callable[[object], int]:
    def convert(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("should be of type number")
        if not value > 0:
            raise ValueError(why)
        return min(int(value * SECOND_NS), 2**62)

    return convert


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("should be of type number")
    if value < 0:
        raise ValueError("replication_synchro_queue_max_size must be >= 0")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("should be of type boolean")
    return value


def _one_of(*names: str) -> Callable[[object], str]:
    def convert(value: object) -> str:
        if not isinstance(value, str):
            raise ValueError("should be of type string")
        if value not in names:
            known = ", ".join(f"'{name}'" for name in names)
            raise ValueError(f"the value must be one of the following strings: {known}")
        return value

    return convert


def _timeout_behaviour(value: object) -> bool:
    return _one_of("old", "new")(value) == "old"


_CHECKS: Mapping[str, tuple[str, Callable[[object], object]]] = {
    "replication_synchro_quorum": ("quorum", check),
    "replication_synchro_timeout": ("synchro_timeout_ns", _seconds("the value must be greater than zero")),
    "replication_synchro_queue_max_size": ("queue_max_size", _size),
    "replication_timeout": ("replication_timeout_ns", _seconds("the value must be greather than 0")),
    "election_mode": ("election_mode", _one_of("off", "voter", "candidate", "manual")),
    "election_timeout": ("election_timeout_ns", _seconds("the value must be a positive number")),
    "election_fencing_mode": ("election_fencing", _one_of("off", "soft", "strict")),
    "read_only": ("read_only", _flag),
    "box_cfg_replication_synchro_timeout": ("rollback_on_timeout", _timeout_behaviour),
}
"""Option → field of `Options`, and what makes its value of what came. The spelling of messages is Tarantool's."""
