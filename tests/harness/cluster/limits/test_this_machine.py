"""The kernel of this machine, where it lets us make groups: real processes wait, and end, and nothing is left."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cluster.limits.enclosure import Enclosure, launcher, remove_leftovers
from harness.cluster.limits.group import Group, group_of
from harness.cluster.limits.machine import LimitsHere
from harness.cluster.ownership import RunId, lives, this_harness
from tests import needs

WITHIN_S = 60.0
BUSY = "b = b'x' * (20 << 20)\nprint(flush=True)\nwhile True: pass"

pytestmark = [pytest.mark.real, needs.limits]


@pytest.fixture
def enclosure() -> Iterator[Enclosure]:
    made = Enclosure(RunId.new().text, this_harness())
    made.make(["n1"])
    yield made
    made.remove()


@pytest.fixture
def process(enclosure: Enclosure) -> Iterator[subprocess.Popen[bytes]]:
    """It runs in the group of n1, and is never done."""
    command = launcher(enclosure.groups["n1"], (sys.executable, "-c", BUSY))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        yield started
        started.kill()


def limits(group: Group, folder: Path) -> LimitsHere:
    async def found(node: str) -> Group:
        return group

    return LimitsHere(found, lambda node: folder)


async def until(holds: object) -> None:
    assert callable(holds)
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "the kernel never did it"
        await asyncio.sleep(0.01)


def test_a_process_has_to_wait(
    enclosure: Enclosure, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Broken, cpu-limit would not limit, or the limit stay for the rest of the run."""
    group = enclosure.groups["n1"]
    assert group_of(process.pid) == group

    async def wait() -> None:
        machine = limits(group, tmp_path)
        before = group.limits()
        await machine.limit_cpu("n1", 1)
        assert group.limits() != before
        await until(lambda: group.counts()["throttled"] > 0 and group.counts()["throttled_ns"] > 0)
        assert await machine.lift("n1")
        assert group.limits() == before

    asyncio.run(wait())


def test_the_kernel_ends_who_has_no_memory_left(
    enclosure: Enclosure, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Broken, the ballast would be ended and not the node, or nobody; or the harness would not hear of it."""
    group = enclosure.groups["n1"]

    async def starve() -> None:
        machine = limits(group, tmp_path)
        before = group.limits()
        await machine.limit_memory("n1", 1 << 20)
        await machine.press("n1", "fill")
        await until(lambda: process.poll() is not None)
        assert (await machine.counts("n1"))["oom_kills"] > 0
        await machine.release("n1")
        assert await machine.lift("n1")
        assert group.limits() == before

    asyncio.run(starve())
    assert process.returncode == -9


def test_pressure_takes_effect_and_ends_nobody(
    enclosure: Enclosure, process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    """Broken, memory-limit would be no fault at all, or the same as oom."""
    group = enclosure.groups["n1"]

    async def press() -> None:
        machine = limits(group, tmp_path)
        await machine.press("n1", "press")
        await machine.limit_memory("n1", 8 << 20)
        before = group.counts()
        await until(
            lambda: (
                group.counts()["refaults"] + group.counts()["limit_hits"]
                > before["refaults"] + before["limit_hits"]
            )
        )
        await machine.release("n1")
        assert await machine.lift("n1")

    asyncio.run(press())
    assert process.poll() is None


def test_what_a_dead_harness_left_is_removed_and_nothing_else(enclosure: Enclosure) -> None:
    """Broken, groups and nodes of killed runs would pile up, or a run that goes on would lose its own."""
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    dead = Enclosure(RunId.new().text, f"{int(done.stdout)}@1.00")
    dead.make(["n1", "n2"])
    command = launcher(dead.groups["n2"], (sys.executable, "-c", BUSY))
    with subprocess.Popen(command, stdout=subprocess.PIPE) as left:
        assert left.stdout is not None
        left.stdout.readline()
        removed = remove_leftovers(lives)
        assert left.wait(WITHIN_S) == -9
    assert {f"group of processes {group.cpu.name}" for group in dead.groups.values()} <= set(removed)
    assert not any(folder.exists() for group in dead.groups.values() for folder in group.folders)
    assert all(folder.exists() for folder in enclosure.groups["n1"].folders)


def test_a_run_that_ends_leaves_no_process_that_wants_memory(enclosure: Enclosure, tmp_path: Path) -> None:
    """If it failed, the second Ctrl-C of a run with such a fault would leave a process in a container's group, which
    the daemon then cannot remove."""
    group = enclosure.groups["n1"]

    async def scene() -> None:
        taken = limits(group, tmp_path)
        await taken.press("n1", "press")
        assert len(group.pids()) == 1
        await taken.stop()
        assert group.pids() == ()

    asyncio.run(scene())
