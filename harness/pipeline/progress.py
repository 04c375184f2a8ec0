"""How far an analysis is: a bar on a terminal; elsewhere a line every two seconds at most, and the last one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TextIO

from harness.pages.terminal.colour import wants_colour
from harness.pipeline.analyze import Step

EVERY_S = 2.0


@contextmanager
def shown(stream: TextIO, environ: Mapping[str, str]) -> Iterator[Step]:
    """The function that shows progress; at the end its output is gone or complete."""
    if wants_colour(stream, environ):
        with _bar(stream) as step:
            yield step
    else:
        yield _lines(stream)


@contextmanager
def _bar(stream: TextIO) -> Iterator[Step]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<24}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    console = Console(file=stream)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("looking for new runs")

        def step(words: str, done: int, of: int) -> None:
            progress.update(task, description=words, completed=done, total=of)

        yield step


def _lines(stream: TextIO) -> Step:
    last_s = 0.0

    def step(words: str, done: int, of: int) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s >= EVERY_S or done == of:
            last_s = now_s
            print(f"qsync: {done}/{of} {words}", file=stream, flush=True)

    return step
