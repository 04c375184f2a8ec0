"""The recorded actions of nodes' disks and links, with their times: the record of a simulator that sees both.

A simulator writes one line for each of these, in the order in which they came about:

- `Durable`: rows are safe on a node's disk: a transaction, or a decision about the queue, or a vote
- `Begun`: a node's log begins anew, behind a snapshot that holds all up to a vclock (or at nothing, on an empty disk)
- `Claimed`: a node reported to other nodes which rows, which term, or which vote it has; repetitions are left out
- `Answered`: an answer to a client left a node
- `Rested`: a node's own state at a moment in which all that it had handed to its disk was durable, as the node knew

Times are nanoseconds since the run began. A line is a JSON array that begins with the kind's letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from checkers.history.errors import NOT_JSON, HistoryError
from checkers.logs.wal.record import Kind, Record

FILE = "effects.jsonl"
"""The actions of disks and links, in a file beside the folders of the nodes of a simulated run."""

Claim = Literal["acknowledgement", "election", "subscription"]
Vclock = tuple[tuple[int, int], ...]
"""(origin, lsn), by origin."""


class RowLine(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """A `Record` without its content."""

    kind: Kind
    origin: int
    lsn: int
    first: int
    ends: bool
    is_synchronous: bool
    owner: int = 0
    until: int = 0
    term: int = 0
    vote: int = 0
    waits: bool | None = None
    member: int = 0
    """The replica that the row makes a member; below 0: one that it removes."""

    def record(self) -> Record:
        return Record(file="on a disk", **msgspec.structs.asdict(self))


class Durable(msgspec.Struct, frozen=True, array_like=True, tag="d", gc=False):
    """`process`: the client that asked the node to write these rows; `written_ns`: when the node wrote them."""

    time_ns: int
    node: str
    rows: tuple[RowLine, ...]
    process: int | None = None
    written_ns: int = 0


class Begun(msgspec.Struct, frozen=True, array_like=True, tag="b", gc=False):
    """`term` is that of the election, as the snapshot has it; the rest of the queue and of the members, likewise."""

    time_ns: int
    node: str
    vclock: Vclock
    term: int
    is_empty: bool = False
    """A node of another identity, with nothing on its disk."""
    vote: int = 0
    owner: int = 0
    queue_term: int = 0
    confirmed: Vclock = ()
    """By each that ever owned the queue, up to where its entries are confirmed."""
    members: tuple[int, ...] = ()


class Claimed(msgspec.Struct, frozen=True, array_like=True, tag="c", gc=False):
    """`vote` 0: it says none; `term` 0 likewise."""

    time_ns: int
    node: str
    what: Claim
    vclock: Vclock
    term: int
    vote: int


class Answered(msgspec.Struct, frozen=True, array_like=True, tag="a", gc=False):
    time_ns: int
    node: str
    process: int


class Rested(msgspec.Struct, frozen=True, array_like=True, tag="r", gc=False):
    """`owner` 0: no node owns the queue. `majority`: the quorum is to be that of the members."""

    time_ns: int
    node: str
    replica: int
    term: int
    vote: int
    owner: int
    queue_term: int
    waiting: int
    """How many transactions wait in the queue."""
    pending: int
    """How many PROMOTEs wait for their quorum."""
    confirmed: int
    """Up to where the owner's entries are confirmed."""
    members: tuple[int, ...]
    counted: tuple[int, ...]
    """The replicas whose acknowledgements count."""
    quorum: int
    election_quorum: int
    asked: int
    """How many nodes a linearizable read asks, the node itself not counted."""
    is_majority: bool
    is_deciding: bool
    """A CONFIRM or ROLLBACK is on its way to the disk, as the node has it."""


Effect = Durable | Begun | Claimed | Answered | Rested

_DECODER = msgspec.json.Decoder(Effect)


def to_lines(effects: Iterable[Effect]) -> bytes:
    """JSON lines, the same bytes for the same effects."""
    return msgspec.json.Encoder().encode_lines(list(effects))


def of_lines(data: bytes) -> tuple[Effect, ...]:
    """The effects of JSON lines. A last line without its end is left out. Raises HistoryError for a malformed line."""
    lines = data.split(b"\n")
    effects: list[Effect] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            effects.append(_DECODER.decode(line))
        except NOT_JSON as error:
            raise HistoryError(
                expected="an effect of a node's disk or links",
                came=str(error),
                attempt="record the run again",
                line=number,
            ) from error
    return tuple(effects)
