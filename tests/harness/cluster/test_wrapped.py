"""Faults of processes act on all processes of a node, and nothing outlives a run: stores behind wrappers."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster.family import MARK, OUTLIVES_S, Family, new_mark, still_listens
from harness.cluster.local.cluster import LocalCluster
from harness.cluster.local.processes import NodeProcess, StartOptions
from harness.cluster.place import Place
from tests.harness.cluster.test_local import fault, play
from tests.harness.cluster.wrapped import WRAPPERS, stores, wrapped
from tests.harness.processes import is_gone, is_stopped, wait_until
from tests.reserved_ports import reserved

pytestmark = pytest.mark.usefixtures("patient")


@pytest.mark.parametrize(
    "kind",
    [
        "left behind",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in WRAPPERS if kind != "left behind"),
    ],
)
def test_faults_of_a_process_reach_the_store_behind_its_wrapper(tmp_path: Path, kind: str) -> None:
    """Broken if a store passes a kill or a pause that only its wrapper has felt, or outlives the run."""

    async def story(cluster: LocalCluster) -> None:
        (before,) = (each for each in stores(tmp_path) if each.cmdline()[-1].endswith("n1"))
        pause, kill = fault("pause", nodes=("n1",)), fault("kill", nodes=("n1",))
        await cluster.inject(pause)
        assert is_stopped(before)
        evidence = await cluster.heal(pause)
        assert (evidence.took_effect, evidence.healed) == (True, True), evidence
        await cluster.inject(kill)
        assert is_gone(before)
        evidence = await cluster.heal(kill)
        assert (evidence.took_effect, evidence.healed) == (True, True), evidence
        assert cluster.ended() == ()
        assert len(stores(tmp_path)) == 3

    play(tmp_path, story, command=partial(wrapped, kind))
    assert stores(tmp_path) == []


def test_a_store_that_lives_on_while_its_node_is_down_was_not_killed(tmp_path: Path) -> None:
    """Broken if the end of one process is evidence for the end of a node."""

    async def story(cluster: LocalCluster) -> None:
        processes = cluster.processes
        port = processes.port("n1")
        assert f"port {port} still takes connections" == await still_listens("127.0.0.1", [port])
        assert "mystore.py" in await processes.left("n1")
        await processes.kill("n1")
        assert await processes.left("n1") == ""
        await processes.revive("n1")

    play(tmp_path, story, command=partial(wrapped, "a child"))


def test_what_a_harness_left_that_was_killed_with_its_relay_is_ended_first(tmp_path: Path) -> None:
    """Broken if a store of a dead run keeps its port from the next run."""
    port = reserved(12)
    code = f"import socket; s = socket.create_server(('127.0.0.1', {port})); print(flush=True); s.accept()"
    command = ["env", f"{MARK}=999999999@1.00/n1/a1", sys.executable, "-c", code]

    async def story(cluster: LocalCluster) -> None:
        assert not psutil.pid_exists(left.pid)

    with subprocess.Popen(command, stdout=subprocess.PIPE) as left:
        try:
            assert left.stdout is not None
            assert left.stdout.readline()
            play(tmp_path, story, base_port=port)
        finally:
            left.kill()


def test_a_name_of_which_each_address_refuses_takes_no_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken if a kill on a host with two addresses ends the run."""

    async def story() -> str:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            port = bound.getsockname()[1]
        kind = (socket.AF_INET, socket.SOCK_STREAM, 0, "")
        addresses = [(*kind, (f"127.0.0.{number}", port)) for number in (1, 2)]

        async def resolved(*_: object, **__: object) -> list[object]:
            return list(addresses)

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
        return await still_listens("a-host", [port])

    assert asyncio.run(story()) == ""


@pytest.mark.long
def test_who_outlives_the_process_that_was_started_is_ended_and_told(tmp_path: Path) -> None:
    """Broken if an orphan keeps the data and the port of a node, or is ended without a word."""

    async def story(cluster: LocalCluster) -> None:
        (store,) = (each for each in stores(tmp_path) if each.cmdline()[-1].endswith("n1"))
        os.kill(cluster.processes.pid("n1"), signal.SIGKILL)
        await asyncio.to_thread(wait_until, lambda: is_gone(store))
        (ended,) = cluster.ended()
        assert ended.how == "signal 9"
        while not (orphans := cluster.orphans()):
            await asyncio.sleep(0.01)
        assert [each.node for each in orphans] == ["n1"]
        assert "mystore.py" in orphans[0].what

    play(tmp_path, story, command=partial(wrapped, "a session of its own"))


@pytest.mark.long
def test_a_node_that_ends_late_leaves_the_others_as_much_time_as_one_that_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, processes that end right behind a slow one would be killed, and told as left behind."""
    given: list[float] = []

    async def outlived(family: Family, patience_s: float) -> str:
        given.append(patience_s)
        return ""

    async def ends() -> None: ...

    monkeypatch.setattr(Family, "outlived", outlived)
    monkeypatch.setattr(Family, "send", lambda *_: None)
    for patience_s in (0.5, 20.0):
        assert asyncio.run(Family(0, new_mark("n1")).terminate(ends, patience_s)) == (True, "")
    assert given[0] == OUTLIVES_S
    assert OUTLIVES_S < given[1] <= 20


def test_who_does_not_end_with_its_node_is_told_at_the_end_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken if what a run leaves behind is only seen by those who look for it."""
    monkeypatch.setattr("harness.cluster.local.nodes.STOP_WITHIN_S", 0.5)
    clusters: list[LocalCluster] = []

    async def story(cluster: LocalCluster) -> None:
        clusters.append(cluster)

    def command(place: Place) -> tuple[str, ...]:
        *words, shell = wrapped("a child", place)
        # It ignores SIGTERM from its first moment.
        return (*words, f"trap '' TERM; setsid sleep 600 & trap - TERM; {shell}")

    play(tmp_path, story, command=command)
    told = clusters[0].orphans()
    assert {each.node for each in told} == {"n1", "n2", "n3"}
    assert all("sleep 600" in each.what for each in told)


def test_processes_that_are_no_part_of_a_node_are_left_alone(tmp_path: Path) -> None:
    """Broken if a kill of a node could end a process of somebody else."""
    code = 'print(\'{"ready": true, "port": 1}\', flush=True); import time; time.sleep(600)'
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])

    async def told() -> None:
        options = StartOptions(
            node="n1", command=(sys.executable, "-c", code), output=tmp_path / "output.txt"
        )
        process = await NodeProcess.spawn(options)
        await process.ready()
        assert process.family.look() == [process.pid]
        await process.kill()
        assert process.family.look() == []

    try:
        asyncio.run(told())
        assert stranger.poll() is None
        family = Family(stranger.pid, new_mark("another"))
        stranger_began = psutil.Process(stranger.pid).create_time()
        assert family.look() == [stranger.pid]
        family.kill_now()
        assert stranger.wait() == -signal.SIGKILL
        assert stranger_began <= time.time()
    finally:
        stranger.kill()
        stranger.wait()
