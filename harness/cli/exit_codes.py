"""The meaning of the exit codes of `qsync`; the same for every verb, except that `qsync test` passes pytest's on.

Anything that is not a verdict has a number that no verdict has: a harness that breaks never looks like an
anomaly, and never like a pass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TextIO

import click

from harness.errors import TRACEBACK_NOTE, HarnessError, broke, keep_traceback


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


@contextmanager
def beside(codes: list[ExitCode]) -> Iterator[None]:
    """An error that ends a batch early is told in a line, and the batch's `codes` still count. The error is raised if
    there are no codes yet; a defect of ours, or an output without a reader, also if no code is an anomaly. From then on
    an output without a reader takes everything."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        is_defect = not isinstance(error, (HarnessError, KeyboardInterrupt))
        if not codes or (is_defect and ExitCode.ANOMALY not in codes):
            raise
        if isinstance(error, BrokenPipeError):
            forget(sys.stdout, sys.stderr)
            return
        click.echo(f"qsync: {in_a_line(error)}", err=True)
        if not is_defect:
            codes.append(ExitCode(getattr(error, "exit_code", ExitCode.INTERRUPTED)))


def forget(*streams: TextIO) -> None:
    """Redirect streams to nowhere that cannot be written any more, or the flush at exit fails as well."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def in_a_line(error: Exception | KeyboardInterrupt) -> str:
    if isinstance(error, HarnessError):
        return error.message
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return f"{broke(error)}; {TRACEBACK_NOTE}{keep_traceback(error)}"
