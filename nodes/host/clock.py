"""A node's two clocks in the real world: the machine's, or these clocks changed by a file.

The file is JSON, `{"wall_offset_ns": N, "drift_ppm": N}`, and may be replaced (by rename) at any time; it is read
again every 10 ms. The wall clock jumps with the offset; both clocks run `drift_ppm` parts per million too fast from
then on. The time that the wall clock has gained is lost when the file changes. The monotonic clock never goes back.
The machine's own clock is never changed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from nodes.kernel.events import Instant

LOOK_EVERY_NS = 10_000_000
MILLION = 1_000_000
OFFSET_NS_END = 1 << 62
"""A record has 63 bits for a time."""
DRIFT_PPM_END = 1000 * MILLION
"""With less drift, a wall clock takes a month to leave these 63 bits."""


class Clock:
    """`file` None: the machine's own clocks. A file that is absent, unreadable or asks for too much changes nothing."""

    def __init__(self, file: str | None = None) -> None:
        self._file = file
        self.steady_ns = sys.maxsize if file is None else 50_000_000
        """The longest wait that may rest on the drift of its beginning."""
        self._looked_ns = 0
        self._stamp: tuple[int, int] | None = None
        self._wall_offset_ns = 0
        self._drift_ppm = 0
        self._since_ns = time.monotonic_ns()
        self._gained_ns = 0
        """How far the clocks had run ahead when the drift last changed."""

    def now(self) -> Instant:
        true_ns = time.monotonic_ns()
        if self._file is None:
            return Instant(true_ns, time.time_ns())
        if true_ns - self._looked_ns >= LOOK_EVERY_NS:
            self._looked_ns = true_ns
            self._read_file(true_ns)
        gained_ns = self._gained(true_ns)
        wall_ns = time.time_ns() + gained_ns - self._gained_ns + self._wall_offset_ns
        return Instant(true_ns + gained_ns, wall_ns)

    def true_duration_ns(self, local_ns: int) -> int:
        """How long `local_ns` of this clock really take, rounded up."""
        return -(-local_ns * MILLION // (MILLION + self._drift_ppm))

    def _gained(self, true_ns: int) -> int:
        return self._gained_ns + (true_ns - self._since_ns) * self._drift_ppm // MILLION

    def _read_file(self, true_ns: int) -> None:
        assert self._file is not None
        try:
            status = Path(self._file).stat()
            stamp = (status.st_mtime_ns, status.st_ino)
            if stamp == self._stamp:
                return
            with Path(self._file).open("rb") as file:
                asked = json.load(file)
            offset_ns, drift_ppm = int(asked.get("wall_offset_ns", 0)), int(asked.get("drift_ppm", 0))
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return
        if abs(offset_ns) >= OFFSET_NS_END or drift_ppm >= DRIFT_PPM_END:
            return
        self._gained_ns, self._since_ns = self._gained(true_ns), true_ns
        self._stamp, self._wall_offset_ns = stamp, offset_ns
        self._drift_ppm = max(drift_ppm, 1 - MILLION)
