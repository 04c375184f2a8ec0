"""Options by the names of `box.cfg`, most of which can be changed while a node runs.

| option | values | if it is nil or "" |
|---|---|---|
| `replication_synchro_quorum` | 1 … 31, or a formula of N (`nodes.kernel.quorum`; not with 2.6) | `N / 2 + 1`, 2.6: 1 |
| `replication_linearizable_quorum` | the same, of N and Q: how many nodes a linearizable read asks | `N - Q + 1` |
| `replication_synchro_timeout` | seconds, above 0 | 5 |
| `txn_synchro_timeout` | seconds, above 0; without rollback: when the client gets an error | as the line before |
| `replication_synchro_queue_max_size` | bytes, 0 means no limit | 16 MiB |
| `wal_queue_max_size` | bytes on their way to the disk until all wait; 0 means no limit | 16 MiB |
| `replication_timeout` | seconds, above 0; a node that is silent for four of them is given up | 1 |
| `replication_connect_quorum` | how many peers must be followed before the node is writable | all |
| `election_mode` | off, voter, manual, candidate; of an anonymous replica off alone | off |
| `election_timeout` | seconds, above 0 | 5 |
| `election_fencing_mode` | off, soft, strict | soft |
| `read_only` | true or false; of an anonymous replica true alone | false |
| `checkpoint_count` | 1 or more | 2 |
| `checkpoint_interval` | seconds between snapshots; 0 or less: none by itself | 3600 |
| `checkpoint_wal_threshold` | bytes of log after which one is taken all the same | 10¹⁸ |
| `wal_cleanup_delay` | seconds after a start in which no file goes until all members have connected | 14400 |
| `box_cfg_replication_synchro_timeout` | old: a timeout rolls back; new: only the client gets an error (compat) | old |

The remaining options keep the value that they had when the node started (`STATIC`): setting one to its own value does
nothing, any other value is error 58. `listen` and `replication` are among them, which Tarantool can change: here the
configuration names the peers.

All options of a call are checked before any is set. Refusals are Tarantool's error 59 with its messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from nodes.iproto.codes import Code
from nodes.iproto.messages import PROMOTE_MARK
from nodes.kernel.quorum import DEFAULT_FORMULA, LINEARIZABLE_FORMULA, check, check_linearizable, linearizable
from nodes.qsync.configuration import CHECKPOINT_INTERVAL_NS, CLEANUP_DELAY_NS, Configuration
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import Fencing, Mode
from nodes.qsync.keys import Rejected

SECOND_NS = 1_000_000_000
FOREVER_S = 1e100
"""Longer times are cut to this, because in nanoseconds they would exceed a float."""
STATIC = frozenset(
    {
        *("memtx_use_mvcc_engine", "listen", "instance_uuid", "replicaset_uuid", "replication"),
        *("replication_anon", "wal_dir", "wal_max_size", "wal_mode"),
    }
)

NO_MARKS = (
    "this node's PROMOTE waits for a quorum, which {} cannot read in its row: upgrade that node first, or set "
    "synchronous_promote to false here"
)

_LATER = frozenset(
    {
        *("election_mode", "election_timeout", "election_fencing_mode"),
        *("replication_synchro_queue_max_size", "box_cfg_replication_synchro_timeout"),
        *("replication_linearizable_quorum", "txn_synchro_timeout", "wal_queue_max_size"),
        *("memtx_use_mvcc_engine", "wal_cleanup_delay"),
    }
)
"""Options that 2.6.0 does not know."""


@dataclass(slots=True)
class Options:
    """The present values of the options. Times are nanoseconds."""

    members: int
    """The number of members with an id; it changes with `_cluster`."""
    decisions: Decisions
    knows_elections: bool
    static: Mapping[str, object]
    """The options of `STATIC` that have a value here, by the names of `box.cfg`."""
    quorum: int | str
    linearizable_quorum: int | str
    synchro_timeout_ns: int
    txn_synchro_timeout_ns: int | None
    queue_max_size: int
    wal_queue_max_size: int
    replication_timeout_ns: int
    connect_quorum: int
    election_mode: Mode
    election_timeout_ns: int
    election_fencing: Fencing
    read_only: bool
    checkpoint_count: int
    checkpoint_interval_ns: int
    checkpoint_wal_threshold: int
    wal_cleanup_delay_ns: int
    rollback_on_timeout: bool
    writes_marks: bool
    """With elections, the PROMOTEs of this node wait for a quorum; peers must be able to read that in the flags."""
    peers_without_marks: Callable[[], Sequence[str]] = field(init=False, default=tuple)
    """The names of the connected peers that cannot read these flags."""
    quorum_size: int = field(init=False)
    changed: Mapping[str, object] = field(init=False, default_factory=dict)
    """Name → value of the options that the last call of `set` changed, for the log."""

    @classmethod
    def of(cls, configuration: Configuration, decisions: Decisions) -> Options:
        return cls(
            members=len(configuration.registered),
            decisions=decisions,
            knows_elections=configuration.protocol != "2.6",
            static=_static(configuration),
            quorum=check(configuration.quorum),  # "" stands for the default here, too
            linearizable_quorum=check_linearizable(configuration.replication_linearizable_quorum),
            synchro_timeout_ns=configuration.synchro_timeout_ns,
            txn_synchro_timeout_ns=configuration.txn_synchro_timeout_ns,
            queue_max_size=configuration.synchro_queue_max_size,
            wal_queue_max_size=configuration.wal_queue_max_size,
            replication_timeout_ns=configuration.replication_timeout_ns,
            connect_quorum=configuration.replication_connect_quorum,
            election_mode=configuration.election_mode,
            election_timeout_ns=configuration.election_timeout_ns,
            election_fencing=configuration.election_fencing,
            read_only=configuration.read_only or configuration.is_anonymous,
            checkpoint_count=configuration.checkpoint_count,
            checkpoint_interval_ns=configuration.checkpoint_interval_ns,
            checkpoint_wal_threshold=configuration.checkpoint_wal_threshold,
            wal_cleanup_delay_ns=0 if configuration.protocol == "2.6" else configuration.wal_cleanup_delay_ns,
            rollback_on_timeout=configuration.rollback_on_timeout,
            writes_marks=configuration.synchronous_promote,
        )

    def __post_init__(self) -> None:
        self.counts(self.members)

    def counts(self, members: int) -> None:
        """Set the number of members."""
        self.members = members
        self.quorum_size = self.decisions.quorum_size(self.quorum, members)

    @property
    def waits_ns(self) -> int:
        """The time in the queue after which a client's transaction is rolled back, or its client gets an error."""
        return (not self.rollback_on_timeout and self.txn_synchro_timeout_ns) or self.synchro_timeout_ns

    @property
    def others_asked(self) -> int:
        """How many members a linearizable read asks besides its own node, which counts if it is one."""
        asked = linearizable(self.linearizable_quorum, self.members, self.quorum_size)
        return asked - (not self.is_anonymous)

    @property
    def election_quorum(self) -> int:
        """Votes and followers that a leader needs. If the quorum exceeds the number of members, all members elect the
        leader, and its writes wait until the quorum can be reached."""
        return min(self.quorum_size, max(self.members, 1))

    @property
    def has_elections(self) -> bool:
        return self.election_mode != "off"

    @property
    def features(self) -> tuple[int, ...]:
        """The features that this node reports to its peers."""
        return (PROMOTE_MARK,) if self.knows_elections else ()

    def refuses(self, features: Collection[int]) -> bool:
        """Whether a peer is refused: it does not mark PROMOTEs, and this node's PROMOTEs wait for a quorum."""
        return self.has_elections and self.writes_marks and PROMOTE_MARK not in features

    @property
    def is_anonymous(self) -> bool:
        return self.static["replication_anon"] is True

    def set(self, changes: Mapping[object, object]) -> None:
        """Change options by their names in `box.cfg`. If one is wrong, raises Rejected and changes none."""
        checked = [self._checked(name, value) for name, value in changes.items()]
        before = self.told()
        for field_name, value in (change for change in checked if change is not None):
            setattr(self, field_name, value)
        self.counts(self.members)
        self.changed = {name: value for name, value in self.told().items() if before[name] != value}

    def told(self) -> dict[str, object]:
        """All options by their names in `box.cfg`."""
        options = {
            "replication_synchro_quorum": self.quorum,
            "replication_linearizable_quorum": self.linearizable_quorum,
            "replication_synchro_timeout": self.synchro_timeout_ns / SECOND_NS,
            "txn_synchro_timeout": (self.txn_synchro_timeout_ns or self.synchro_timeout_ns) / SECOND_NS,
            "replication_synchro_queue_max_size": self.queue_max_size,
            "wal_queue_max_size": self.wal_queue_max_size,
            "replication_timeout": self.replication_timeout_ns / SECOND_NS,
            "replication_connect_quorum": self.connect_quorum,
            "election_mode": self.election_mode,
            "election_timeout": self.election_timeout_ns / SECOND_NS,
            "election_fencing_mode": self.election_fencing,
            "read_only": self.read_only,
            "checkpoint_count": self.checkpoint_count,
            "checkpoint_interval": self.checkpoint_interval_ns / SECOND_NS,
            "checkpoint_wal_threshold": self.checkpoint_wal_threshold,
            "wal_cleanup_delay": self.wal_cleanup_delay_ns / SECOND_NS,
            "box_cfg_replication_synchro_timeout": "old" if self.rollback_on_timeout else "new",
            **self.static,
        }
        return {name: value for name, value in options.items() if self.knows_elections or name not in _LATER}

    def _checked(self, name: object, value: object) -> tuple[str, object] | None:
        """The field of `Options` and its new value; None for an option that keeps its value."""
        if name in _LATER and not self.knows_elections:
            raise _refused(name, "unexpected option")
        if name in STATIC:
            self._must_be_as_it_is(str(name), value)
            return None
        if name not in _CHECKS:
            raise _refused(name, "unexpected option")
        field_name, convert = _CHECKS[str(name)]
        if value is None or value == "":
            default = self._default(str(name))
            return field_name, None if default is None else convert(default)
        try:
            converted = convert(value)
        except ValueError as error:  # BadQuorum is one
            raise _refused(name, str(error)) from error
        self._must_fit(str(name), value)
        return field_name, converted

    def _must_be_as_it_is(self, name: str, value: object) -> None:
        if name == "replication_anon" and value is True and not (self.is_anonymous or self.read_only):
            raise _refused(name, "the value may be set to true only when the instance is read-only")
        ours = self.static.get(name)
        if (
            ours is None or ours != value or isinstance(ours, bool) != isinstance(value, bool)
        ):  # 0 is not false
            raise Rejected(Code.RELOAD_CFG, name)

    def _must_fit(self, name: str, value: object) -> None:
        """Tarantool's checks of a value against other options, and of values that 2.6 does not know."""
        if name == "replication_synchro_quorum" and isinstance(value, str) and not self.knows_elections:
            if value != self.quorum:  # a harness may let it follow the members there, too
                raise _refused(name, "should be of type number")
        elif name == "txn_synchro_timeout" and self.rollback_on_timeout and value != self.told()[name]:
            why = "option is disabled if compat option `replication_synchro_timeout` is set to 'old'"
            raise _refused(name, why)
        elif name == "read_only" and value is False and self.is_anonymous:
            raise _refused(name, "the value may be set to false only when replication_anon is false")
        elif name == "election_mode" and value != "off" and self.is_anonymous:
            raise _refused(name, "the value may be other than 'off' only when replication_anon is false")
        elif name == "election_mode" and value != "off" and self.writes_marks and self.peers_without_marks():
            raise _refused(name, NO_MARKS.format(", ".join(self.peers_without_marks())))

    def _default(self, name: str) -> object:
        if name == "replication_connect_quorum":
            return max(self.members - 1, 0)
        if name == "read_only" and self.is_anonymous:
            return True
        if name == "replication_synchro_quorum" and not self.knows_elections:
            return 1
        return _DEFAULTS[name]


def _static(configuration: Configuration) -> dict[str, object]:
    return {
        "memtx_use_mvcc_engine": configuration.memtx_use_mvcc_engine,
        "instance_uuid": configuration.instance_uuid,
        "replicaset_uuid": configuration.cluster_uuid,
        "replication_anon": configuration.is_anonymous,
        "wal_max_size": configuration.wal_max_size,
        "wal_mode": "fsync",
    }


def _refused(name: object, why: str) -> Rejected:
    return Rejected(Code.CFG, name, why)


def _number(value: object) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("should be of type number")
    if not math.isfinite(value):
        raise ValueError("should be a finite number")
    return value


def _seconds(why: str) -> Callable[[object], int]:
    def convert(value: object) -> int:
        seconds = _number(value)
        if not seconds > 0:
            raise ValueError(why)
        return _interval(seconds)

    return convert


def _interval(value: object) -> int:
    """Nanoseconds: 0 for 0 or less, and never for more."""
    seconds = min(max(_number(value), 0), FOREVER_S)
    return max(int(seconds * SECOND_NS), int(seconds > 0))


def _delay(value: object) -> int:
    if _number(value) < 0:
        raise ValueError("value must be >= 0")
    return _interval(value)


def _int64(value: object) -> int:
    """A whole number, cut to those that an answer can carry; its fraction is dropped, as in Tarantool."""
    return max(-(1 << 63), min(int(_number(value)), (1 << 64) - 1))


def _whole(least: int, why: str) -> Callable[[object], int]:
    def convert(value: object) -> int:
        number = _int64(value)
        if number < least:
            raise ValueError(why)
        return number

    return convert


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
    "replication_linearizable_quorum": ("linearizable_quorum", check_linearizable),
    "replication_synchro_timeout": ("synchro_timeout_ns", _seconds("the value must be greater than zero")),
    "txn_synchro_timeout": ("txn_synchro_timeout_ns", _seconds("the value must be greater than 0")),
    "replication_synchro_queue_max_size": (
        "queue_max_size",
        _whole(0, "replication_synchro_queue_max_size must be >= 0"),
    ),
    "wal_queue_max_size": ("wal_queue_max_size", _whole(0, "wal_queue_max_size must be >= 0")),
    "replication_timeout": ("replication_timeout_ns", _seconds("the value must be greather than 0")),
    "replication_connect_quorum": (
        "connect_quorum",
        _whole(0, "the value must be greater or equal to 0"),
    ),
    "election_mode": ("election_mode", _one_of("off", "voter", "candidate", "manual")),
    "election_timeout": ("election_timeout_ns", _seconds("the value must be a positive number")),
    "election_fencing_mode": ("election_fencing", _one_of("off", "soft", "strict")),
    "read_only": ("read_only", _flag),
    "checkpoint_count": ("checkpoint_count", _whole(1, "the value must not be less than one")),
    "checkpoint_interval": ("checkpoint_interval_ns", _interval),
    "checkpoint_wal_threshold": ("checkpoint_wal_threshold", _int64),
    "wal_cleanup_delay": ("wal_cleanup_delay_ns", _delay),
    "box_cfg_replication_synchro_timeout": ("rollback_on_timeout", _timeout_behaviour),
}
"""Option → field of `Options`, and the conversion of its value. The spelling of messages is Tarantool's."""

_DEFAULTS: Mapping[str, object] = {
    "replication_synchro_quorum": DEFAULT_FORMULA,
    "replication_linearizable_quorum": LINEARIZABLE_FORMULA,
    "replication_synchro_timeout": 5,
    "txn_synchro_timeout": None,
    "replication_synchro_queue_max_size": 16 * 1024 * 1024,
    "wal_queue_max_size": 16 * 1024 * 1024,
    "replication_timeout": 1,
    "election_mode": "off",
    "election_timeout": 5,
    "election_fencing_mode": "soft",
    "read_only": False,
    "checkpoint_count": 2,
    "checkpoint_interval": CHECKPOINT_INTERVAL_NS / SECOND_NS,
    "checkpoint_wal_threshold": 10**18,
    "wal_cleanup_delay": CLEANUP_DELAY_NS / SECOND_NS,
    "box_cfg_replication_synchro_timeout": "old",
}
"""The values that nil stands for."""
