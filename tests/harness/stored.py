"""Stored runs of all kinds for tests: sound and broken ones of several workloads, and what may befall their files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from harness.errors import FAILED
from harness.plan.plan import Plan
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.execute import execute
from nodes.iproto import xlog
from nodes.iproto.messages import Type

Befalls = Callable[[RunFolder], None]


def logs_of(run: RunFolder) -> list[Path]:
    return sorted(run.nodes.glob("*/*.xlog"))


def newest_log(run: RunFolder) -> Path:
    """Of the last node."""
    return logs_of(run)[-1]


def nothing(run: RunFolder) -> None:
    pass


def record_torn(run: RunFolder) -> None:
    run.history.write_bytes(run.history.read_bytes()[:-7])


def record_cut(run: RunFolder) -> None:
    lines = run.history.read_bytes().splitlines(keepends=True)
    run.history.write_bytes(b"".join(lines[: len(lines) // 2]))


def record_lacks_a_line(run: RunFolder) -> None:
    lines = run.history.read_bytes().splitlines(keepends=True)
    run.history.write_bytes(b"".join(lines[:20] + lines[21:]))


def record_empty(run: RunFolder) -> None:
    run.history.write_bytes(b"")


def _says(run: RunFolder, f: str, value: object = None) -> None:
    data = run.history.read_bytes()
    last = msgspec.json.decode(data.splitlines()[-1])
    line = {
        "index": last["index"] + 1,
        "time_ns": last["time_ns"],
        "type": "info",
        "process": "harness",
        "f": f,
    }
    run.history.write_bytes(data + msgspec.json.encode({**line, "value": value}) + b"\n")


def interrupted(run: RunFolder) -> None:
    _says(run, "interrupted")


def broken_off(run: RunFolder) -> None:
    _says(run, FAILED, "n2 does not answer any more")


def no_logs(run: RunFolder) -> None:
    shutil.rmtree(run.nodes)


def a_log_missing(run: RunFolder) -> None:
    for path in newest_log(run).parent.glob("*.xlog"):
        path.unlink()


def a_log_with_a_hole(run: RunFolder) -> None:
    """The checksum of a block in the middle is wrong, and good blocks stand behind it."""
    path = newest_log(run)
    data = bytearray(path.read_bytes())
    middle = data.find(b"\xd5\xba\x0b", len(data) // 2)
    data[middle + 30] ^= 0xFF
    path.write_bytes(data)
    assert xlog.goes_on(bytes(data), xlog.decode(bytes(data)).good_bytes)


def a_torn_log(run: RunFolder) -> None:
    """As a kill leaves it: behind all rows that the node has reported, a part of one more."""
    path = newest_log(run)
    data = path.read_bytes()
    last = xlog.encode_block(xlog.decode(data).rows[-1:])
    path.write_bytes(data.removesuffix(xlog.encode_eof()) + last[:-3])


def a_log_of_garbage(run: RunFolder) -> None:
    newest_log(run).write_bytes(b"garbage" * 100)


def a_log_that_contradicts(run: RunFolder) -> None:
    """A second CONFIRM of what was confirmed, as the known bug duplicate-confirm writes it."""
    for path in logs_of(run):
        data = path.read_bytes()
        confirms = [row for row in xlog.decode(data).rows if row.type == Type.CONFIRM.value]
        if confirms:
            row = confirms[-1]
            lsn = max(each.lsn for each in xlog.decode(data).rows if each.replica_id == row.replica_id) + 1
            again = replace(row, lsn=lsn, tsn=lsn)
            path.write_bytes(data.removesuffix(xlog.encode_eof()) + xlog.encode_block([again]))
            return
    raise AssertionError("no log has a CONFIRM")


BEFALLS: tuple[Befalls, ...] = (
    nothing,
    record_torn,
    record_cut,
    record_lacks_a_line,
    record_empty,
    interrupted,
    broken_off,
    no_logs,
    a_log_missing,
    a_log_with_a_hole,
    a_torn_log,
    a_log_of_garbage,
    a_log_that_contradicts,
)
"""What becomes of a stored run before it is judged."""


@dataclass(frozen=True)
class Kind:
    """A plan, and what befalls its runs."""

    name: str
    plan: Plan
    befalls: tuple[Befalls, ...] = (nothing,)


def stored(results: Path, kinds: tuple[Kind, ...]) -> Iterator[tuple[str, RunFolder]]:
    """Each run of each kind with each thing that may befall it, in a folder of results of its own; nobody judged it."""
    for kind in kinds:
        executed = execute(parts_of(kind.plan), results / "_executed").folder.path
        for number, befalls in enumerate(kind.befalls):
            name = f"{kind.name}-{kind.plan.seed}-{befalls.__name__}"
            run = RunFolder(results / name / "run" / f"20260101T000000Z-{number}")
            shutil.copytree(executed, run.path)
            befalls(run)
            yield name, run
