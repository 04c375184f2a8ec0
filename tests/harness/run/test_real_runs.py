"""Whole runs with real processes, from the command line: how they end, and that nothing outlives them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from checkers.history import jsonl
from harness.faults.fault import Fault
from harness.plan.plan import Drawn, to_json
from harness.systems.plans import planned
from tests.harness.processes import PATIENCE_S, is_gone, is_stopped, wait_until
from tests.harness.runs import drawn_out
from tests.reserved_ports import bind, reserved

ROOT = Path(__file__).parents[3]
TRIES = 5
"""One is enough unless the machine is so busy that no node comes up in time."""
PORTS = 12
"""Three nodes and the relay's nine routes."""


def endless_pause(path: Path, base_port: int) -> Path:
    """A plan whose load has a minute to go, and in which n2 is stopped and stays so."""
    load = drawn_out(planned(faults=("none",), time_limit_s=60, rate=50, base_port=base_port))
    assert load.drawn is not None
    second_ns = 1_000_000_000
    pause = Fault(id=0, name="pause", does="pause", at_ns=second_ns, until_ns=60 * second_ns, nodes=("n2",))
    plan = msgspec.structs.replace(load, drawn=Drawn(faults=(pause,), operations=load.drawn.operations))
    path.write_bytes(to_json(plan))
    return path


class Running:
    """A harness in a process group of its own, as a terminal starts it."""

    def __init__(self, folder: Path, *words: object) -> None:
        self.results = folder / "results"
        self.temporary = folder / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "harness.cli", "run", *map(str, words), "--results", str(self.results)],
            cwd=ROOT,
            env=os.environ | {"TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.children: list[psutil.Process] = []

    def wait_for_pause(self) -> None:
        """Until n2 is stopped; remembers who runs then."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if "fault begins: pause" in line:
                break
        harness = psutil.Process(self.process.pid)
        wait_until(lambda: any(is_stopped(child) for child in harness.children(recursive=True)))
        self.children = harness.children(recursive=True)
        assert len(self.children) == 4, "three nodes and the relay"

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, out, err

    @property
    def run(self) -> Path:
        """The newest run's folder."""
        return max((path.parent for path in self.results.glob("*/*/plan.json")), key=lambda run: run.name)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(*words: object) -> Running:
        started.append(Running(tmp_path, *words))
        return started[-1]

    yield begin
    for running in started:
        with running.process as process:
            process.kill()
        for child in running.children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def check(run: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "harness.cli", "check", str(run)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert all(line.startswith("qsync: judging") for line in done.stderr.splitlines()), done.stderr
    return done.returncode, done.stdout


def press_ctrl_c(running: Running) -> None:
    """As a terminal does: everybody in the foreground group hears it."""
    os.killpg(running.process.pid, signal.SIGINT)


def interrupt_alone(running: Running) -> None:
    running.process.send_signal(signal.SIGINT)


@pytest.mark.parametrize(
    "interrupt",
    [
        pytest.param(press_ctrl_c, marks=pytest.mark.long),
        pytest.param(interrupt_alone, marks=pytest.mark.nightly),
    ],
)
def test_ctrl_c_leaves_nothing_but_a_record(
    tmp_path: Path, start: Callable[..., Running], interrupt: Callable[[Running], None]
) -> None:
    """If it failed, an interrupted run would leave processes, ports or files, or would look like an anomaly."""
    base_port = reserved(PORTS)
    running = start("--plan", endless_pause(tmp_path / "plan.json", base_port))
    running.wait_for_pause()
    interrupt(running)
    code, out, err = running.end()
    assert code == 130
    assert "the run was interrupted" in out
    assert "Traceback" not in err
    assert all(is_gone(child) for child in running.children)
    for port in range(base_port, base_port + PORTS):
        bind(port).close()
    assert list(running.temporary.iterdir()) == []
    history = jsonl.read(running.run / "history.jsonl")
    assert history.torn is None
    assert [fault.end_index is not None for fault in history.faults] == [True]
    assert history.crashes == ()
    code, out = check(running.run)
    assert code == 3
    assert "the run was interrupted" in out


@pytest.mark.long
def test_a_harness_that_is_killed_takes_all_with_it_and_the_next_run_starts(
    tmp_path: Path, start: Callable[..., Running]
) -> None:
    """If it failed, a killed harness would leave nodes behind, the stopped one above all, which hold the ports."""
    base_port = reserved(PORTS)
    killed = start("--plan", endless_pause(tmp_path / "plan.json", base_port))
    killed.wait_for_pause()
    killed.process.kill()
    killed.process.wait(PATIENCE_S)
    wait_until(lambda: all(is_gone(child) for child in killed.children))
    record = killed.run / "history.jsonl"
    history = jsonl.read(record)
    assert history.operations
    assert [fault.end_index for fault in history.faults] == [None]
    record.write_bytes(record.read_bytes()[:-5])  # a kill may come in the middle of a line, too
    assert jsonl.read(record).torn is not None
    code, out = check(killed.run)
    assert code == 3
    assert "the record is torn" in out
    for _ in range(TRIES):
        again = start(
            *("--base-port", base_port, "--seed", 3, "--time-limit", 6, "--rate", 100),
            *("--faults", "isolate-one"),
        )
        code, out, err = again.end()
        assert code in (0, 3), out + err
        assert "in use" not in err
        if out:
            break
    # The latter where the machine is too busy.
    assert out.startswith(("VALID  ", "INCONCLUSIVE  ")), out + err
    assert jsonl.read(again.run / "history.jsonl").operations
    files = {path.name for path in again.run.iterdir()}
    assert files == {
        *(
            "plan.json",
            "history.jsonl",
            "history.parquet",
            "hashes.json",
            "verdict.json",
            "report.html",
            "nodes",
        )
    }


@pytest.mark.long
def test_a_port_in_use_is_one_line_with_3(start: Callable[..., Running]) -> None:
    """If it failed, two runs on the same ports would be a traceback, or talk to each other's nodes."""
    base_port = reserved(PORTS)
    with bind(base_port + 4) as taken:
        taken.listen()
        running = start("--base-port", base_port, "--time-limit", 6, "--faults", "none")
        code, out, err = running.end()
    assert code == 3
    assert out == ""
    (line,) = [line for line in err.splitlines() if line.startswith("qsync: ")]
    assert line == f"qsync: port {base_port + 4} is in use; choose another base port, or 0 for any"
    assert "Traceback" not in err
