"""How long cuts take by the length of logs: a restore of the two-phase store, and `qsync cut` on a folder of xlogs.

    python -m bench.cut_logs                      # 10,000, 100,000 and 500,000 records or rows
    python -m bench.cut_logs --sizes 10000

Restore: the log of one server, of one-key transactions on 10,000 keys, with a cut at its end. A base snapshot, if there
is one, stands 1,000 transactions before the cut. Measured is `nodes.twophase.restore.restore` alone, with the files in
memory.

Cut: three nodes with the same rows, a write and its CONFIRM in turn, behind those of a short simulated run. Each file
has as many rows as the table says. Measured is the whole process of `qsync cut`, which judges at most 100 cuts.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.table import print_table
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type
from nodes.records import Record, framed
from nodes.twophase.cut_index import FILE as INDEX
from nodes.twophase.cut_index import entry_of
from nodes.twophase.restore import restore
from nodes.twophase.snapshots import FILE as BASE
from nodes.twophase.wal import SEGMENT

SIZES = (10_000, 100_000, 500_000)
KEYS = 10_000
BEHIND_BASE = 1_000
SEGMENT_BYTES = 4 << 20
QSYNC = (sys.executable, "-P", "-m", "harness.cli")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    sizes = parser.parse_args().sizes
    rows = [restored(size, has_base=has_base) for size in sizes for has_base in (False, True)]
    print_table(("transactions", "base", "MiB", "restore, s"), rows)
    print()
    with tempfile.TemporaryDirectory() as folder:
        print_table(
            ("rows a node", "MiB, all files", "s, whole process"),
            [judged(Path(folder), size) for size in sizes],
        )


def restored(size: int, *, has_base: bool) -> tuple[str, str, str, str]:
    """A row of the first table."""
    files = segments(records(size, has_base=has_base))
    if has_base:
        rows = [["bank", key, 0, version] for key, version in versions(size - BEHIND_BASE).items()]
        files[BASE.format(1)] = framed(["base-1", rows])
    began_s = time.perf_counter()
    found = restore(files, "k1")
    took_s = time.perf_counter() - began_s
    assert len(found.rows) == min(size, KEYS)
    mib = sum(map(len, files.values())) / 2**20
    return f"{size:,}", "yes" if has_base else "no", f"{mib:.1f}", f"{took_s:.2f}"


def versions(size: int) -> dict[int, int]:
    """Of every key, after so many transactions."""
    return {key: (size - key - 1) // KEYS + 1 for key in range(min(size, KEYS))}


def records(size: int, *, has_base: bool) -> Iterator[Record]:
    for number in range(size):
        if has_base and number == size - BEHIND_BASE:
            yield ["base", "base-1", BASE.format(1)]
            yield ["base-done", "base-1"]
        xid, key = f"n1-1-{number}", number % KEYS
        participants = [[key % 8, ["n1", "n2"]]]
        writes = [["bank", key, number, number // KEYS + 1]]
        yield ["prepared", xid, "n1", 1, 4, False, participants, writes]
        yield ["committed", xid, None, False, participants, writes]
    yield ["start", "k1", 1, 4, [8, 1, "n1", "n2"], []]
    yield ["finish", "k1", [], []]


def segments(log: Iterator[Record]) -> dict[str, bytes]:
    """The files of a log, and its index of cuts: a restore reads the files between the base and the cut."""
    files: dict[str, bytearray] = {}
    index = b""
    size = SEGMENT_BYTES
    for record in log:
        data = framed(record)
        if size + len(data) > SEGMENT_BYTES:
            size, files[SEGMENT.format(len(files) + 1)] = 0, bytearray()
        files[SEGMENT.format(len(files))] += data
        size += len(data)
        if entry := entry_of(record, len(files)):
            index += framed([entry.kind, entry.name, entry.segment])
    return {INDEX: index, **{name: bytes(data) for name, data in files.items()}}


def judged(folder: Path, size: int) -> tuple[str, str, str]:
    """A row of the second table."""
    results, logs = folder / "results", folder / f"logs-{size}"
    if not results.exists():
        run = (*QSYNC, "run", "--cluster", "sim", "--faults", "none", "--time-limit", "2", "--rate", "20")
        subprocess.run((*run, "--results", str(results)), check=False, capture_output=True)
    for node in sorted((results / "latest" / "nodes").iterdir()):
        if node.is_dir():
            shutil.copytree(node, logs / node.name, ignore=shutil.ignore_patterns("log.jsonl"))
            lengthen(next((logs / node.name).glob("*.xlog")), size)
    mib = sum(path.stat().st_size for path in logs.rglob("*") if path.is_file()) / 2**20
    began_s = time.monotonic()
    child = subprocess.run((*QSYNC, "cut", str(logs), "--quorum", "2"), check=False, capture_output=True)
    took_s = time.monotonic() - began_s
    assert child.returncode == 0, child.stderr.decode()
    return f"{size:,}", f"{mib:.1f}", f"{took_s:.1f}"


def lengthen(path: Path, size: int) -> None:
    """More writes with their CONFIRMs, like the last ones, until the file has so many rows."""
    found = xlog.decode(path.read_bytes())
    write = next(row for row in reversed(found.rows) if row.type == Type.REPLACE)
    confirm = next(row for row in reversed(found.rows) if row.type == Type.CONFIRM)
    behind = found.rows[-1].lsn + 1
    with path.open("ab") as file:
        for lsn in range(behind, behind + size - len(found.rows), 2):
            for row in (write, replace(confirm, body={**confirm.body, 3: lsn})):
                file.write(xlog.encode_block([_moved(row, lsn if row is write else lsn + 1)]))


def _moved(row: Row, lsn: int) -> Row:
    return replace(row, lsn=lsn, tsn=lsn, timestamp=row.timestamp + lsn / 1_000)


if __name__ == "__main__":
    main()
