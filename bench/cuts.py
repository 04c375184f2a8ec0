"""How long the checker of consistent cuts takes: millions of messages, a series of cuts, from Parquet to the verdicts.

    python -m bench.cuts                                  # 10,000,000 messages, 1,000 cuts, 8 nodes
    python -m bench.cuts --messages 1000000 --cuts 100

A process of its own reads the file, judges every cut and checks it a second time by vector clocks. Its time by the
clock and of the processor, and its peak memory, are those of the whole process. One cut in a hundred is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

from bench.table import print_table
from checkers.cuts import parquet
from checkers.cuts.trace import MARK, RECEIVE, SEND, Life, Trace

NODES = 8
STEP_NS = 1_000
DELAY = (200, 4_000)
"""A message is on its way for so many steps."""
JITTER = 150
"""Nodes change their colours within so many steps: fewer than any message takes, so the cut is consistent."""
LATE = 3_000
"""One node of a wrong cut changes its colour so many steps later."""
WRONG_EVERY = 100

_CHILD = """
import json, resource, sys, time
from pathlib import Path
from checkers.cuts import Cut, Given, check, parquet
trace = parquet.read(Path(sys.argv[1]), whole=False)
read_s = time.process_time()
report = check(Given(cuts=[Cut(id=cut) for cut in trace.cuts], trace=trace))
used = resource.getrusage(resource.RUSAGE_SELF)
said = report.judgements["messages"]
print(json.dumps({
    "read": read_s, "core": used.ru_utime + used.ru_stime, "gib": used.ru_maxrss / 2**20, "notes": report.notes,
    "invalid": [each.cut for each in said if each.result == "invalid"],
    "valid": sum(each.result == "valid" for each in said),
}))
"""


def main() -> None:
    """Make the trace, judge it in a process of its own, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=10_000_000)
    parser.add_argument("--cuts", type=int, default=1_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.parquet"
        parquet.write(path, made(asked.messages, asked.cuts))
        megabytes = path.stat().st_size / 2**20
        began_s = time.monotonic()
        child = subprocess.run(
            [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True
        )
        took_s = time.monotonic() - began_s
    said = json.loads(child.stdout)
    wrong = [f"k{cut}" for cut in range(0, asked.cuts, WRONG_EVERY)]
    assert said["invalid"] == wrong, f"expected {len(wrong)} wrong cuts, got {said['invalid'][:5]} …"
    assert said["valid"] == asked.cuts - len(wrong)
    assert not said["notes"], said["notes"]
    print_table(
        ("messages", "cuts", "nodes", "file, MiB", "s, whole process", "of the core", "to read", "peak, GiB"),
        [
            (
                f"{asked.messages:,}",
                f"{asked.cuts:,}",
                str(NODES),
                f"{megabytes:.0f}",
                f"{took_s:.1f}",
                f"{said['core']:.1f}",
                f"{said['read']:.1f}",
                f"{said['gib']:.2f}",
            )
        ],
    )


def made(messages: int, cuts: int, seed: int = 1) -> Trace:
    """A trace of so many messages, each sent and received once, and of cuts at even distances."""
    chance = numpy.random.default_rng(seed)
    sent_at = numpy.arange(messages, dtype=numpy.int64)
    sender = chance.integers(0, NODES, messages, dtype=numpy.int32)
    taker = (sender + chance.integers(1, NODES, messages, dtype=numpy.int32)) % numpy.int32(NODES)
    taken_at = sent_at + chance.integers(*DELAY, messages)
    seq = numpy.empty(messages, numpy.int32)
    for of_node in range(NODES):
        mine = numpy.flatnonzero(sender == of_node)
        seq[mine] = numpy.arange(1, len(mine) + 1, dtype=numpy.int32)
    mark_at, mark_node, mark_cut = _marks(chance, messages, cuts)
    parts = [
        (sent_at, sender, numpy.full(messages, SEND, numpy.int8), seq, taker),
        (taken_at, taker, numpy.full(messages, RECEIVE, numpy.int8), seq, sender),
        (
            mark_at,
            mark_node,
            numpy.full(len(mark_at), MARK, numpy.int8),
            numpy.zeros(len(mark_at), numpy.int32),
            mark_cut,
        ),
    ]
    when, node, kind, number, peer = (numpy.concatenate(columns) for columns in zip(*parts, strict=True))
    order = numpy.argsort(node.astype(numpy.int64) * (1 << 40) + when, kind="stable")
    when, node, kind, number, peer = (column[order] for column in (when, node, kind, number, peer))
    rows = numpy.flatnonzero(kind == MARK)
    codes = peer[rows].copy()
    peer[rows] = -1
    bounds = numpy.searchsorted(node, numpy.arange(NODES + 1)).tolist()
    return Trace(
        lives=tuple(
            Life(node=f"n{place}", life=1, first=bounds[place], end=bounds[place + 1])
            for place in range(NODES)
        ),
        kind=kind,
        seq=number,
        peer=peer,
        what=numpy.where(kind == MARK, 1, numpy.where(kind == SEND, 0, -1)).astype(numpy.int32),
        xid=numpy.zeros(0, numpy.int32),
        time_ns=when * STEP_NS,
        mark_row=rows.astype(numpy.int64),
        mark_cut=codes,
        mark_ns=when[rows] * STEP_NS,
        words=("finish", "cut"),
        cuts=tuple(f"k{cut}" for cut in range(cuts)),
        peers=tuple(f"n{place}" for place in range(NODES)),
        fields={int(row): {"cut": f"k{cut}"} for row, cut in zip(rows.tolist(), codes.tolist(), strict=True)},
    )


def _marks(
    chance: numpy.random.Generator, messages: int, cuts: int
) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """When, at which node and for which cut colours change."""
    cut = numpy.repeat(numpy.arange(cuts, dtype=numpy.int32), NODES)
    node = numpy.tile(numpy.arange(NODES, dtype=numpy.int32), cuts)
    at = (cut.astype(numpy.int64) + 1) * (messages // (cuts + 1)) + chance.integers(0, JITTER, cuts * NODES)
    at[(cut % WRONG_EVERY == 0) & (node == 0)] += LATE
    return at, node, cut


if __name__ == "__main__":
    main()
