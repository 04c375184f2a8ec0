"""Whether something that people call has become slower: a handful of ratios, compared with stored ones.

    python -m bench.regressions                     with bench/ratios.json; exit 1, and a line for each lost ratio
    python -m bench.regressions --before CHECKOUT   with another checkout, measured in turns
    python -m bench.regressions --keep              writes bench/ratios.json

`bench.probes` says what is measured. Each ratio is the median of five turns, by CPU time. A ratio is lost if more than
a third of it is gone; more than half, if the stored ones are of another machine, because a ratio of interpreted to
compiled code differs between processors. If one seems to be lost, five more turns are added before it is reported.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from bench.table import machine, print_table

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).with_name("ratios.json")
PROBES = Path(__file__).with_name("probes.py")
TURNS = 5
KEPT = 2 / 3
"""A ratio below this share of the stored one is lost."""
KEPT_ELSEWHERE = 1 / 2
"""The same for ratios that another machine has stored."""

Ratios = Mapping[str, float]


class Stored(msgspec.Struct, frozen=True):
    """`bench/ratios.json`; `machine` as `bench.table` names it."""

    machine: str
    ratios: dict[str, float]


class Measured:
    """A checkout with the turns that it was measured in."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._turns: list[Ratios] = []
        self._turn()  # loads and compiles

    def turn(self) -> None:
        self._turns.append(self._turn())

    @property
    def medians(self) -> Ratios:
        names = self._turns[0]
        return {name: statistics.median(turn[name] for turn in self._turns) for name in names}

    def _turn(self) -> Ratios:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("bench.regressions: expected a line of ratios, and bench/probes.py has ended")
        return msgspec.json.decode(line, type=dict[str, float])


@contextmanager
def measured(checkout: Path) -> Iterator[Measured]:
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-P", str(PROBES)]
    with subprocess.Popen(
        command, cwd=checkout, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Measured(process)
        assert process.stdin is not None
        process.stdin.close()


def in_turns(those: Sequence[Measured]) -> None:
    for _ in range(TURNS):
        for each in those:
            each.turn()


def lost(before: Ratios, now: Ratios, kept: float = KEPT) -> list[str]:
    """The names of those that are lost. What one of them does not have is not compared."""
    return [name for name in before if name in now and now[name] < kept * before[name]]


def sentences(before: Ratios, now: Ratios, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        gone = 1 - now[name] / before[name]
        yield f"slower: {name}, {now[name]:.4f} of its floor's speed, was {before[name]:.4f} ({gone:.0%} lost)"


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument(
        "--now", type=Path, default=ROOT, help="the checkout to measure (default: this one)"
    )
    arguments.add_argument("--before", type=Path, help="a checkout to compare it with")
    arguments.add_argument("--keep", action="store_true", help="store the ratios")
    given = arguments.parse_args()
    with ExitStack() as stack:
        those = [stack.enter_context(measured(each.resolve())) for each in (given.now, given.before) if each]
        in_turns(those)
        if given.keep:
            found = Stored(machine(), dict(those[0].medians))
            STORED.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
            return 0
        before, kept = _before(those)
        if lost(before, those[0].medians, kept):
            in_turns(those)
            before, kept = _before(those)
        now = those[0].medians
    rows = [[name, f"{before[name]:.4f}", f"{now[name]:.4f}"] for name in before if name in now]
    print_table(("of the floor's speed", "before", "now"), rows)
    gone = lost(before, now, kept)
    for sentence in sentences(before, now, gone):
        print(sentence)
    return 1 if gone else 0


def _before(those: Sequence[Measured]) -> tuple[Ratios, float]:
    """The ratios to compare with, and the share of each that must be left."""
    if len(those) > 1:
        return those[1].medians, KEPT
    stored = msgspec.json.decode(STORED.read_bytes(), type=Stored)
    return stored.ratios, KEPT if stored.machine == machine() else KEPT_ELSEWHERE


if __name__ == "__main__":
    sys.exit(main())
