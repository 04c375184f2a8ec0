"""A node's configuration: itself and its cluster at the start. A plan gives every node its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from types import MappingProxyType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from nodes.iproto.messages import UUID
from nodes.kernel.quorum import LINEARIZABLE_FORMULA, NODES_MAX, check, check_linearizable, evaluate
from nodes.qsync.definitions import ROLES, SpaceDefinition, definition_from_json
from nodes.qsync.election import FENCINGS, MODES, Fencing, Mode

CommitWait = Literal["complete", "submit", "none"]
AfterPromote = Literal["kept", "zero"]
AFTER_PROMOTE: tuple[AfterPromote, ...] = ("kept", "zero")
Protocol = Literal["3.2", "2.6"]
PROTOCOLS: tuple[Protocol, ...] = ("3.2", "2.6")
CHECKPOINT_INTERVAL_NS = 3_600_000_000_000
CLEANUP_DELAY_NS = 4 * 3_600_000_000_000
RIGHTS = ("read", "write", "execute")
_HASH = re.compile("(?:[A-Za-z0-9+/]{27}=)?")
"""Nothing, or base64 of the 20 bytes of SHA-1."""
_TAKEN_NAMES = ("admin", *(name for _, name in ROLES))
COMMIT_WAITS: tuple[CommitWait, ...] = ("complete", "submit", "none")
_LEAST = {
    "synchro_timeout_ns": (1, "replication_synchro_timeout above 0"),
    "replication_timeout_ns": (1, "replication_timeout above 0"),
    "election_timeout_ns": (1, "election_timeout above 0"),
    "txn_synchro_timeout_ns": (1, "txn_synchro_timeout above 0"),
    "replication_connect_quorum": (0, "a replication_connect_quorum of at least 0"),
    "checkpoint_interval_ns": (0, "checkpoint_interval of at least 0"),
    "checkpoint_wal_threshold": (1, "a checkpoint_wal_threshold above 0"),
    "checkpoint_count": (1, "to keep at least 1 snapshot"),
    "wal_cleanup_delay_ns": (0, "wal_cleanup_delay of at least 0"),
    "wal_max_size": (2, "a wal_max_size above 1"),
    "wal_queue_max_size": (0, "a queue size of at least 0"),
    "synchro_queue_max_size": (0, "a queue size of at least 0"),
}
_WORDS: Mapping[str, tuple[tuple[str | None, ...], str]] = {
    "commit_wait": (COMMIT_WAITS, "a wait mode of"),
    "election_mode": (MODES, "an election mode of"),
    "election_fencing": (FENCINGS, "a fencing mode of"),
    "confirmed_lsn_after_promote": (AFTER_PROMOTE, "the confirmed lsn after a PROMOTE to be"),
    "protocol": (PROTOCOLS, "a protocol of"),
    "unmarked_promote": ((None, "waits", "at once"), "unmarked_promote to be"),
}

__all__ = ["Configuration", "Identity", "SpaceDefinition", "User"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One member of the cluster. `Connect` effects and logs use `name`."""

    id: int
    name: str
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user that may log in. `hash` is base64 of SHA-1 of SHA-1 of the password, as in `_user` under `chap-sha1`.

    `may` lists what the user may do everywhere: read, write, execute. "guest", which needs no password, may do all
    unless it is named here.
    """

    name: str
    hash: str = ""
    may: tuple[str, ...] = RIGHTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """`quorum` counts the owner itself. Times are nanoseconds on the monotonic clock."""

    name: str
    cluster_uuid: str
    members: tuple[Identity, ...]
    spaces: tuple[SpaceDefinition, ...]
    quorum: int | str
    """A number, or a formula of N, the number of members: see `nodes.kernel.quorum`."""
    synchro_timeout_ns: int
    replication_timeout_ns: int
    bugs: tuple[str, ...] = ()
    """Names of files in `nodes.qsync.bugs`."""
    election_mode: Mode = "off"
    election_fencing: Fencing = "soft"
    election_timeout_ns: int = 1_000_000_000
    exact_elections: bool = False
    """Elections keep Tarantool's times and states to the moment (`nodes.qsync.exact_election`)."""
    rollback_on_timeout: bool = True
    """False: a transaction goes on waiting after the synchro timeout, but its client gets an error."""
    txn_synchro_timeout_ns: int | None = None
    """When the client gets that error. None: after the synchro timeout (Tarantool: 5 s)."""
    synchronous_promote: bool = True
    """False, as Tarantool ships it: a PROMOTE waits for acknowledgements of the last synchronous transaction that its
    node has, and takes effect when it is written, without a quorum of its own."""
    unmarked_promote: Literal["waits", "at once"] | None = None
    """How to read a PROMOTE of an older version if its log does not show it: see `nodes.qsync.unmarked`.
    None: the node refuses to start on such a log."""
    memtx_use_mvcc_engine: bool = True
    """False: `read-confirmed` reads observe prepared data too, because only MVCC hides it."""
    synchro_queue_max_size: int = 0
    """Bytes of transactions that may wait on the owner before new ones have to; 0 means no limit."""
    wal_queue_max_size: int = 16 * 1024 * 1024
    """Bytes that may be on their way to the disk before clients have to wait; 0 means no limit."""
    commit_wait: CommitWait = "complete"
    """The default wait mode of a transaction: `complete` (committed), `submit`, `none`."""
    read_only: bool = False
    owner_after_restart: bool = True
    """Without elections: a node that owned the queue when it ended owns it writable when it starts again. False, as in
    Tarantool: only after a new PROMOTE ("frozen until promotion")."""
    promote_waits_for_queue: bool = False
    """With elections: box.ctl.promote is answered when the node is writable, as in Tarantool since 3.7.0. False: when
    the election is won."""
    confirmed_lsn_after_promote: AfterPromote = "kept"
    """Where a new owner's confirmed lsn begins: where it stood when that node last owned the queue, or as in the first
    versions at `zero`. The same on all nodes."""
    replication_connect_quorum: int = 0
    """How many peers a node must follow at once, after its start, before it is writable; until then it is an orphan."""
    replication_linearizable_quorum: int | str = LINEARIZABLE_FORMULA
    """How many nodes a linearizable read asks: below N − Q + 1 it may miss acknowledged writes."""
    users: tuple[User, ...] = ()
    protocol: Protocol = "3.2"
    """As which version of Tarantool the node writes and speaks. "2.6": no RAFT, PROMOTE or DEMOTE row, no flags of
    synchronous rows; a node that writes to an empty queue owns it. A real 2.6 can be a member then."""
    joins: bool = False
    """True: a node without data joins the cluster of its peers, which give it an id (its own here is 0). So does a node
    that lost its disk, with a new UUID. False: it begins as a first member."""
    is_anonymous: bool = False
    """The node joins without becoming a member: it has no id and no vote, counts for no quorum and is read-only."""
    wal_max_size: int = 256 * 1024 * 1024
    """Bytes after which a new xlog is begun."""
    checkpoint_count: int = 2
    """How many snapshots are kept, with the logs behind the oldest of them."""
    checkpoint_interval_ns: int = CHECKPOINT_INTERVAL_NS
    """How often a snapshot is taken; 0: never by itself."""
    checkpoint_wal_threshold: int = 10**18
    """Bytes of log after which a snapshot is taken, whatever the interval."""
    wal_cleanup_delay_ns: int = CLEANUP_DELAY_NS
    """How long after its start a node removes no file unless every member has connected. 2.6.0 has no such delay."""
    seed: int = 0
    """The seed of the node's random choices: how far its election timeouts are spread."""

    def __post_init__(self) -> None:
        """Raises ValueError, with one sentence, for the first value that cannot be."""
        _must_have_its_types(self)  # first: what follows compares numbers
        self._check_members()
        self._check_users()
        for name, (least, expected) in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value >= 1 << 63 and not name.endswith("_ns"):
                raise ValueError(f"expected {name} below 2**63, got {value}")
            if value is not None and value < least:
                raise ValueError(f"expected {expected}, got {value}{' ns' if name.endswith('_ns') else ''}")
        for name, (words, expected) in _WORDS.items():
            if getattr(self, name) not in words:
                allowed = (" or " if expected.endswith("to be") else ", ").join(filter(None, words))
                raise ValueError(f"expected {expected} {allowed}, got {getattr(self, name)!r}")
        if self.protocol == "2.6" and self.election_mode != "off":
            raise ValueError(f"protocol 2.6 has no elections, got election mode {self.election_mode!r}")
        if self.is_anonymous and self.election_mode != "off":
            raise ValueError(f"an anonymous replica has no vote, got election mode {self.election_mode!r}")

    def _check_members(self) -> None:
        names = [member.name for member in self.members]
        if self.name not in names:
            raise ValueError(f"expected a member named {self.name!r} among {names}")
        if (self.joins or self.is_anonymous) != (self.me.id == 0):
            raise ValueError(f"expected id 0 of a node that joins and of no other, got {self.me.id}")
        count = len(self.members)
        if not 1 <= evaluate(check(self.quorum), count) <= count:
            raise ValueError(f"expected a quorum from 1 to {count}, got {self.quorum}")
        check_linearizable(self.replication_linearizable_quorum)

    def _check_users(self) -> None:
        names = [user.name for user in self.users]
        for place, user in enumerate(self.users):
            if user.name in ("", *_TAKEN_NAMES, *names[:place]):
                raise ValueError(
                    f"expected users of different names, none of {', '.join(_TAKEN_NAMES)}, got {user.name!r}"
                )
            if len({*user.may} & {*RIGHTS}) < len(user.may):
                raise ValueError(
                    f"expected user {user.name} to have rights among {', '.join(RIGHTS)}, got {user.may!r}"
                )
            if not _HASH.fullmatch(user.hash):
                raise ValueError(
                    f"expected the hash of user {user.name} as base64 of 20 bytes, got {user.hash!r}"
                )

    @property
    def registered(self) -> tuple[Identity, ...]:
        """The members that have an id: only these count for quorums."""
        return tuple(member for member in self.members if member.id)

    @property
    def version(self) -> str:
        """The version that the node reports: that of its protocol's Tarantool."""
        return f"{self.protocol}.0"

    @property
    def me(self) -> Identity:
        return next(member for member in self.members if member.name == self.name)

    @property
    def instance_uuid(self) -> str:
        return self.me.uuid

    @property
    def peers(self) -> tuple[Identity, ...]:
        """The other members that the node can dial; not members without a name, known only from `_cluster`."""
        return tuple(member for member in self.members if member.name not in ("", self.name))

    def as_registered(
        self, uuids: Mapping[int, str], answered: Mapping[str, int] = MappingProxyType({})
    ) -> Configuration:
        """This configuration in a cluster with the members of `_cluster`: replica id → UUID.

        `answered`: the id that the node at a peer's address reported. A peer that lost its disk returns there with a
        new UUID, and is then identified by that. A node that was removed still uses its last id for itself.
        """
        numbers = {uuid: number for number, uuid in uuids.items()}
        known = tuple(
            self._known_as(member, numbers, uuids, answered) for member in self.members if member.name
        )
        ours = {member.uuid for member in known}
        others = tuple(
            Identity(id=number, name="", uuid=uuid)
            for number, uuid in sorted(uuids.items())
            if uuid not in ours
        )
        joins = self.joins and self.instance_uuid not in numbers
        return replace(self, members=known + others, joins=joins)

    def _known_as(
        self,
        member: Identity,
        numbers: Mapping[str, int],
        uuids: Mapping[int, str],
        answered: Mapping[str, int],
    ) -> Identity:
        """The member with its id in `uuids`, and with the UUID under which it has returned."""
        if member.uuid in numbers:
            return replace(member, id=numbers[member.uuid])
        if member.name == self.name:
            return member
        number = answered.get(member.name, 0)
        if number in uuids and all(uuids[number] != peer.uuid for peer in self.members if peer.name):
            return replace(member, id=number, uuid=uuids[number])
        return replace(member, id=0)

    def to_json(self) -> bytes:
        """The file of a node. A new field is left out while it has its default: older versions refuse unknown ones."""
        options = asdict(self)
        if self.wal_cleanup_delay_ns == CLEANUP_DELAY_NS:
            del options["wal_cleanup_delay_ns"]
        return json.dumps(options, indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Configuration:
        """The configuration in the bytes of `to_json`. Raises ValueError, with one sentence, if it is invalid."""
        try:
            fields: Mapping[str, Any] = json.loads(data)
            made = cls(
                **{
                    **fields,
                    "members": tuple(Identity(**member) for member in fields["members"]),
                    "spaces": tuple(definition_from_json(space) for space in fields["spaces"]),
                    "bugs": tuple(fields.get("bugs", ())),
                    "users": tuple(map(_user_from_json, fields.get("users", ()))),
                }
            )
            made._must_be_sound()
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"not a configuration of a qsync node: {error}") from error
        return made

    def _must_be_sound(self) -> None:
        """Raises ValueError for what only a file can have wrong: types, numbers and UUIDs, things named twice."""
        indexes = [index for space in self.spaces for index in space.indexes]
        fields = [field for space in self.spaces for field in space.format]
        parts = [part for index in indexes for part in index.parts]
        for each in (*self.members, *self.users, *self.spaces, *fields, *indexes, *parts):
            _must_have_its_types(each)
        for uuid in (self.cluster_uuid, *(member.uuid for member in self.members)):
            if not UUID.fullmatch(uuid):
                raise ValueError(f"expected the UUID of a cluster or member, got {uuid!r}")
        ids, space_ids = [member.id for member in self.members], [space.id for space in self.spaces]
        if not all(0 <= number <= NODES_MAX for number in ids) or min(space_ids, default=512) < 512:
            raise ValueError(
                f"expected members 0 to {NODES_MAX} and spaces from 512 on, got {ids} and {space_ids}"
            )
        told_apart: dict[str, list[Any]] = {
            "members of different names": [member.name for member in self.members],
            "members of different ids": [number for number in ids if number],
            "members of different UUIDs": [member.uuid for member in self.members],
            "spaces of different ids": space_ids,
            "spaces of different names": [space.name for space in self.spaces],
        }
        for what, values in told_apart.items():
            if len({*values}) < len(values):
                raise ValueError(f"expected {what}, got {values}")


def _user_from_json(fields: Mapping[str, Any]) -> User:
    may = fields.get("may", list(RIGHTS))
    if not isinstance(may, list):  # a word would become letters
        raise ValueError(f"expected a user with a list of rights as may, got {dict(fields)!r}")
    return User(**{**fields, "may": tuple(may)})


def _must_have_its_types(value: object) -> None:
    of: Any = type(value)
    for name, kinds in _kinds(of).items():
        if type(getattr(value, name)) not in kinds:
            expected = f"{name} of a {of.__name__} as {' or '.join(kind.__name__ for kind in kinds)}"
            raise ValueError(f"expected {expected}, got {getattr(value, name)!r:.80}")


@cache
def _kinds(of: type) -> Mapping[str, tuple[type, ...]]:
    """Field → the types of its value; `_WORDS` has the fields that are words."""
    hints = get_type_hints(of).items()
    kinds = {name: get_args(h) if isinstance(h, UnionType) else (get_origin(h) or h,) for name, h in hints}
    return {name: each for name, each in kinds.items() if all(isinstance(kind, type) for kind in each)}
