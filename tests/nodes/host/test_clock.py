"""A node's clocks on a real machine: they jump and drift as the file says, and the monotonic one never goes back."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from nodes.host import clock as module
from nodes.host.clock import Clock

SECOND_NS = 1_000_000_000


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The machine's monotonic time, which a test sets; its wall clock shows the same since 1970."""
    now = [100 * SECOND_NS]
    monkeypatch.setattr(module.time, "monotonic_ns", lambda: now[0])
    monkeypatch.setattr(module.time, "time_ns", lambda: now[0])
    return now


def say(path: Path, **fields: int) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(fields))
    fresh.replace(path)


def test_without_a_file_it_is_the_machines_own_clock() -> None:
    """If it failed, every node's clock would be wrong."""
    before = time.monotonic_ns(), time.time_ns()
    now = Clock().now()
    assert before[0] <= now.monotonic_ns <= time.monotonic_ns()
    assert before[1] <= now.wall_ns <= time.time_ns()


def test_the_wall_clock_jumps_and_the_monotonic_one_does_not(tmp_path: Path, machine: list[int]) -> None:
    """If it failed, a jump of the clock would reach timers that no real jump reaches, or nothing at all."""
    clock = Clock(str(tmp_path / "clock.json"))
    say(tmp_path / "clock.json", wall_offset_ns=-3_600 * SECOND_NS)
    machine[0] += SECOND_NS
    now = clock.now()
    assert (now.monotonic_ns, now.wall_ns) == (machine[0], machine[0] - 3_600 * SECOND_NS)
    say(tmp_path / "clock.json", wall_offset_ns=0)
    machine[0] += SECOND_NS
    assert clock.now().wall_ns == machine[0]


def test_a_drift_is_continuous_and_never_goes_back(tmp_path: Path, machine: list[int]) -> None:
    """If it failed, healing a clock would turn a node's timers back, which no monotonic clock does."""
    clock = Clock(str(tmp_path / "clock.json"))
    say(tmp_path / "clock.json", drift_ppm=50_000)
    clock.now()
    machine[0] += 10 * SECOND_NS
    fast = clock.now()
    assert fast.monotonic_ns - machine[0] == SECOND_NS // 2
    assert clock.true_duration_ns(1_050_000) == 1_000_000
    say(tmp_path / "clock.json", drift_ppm=0)
    machine[0] += SECOND_NS
    healed = clock.now()
    assert healed.monotonic_ns > fast.monotonic_ns
    assert healed.wall_ns == machine[0], "the wall clock is right again"


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "[]", "[" * 100_000, '{"drift_ppm": "much"}'),
        f'{{"drift_ppm": {10**400}}}',
        *('{"wall_offset_ns": 1e400}', f'{{"wall_offset_ns": {10**400}}}', '{"wall_offset_ns": -1e19}'),
    ],
)
def test_a_file_that_makes_no_sense_changes_nothing(tmp_path: Path, machine: list[int], text: str) -> None:
    """If it failed, a half-written file would stop a node."""
    (tmp_path / "clock.json").write_text(text)
    clock = Clock(str(tmp_path / "clock.json"))
    clock.now()
    machine[0] += SECOND_NS
    now = clock.now()
    assert (now.monotonic_ns, now.wall_ns) == (machine[0], machine[0])
