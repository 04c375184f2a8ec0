"""Which ends of nodes on other hosts are reported: on a host that answers as the test says."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.cluster.protocol import Ended
from harness.cluster.relay.remote import Commands, Relay
from harness.cluster.ssh import inventory
from harness.cluster.ssh.cluster import SshCluster, SshSettings
from harness.cluster.ssh.machine import Machine, _unpack
from harness.cluster.ssh.nodes import SshNodes, StartOptions
from harness.cluster.ssh.remote import bootstrap
from harness.cluster.ssh.remote.children import Children
from harness.cluster.ssh.session import Session
from harness.cluster.talk import Talk
from harness.errors import ClusterError
from tests import needs
from tests.harness.processes import PATIENCE_S


class Host:
    host = SimpleNamespace(reached_at="h", binds="h")

    async def ask(self, command: str, /, **arguments: object) -> dict[str, Any]:
        return {"start": {"pid": 7}, "terminate": {"in_order": True}}.get(command, {})


class NoRelays:
    async def set_port(self, node: str, port: int, host: str = "") -> None: ...


async def one_node() -> SshNodes:
    async def is_up(node: str, ended: Callable[[], Ended | None]) -> None: ...

    machine = cast(Machine, Host())
    options = StartOptions(node="n1", machine=machine, command=(), environment={}, port=1, early=False)
    nodes = SshNodes({"n1": options}, cast(Commands, NoRelays()), lambda: 0, is_up)
    await nodes.start()
    return nodes


def ended(nodes: SshNodes, code: int) -> list[str]:
    event = {"event": 1, "node": "n1", "pid": 7, "code": code, "words": [], "starved": ""}
    nodes.event(cast(Machine, Host()), event)
    return [each.how for each in nodes.ended()]


@pytest.mark.parametrize(
    ("way", "code", "how"),
    [
        ("kill", -9, []),
        ("kill", 1, ["exit 1"]),
        ("kill", 2, ["exit 2"]),
        ("terminate", 2, []),
        ("kill", -11, ["signal 11"]),
        ("terminate", 1, []),
        ("terminate", 70, ["exit 70"]),
    ],
)
def test_who_had_ended_before_it_was_asked_to_has_crashed(way: str, code: int, how: list[str]) -> None:
    """If it failed, a crash that is reported while a kill is under way would be hidden by it."""

    async def told() -> list[str]:
        nodes = await one_node()
        await getattr(nodes, way)("n1")
        return ended(nodes, code)

    assert asyncio.run(told()) == how


def test_a_crash_of_a_process_that_has_the_number_of_a_killed_one() -> None:
    """If it failed, a kill of a dead node would hide a later crash, as numbers of processes are used again."""

    async def told() -> list[str]:
        nodes = await one_node()
        await nodes.kill("n1")
        assert ended(nodes, -9) == []
        await nodes.kill("n1")
        await nodes.start_again("n1")
        return ended(nodes, 3)

    assert asyncio.run(told()) == ["exit 3"]


def test_a_host_whose_supervisor_is_gone_is_told_at_once() -> None:
    """If it failed, the screen of a run would show a traceback, and the run wait for the end of the lease."""

    async def told() -> str:
        machine = Machine(inventory.Host(host="h"), "r", lambda machine, event: None)
        asking = asyncio.create_task(machine.ask("clock"))
        await asyncio.sleep(0)
        machine._arrived(b'{"error": "[Errno 111] Connection refused"}')
        with pytest.raises(ClusterError) as raised:
            await asking
        return raised.value.message

    assert asyncio.run(told()) == "h:22: [Errno 111] Connection refused"


def test_a_command_of_a_host_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would end with "h:22 cannot ports", or with no reason."""
    monkeypatch.setattr("harness.cluster.ssh.machine.PATIENCE_S", 0.01)

    async def story() -> None:
        machine = Machine(inventory.Host(host="h", lease_s=0), "r", lambda machine, event: None)
        asking = asyncio.create_task(machine.ask("ports"))
        await asyncio.sleep(0)
        machine._arrived(b'{"id": 1, "error": "\'ports\': all are in use"}')
        with pytest.raises(ClusterError, match=r"^h:22 could not do the command 'ports': all are in use$"):
            await asking
        with pytest.raises(ClusterError, match=r"^h:22 did not answer the command 'clock' in time$"):
            await machine.ask("clock")

    asyncio.run(story())


def test_a_host_that_was_lost_is_not_waited_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, each command of a run that is to end would wait for a host that is down, and none would say so."""
    monkeypatch.setattr("harness.cluster.ssh.machine.PATIENCE_S", 0.01)

    async def story() -> None:
        machine = Machine(inventory.Host(host="h", lease_s=0), "r", lambda machine, event: None)
        await machine._again()
        with pytest.raises(ClusterError, match="the connection to h:22 was lost"):
            await machine.ask("clock")

    asyncio.run(story())


class NoSupervisor:
    """A session, and its channel, with a host that lives on while its supervisor is dead."""

    def __init__(self) -> None:
        self.lines = [b'{"error": "[Errno 111] Connection refused"}\n', b""]

    def begin(self, word: str, argument: str) -> NoSupervisor:
        return NoSupervisor()

    def recv(self, size: int) -> bytes:
        return self.lines.pop(0)

    def sendall(self, line: bytes) -> None: ...

    def close(self) -> None: ...


def test_a_host_is_tried_again_by_one_task_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a supervisor that was killed would bring its host more logins with each second."""
    opened: list[inventory.Host] = []
    monkeypatch.setattr("harness.cluster.ssh.machine._AGAIN_EVERY_S", 0.01)
    monkeypatch.setattr(Session, "open", lambda host: opened.append(host) or NoSupervisor())

    async def story() -> int:
        machine = Machine(inventory.Host(host="h", lease_s=0.2), "r", lambda machine, event: None)
        machine.facts = {"base": "/"}
        channel = machine._channel = cast(Any, NoSupervisor())
        machine._lost(channel)
        while machine._tasks and len(opened) < 100:
            await asyncio.wait(machine._tasks, return_when=asyncio.FIRST_COMPLETED)
        return len(opened)

    assert 0 < asyncio.run(story()) <= 21


def far_cluster(folder: Path) -> SshCluster:
    """A cluster of one node that was not started."""
    settings = SshSettings(
        talk=cast(Talk, None),
        configs={"n1": b""},
        folder=folder,
        heartbeat_ns=1,
        epoch_ns=0,
        command=lambda place: (),
        hosts=(inventory.Host(host="h"),),
    )
    return SshCluster(settings)


def test_a_relay_is_ended_where_logs_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, each run of a campaign on a full disk would leave a relay."""
    stopped: list[str] = []

    class Here:
        async def stop(self) -> None:
            stopped.append("relay")

    def full() -> None:
        raise OSError("no space left")

    async def story() -> None:
        cluster = far_cluster(tmp_path)
        cluster._here = cast(Relay, Here())
        monkeypatch.setattr(cluster, "_shift_logs", full)
        with pytest.raises(ClusterError, match="what the nodes left cannot be kept: no space left"):
            await cluster.stop()

    asyncio.run(story())
    assert stopped == ["relay"]


def test_nothing_is_said_of_the_disk_of_another_machine(tmp_path: Path) -> None:
    """If it failed, the page of a run would show nodes on other hosts with empty disks."""

    async def story() -> list[str]:
        return list(await far_cluster(tmp_path).used())

    assert asyncio.run(story()) == ["harness"]


def test_an_end_that_was_missed_is_not_lost_behind_a_later_one() -> None:
    """If it failed, a node that crashed while the connection was lost would not be a crash if another node ended
    before the supervisor was asked what was missed."""
    ends: list[str] = []
    machine = Machine(inventory.Host(host="h"), "r", lambda machine, event: ends.append(event["node"]))
    first, second = b'{"event": 1, "node": "n1"}', b'{"event": 2, "node": "n2"}'
    for line in (second, first, second, second):
        machine._arrived(line)
    assert ends == ["n1", "n2"]


def test_a_process_that_ends_while_it_is_looked_at_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run could not begin where the nodes of a dead one end with their supervisor."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    looks = iter([True, False, False])
    monkeypatch.setattr(bootstrap, "is_process", lambda pid, ticks: next(looks))
    bootstrap.end([(ended.pid, 1)], signal.SIGTERM)
    assert next(looks, None) is None


@needs.linux
def test_a_process_may_have_any_name() -> None:
    """If it failed, a node that calls itself by a name cut in the middle of a letter would outlive its run."""
    name, own = Path("/proc/self/comm"), Path("/proc/self/comm").read_bytes()
    try:
        name.write_bytes("node-\N{SNOWMAN}".encode()[:-1])
        assert bootstrap.is_process(os.getpid(), bootstrap.started(os.getpid()))
    finally:
        name.write_bytes(own.rstrip())


def test_a_step_of_the_clock_leaves_processes_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a host whose clock is set at that moment would kill what is about to end in order."""
    looks, sent = iter([True, True, True, False, False]), []
    hours = (3600.0 * number for number in count())
    monkeypatch.setattr(bootstrap, "is_process", lambda pid, ticks: next(looks))
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append(number))
    monkeypatch.setattr("time.time", lambda: next(hours))
    monkeypatch.setattr("time.sleep", lambda time_s: None)
    bootstrap.end([(1 << 30, 1)], signal.SIGTERM)
    assert (sent, next(looks, None)) == ([signal.SIGTERM], None)


def test_an_archive_of_logs_puts_nothing_anywhere_else(tmp_path: Path) -> None:
    """If it failed, a host could write files of its choice here, or end the run with a traceback."""
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for name in (".", "../up", "/abs", "nodes/n1/log.jsonl", "nodes/../../up"):
                member = tarfile.TarInfo(name)
                member.size = 2
                archive.addfile(member, io.BytesIO(b"{}"))
        _unpack(whole.getvalue(), tmp_path / "run", inventory.Host(host="h"))
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()].count("log.jsonl") == 1
    assert not (tmp_path / "up").exists()


def test_an_archive_that_is_no_plain_one_is_told(tmp_path: Path) -> None:
    """If it failed, a host could end the run with a traceback, or fill this machine from a few bytes."""
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            member = tarfile.TarInfo("x")
            member.size, member.pax_headers = 2, {"path": "nodes/n1/\0"}
            archive.addfile(member, io.BytesIO(b"{}"))
        odd = whole.getvalue()
    for data in (odd, gzip.compress(odd), gzip.compress(odd)[:-9]):
        with pytest.raises(ClusterError, match=r"^the logs of h:22 cannot be brought home: "):
            _unpack(data, tmp_path, inventory.Host(host="h"))


def fetch(folder: Path) -> subprocess.CompletedProcess[bytes]:
    words = [sys.executable, str(Path(bootstrap.__file__)), "fetch", str(folder)]
    return subprocess.run(words, capture_output=True, check=False)


def test_logs_come_home_whole_or_not_at_all(tmp_path: Path) -> None:
    """If it failed, a run would be judged without the logs of some nodes, or without a file that has two names."""
    far, home = tmp_path / "far", tmp_path / "home"
    (far / "nodes/n1").mkdir(parents=True)
    (far / "nodes/n1/1.xlog").write_text("row")
    (far / "nodes/n1/2.xlog").hardlink_to(far / "nodes/n1/1.xlog")
    (far / "supervisor.txt").touch()
    _unpack(fetch(far).stdout, home, inventory.Host(host="h"))
    assert {path.name: path.read_text() for path in home.glob("nodes/n1/*")} == {
        "1.xlog": "row",
        "2.xlog": "row",
    }
    (far / "supervisor.txt").unlink()  # stands for all that cannot be read
    broken = fetch(far)
    assert broken.returncode and b"supervisor.txt" in broken.stderr


def test_a_supervisor_that_does_not_come_up_says_why(tmp_path: Path) -> None:
    """If it failed, a folder in which no socket can be made would be said to lack a file."""
    folder = tmp_path / f"{bootstrap.PREFIX}x"
    program = b"import os, shutil; shutil.rmtree(os.getcwd()); raise SystemExit('no socket can be made')"
    with io.BytesIO() as whole:
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for package in (
                "harness",
                "harness/cluster",
                "harness/cluster/ssh",
                "harness/cluster/ssh/remote",
            ):
                archive.addfile(tarfile.TarInfo(f"{package}/__init__.py"))
            member = tarfile.TarInfo("harness/cluster/ssh/remote/supervisor.py")
            member.size = len(program)
            archive.addfile(member, io.BytesIO(program))
        info = {"format": bootstrap.FORMAT, "run": "x", "owner": "somebody", "lease_s": 4}
        words = [sys.executable, str(Path(bootstrap.__file__)), "install"]
        request = json.dumps({"folder": str(folder), "info": info})
        done = subprocess.run([*words, request], input=whole.getvalue(), capture_output=True, check=True)
    assert json.loads(done.stdout) == {"error": "the supervisor does not come up: no socket can be made"}
    assert not folder.exists()


def test_a_node_that_cannot_be_written_down_can_be_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a host with a full disk would keep the harness waiting for the end of a node."""

    def full(pid: int) -> None:
        raise OSError("no space left")

    async def story() -> list[int]:
        codes: list[int] = []
        children = Children(
            tmp_path, lambda node, pid, code, *_: codes.append(code), lambda node, words: None
        )
        monkeypatch.setattr(children, "_write_down", full)
        with pytest.raises(OSError, match="no space left"):
            await children.start("n1", ["sleep", "60"], {}, tmp_path / "output.txt")
        async with asyncio.timeout(PATIENCE_S):
            await children.kill("n1")
        return codes

    assert asyncio.run(story()) == [-signal.SIGKILL]
