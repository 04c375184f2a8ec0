"""Whole runs in containers, one after the other: verdicts, which faults took effect, how long it takes, what is left.

    .venv/bin/python bench/containers.py --seeds 10 --time-limit 180          five nodes, all faults, three at once
    .venv/bin/python bench/containers.py --bug confirm-early --bug lease-by-wall-clock --time-limit 60
    .venv/bin/python bench/containers.py --kills 20                           the harness is killed at random moments

It expects to be alone on this machine: the runs of others come and go as if they were left behind.

Prints a row of Markdown a run. The exit code is 1 if a run was not valid (with bugs: if one was not found), if fewer
than five kinds of faults took effect, if no wall clock was off by a minute, or if anything was left behind.

"left" compares containers, networks, volumes, mounts, packet rules and orphaned processes, before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness.cluster.containers.image import connect
from harness.cluster.ownership import tables

ROOT = Path(__file__).parents[1]
KINDS_MIN = 5
MINUTE_NS = 60_000_000_000
START_S_MAX = 30
"""How late in a run of containers the harness is killed, at most."""


def main() -> int:
    given = _arguments()
    results = given.results.resolve()
    if given.kills:
        return kills(given, results)
    print("| seed | bug | verdict | ok | kinds in effect | clock off by | load after | end after | left |")
    print("|---|---|---|---|---|---|---|---|---|")
    missed = 0
    for bug in given.bug or [""]:
        found = False
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            row = run(given, results, seed, bug)
            print(row.line(), flush=True)
            missed += bool(row.left) or not (bug or row.is_good())
            found = found or row.verdict == "anomaly"
            if bug and found:
                break
        missed += bool(bug and not found)
    return 1 if missed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--time-limit", type=float, default=60)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--overlap", type=int, default=3)
    parser.add_argument("--faults", default="all")
    parser.add_argument("--bug", action="append", help="found within the seeds?")
    parser.add_argument("--kills", type=int, default=0, help="kill the harness so often, at random moments")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("more", nargs="*", help="after --: more options of `qsync run`")
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one run."""

    seed: int
    bug: str
    verdict: str
    sentence: str
    ok: int
    kinds: tuple[str, ...]
    clock_off_ns: int
    load_after_s: float
    end_after_s: float
    left: tuple[str, ...]

    def is_good(self) -> bool:
        return self.verdict == "valid" and len(self.kinds) >= KINDS_MIN and self.clock_off_ns >= MINUTE_NS

    def line(self) -> str:
        verdict = self.verdict if self.verdict == "valid" else f"{self.verdict}: {self.sentence}"
        cells = (
            *(str(self.seed), self.bug or "–", verdict, str(self.ok)),
            f"{len(self.kinds)}: {', '.join(self.kinds)}",
            f"{self.clock_off_ns / MINUTE_NS:.0f} min",
            *(f"{self.load_after_s:.1f} s", f"{self.end_after_s:.1f} s", ", ".join(self.left) or "nothing"),
        )
        return "| " + " | ".join(cells) + " |"


def command(given: argparse.Namespace, results: Path, seed: int, bug: str) -> list[str]:
    return [
        *(sys.executable, "-m", "harness.cli", "run", "--cluster", "docker", "--json"),
        *("--nodes", str(given.nodes), "--faults", given.faults, "--overlap", str(given.overlap)),
        *("--time-limit", str(given.time_limit), "--seed", str(seed), "--results", str(results)),
        *(("--bug", bug) if bug else ()),
        *given.more,
    ]


def run(given: argparse.Namespace, results: Path, seed: int, bug: str) -> Row:
    before = there_is()
    began = time.time()
    done = subprocess.run(
        command(given, results, seed, bug),
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    ended = time.time()
    try:
        verdict = json.loads(done.stdout)
    except ValueError:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        sentence = said[-1] if said else f"exit {done.returncode}"
        return Row(seed, bug, "failed", sentence, 0, (), 0, 0.0, 0.0, left(before))
    folder = Path(verdict["folder"])
    first_s, last_s = _load(folder)
    return Row(
        seed=seed,
        bug=bug,
        verdict=verdict["outcome"],
        sentence=verdict["sentence"],
        ok=verdict["evidence"]["ok"],
        kinds=tuple(verdict["evidence"]["kinds_in_effect"]),
        clock_off_ns=_clock_off_ns(folder),
        load_after_s=first_s - began,
        end_after_s=ended - last_s,
        left=left(before),
    )


# ---- what a run did


def _load(folder: Path) -> tuple[float, float]:
    """When the first operation was asked for and the last one answered, as the machine's clock says.

    The record is closed right after its last line, which tells what time the others are.
    """
    times = [line["time_ns"] for line in _lines(folder) if isinstance(line.get("process"), int)]
    last_ns = max((line["time_ns"] for line in _lines(folder) if "time_ns" in line), default=0)
    closed = (folder / "history.jsonl").stat().st_mtime
    return closed - (last_ns - times[0]) / 1e9, closed - (last_ns - times[-1]) / 1e9


def _clock_off_ns(folder: Path) -> int:
    """By how much a node's wall clock was wrong at most, of the faults that were felt."""
    jumps: dict[int, int] = {}
    felt = 0
    for line in _lines(folder):
        value = line.get("value")
        if line.get("f") != "clock" or line.get("process") != "nemesis" or not isinstance(value, dict):
            continue
        if line["type"] == "invoke":
            jumps[value["id"]] = abs(value.get("jump_ns", 0))
        elif value.get("took_effect"):
            felt = max(felt, jumps.get(value["id"], 0))
    return felt


def _lines(folder: Path) -> Iterator[Mapping[str, Any]]:
    with (folder / "history.jsonl").open() as lines:
        for line in lines:
            yield json.loads(line)


# ---- what there is on this machine


def there_is() -> frozenset[str]:
    """Everything that a run could leave behind, in words."""
    client = connect()
    try:
        containers = [
            f"container {each.name}" for each in client.containers.list(all=True, ignore_removed=True)
        ]
        networks = [f"network {each.name}" for each in client.networks.list()]
        volumes = [f"volume {each.name}" for each in client.volumes.list()]
    finally:
        client.close()
    rules = [f"packet rules {name}" for name in tables()]
    mounts = [f"mount {line.split()[1]}" for line in Path("/proc/mounts").read_text().splitlines()]
    return frozenset([*containers, *networks, *volumes, *rules, *mounts, *_processes()])


def _processes() -> list[str]:
    """Nodes and relays that have outlived whoever started them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            parent = int((path.parent / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        if parent == 1 and (b"nodes.host" in words or b"harness.cluster.relay" in words):
            found.append(f"process {path.parent.name}")
    return found


def left(before: frozenset[str]) -> tuple[str, ...]:
    """The objects that are there now and were not before. Objects of other programs have five seconds to go away."""
    for _ in range(20):
        found = there_is() - before
        if not found:
            break
        time.sleep(0.25)
    return tuple(sorted(found))


# ---- a harness that is killed


def kills(given: argparse.Namespace, results: Path) -> int:
    """Kill it, let the next run begin, and check what was recorded; 1 if the next one did not start clean."""
    print("| killed after | left then | the next run | left after it | the record of the killed one |")
    print("|---|---|---|---|---|")
    chance = random.Random(given.first_seed)
    bad = 0
    for number in range(given.kills):
        before = there_is()
        words = command(given, results / "killed", given.first_seed + number, "")
        harness = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after_s = chance.uniform(0.5, START_S_MAX)
        time.sleep(after_s)
        os.kill(harness.pid, signal.SIGKILL)
        harness.wait()
        remains = left_at_once(before)
        short = argparse.Namespace(**{**vars(given), "time_limit": 3.0, "faults": "none", "nodes": 3})
        row = run(short, results / "next", 1, "")
        remaining = tuple(sorted(there_is() - before))
        record = checked(results / "killed")
        is_good = (
            row.verdict in ("valid", "inconclusive") and not remaining and record != "no record can be read"
        )
        bad += not is_good
        cells = (
            f"{after_s:.1f} s",
            f"{len(remains)} things",
            row.verdict,
            ", ".join(remaining) or "nothing",
            record,
        )
        print("| " + " | ".join(cells) + " |", flush=True)
    return 1 if bad else 0


def left_at_once(before: frozenset[str]) -> frozenset[str]:
    return there_is() - before


def checked(results: Path) -> str:
    """The verdict of `qsync check` on the newest stored run."""
    folders = sorted(results.glob("*/2*"))
    if not folders or not (folders[-1] / "history.jsonl").exists():
        return "killed before there was one"
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "check", str(folders[-1]), "--json"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    outcome = {0: "valid", 1: "anomaly", 2: "unknown", 3: "inconclusive"}
    return outcome.get(done.returncode, "no record can be read")


if __name__ == "__main__":
    sys.exit(main())
