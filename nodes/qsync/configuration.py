"""What a node is told of itself and its cluster before it starts; the same plan gives every node its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nodes.qsync.bugs import BUGS
from nodes.qsync.definitions import SpaceDefinition, definition_from_json
from nodes.qsync.election import FENCINGS, MODES, Fencing, Mode
from nodes.qsync.quorum import check, evaluate

CommitWait = Literal["complete", "submit", "none"]
COMMIT_WAITS: tuple[CommitWait, ...] = ("complete", "submit", "none")

__all__ = ["Configuration", "Identity", "SpaceDefinition", "User"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """One member of the cluster. `name` is what `Connect` effects and logs say."""

    id: int
    name: str
    uuid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Who may log in. `hash` is base64 of SHA-1 of SHA-1 of the password, as `_user` has it under `chap-sha1`.

    `may` says what the user may do everywhere: read, write, execute. "guest", who needs no password, may do all
    unless it is named here.
    """

    name: str
    hash: str = ""
    may: tuple[str, ...] = ("read", "write", "execute")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """`quorum` counts the owner itself. Times are nanoseconds on the monotonic clock."""

    name: str
    cluster_uuid: str
    members: tuple[Identity, ...]
    spaces: tuple[SpaceDefinition, ...]
    quorum: int | str
    """A number, or a formula of N, the number of members: see `nodes.qsync.quorum`."""
    synchro_timeout_ns: int
    replication_timeout_ns: int
    bugs: tuple[str, ...] = ()
    election_mode: Mode = "off"
    election_fencing: Fencing = "soft"
    election_timeout_ns: int = 1_000_000_000
    rollback_on_timeout: bool = True
    """False: a transaction that waits for longer than the synchro timeout goes on waiting, only its client is told."""
    synchronous_promote: bool = True
    """False, as Tarantool ships it: a PROMOTE waits for acknowledgements of the last synchronous transaction that its
    node has, and takes effect when it is written, without a quorum of its own."""
    memtx_use_mvcc_engine: bool = True
    """False: whoever reads `read-confirmed` sees prepared data too; a manager of versions is what hides it."""
    synchro_queue_max_size: int = 0
    """Bytes of transactions that may wait on the owner before new ones have to; 0 means no limit."""
    commit_wait: CommitWait = "complete"
    """What a transaction waits for that does not say: `complete` (committed), `submit`, `none`."""
    read_only: bool = False
    users: tuple[User, ...] = ()
    seed: int = 0
    """Decides what a node leaves to chance: by how much its election timeouts differ."""

    def __post_init__(self) -> None:
        names = [member.name for member in self.members]
        if self.name not in names:
            raise ValueError(f"expected a member named {self.name!r} among {names}")
        if not 1 <= evaluate(check(self.quorum), len(self.members)) <= len(self.members):
            raise ValueError(f"expected a quorum from 1 to {len(self.members)}, got {self.quorum}")
        if self.commit_wait not in COMMIT_WAITS:
            raise ValueError(f"expected a wait mode of {', '.join(COMMIT_WAITS)}, got {self.commit_wait!r}")
        if self.synchro_queue_max_size < 0:
            raise ValueError(f"expected a queue size of at least 0, got {self.synchro_queue_max_size}")
        if self.election_mode not in MODES:
            raise ValueError(f"expected an election mode of {', '.join(MODES)}, got {self.election_mode!r}")
        if self.election_fencing not in FENCINGS:
            raise ValueError(
                f"expected a fencing mode of {', '.join(FENCINGS)}, got {self.election_fencing!r}"
            )
        for bug in self.bugs:
            if bug not in BUGS:
                raise ValueError(f"unknown bug {bug!r}; known: {', '.join(BUGS)}")

    @property
    def quorum_size(self) -> int:
        """What the quorum comes to in a cluster of these members."""
        return evaluate(self.quorum, len(self.members))

    @property
    def me(self) -> Identity:
        return next(member for member in self.members if member.name == self.name)

    @property
    def instance_uuid(self) -> str:
        return self.me.uuid

    @property
    def peers(self) -> tuple[Identity, ...]:
        return tuple(member for member in self.members if member.name != self.name)

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Configuration:
        """Read what `to_json` wrote; ValueError says in one sentence what is wrong."""
        try:
            fields: Mapping[str, Any] = json.loads(data)
            return cls(
                **{
                    **fields,
                    "members": tuple(Identity(**member) for member in fields["members"]),
                    "spaces": tuple(definition_from_json(space) for space in fields["spaces"]),
                    "bugs": tuple(fields.get("bugs", ())),
                    "users": tuple(
                        User(**{**user, "may": tuple(user["may"])}) for user in fields.get("users", ())
                    ),
                }
            )
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a configuration of a qsync node: {error}") from error
