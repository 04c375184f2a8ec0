"""Executing a plan: folder, conductor, clock; then judge, report.

In real time, Ctrl-C ends the load in order: faults are healed, nodes are stopped, and what was recorded is judged.
A second Ctrl-C does not wait for any of that. A run that breaks leaves its record and, if the harness itself broke,
the traceback in its folder.
"""

from __future__ import annotations

import asyncio
import signal
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from checkers.history.jsonl import Writer
from harness.assemble import Parts, header, local, simulated
from harness.conductor import Conductor, Progress
from harness.errors import TRACEBACK_NOTE, HarnessError
from harness.store import RunFolder

TRACEBACK = "traceback.txt"


@dataclass(frozen=True, slots=True)
class Executed:
    """A run that is over: where it lies, whether a person ended it, and why it could not be done if so."""

    folder: RunFolder
    interrupted: bool
    failure: HarnessError | None


def execute(
    parts: Parts, results: Path, on_progress: Callable[[Conductor], None] = lambda conductor: None
) -> Executed:
    """Run a plan and keep its record. Errors of the cluster or the store are returned, not raised."""
    folder = RunFolder.create(results, parts.plan)
    record = Writer(folder.open_history(), header(parts))
    try:
        interrupted = _conduct(parts, folder, record, on_progress)
    except HarnessError as failure:
        return Executed(folder, interrupted=False, failure=failure)
    except Exception as error:
        kept = folder.path / TRACEBACK
        kept.write_text(traceback.format_exc())
        error.add_note(f"{TRACEBACK_NOTE}{kept}")
        raise
    finally:
        record.close()
    return Executed(folder, interrupted, failure=None)


def _conduct(
    parts: Parts, folder: RunFolder, record: Writer, on_progress: Callable[[Conductor], None]
) -> bool:
    if parts.plan.cluster == "sim":
        cluster = simulated(parts, folder.nodes)
        conductor = Conductor(parts.plan, cluster, parts.system, parts.workload, record)
        _listen(conductor, on_progress)
        cluster.run(conductor.run())
        return False
    return asyncio.run(_conduct_in_real_time(parts, folder, record, on_progress))


async def _conduct_in_real_time(
    parts: Parts, folder: RunFolder, record: Writer, on_progress: Callable[[Conductor], None]
) -> bool:
    conductor = Conductor(parts.plan, local(parts, folder.path), parts.system, parts.workload, record)
    _listen(conductor, on_progress)
    task = asyncio.current_task()
    assert task is not None
    asked = 0

    def interrupt() -> None:
        nonlocal asked
        asked += 1
        conductor.interrupt()
        if asked > 1:
            task.cancel()

    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, interrupt)
    try:
        await conductor.run()
    except asyncio.CancelledError:
        if not asked:
            raise
    return asked > 0


def _listen(conductor: Conductor, on_progress: Callable[[Conductor], None]) -> None:
    def listen(_: Progress) -> None:
        on_progress(conductor)

    conductor.on_progress = listen
