"""The meaning of the exit codes of `qsync`; the same for every verb, except that `qsync test` passes pytest's on.

Anything that is not a verdict has a number that no verdict has: a harness that breaks never looks like an
anomaly, and never like a pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """One run's outcome, or why there is none."""

    VALID = 0
    ANOMALY = 1
    UNKNOWN = 2
    INCONCLUSIVE = 3
    WRONG_USE = 64
    BROKEN = 70
    INTERRUPTED = 130
    OUTPUT_CLOSED = 141


# Over many runs the first of these that occurred is the answer, so that an unknown never hides an anomaly.
GRAVEST_FIRST = (
    ExitCode.ANOMALY,
    ExitCode.BROKEN,
    ExitCode.INTERRUPTED,
    ExitCode.OUTPUT_CLOSED,
    ExitCode.WRONG_USE,
    ExitCode.INCONCLUSIVE,
    ExitCode.UNKNOWN,
    ExitCode.VALID,
)


def gravest(codes: Iterable[ExitCode]) -> ExitCode:
    """The one exit code of many runs; no runs at all are inconclusive."""
    return min(codes, key=GRAVEST_FIRST.index, default=ExitCode.INCONCLUSIVE)
