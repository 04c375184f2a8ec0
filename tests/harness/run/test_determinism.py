"""The same seed gives the same run, byte for byte, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.runs import recorded, small

ROOT = Path(__file__).parents[3]


def start(hash_seed: int, *arguments: object) -> subprocess.Popen[str]:
    """Strings hash, and sets of them are ordered, afresh for each PYTHONHASHSEED."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.harness.run.trace_digests", *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONHASHSEED": str(hash_seed)},
        stdout=subprocess.PIPE,
        text=True,
    )


def printed(*arguments: object) -> tuple[list[str], list[str]]:
    processes = [start(hash_seed, *arguments) for hash_seed in (1, 20)]
    first, second = (process.communicate()[0].splitlines() for process in processes)
    assert [process.returncode for process in processes] == [0, 0]
    return first, second


def kinds(lines: list[str]) -> set[str]:
    return {name for line in lines for name in line.split()[-1].split(",")}


def test_a_seed_leaves_the_same_trace_in_every_process() -> None:
    """If it failed, the line that repeats a simulated anomaly would repeat something else."""
    first, second = printed(9, 1, "time_limit_s=4", "rate=60")  # 9 goes through bytes
    assert first == second
    assert [line.split()[0] for line in first] == ["9"]


@pytest.mark.long
def test_six_seeds_leave_the_same_trace_in_every_process() -> None:
    """If it failed, the line that repeats a simulated anomaly would repeat something else."""
    first, second = printed(9, 6, "time_limit_s=8", "rate=100", 'faults=["all"]')
    assert first == second
    assert [line.split()[0] for line in first] == [str(seed) for seed in range(9, 15)]  # 9 goes through bytes
    assert len({line.split()[1] for line in first}) == 6
    assert {"power-owner", "clock", "kill", "pause", "isolate-owner", "slow"} <= kinds(first)


@pytest.mark.nightly
@pytest.mark.parametrize("first_seed", range(1_000, 1_100, 10))
def test_a_hundred_seeds_leave_the_same_trace_in_every_process(first_seed: int) -> None:
    """If it failed, some rare event of the default plan would depend on the process that it happens in."""
    first, second = printed(first_seed, 10)
    assert len(first) == 10
    assert first == second
    assert {"clock", "failover", "isolate-owner", "kill", "pause", "power-owner", "slow"} <= kinds(first)


@pytest.mark.parametrize("seed", [pytest.param(6, marks=pytest.mark.long), 9])
def test_keeping_the_trace_changes_nothing(seed: int) -> None:
    """If it failed, looking at a run would make it another run."""
    plan = small(seed=seed, time_limit_s=4.0)
    assert recorded(plan).data == recorded(plan, record_trace=True).data


def test_another_seed_is_another_run() -> None:
    """If it failed, a thousand seeds would try one thing a thousand times."""
    assert recorded(small(seed=6, time_limit_s=2.0)).data != recorded(small(seed=7, time_limit_s=2.0)).data
