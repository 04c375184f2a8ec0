"""A node's two clocks: the wall clock may jump, the monotonic one only drifts."""

from __future__ import annotations

from nodes.kernel.events import Instant

WALL_EPOCH_NS = 1_700_000_000_000_000_000
"""When virtual worlds begin, as seen by an honest wall clock."""

MILLION = 1_000_000


class NodeClock:
    """Both clocks run `drift_ppm` parts per million too fast; `wall_offset_ns` is what jumps left behind."""

    def __init__(self) -> None:
        self.drift_ppm = 0
        self.wall_offset_ns = 0
        self._changed_at_ns = 0
        self._monotonic_then_ns = 0

    def read(self, true_ns: int) -> Instant:
        elapsed_ns = true_ns - self._changed_at_ns
        monotonic_ns = self._monotonic_then_ns + elapsed_ns + elapsed_ns * self.drift_ppm // MILLION
        return Instant(monotonic_ns, WALL_EPOCH_NS + monotonic_ns + self.wall_offset_ns)

    def set_drift(self, true_ns: int, drift_ppm: int) -> None:
        """Run at another rate from now on; the monotonic clock stays continuous."""
        assert drift_ppm > -MILLION, "a monotonic clock does not go back"
        self._monotonic_then_ns = self.read(true_ns).monotonic_ns
        self._changed_at_ns = true_ns
        self.drift_ppm = drift_ppm

    def true_duration_ns(self, local_ns: int) -> int:
        """How long a timer of `local_ns` really takes, at the present drift: a later change of it moves no timer.

        Rounded up: a timer that is a nanosecond early would be set again for nothing at all, and again, for ever.
        """
        return -(-local_ns * MILLION // (MILLION + self.drift_ppm))
