"""Executing a plan: its folder, its clock, its conductor, and cuts restored afterwards. `finish` judges the run.

In real time, Ctrl-C ends the load in order: faults are healed, nodes are stopped, and what was recorded is judged.
A second Ctrl-C does not wait for any of that. SIGTERM is a Ctrl-C, and so is SIGHUP, however often it comes, unless the
harness was started to ignore it (`nohup`). A run that breaks leaves its record and, if the harness itself broke,
the traceback in its folder.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers.history.jsonl import Writer
from harness.errors import FAILED, TRACEBACK_NOTE, HarnessError, broke
from harness.judge.case import files_in
from harness.plan.plan import Plan
from harness.plan.schedule import without_room
from harness.results import RunFolder
from harness.run.assemble import Parts, header, real, refuse_what_this_machine_cannot, simulated
from harness.run.compiling import compiling
from harness.run.conductor import Conductor
from harness.run.draw import faults_of
from harness.run.machine import NOT_HERE, without_what_it_lacks
from harness.run.recorder import Progress
from harness.run.second_clusters import Start, Work, restore_drawn
from harness.run.watch import Watched
from harness.systems.parts import NodeFiles

if TYPE_CHECKING:
    from harness.cluster.sim.cluster import SimCluster

TRACEBACK = "traceback.txt"
LIBRARIES_LOG = "libraries.log"
"""The warnings of libraries that clients use: in the run's folder, and not across its screen."""
HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Each is a Ctrl-C."""


@dataclass(frozen=True, slots=True)
class Executed:
    """A run that is over: where it lies, whether a person ended it, and why it could not be done if so."""

    folder: RunFolder
    interrupted: bool
    failure: HarnessError | None


def execute(
    parts: Parts,
    results: Path,
    on_progress: Callable[[Conductor], None] = lambda conductor: None,
    *,
    fails_fast: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> Executed:
    """Run a plan and keep its record. Errors of the cluster or the store are returned, not raised.

    `fails_fast`: the run is watched while it goes on (`harness.run.watch`), and ends at its first violation.
    WrongUse if this machine cannot do what the plan asks for by name. A fault that only "all" asks for is left out: the
    plan in the folder says so, and `tell` gets a line before anything starts.
    """
    plan, lacks = without_what_it_lacks(parts.plan, parts.system)
    parts = replace(parts, plan=plan)
    refuse_what_this_machine_cannot(parts)
    folder = RunFolder.create(results, parts.plan)
    record = Writer(folder.open_history(), header(parts))
    interrupts = _Interrupts()
    failure: HarnessError | None = None
    for lack in lacks:
        value = {"faults": lack.names, "why": lack.why}
        record.record("info", "harness", NOT_HERE, time_ns=0, value=value)
        tell(f"left out here: {', '.join(lack.names)} ({lack.why})")
    if absent := without_room(plan, faults_of(plan, parts.system)):
        room = f"the {plan.time_limit_s:g} s have no room for {', '.join(absent)}"
        tell(f"{room}, so this run cannot be VALID; a longer --time-limit has more")
    try:
        with _logging_to(folder.path / LIBRARIES_LOG):
            with compiling(parts.plan):
                _conduct(parts, folder, record, on_progress, interrupts, fails_fast)
            if parts.workload.everything(parts.plan) and not interrupts.asked:
                restore_drawn(
                    parts, record, files_in(folder.nodes, parts.plan), _starting_in(folder, interrupts)
                )
        record.close()  # here, and not below alone: a disk that is full now makes the run inconclusive
    except HarnessError as error:
        failure = error
        _note(record, error.message)
    except Exception as error:
        _note(record, broke(error))
        _keep_traceback(folder, error)
        raise
    finally:
        with suppress(HarnessError):
            record.close()
    return Executed(folder, interrupts.asked > 0, failure)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Lines of the module logging go to this file, too, which is made with the first one."""
    handler = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()


@dataclass(slots=True)
class _Interrupts:
    """How often a person asked for the end of the run."""

    asked: int = 0


def _note(record: Writer, why: str) -> None:
    """Note for a later judgement that the run broke off. A record without an event shows that by itself."""
    if not record.time_ns:
        return
    with suppress(HarnessError):  # a record that cannot be written any more is cut off, which shows the same
        record.record("info", "harness", FAILED, time_ns=record.time_ns, value=why)


def _keep_traceback(folder: RunFolder, error: Exception) -> None:
    kept = folder.path / TRACEBACK
    with suppress(OSError):  # then the caller reports the error elsewhere
        kept.write_text(traceback.format_exc(), "utf-8", "backslashreplace")
        error.add_note(f"{TRACEBACK_NOTE}{kept}")


def _conduct(
    parts: Parts,
    folder: RunFolder,
    record: Writer,
    on_progress: Callable[[Conductor], None],
    interrupts: _Interrupts,
    fails_fast: bool,
) -> None:
    if parts.plan.cluster == "sim":
        cluster = simulated(parts, folder.nodes)
        conductor = Conductor(parts.plan, cluster, parts.system, parts.workload, record)
        with _failing_fast(folder, parts.plan) if fails_fast else nullcontext() as watch:

            def listener(_: Progress) -> None:
                on_progress(conductor)
                if watch is not None:
                    watch(conductor)

            conductor.on_progress = listener
            interrupts.asked += in_virtual_time(cluster, conductor)
    else:
        _run(_in_real_time(parts, folder, record, on_progress, interrupts, fails_fast))


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Do the work in real time. A loop that closes leaves its signals at their defaults: the caller's come back."""
    before = {name: signal.getsignal(name) for name in HEEDED}
    try:
        asyncio.run(work)
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


@contextmanager
def _failing_fast(folder: RunFolder, plan: Plan) -> Iterator[Callable[[Conductor], None]]:
    """Watch a simulated run from within: looking takes no virtual time."""
    with closing(Watched(folder, plan)) as watched:

        def look(conductor: Conductor) -> None:
            if not conductor.ended_by and (violation := watched.look()):
                conductor.interrupt(violation)

        yield look


@asynccontextmanager
async def _watching(folder: RunFolder, conductor: Conductor) -> AsyncIterator[None]:
    """A process beside the run: a check that takes a second must not hold up clients and faults."""
    watch = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "harness.run.watch", str(folder.path)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C is for the run
    )
    assert watch.stdin is not None
    assert watch.stdout is not None

    async def heed(output: asyncio.StreamReader) -> None:
        # To the end: a line may be longer than what `readline` takes.
        if violation := (await output.read()).decode(errors="replace").strip():
            conductor.interrupt(violation)

    heeding = asyncio.create_task(heed(watch.stdout))
    try:
        yield
    finally:
        heeding.cancel()
        with suppress(ProcessLookupError):
            watch.kill()
        await watch.wait()


def in_virtual_time(cluster: SimCluster, conductor: Conductor) -> bool:
    """Conduct a simulated run; Ctrl-C ends it in order, too, a second one at once. True if it was pressed."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        cluster.run(conductor.run())  # the caller has a handler of its own, or wants none
        return False
    is_pressed = False

    def interrupt(*_: object) -> None:
        nonlocal is_pressed
        is_pressed = True
        conductor.interrupt()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second one raises, wherever the run is

    signal.signal(signal.SIGINT, interrupt)
    try:
        cluster.run(conductor.run())
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return is_pressed


async def _in_real_time(
    parts: Parts,
    folder: RunFolder,
    record: Writer,
    on_progress: Callable[[Conductor], None],
    interrupts: _Interrupts,
    fails_fast: bool,
) -> None:
    conductor = Conductor(parts.plan, real(parts, folder.path), parts.system, parts.workload, record)
    conductor.on_progress = lambda _: on_progress(conductor)
    async with _watching(folder, conductor) if fails_fast else nullcontext():
        await _heeding(interrupts, conductor.run(), conductor.interrupt)


async def _heeding(
    interrupts: _Interrupts, work: Coroutine[Any, Any, None], in_order: Callable[[], None] | None = None
) -> None:
    """Do the work. Ctrl-C calls `in_order`; a second one, or the first without `in_order`, cancels the work."""
    task = asyncio.current_task()
    assert task is not None

    def interrupt(name: signal.Signals) -> None:
        if name == signal.SIGHUP and interrupts.asked:
            return  # the kernel and the shell both send it: a second one is no hurry
        interrupts.asked += 1
        if in_order is not None:
            in_order()
        if in_order is None or interrupts.asked > 1:
            task.cancel()

    loop = asyncio.get_running_loop()
    for name in HEEDED:
        if name != signal.SIGHUP or signal.getsignal(name) is not signal.SIG_IGN:
            loop.add_signal_handler(name, interrupt, name)
    try:
        await work
    except asyncio.CancelledError:
        if not interrupts.asked:
            raise


def _starting_in(folder: RunFolder, interrupts: _Interrupts) -> Start:
    """Second clusters, each in a folder of its own."""

    def start(parts: Parts, cut: str, files: NodeFiles, work: Work) -> NodeFiles:
        second = folder.second(cut)
        if interrupts.asked:
            return {}
        if parts.plan.cluster == "sim":
            return _in_virtual_time(parts, second.nodes, files, work)
        second.put(files)
        _run(_heeding(interrupts, _real_work(parts, second.path, work)))
        return files_in(second.nodes, parts.plan)

    return start


async def _real_work(parts: Parts, folder: Path, work: Work) -> None:
    await work(real(parts, folder))


def in_memory(parts: Parts, cut: str, files: NodeFiles, work: Work) -> NodeFiles:
    """A second cluster in virtual time that leaves no folder."""
    return _in_virtual_time(parts, None, files, work)


def _in_virtual_time(parts: Parts, folder: Path | None, files: NodeFiles, work: Work) -> NodeFiles:
    cluster = simulated(parts, folder, files=files)
    cluster.run(work(cluster))
    return cluster.files()
