"""Executing a plan: what is left behind whatever happens, and that Ctrl-C ends a run in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from checkers.history import jsonl
from harness.errors import ClusterError, StoreError
from harness.plan.plan import Plan
from harness.results import RunFolder
from harness.results.run_folder import GuardedFile
from harness.run import execute as executing
from harness.run.assemble import parts_of
from harness.run.conductor import Conductor
from harness.run.execute import Executed, execute
from harness.run.finish import Failure, Recorded, finish
from harness.systems.plans import read
from harness.systems.qsync.system import Qsync
from tests.harness.processes import PATIENCE_S
from tests.harness.results.full_disk import FullDisk
from tests.harness.runs import recorded, small

QUICK = small(time_limit_s=2.0, faults=("none",))


def test_a_run_leaves_its_record(tmp_path: Path) -> None:
    """If it failed, a run would be over and nothing known of it."""
    executed = execute(parts_of(QUICK), tmp_path)
    assert executed == Executed(executed.folder, interrupted=False, failure=None)
    assert executed.folder.history.read_bytes() == recorded(QUICK).data
    assert sorted(path.name for path in executed.folder.path.iterdir()) == [
        "history.jsonl",
        "nodes",
        "plan.json",
    ]
    assert read(executed.folder.plan_file) == QUICK
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_ends_a_simulated_run_in_order(tmp_path: Path) -> None:
    """If it failed, a long simulated run could only be ended with a traceback, and without a record."""

    def press(conductor: Conductor) -> None:
        if conductor.progress.ok > 200 and conductor.progress.active:
            signal.raise_signal(signal.SIGINT)

    executed = execute(parts_of(small(seed=3, time_limit_s=60.0)), tmp_path, press)
    assert (executed.interrupted, executed.failure) == (True, None)
    history = jsonl.read(executed.folder.history)
    assert [event.f for event in history.events[-2:]] == ["interrupted", "rare-turns"]
    assert history.events[-1].time_ns < 30 * 10**9
    assert all(fault.end_index is not None for fault in history.faults)
    assert history.torn is None


class Heeded:
    """A piece of work in real time that is sent signals, and goes on until it is to end in order."""

    def __init__(self, *sent: signal.Signals) -> None:
        self.sent = sent
        self.asked = 0
        self.has_ended = False

    async def work(self) -> None:
        for number in self.sent:
            signal.raise_signal(number)
        for _ in range(1000):
            await asyncio.sleep(0)
            if self.asked:
                break
        await asyncio.sleep(0)
        self.has_ended = True

    def in_order(self) -> None:
        self.asked += 1

    def run(self) -> int:
        """How often a person asked for the end."""
        interrupts = executing._Interrupts()
        executing._run(executing._heeding(interrupts, self.work(), self.in_order))
        return interrupts.asked


@pytest.fixture
def handlers() -> Iterator[dict[signal.Signals, object]]:
    """Those of the caller: a verb has handlers of its own around a run."""
    before = {name: signal.getsignal(name) for name in executing.HEEDED}
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: None)
    yield {name: signal.getsignal(name) for name in executing.HEEDED}
    for name, handler in before.items():
        signal.signal(name, handler)


@pytest.mark.parametrize("number", executing.HEEDED)
def test_each_signal_ends_a_run_in_order(
    handlers: dict[signal.Signals, object], number: signal.Signals
) -> None:
    """If it failed, a closed terminal would end the harness without healing, stopping nodes or judging; or SIGTERM
    while it judges would leave temporary folders, because asyncio takes the caller's handler away."""
    heeded = Heeded(number)
    assert (heeded.run(), heeded.asked, heeded.has_ended) == (1, 1, True)
    assert {name: signal.getsignal(name) for name in executing.HEEDED} == handlers


def test_a_second_signal_is_a_hurry_unless_it_is_the_terminal(
    handlers: dict[signal.Signals, object],
) -> None:
    """If it failed, closing a terminal would cut the healing off: the kernel sends SIGHUP, and then the shell."""
    for sent, has_ended in (
        ((signal.SIGTERM, signal.SIGTERM), False),
        ((signal.SIGHUP, signal.SIGTERM), False),
        ((signal.SIGHUP, signal.SIGHUP), True),
        ((signal.SIGTERM, signal.SIGHUP), True),
    ):
        heeded = Heeded(*sent)
        heeded.run()
        assert heeded.has_ended is has_ended, sent


def test_a_run_under_nohup_outlives_its_terminal(handlers: dict[signal.Signals, object]) -> None:
    """If it failed, `nohup ./qsync run` would end with the terminal all the same."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heeded = Heeded(signal.SIGHUP)
    assert (heeded.run(), heeded.asked, heeded.has_ended) == (0, 0, True)


def test_a_full_disk_ends_the_run_and_what_was_recorded_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a full disk would be a traceback, or hide what had been recorded."""

    def on_full_disk(folder: RunFolder) -> GuardedFile:
        return GuardedFile(FullDisk.buffered(folder.history, 60_000, 4_096))

    monkeypatch.setattr(RunFolder, "open_history", on_full_disk)
    executed = execute(parts_of(small(time_limit_s=60.0)), tmp_path)
    assert isinstance(executed.failure, StoreError)
    assert "No space left on device" in executed.failure.message
    history = jsonl.read(executed.folder.history)
    assert 200 < len(history.events) < 600
    over = Recorded(str(executed.folder.path), failure=Failure.of(executed.failure))
    verdict = finish(executed.folder, QUICK, over)
    assert verdict["outcome"] == "inconclusive"


def test_a_disk_that_is_full_in_the_end_is_no_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a record whose last lines are lost would be judged as if it were whole."""
    size = len(recorded(QUICK).data) - 10

    def on_full_disk(folder: RunFolder) -> GuardedFile:
        return GuardedFile(FullDisk.buffered(folder.history, size))

    monkeypatch.setattr(RunFolder, "open_history", on_full_disk)
    executed = execute(parts_of(QUICK), tmp_path)
    assert isinstance(executed.failure, StoreError)
    assert jsonl.read(executed.folder.history).torn is not None


def test_what_libraries_log_is_kept_with_the_run_and_not_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a client of ZooKeeper would print a line for each broken connection across the run's screen."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])

    async def warns(*_: object) -> None:
        logging.getLogger("kazoo.client").warning("Connection dropped: %s", "socket connection broken")
        raise ClusterError("n2 does not come up")

    monkeypatch.setattr(Qsync, "set_up", warns)
    folder = execute(parts_of(QUICK), tmp_path).folder.path
    told = (folder / "libraries.log").read_text()
    assert told.endswith(" WARNING kazoo.client: Connection dropped: socket connection broken\n")
    assert capfd.readouterr().err == ""
    assert root.handlers == []


def test_a_cluster_that_fails_is_returned_with_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a run without a cluster would be a traceback, or a run."""

    async def fails(*_: object) -> None:
        raise ClusterError("n2 does not come up")

    monkeypatch.setattr(Qsync, "set_up", fails)
    executed = execute(parts_of(QUICK), tmp_path)
    assert executed.failure is not None
    assert executed.failure.message == "n2 does not come up"
    assert jsonl.read(executed.folder.history).events == ()


@pytest.mark.parametrize("is_disk_full", [False, True])
def test_a_bug_of_ours_keeps_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_disk_full: bool
) -> None:
    """If it failed, one line would be all that is left of a bug, or it would be told as another one."""

    def breaks(*_: object) -> Plan:
        raise ZeroDivisionError("our own bug in \udcff")  # the name of a file, say, which need not be UTF-8

    monkeypatch.setattr(executing, "simulated", breaks)
    if is_disk_full:

        def refuse(*_: object) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(ZeroDivisionError) as broken:
        execute(parts_of(QUICK), tmp_path)
    notes = getattr(broken.value, "__notes__", [])
    assert len(notes) == (0 if is_disk_full else 1)
    if not is_disk_full:
        (kept,) = tmp_path.rglob("traceback.txt")
        assert str(kept) in notes[0]
        assert r"ZeroDivisionError: our own bug in \udcff" in kept.read_text()


def test_an_error_in_the_middle_may_name_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a path that is not UTF-8 would turn an inconclusive run into a bug of ours without a record."""

    async def breaks(conductor: Conductor) -> None:
        conductor._recorder.record("info", "harness", "begun", value=1)
        await conductor.cluster.sleep_until(1)
        conductor._recorder.record("info", "harness", "later", value=1)
        raise ClusterError("/runs/\udcff: no space")

    monkeypatch.setattr(Conductor, "run", breaks)
    executed = execute(parts_of(QUICK), tmp_path)
    assert executed.failure is not None
    assert jsonl.read(executed.folder.history).events[-1].value == r"/runs/\udcff: no space"


def test_a_violation_of_many_words_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a watch would see what is wrong with a long value, and the run would go on."""
    watch = tmp_path / "watch"
    watch.write_text("#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' x\n")
    watch.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(watch))

    async def scene() -> str:
        told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        conductor: Any = SimpleNamespace(interrupt=told.set_result)
        async with executing._watching(RunFolder(tmp_path), conductor):
            return await asyncio.wait_for(told, PATIENCE_S)

    assert asyncio.run(scene()) == 200_000 * "x"
