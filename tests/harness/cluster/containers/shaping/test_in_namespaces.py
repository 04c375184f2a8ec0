"""Packets that really wait: two network namespaces of this test, and the process that holds what passes between."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from harness.cluster.containers.shaped_faults import ShapingProcess
from harness.cluster.containers.shaping.echo import Echo
from harness.cluster.containers.shaping.namespace import Namespace, rules
from harness.errors import ClusterError
from tests import needs

pytestmark = [pytest.mark.docker, needs.root]
MILLISECOND = 1_000_000
ADDRESSES = {"a": "10.99.213.1", "b": "10.99.213.2", "client": "10.99.213.3"}
LINK = [("a", "b")]
PATIENCE_S = 60.0


@pytest.fixture
def pids() -> Iterator[dict[str, int]]:
    """A process in each of two namespaces that see each other."""
    names = {node: f"qsync-{os.getpid()}-{node}" for node in "ab"}
    sleepers: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name in names.values():
            ip("netns", "add", name)
        ip(
            "link",
            "add",
            "v0",
            "netns",
            names["a"],
            "type",
            "veth",
            "peer",
            "name",
            "v0",
            "netns",
            names["b"],
        )
        for node, name in names.items():
            ip("-n", name, "addr", "add", f"{ADDRESSES[node]}/24", "dev", "v0")
            ip("-n", name, "link", "set", "v0", "up")
            sleepers[node] = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{name}", "sh", "-c", "echo in; exec sleep 600"],
                stdout=subprocess.PIPE,
            )
            stdout = sleepers[node].stdout
            assert stdout is not None
            assert stdout.readline() == b"in\n"
        yield {node: process.pid for node, process in sleepers.items()}
    finally:
        for process in sleepers.values():
            process.kill()
            process.communicate()
        for name in names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=60)


def play(folder: Path, story: Callable[[ShapingProcess], Awaitable[None]]) -> None:
    async def played() -> None:
        process = await ShapingProcess.start(folder / "errors.txt")
        try:
            await process.ask("name", addresses=ADDRESSES)
            await story(process)
        finally:
            await process.stop()
        errors = folder / "errors.txt"
        assert not errors.exists(), errors.read_text()

    asyncio.run(played())


async def round_trip_ns(process: ShapingProcess) -> int:
    (told,) = (await process.ask("ask", links=LINK, within_s=8.0))["round_trips_ns"]
    assert told is not None
    return int(told)


async def last_words(process: ShapingProcess) -> str:
    """What is said of it once it is dead."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await process.ask("counters", fault=3)
            except ClusterError as error:
                return error.message


def test_packets_are_held_measured_and_let_go(pids: dict[str, int], tmp_path: Path) -> None:
    """Broken if a delay is only asked for, or outlives its fault."""

    async def story(process: ShapingProcess) -> None:
        for node, pid in pids.items():
            await process.ask("enter", node=node, pid=pid)
        await round_trip_ns(process)
        shaping = {"delay_ns": 200 * MILLISECOND}
        await process.ask("shape", fault=3, links=LINK, shaping=shaping, seed=1)
        assert await round_trip_ns(process) >= 200 * MILLISECOND
        told = await process.ask("counters", fault=3)
        (row,) = told["links"]
        assert row["packets_held"] > 0
        assert row["shortest_held_ns"] >= 200 * MILLISECOND
        assert told["are_rules_right"]
        assert all(time_ns >= 200 * MILLISECOND for time_ns in told["round_trips_ns"])
        await process.ask("unshape", fault=3, links=LINK)
        packets = (await process.ask("counters", fault=3))["links"][0]["packets"]
        await round_trip_ns(process)
        told = await process.ask("counters", fault=3)
        assert told["links"][0]["packets"] == packets
        assert (told["stranded"], told["are_rules_right"]) == (0, True)
        namespace = Namespace(pids["b"])
        assert await rules(namespace) == 0
        namespace.close()

    play(tmp_path, story)


def test_a_dead_harness_leaves_no_dead_network(pids: dict[str, int], tmp_path: Path) -> None:
    """Broken if packets wait for ever for a process that was killed."""

    async def story(process: ShapingProcess) -> None:
        for node, pid in pids.items():
            await process.ask("enter", node=node, pid=pid)
        # So slow that only a network that nobody holds can answer in time.
        slow = {"delay_ns": 3_600_000 * MILLISECOND}
        await process.ask("shape", fault=3, links=LINK, shaping=slow, seed=1)
        source, target = Namespace(pids["a"]), Namespace(pids["b"])
        echo = Echo(source)
        assert await echo.round_trip_ns(ADDRESSES["b"], 0.2) is None
        os.kill(process.pid, signal.SIGKILL)
        assert "the process that holds packets ended" in await last_words(process)
        async with asyncio.timeout(PATIENCE_S):
            while await echo.round_trip_ns(ADDRESSES["b"], 1.0) is None:
                pass
        assert await rules(target) == 1
        echo.close()
        source.close()
        target.close()

    play(tmp_path, story)


def test_our_own_network_is_never_entered(tmp_path: Path) -> None:
    """Broken if a number that was used again would let rules be set on the machine itself."""

    async def story(process: ShapingProcess) -> None:
        for pid in (os.getpid(), 2**22):
            with pytest.raises(ClusterError):
                await process.ask("enter", node="a", pid=pid)

    play(tmp_path, story)
