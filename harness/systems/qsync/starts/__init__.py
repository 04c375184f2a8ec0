"""Stored starts: logs that were written before the run, by older versions of our nodes and by real Tarantool.

A plan names one, `unmarked-elections`, and perhaps one of its cuts, `unmarked-elections@17`: all disks as they were at
that moment, in the middle of anything. The nodes begin with these logs under the plan's own options.

A folder here is one start: `n1.xlog` … are the logs of its nodes, `start.json` holds the answers that its clients got,
and at which lengths of the logs. `README.md` names the origin of each. The blocks of a log are put on the disks
unchanged. Its header gets the identity of the run's node. A snapshot gets that, too, and the spaces of the run.

More nodes than the start has get a copy of its longest log, which holds all that was acknowledged. With `+join` behind
its name, the first leader alone gets the log of a single node, and the other nodes join it before the load begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from harness.errors import WrongUse
from nodes.iproto import xlog
from nodes.qsync import snapshot as snapshots
from nodes.qsync.bootstrap import first_snapshot, first_tuples, merged
from nodes.qsync.configuration import Configuration, Protocol, SpaceDefinition
from nodes.qsync.unmarked import Meaning

FOLDER = Path(__file__).parent
SPACE = SpaceDefinition(id=1024, name="stored", is_sync=True)
"""The space that the clients of a start wrote to."""
JOIN = "+join"
Row = tuple[str, int]
"""Key and value."""


class _Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`start.json`. A cut: the length of each node's log in bytes, then how many of `answered` came before it."""

    summary: str
    protocol: Protocol
    unmarked_promote: Meaning | None
    answered: tuple[Row, ...]
    cuts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Start:
    """All disks at one moment."""

    name: str
    protocol: Protocol
    unmarked_promote: Meaning | None
    """The meaning of a PROMOTE at the end of a log: no row behind it shows it, an operator would name it."""
    logs: tuple[bytes, ...]
    snapshot: tuple[str, bytes] | None
    """Name and bytes of the one that was taken at that moment."""
    answered: tuple[Row, ...]
    """The writes that clients got acknowledged."""
    others_join: bool
    """One node has the log; the rest begin with empty disks."""

    @property
    def makes_its_space(self) -> bool:
        """Rows of the log define the space; else it was there from the start."""
        return self.protocol == "2.6"

    @property
    def vclock(self) -> dict[int, int]:
        """Origin → the last lsn in all logs together."""
        vclock: dict[int, int] = {}
        for log in self.logs:
            for row in xlog.decode(log).rows:
                vclock[row.replica_id] = max(row.lsn, vclock.get(row.replica_id, 0))
        return vclock


def names() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in FOLDER.glob("*/start.json")))


def summary(name: str) -> str:
    """The content of the logs, and their number."""
    description, logs = _description(name), len(start_of(name).logs)
    counts = f"protocol {description.protocol}, {logs} {'log' if logs == 1 else 'logs'}, {len(description.cuts)} cuts"
    return f"{description.summary} ({counts})"


def cuts_for(name: str, protocol: Protocol, nodes: int) -> tuple[int, ...]:
    """The numbers of the cuts that such a cluster can begin with."""
    numbers = range(1, len(_description(name).cuts) + 1)
    return tuple(number for number in numbers if not fits(f"{name}@{number}", protocol, nodes))


@cache
def _description(name: str) -> _Description:
    return msgspec.json.decode((FOLDER / name / "start.json").read_bytes(), type=_Description)


@cache
def start_of(words: str) -> Start:
    """The start of a plan's words: `NAME` for whole logs or `NAME@NUMBER`, perhaps with `+join`. Raises WrongUse."""
    name, has_cut, number = words.removesuffix(JOIN).partition("@")
    if name not in names():
        raise WrongUse(f"--start: no stored logs are called {name!r}; try one of: {', '.join(names())}")
    description = _description(name)
    place = len(description.cuts) - 1
    if has_cut:
        place = int(number) - 1 if number.isascii() and number.isdigit() and len(number) < 9 else -1
    if not 0 <= place < len(description.cuts):
        raise WrongUse(f"--start {words}: expected {name}@1 to {name}@{len(description.cuts)}")
    *lengths, answered = description.cuts[place]
    files = sorted((FOLDER / name).glob("n*.xlog"))
    taken = sorted((FOLDER / name).glob("*.snap")) if place == len(description.cuts) - 1 else []
    return Start(
        name=name,
        protocol=description.protocol,
        unmarked_promote=description.unmarked_promote,
        logs=tuple(file.read_bytes()[:length] for file, length in zip(files, lengths, strict=True)),
        snapshot=(taken[0].name, taken[0].read_bytes()) if taken else None,
        answered=description.answered[:answered],
        others_join=words.endswith(JOIN),
    )


def fits(words: str, protocol: Protocol, nodes: int) -> str:
    """Why a cluster of that protocol and size cannot begin with it; "" if it can."""
    start = start_of(words)
    if start.others_join and (len(start.logs) > 1 or protocol == "2.6"):
        return f"--start {words}: other nodes can join one of a later protocol than 2.6 with the log of a single node"
    if nodes < len(start.logs):
        return f"--start {words}: it has the logs of {len(start.logs)} nodes, got --nodes {nodes}"
    if protocol == "2.6" != start.protocol:
        return f"--start {words}: 2.6 cannot read the logs of {start.protocol}; try: --configuration H"
    if protocol != "2.6" == start.protocol and start.snapshot is None:
        return (
            f"--start {words}: a queue of 2.6 has no PROMOTE, so later versions begin with its snapshot alone; "
            f"try: --start {start.name}, or --configuration A"
        )
    return ""


def files_of(start: Start, configurations: Mapping[str, Configuration]) -> dict[str, dict[str, bytes]]:
    """Node → name → bytes: what its disk holds before it starts for the first time."""
    longest = max(start.logs, key=len)
    logs = dict(zip(configurations, start.logs, strict=False))
    begin = {node: each for node, each in configurations.items() if not each.joins}
    return {
        node: {
            xlog.file_name({}, "SNAP"): first_snapshot(configuration),
            xlog.file_name({}): _adopted_log(logs.get(node, longest), configuration),
            **({} if start.snapshot is None else _adopted_snapshot(*start.snapshot, configuration)),
        }
        for node, configuration in begin.items()
    }


def _adopted_log(data: bytes, configuration: Configuration) -> bytes:
    """The same blocks under a header that names this node."""
    meta = xlog.decode(data).meta
    assert meta is not None, "cuts are behind headers"
    header = xlog.encode_header(
        "XLOG",
        configuration.instance_uuid,
        meta.vclock,
        meta.previous_vclock,
        server_version=meta.server_version,
    )
    return header + data[data.index(b"\n\n") + 2 :]


def _adopted_snapshot(name: str, data: bytes, configuration: Configuration) -> dict[str, bytes]:
    """The same data in a cluster of these members, with its spaces beside."""
    snapshot, meta = snapshots.read(name, data), snapshots.meta(name, data)
    tuples = merged((*snapshot.tuples, *first_tuples(configuration)))
    adopted = snapshots.Snapshot(snapshot.vclock, tuples, snapshot.queue, snapshot.election)
    return {name: snapshots.file_of(adopted, configuration.instance_uuid, 0.0, meta.server_version)}
