"""How judging grows with the length of a run: a stored run of registers, and copies of its history, one after another.

Each length is judged as a stored run in a process of its own, by all checks of its clients' answers and of the nodes'
reports; the copies have no logs. `python -m bench.long_runs results/latest [COPIES]`
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.table import print_table
from checkers.history import segments
from harness.judge import Case, Left, judge
from harness.results import RunFolder
from harness.run.finish import read_history
from harness.systems import plans

COPIES = 10
BETWEEN_NS = 1_000_000_000


def copies(events: Callable[[], Iterator[dict[str, Any]]], count: int) -> Iterator[dict[str, Any]]:
    """The events of `count` runs in a row: other keys, processes and faults in each, and one end for all."""
    end_ns, ids, final = 0, 1, []
    for event in events():
        end_ns, ids = event["time_ns"] + BETWEEN_NS, max(ids, 1 + _id(event))
        if event.get("phase") == "final":
            final.append(event)
    for copy in range(count):
        for event in events():
            if event.get("phase") != "final" and event["f"] != "settled":
                yield _moved(event, copy, copy * end_ns, copy * ids)
    yield {"type": "info", "process": "harness", "f": "settled", "value": True, "time_ns": count * end_ns}
    for event in final:
        for copy in range(1 if event["f"] == "dump" else count):
            moved = _moved(event, copy, 0, copy * ids) | {"time_ns": count * end_ns}
            if event["f"] == "dump" and isinstance(event.get("value"), dict):
                moved["value"] = {"spaces": _of_all(event["value"]["spaces"], count)}
            yield moved


def _id(event: dict[str, Any]) -> int:
    """Of the process or the fault; 0 of others."""
    process, value = event["process"], event.get("value")
    if isinstance(process, int):
        return process
    return int(value["id"]) if process == "nemesis" and value is not None else 0


def _moved(event: dict[str, Any], copy: int, later_ns: int, ids: int) -> dict[str, Any]:
    moved = {**event, "time_ns": event["time_ns"] + later_ns}
    if isinstance(event["process"], int):
        moved["process"] = event["process"] + ids
    if "key" in event:
        moved["key"] = f"{copy}-{event['key']}"
    if event["process"] == "nemesis":
        moved["value"] = _later(event["value"], later_ns) | {"id": event["value"]["id"] + ids}
    return moved


def _later(value: dict[str, Any], later_ns: int) -> dict[str, Any]:
    """A fault, or a shape of one, with all its moments."""
    moments = {
        name: at + later_ns for name, at in value.items() if name.endswith("_ns") and isinstance(at, int)
    }
    shapes = [_later(shape, later_ns) for shape in value.get("shapes", ())]
    return value | moments | ({"shapes": shapes} if shapes else {})


def _of_all(spaces: dict[str, Any], count: int) -> dict[str, Any]:
    return {
        name: [[f"{copy}-{row[0]}", *row[1:]] for copy in range(count) for row in rows]
        for name, rows in spaces.items()
    }


def judged(run: RunFolder, count: int) -> tuple[int, float, int, str]:
    """Operations, CPU seconds from the file to the verdict, MiB at the most, the checks that are not valid."""
    with tempfile.TemporaryDirectory() as folder:
        copy = RunFolder(Path(folder))
        with segments.stream(run.history) as record:
            header = record.readline()

        def events() -> Iterator[dict[str, Any]]:
            with segments.stream(run.history) as record:
                record.readline()
                yield from map(msgspec.json.decode, record)

        with copy.history.open("wb") as file:
            file.write(header)
            for index, event in enumerate(copies(events, count)):
                file.write(msgspec.json.encode(event | {"index": index}) + b"\n")
        command = [sys.executable, "-m", "bench.long_runs", str(run.path), "judge", str(copy.path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    operations, seconds, peak_mib, invalid = json.loads(done.stdout)
    return operations, seconds, peak_mib, invalid


def _judge(run: RunFolder, copy: RunFolder) -> tuple[int, float, int, str]:
    start_s = time.process_time()
    history = read_history(copy)
    verdict = judge(Case(plans.read(run.plan_file), history, Left(logs=())))
    seconds = time.process_time() - start_s
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    others = [each["checker"] for each in verdict["checks"] if each["result"] == "invalid"]
    return len(history.operations), seconds, peak_mib, ", ".join(others) or "–"


def main() -> None:
    run = RunFolder(Path(sys.argv[1]))
    if sys.argv[2:3] == ["judge"]:
        print(json.dumps(_judge(run, RunFolder(Path(sys.argv[3])))))
        return
    most = int(sys.argv[2]) if len(sys.argv) > 2 else COPIES
    rows, first_s = [], 0.0
    for count in (1, most):
        operations, seconds, peak_mib, invalid = judged(run, count)
        first_s = first_s or seconds
        rows.append(
            (
                str(count),
                f"{operations:,}",
                f"{seconds:.1f} s",
                f"{seconds / first_s:.1f} ×",
                f"{peak_mib:,} MiB",
                invalid,
            )
        )
    print_table(("copies", "operations", "CPU", "of one", "at most", "invalid"), rows)


if __name__ == "__main__":
    main()
