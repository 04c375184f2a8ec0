"""Who looks after the processes of a local cluster: which ends are told, and which are not."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster import last_words
from harness.cluster.limits.starved import Starved
from harness.cluster.local import nodes
from harness.cluster.local.nodes import LocalNodes
from harness.cluster.local.processes import NodeProcess, StartOptions
from harness.cluster.protocol import Ended
from harness.cluster.relay.remote import Relay
from harness.errors import ClusterError, NodeEnded
from tests.harness.processes import is_gone, wait_until

NODE = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: {at_sigterm})
print('{{"ready": true, "port": 1}}', flush=True)
while True:
    time.sleep(1)
"""

GIVES_UP = """
import os, sys
print('{{"ready": true, "port": 1}}', flush=True)
sys.stdin.readline()
{at_the_end}
"""


class _NoRelay:
    async def guard(self, pid: int, mark: str) -> None: ...

    async def release(self, pid: int) -> None: ...

    async def set_port(self, node: str, port: int) -> None: ...


@pytest.mark.parametrize(
    ("at_sigterm", "ends"),
    [
        ("os._exit(0)", []),
        ("os._exit(70)", ["exit 70"]),
    ],
)
def test_who_crashes_when_told_to_end_has_crashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_sigterm: str, ends: list[str]
) -> None:
    """If it failed, a node that breaks at every orderly stop would be called sound; or a restart would be a crash."""
    monkeypatch.setattr(nodes, "TERMINATES_WITHIN_S", 300.0)  # however busy the machine is
    command = (sys.executable, "-c", NODE.format(at_sigterm=at_sigterm))
    options = StartOptions(node="n1", command=command, output=tmp_path / "output.txt")

    async def told() -> list[str]:
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)
        try:
            await processes.start()
            await processes.terminate("n1")
            return [each.how for each in processes.ended()]
        finally:
            await processes.stop()

    assert asyncio.run(told()) == ends


def test_who_outlives_a_node_that_was_told_to_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a store whose workers outlive each orderly stop would look like one that ends too slowly."""
    monkeypatch.setattr(nodes, "TERMINATES_WITHIN_S", 0.5)
    worker = "setsid sh -c 'trap \"\" TERM; exec sleep 600'"
    script = f"""trap 'exit 0' TERM; {worker} & sleep 0.1; echo '{{"ready": true, "port": 1}}'; wait"""
    options = StartOptions(node="n1", command=("sh", "-c", script), output=tmp_path / "output.txt")

    async def told() -> list[str]:
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)
        try:
            await processes.start()
            assert await processes.terminate("n1"), "the node itself ended in time"
            return [orphans.what for orphans in processes.orphans()]
        finally:
            await processes.stop()

    (what,) = asyncio.run(told())
    assert "sleep 600" in what


@pytest.mark.parametrize(("code", "ends"), [(0, []), (1, ["exit 1"]), (64, ["exit 64"]), (70, ["exit 70"])])
def test_who_had_given_up_just_before_it_was_killed_has_crashed(
    tmp_path: Path, code: int, ends: list[str]
) -> None:
    """If it failed, a kill would hide the crash of a server that panicked a moment before."""
    command = (sys.executable, "-c", GIVES_UP.format(at_the_end=f"os._exit({code})"))
    options = StartOptions(node="n1", command=command, output=tmp_path / "output.txt")

    async def told() -> list[str]:
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)
        try:
            await processes.start()
            process = psutil.Process(processes.pid("n1"))
            give_up(processes)
            wait_until(lambda: is_gone(process))  # the loop does not turn meanwhile: its end is unknown to it
            await processes.kill("n1")
            return [each.how for each in processes.ended()]
        finally:
            await processes.stop()

    assert asyncio.run(told()) == ends


def give_up(processes: LocalNodes) -> None:
    stdin = processes._processes["n1"]._process.stdin
    assert stdin is not None
    stdin.write(b"\n")


def test_a_node_that_removes_what_it_printed_has_crashed_all_the_same(tmp_path: Path) -> None:
    """If it failed, a store that empties its folder when it starts could crash, and the run would be green."""
    output = tmp_path / "output.txt"
    command = (
        sys.executable,
        "-c",
        GIVES_UP.format(at_the_end=f"os.unlink({str(output)!r}); os._exit(3)"),
    )

    async def told() -> list[tuple[str, tuple[str, ...]]]:
        options = StartOptions(node="n1", command=command, output=output)
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)
        try:
            await processes.start()
            give_up(processes)
            await processes._watchers["n1"]
            return [(each.how, each.last_words) for each in processes.ended()]
        finally:
            await processes.stop()

    assert asyncio.run(told()) == [("exit 3", ())]


def test_a_node_that_is_started_while_all_are_stopped_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, Ctrl-C while a killed node is started again could leave a store running."""
    command = (sys.executable, "-c", NODE.format(at_sigterm="os._exit(0)"))
    options = StartOptions(node="n1", command=command, output=tmp_path / "output.txt")
    spawn, spawned = NodeProcess.spawn, list[NodeProcess]()

    async def story() -> None:
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)

        async def stopped_meanwhile(options: StartOptions) -> NodeProcess:
            spawned.append(await spawn(options))
            await processes.stop()
            return spawned[-1]

        monkeypatch.setattr(NodeProcess, "spawn", stopped_meanwhile)
        with pytest.raises(ClusterError, match="n1 is not started: the cluster is being stopped"):
            await processes.start_again("n1")
        assert not spawned[0].is_alive
        assert processes.ended() == ()

    asyncio.run(story())


def test_of_a_long_output_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the end of a node that had printed gigabytes would take all memory of the harness."""
    output = tmp_path / "output.txt"
    output.write_bytes(b"before\n" + b"a line\n" * 1000 + b"the \xff reason\n\n" + b"w" * 400)
    reason = "the \ufffd reason"
    assert last_words.last_words(output, 0)[-3:] == ("a line", reason, "w" * 300)
    assert len(last_words.last_words(output, 0)) == 60
    assert last_words.last_words(output, output.stat().st_size - 400) == ("w" * 300,)
    monkeypatch.setattr(last_words, "_END_BYTES", 420)
    assert last_words.last_words(output, 0)[1:] == (reason, "w" * 300)


async def port_of(options: StartOptions) -> int:
    """The port of a node that is started, and ended when it is ready."""
    process = await NodeProcess.spawn(options)
    try:
        await process.ready()
        return process.port
    finally:
        await process.kill()


def test_a_readiness_line_is_found_however_it_is_printed(tmp_path: Path) -> None:
    """If it failed, a node whose readiness line came in two writes, or behind much else, would never be ready."""
    code = """
import os, time
deep = b'{"a": ' + b"[" * 100_000 + b"}\\n"
for piece in (b"{no JSON}\\n", deep, b"x" * 5000, b"\\n{", b'"ready": true,', b' "port": 4}', b"\\r\\n"):
    os.write(1, piece)
    time.sleep(0.01)
time.sleep(100)
"""
    options = StartOptions(node="n1", command=(sys.executable, "-c", code), output=tmp_path / "output.txt")

    assert asyncio.run(port_of(options)) == 4


@pytest.mark.parametrize("port", ["70000", "0", "-5", "true", "null"])
def test_a_port_that_is_none_is_refused(tmp_path: Path, port: str) -> None:
    """If it failed, the harness would break at its first connection, or ask a program that is not the node."""
    code = f'print(\'{{"ready": true, "port": {port}}}\', flush=True); import time; time.sleep(100)'
    options = StartOptions(node="n1", command=(sys.executable, "-c", code), output=tmp_path / "output.txt")

    with pytest.raises(ClusterError, match="n1 is ready but names no port of 1 to 65535"):
        asyncio.run(port_of(options))


def test_a_store_that_is_asked_prints_no_readiness_line(tmp_path: Path) -> None:
    """If it failed, a line of its log with the word "ready" would be taken for it, and the store for broken."""
    code = """print('{"ready": false}', flush=True); import time; time.sleep(100)"""
    looks = iter((False, False, True))

    async def answers() -> bool:
        await asyncio.sleep(0.1)
        return next(looks)

    options = StartOptions(
        node="n1",
        command=(sys.executable, "-c", code),
        output=tmp_path / "output.txt",
        early_port=4,
        answers=answers,
    )
    assert asyncio.run(port_of(options)) == 4


def test_how_a_process_ended_is_known_whatever_was_sent_to_it_after_that(tmp_path: Path) -> None:
    """If it failed, a crash beside a signal would be an end of no known kind, and pass for one that was asked for."""
    command = (sys.executable, "-c", NODE.format(at_sigterm="os._exit(70)"))
    options = StartOptions(node="n1", command=command, output=tmp_path / "output.txt")

    async def told() -> str:
        process = await NodeProcess.spawn(options)
        await process.ready()
        process.family.send(signal.SIGTERM)
        with suppress(ChildProcessError):  # a thread of asyncio was faster
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        process.family.send(signal.SIGCONT)
        return await process.ended()

    assert [asyncio.run(told()) for _ in range(5)] == ["exit 70"] * 5


def test_who_is_killed_has_not_crashed(tmp_path: Path) -> None:
    """If it failed, every kill -9 of a schedule would be an anomaly."""
    command = (sys.executable, "-c", NODE.format(at_sigterm="os._exit(0)"))
    options = StartOptions(node="n1", command=command, output=tmp_path / "output.txt")

    async def told() -> tuple[object, ...]:
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)
        try:
            await processes.start()
            assert not processes.is_down("n1")
            await processes.kill("n1")
            assert processes.is_down("n1")
            return processes.ended()
        finally:
            await processes.stop()

    assert asyncio.run(told()) == ()


class _SameNumber:
    """A process that ends as the test says; every one has the number that the last one had."""

    node, pid, port, family = "n1", 1 << 30, 1, SimpleNamespace(mark="")

    def __init__(self) -> None:
        self.how = asyncio.get_running_loop().create_future()
        self.family.outlived = self.left

    @classmethod
    async def spawn(cls, options: StartOptions) -> _SameNumber:
        return cls()

    @property
    def is_alive(self) -> bool:
        return not self.how.done()

    async def ready(self) -> None: ...

    async def end(self, now_ns: Callable[[], int]) -> Ended:
        return Ended(self.node, now_ns(), await asyncio.shield(self.how))

    async def kill(self) -> None:
        if self.is_alive:
            self.how.set_result("signal 9")

    async def left(self) -> str:
        return ""


def test_a_node_that_has_too_little_memory_to_start_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a store that needs more than its `--node-memory` would end with "it printed nothing"."""
    monkeypatch.setattr(Starved, "kernel_line", lambda self, pid: "Memory cgroup out of memory")
    code = "import os; os.kill(os.getpid(), 9)"
    options = StartOptions(node="n1", command=(sys.executable, "-c", code), output=tmp_path / "output.txt")

    async def story() -> None:
        await (await NodeProcess.spawn(options)).ready()

    with pytest.raises(
        NodeEnded, match=r"n1 ended before it was ready \(signal 9\): Memory cgroup out of memory"
    ):
        asyncio.run(story())


def test_a_node_that_ends_before_it_is_ready_is_told_at_once(tmp_path: Path) -> None:
    """If it failed, a store with `ready_within_s=90` would tell a wrong option of one node after 90 s."""
    commands = {"n1": "import time; time.sleep(600)", "n2": "print('unknown option'); raise SystemExit(2)"}
    options = {
        node: StartOptions(
            node=node,
            command=(sys.executable, "-c", code),
            output=tmp_path / f"{node}.txt",
            ready_within_s=500.0,
        )
        for node, code in commands.items()
    }

    async def story() -> None:
        processes = LocalNodes(options, cast(Relay, _NoRelay()), time.monotonic_ns)
        try:
            await asyncio.wait_for(processes.start(), 30)
        finally:
            await processes.stop()

    with pytest.raises(NodeEnded, match=r"n2 ended before it was ready \(exit 2\): unknown option"):
        asyncio.run(story())


def test_a_crash_of_a_process_that_has_the_number_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a kill of a dead node would hide a later crash, as numbers of processes are used again."""
    monkeypatch.setattr(nodes, "NodeProcess", _SameNumber)
    options = StartOptions(node="n1", command=(), output=tmp_path / "output.txt")

    async def told() -> list[str]:
        processes = LocalNodes({"n1": options}, cast(Relay, _NoRelay()), time.monotonic_ns)
        await processes.start()
        await processes.kill("n1")
        await processes.kill("n1")
        await processes.start_again("n1")
        process = cast(_SameNumber, processes._processes["n1"])
        process.how.set_result("exit 1")
        await processes._watchers["n1"]
        return [each.how for each in processes.ended()]

    assert asyncio.run(told()) == ["exit 1"]
