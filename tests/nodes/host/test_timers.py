"""Timers on a clock that drifts: never early by the clock that the node reads, and soon right when the drift ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodes.host.clock import Clock
from nodes.host.timers import Timers
from nodes.kernel.events import TimerFired

MS = 1_000_000


class Handle:
    is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Machine:
    """Its monotonic time, and a loop on it that calls each function too soon: by `early_ns`, or half of the time."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * MS
        self.early_ns = 0
        self.calls: list[tuple[int, Handle, Callable[..., None], tuple[Any, ...]]] = []
        self.woken = 0

    def call_later(self, after_s: float, function: Callable[..., None], *arguments: Any) -> Handle:
        after_ns = round(after_s * 1_000 * MS)
        due_ns = self.now_ns + max(after_ns - min(self.early_ns, after_ns // 2), 1)
        self.calls.append((due_ns, Handle(), function, arguments))
        return self.calls[-1][1]

    def run(self, milliseconds: int) -> None:
        end_ns = self.now_ns + milliseconds * MS
        while due := [call for call in self.calls if call[0] <= end_ns]:
            call = min(due, key=lambda each: each[0])
            self.calls.remove(call)
            self.now_ns, handle, function, arguments = call
            if not handle.is_cancelled:
                self.woken += 1
                function(*arguments)
        self.now_ns = end_ns


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(time, "monotonic_ns", lambda: machine.now_ns)
    return machine


def timers_on(machine: Machine, clock: Clock) -> tuple[Timers, list[int]]:
    """The timers, and the times by the clock at which they have fired."""
    fired: list[int] = []

    def deliver(event: TimerFired) -> None:
        fired.append(clock.now().monotonic_ns)

    return Timers(machine, deliver, clock), fired  # type: ignore[arg-type]


def say(path: Path, drift_ppm: int) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"drift_ppm": drift_ppm}))
    fresh.replace(path)


@pytest.mark.parametrize("early_ns", [0, 1, 900_000])
def test_a_timer_is_never_early(machine: Machine, early_ns: int) -> None:
    """If it failed, a node would find in its timer that the time is not over, and wait for it for ever."""
    machine.early_ns = early_ns
    timers, fired = timers_on(machine, Clock())
    timers.set("t", 50 * MS)
    machine.run(100)
    assert len(fired) == 1
    assert fired[0] >= 1_050 * MS


@pytest.mark.parametrize(("before", "after"), [(-990_000, 0), (0, 4_000_000), (-990_000, -500_000)])
def test_a_timer_follows_the_drift(tmp_path: Path, machine: Machine, before: int, after: int) -> None:
    """If it failed, a clock that was slow for a moment would stop a node for minutes after it was healed."""
    file = tmp_path / "clock.json"
    say(file, before)
    clock = Clock(str(file))
    timers, fired = timers_on(machine, clock)
    due_ns = clock.now().monotonic_ns + 300 * MS
    timers.set("t", 300 * MS)
    machine.run(120)
    say(file, after)
    machine.run(700)
    assert len(fired) == 1
    assert due_ns <= fired[0] <= due_ns + 5 * 60 * MS


def test_a_clock_that_cannot_change_wakes_once_a_timer(machine: Machine) -> None:
    """If it failed, a node without faults of its clock would wake for nothing."""
    timers, fired = timers_on(machine, Clock())
    timers.set("t", 5_000 * MS)
    machine.run(6_000)
    assert (len(fired), machine.woken) == (1, 1)


def test_a_timer_that_is_set_again_or_cancelled_does_not_fire(machine: Machine) -> None:
    """If it failed, a node would act on a timeout that it has put off or called off."""
    timers, fired = timers_on(machine, Clock())
    timers.set("again", 50 * MS)
    timers.set("called off", 60 * MS)
    machine.run(10)
    timers.set("again", 100 * MS)
    timers.cancel("called off")
    timers.cancel("never set")
    machine.run(500)
    assert len(fired) == 1 and fired[0] >= 1_110 * MS
    timers.set("again", 50 * MS)
    timers.set("more", 50 * MS)
    timers.cancel_all()
    machine.run(500)
    assert len(fired) == 1
