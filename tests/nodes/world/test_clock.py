"""A node's clocks: drift is continuous, jumps are the wall clock's alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodes.world.clock import MILLION, WALL_EPOCH_NS, NodeClock

STEPS = st.lists(st.tuples(st.integers(0, 10**10), st.integers(-900_000, 900_000)), max_size=20)


@given(steps=STEPS)
def test_the_monotonic_clock_never_goes_back_and_never_leaps(steps: list[tuple[int, int]]) -> None:
    """Broken, a change of drift fires timers at once or never."""
    clock, true_ns, before = NodeClock(), 0, 0
    for elapsed_ns, drift_ppm in steps:
        true_ns += elapsed_ns
        now = clock.read(true_ns).monotonic_ns
        expected = before + elapsed_ns * (MILLION + clock.drift_ppm) // MILLION
        assert now >= before and abs(now - expected) <= 1
        clock.set_drift(true_ns, drift_ppm)
        assert clock.read(true_ns).monotonic_ns == now
        before = now


@given(
    duration_ns=st.integers(0, 10**11),
    drift_ppm=st.integers(-900_000, 900_000),
    set_at_ns=st.integers(0, 10**6),
)
def test_a_timer_runs_on_the_drifting_clock(duration_ns: int, drift_ppm: int, set_at_ns: int) -> None:
    """Broken, drift changes what a node reads but not when its timers fire; or they fire too early, and a node that
    looks at its clock sets them again, at the same instant, for ever."""
    clock = NodeClock()
    clock.set_drift(0, drift_ppm)
    true_ns = set_at_ns + clock.true_duration_ns(duration_ns)
    passed_ns = clock.read(true_ns).monotonic_ns - clock.read(set_at_ns).monotonic_ns
    assert duration_ns <= passed_ns <= duration_ns + 3


def test_a_jump_moves_the_wall_clock_alone() -> None:
    """Broken, a jump of the wall clock reaches timeouts, which it cannot in a real node."""
    clock = NodeClock()
    clock.wall_offset_ns = -5_000
    now = clock.read(1_000)
    assert now.monotonic_ns == 1_000 and now.wall_ns == WALL_EPOCH_NS - 4_000
