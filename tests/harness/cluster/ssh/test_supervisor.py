"""The supervisor of a host, without SSH: what it does twice, where it writes, and when it goes."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster.limits.enclosure import FAR_NAME, remove_leftovers
from harness.cluster.limits.group import Group, group_of
from harness.cluster.open_files import MANY
from harness.cluster.ssh.remote import bootstrap
from tests import needs
from tests.harness.processes import is_gone, wait_until

pytestmark = needs.linux
ROOT = Path(__file__).parents[4]


@dataclass(frozen=True, slots=True)
class Supervised:
    folder: Path
    process: subprocess.Popen[bytes]
    attached: subprocess.Popen[bytes]

    def say(self, **command: object) -> None:
        stdin: IO[bytes] | None = self.attached.stdin
        assert stdin is not None
        stdin.write(json.dumps(command).encode() + b"\n")
        stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.attached.stdout is not None
        told: dict[str, Any] = json.loads(self.attached.stdout.readline())
        return told

    def ask(self, **command: object) -> dict[str, Any]:
        """The answer; events on the way are left out."""
        self.say(**command)
        while (told := self.hear()).get("id") != command["id"]:
            pass
        return told


@contextmanager
def supervised(parent: Path, lease_s: float = 60) -> Iterator[Supervised]:
    folder = parent / f"{bootstrap.PREFIX}x"
    (folder / "nodes").mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    info = {"format": bootstrap.FORMAT, "run": "x", "owner": "somebody", "lease_s": lease_s}
    bootstrap.mark(folder, info)
    words = [sys.executable, "-m", "harness.cluster.ssh.remote.supervisor", str(folder)]
    process = subprocess.Popen(words, env=environment)
    bootstrap.mark(folder, {**info, "supervisor": [process.pid, bootstrap.started(process.pid)]})
    wait_until((folder / bootstrap.SOCKET).exists)
    script = Path(bootstrap.__file__).read_text()
    attach = [sys.executable, "-c", script, "attach", str(folder)]
    attached = subprocess.Popen(attach, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield Supervised(folder, process, attached)
    finally:
        attached.kill()
        attached.communicate()
        process.kill()
        process.wait()


def test_a_line_that_comes_again_is_done_once(tmp_path: Path) -> None:
    """If it failed, a lost connection would start nodes twice, or heal a fault that has begun anew."""
    with supervised(tmp_path) as host:
        start = {"id": 7, "do": "start", "node": "n1", "command": ["sleep", "60"], "environment": {}}
        first, again = host.ask(**start), host.ask(**start)
        assert first == again and first["pid"] > 0
        assert "runs already" in host.ask(**{**start, "id": 8})["error"]


def test_it_may_have_as_many_connections_as_the_host_allows(tmp_path: Path) -> None:
    """If it failed, a host of many nodes with the usual limit would refuse connections in the middle of a run."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(list(Path("/proc/self/fd").iterdir())) + 64
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        with supervised(tmp_path) as host:
            allowed, _ = psutil.Process(host.process.pid).rlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert allowed == (MANY if hard == resource.RLIM_INFINITY else min(hard, MANY))


def test_what_ended_is_told_again_to_who_did_not_hear_it(tmp_path: Path) -> None:
    """If it failed, a node that crashed while the connection was lost would never be a crash."""
    with supervised(tmp_path) as host:
        command = ["sh", "-c", "echo a last word; exit 3"]
        host.say(id=1, do="start", node="n1", command=command, environment={})
        told = [host.hear(), host.hear()]
        (event,) = [line for line in told if "event" in line]
        assert (event["node"], event["code"], event["words"]) == ("n1", 3, ["a last word"])
        host.say(id=2, do="hello", seen=0)
        assert host.hear() == event
        assert host.hear()["id"] == 2


def test_a_pause_is_seen_and_nothing_is_written_outside(tmp_path: Path) -> None:
    """If it failed, a pause could be reported that was none, or a host's own files be overwritten."""
    with supervised(tmp_path) as host:
        host.ask(id=1, do="start", node="n1", command=["sleep", "60"], environment={})
        assert host.ask(id=2, do="stopped", node="n1")["stopped"] is False
        assert host.ask(id=3, do="pause", node="n1")["stopped"] is True
        host.ask(id=4, do="continue", node="n1")
        assert host.ask(id=5, do="stopped", node="n1")["stopped"] is False
        assert "not in the folder" in host.ask(id=6, do="write", path="../x", text="y")["error"]
        assert not (tmp_path / "x").exists()
        assert host.ask(id=7, do="write", path="nodes/n1/a", text="b") == {"id": 7}
        assert (host.folder / "nodes/n1/a").read_text() == "b"


@pytest.mark.long
def test_when_nobody_speaks_for_a_lease_all_of_it_goes(tmp_path: Path) -> None:
    """If it failed, a dead harness would leave nodes that run for ever."""
    with supervised(tmp_path, lease_s=4) as host:
        began = time.monotonic()  # before the last word, from which the lease counts
        node = psutil.Process(
            host.ask(id=1, do="start", node="n1", command=["sleep", "60"], environment={})["pid"]
        )
        wait_until(lambda: not host.folder.exists() and is_gone(node))
        assert time.monotonic() - began > 3, "the harness was hardly silent"


def test_cleaning_up_ends_what_the_supervisor_left_when_it_was_killed(tmp_path: Path) -> None:
    """If it failed, nodes of a supervisor that broke would stay, or the folder of a stranger would go."""
    with supervised(tmp_path) as host:
        node = psutil.Process(
            host.ask(id=1, do="start", node="n1", command=["sleep", "60"], environment={})["pid"]
        )
        os.kill(host.process.pid, signal.SIGKILL)
        host.process.wait()
        wait_until(lambda: is_gone(node))
        (found,) = bootstrap.run_of(host.folder)
        assert found["is_supervised"] is False
        assert bootstrap.clean(str(host.folder)) == {"removed": True}
        assert not host.folder.exists()
    stranger = tmp_path / f"{bootstrap.PREFIX}notes"
    stranger.mkdir()
    assert bootstrap.clean(str(stranger)) == {"removed": False}
    assert stranger.exists()


def test_groups_of_dead_supervisors_alone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, hosts would collect control groups, or the node of a run that goes on would be killed."""
    hierarchy, elsewhere = tmp_path / "cgroup", tmp_path / "disk"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"29 23 0:26 / {hierarchy} rw,nosuid - cgroup2 cgroup2 rw\n30 23 8:1 / {elsewhere} rw - ext4 /dev/a rw\n"
    )
    monkeypatch.setattr(bootstrap, "MOUNTS", mounts)
    living = f"qsync-ssh-ab12-{os.getpid()}@{bootstrap.started(os.getpid())}-n1"
    dead = f"qsync-ssh-ab12-{os.getpid()}@{bootstrap.started(os.getpid()) + 1}-n1"
    inside = f"{dead}2"
    for name in (living, dead, inside, "qsync-ssh-notes", f"{dead}/../x-{dead}", "qsync-ab12-1@1.00-n1"):
        (hierarchy / "user.slice" / name).mkdir(parents=True)
    (elsewhere / dead).mkdir(parents=True)
    left = subprocess.Popen(["sleep", "60"])
    try:
        (hierarchy / "user.slice" / living / "cgroup.procs").write_text(f"{left.pid}\n")
        # Of a supervisor in a container: its number is another process here, and its processes have none.
        (hierarchy / "user.slice" / inside / "cgroup.procs").write_text("0\n")
        assert bootstrap.ungroup("") == {"removed": [dead]}
        assert left.poll() is None
    finally:
        left.kill()
        left.wait()
    assert not (hierarchy / "user.slice" / dead).exists()
    assert len([*(hierarchy / "user.slice").iterdir()]) == 5
    assert (elsewhere / dead).exists()
    assert bootstrap.GROUP.pattern == FAR_NAME.pattern.strip("^$").replace(r"(\d+@\d+)", r"(\d+)@(\d+)")


def test_what_is_done_to_files_is_done_to_those_of_a_node_of_the_run_alone(tmp_path: Path) -> None:
    """If it failed, a fault, or a node that is replaced, could empty a folder of somebody else's machine."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "1.xlog").write_text("somebody's")
    with supervised(tmp_path) as host:
        node = host.folder / "nodes" / "n1"
        node.mkdir()
        (node / "1.xlog").write_text("ours")
        (host.folder / "nodes" / "link").symlink_to(foreign)
        names = ["..", ".", "", "../..", "../../foreign", str(foreign), "link", "n2"]
        for number, name in enumerate(names, start=1):
            told = host.ask(id=number, do="disk", node=name, word="forget", given={})
            assert "no node is called" in told["error"], name
        assert "nothing called" in host.ask(id=20, do="disk", node="n1", word="rm", given={})["error"]
        assert (foreign / "1.xlog").read_text() == "somebody's"
        assert host.ask(id=21, do="disk", node="n1", word="forget", given={})["result"] == {}
        assert [path.name for path in node.iterdir()] == ["lost-disk-1"]
        assert (node / "lost-disk-1" / "1.xlog").read_text() == "ours"


def test_orders_reach_a_disk_and_what_cannot_be_done_is_said(tmp_path: Path) -> None:
    """If it failed, a disk fault on another host would be asked of nobody, or its failure end the supervisor."""
    with supervised(tmp_path) as host:
        node = host.folder / "nodes" / "n1"
        node.mkdir()
        orders = {"id": 4, "sync_delay_ns": 5}
        host.ask(id=1, do="disk", node="n1", word="order", given={"orders": orders})
        assert json.loads((node / "faults" / "disk.json").read_text()) == orders
        assert host.ask(id=2, do="disk", node="n1", word="affected", given={})["result"] == {}
        (node / "faults" / "felt.json").write_text('{"id": 4, "delayed": 2, "failed": 0}')
        told = host.ask(id=3, do="disk", node="n1", word="affected", given={})["result"]
        assert (told["id"], told["delayed"], told["failed"]) == (4, 2, 0)
        told = host.ask(id=5, do="disk", node="n1", word="lose-unsynced", given={"seed": "1"})
        assert "what the node synced cannot be read" in told["error"]
        assert host.ask(id=6, do="clock")["wall_ns"] > 0


def entered(pid: int) -> Group:
    """The group of a node, once its process is in it: that is the first thing that it does."""
    wait_until(lambda: all(FAR_NAME.match(folder.name) for folder in group_of(pid).folders))
    return group_of(pid)


@pytest.mark.real
@needs.limits
def test_a_node_runs_in_a_group_of_its_own_and_the_group_goes_with_the_supervisor(tmp_path: Path) -> None:
    """If it failed, nobody could limit a far node, or every run would leave groups on the hosts."""
    with supervised(tmp_path) as host:
        assert "error" not in host.ask(id=1, do="enclose", run="ab12", nodes=["n1"])
        start = {"id": 2, "do": "start", "node": "n1", "command": ["sleep", "60"], "environment": {}}
        group = entered(host.ask(**start)["pid"])
        assert group.cpu.name.startswith("qsync-ssh-ab12-")
        before = group.limits()
        host.ask(id=3, do="limit", node="n1", what="cpu", given=5)
        assert group.limits() != before
        assert host.ask(id=4, do="limit", node="n1", what="counts", given=None)["result"]["oom_kills"] == 0
        assert host.ask(id=5, do="limit", node="n1", what="lift", given=None)["result"] is True
        assert group.limits() == before
        assert "runs in no group" in host.ask(id=6, do="limit", node="n2", what="cpu", given=5)["error"]
        host.process.terminate()
        wait_until(lambda: not any(folder.exists() for folder in group.folders))


@pytest.mark.real
@needs.limits
def test_groups_of_a_supervisor_that_was_killed_are_removed_later(tmp_path: Path) -> None:
    """If it failed, they would pile up on the hosts; or those of a run that goes on would be taken for left over."""
    with supervised(tmp_path) as host:
        host.ask(id=1, do="enclose", run="ab34", nodes=["n1"])
        start = {"id": 2, "do": "start", "node": "n1", "command": ["sleep", "60"], "environment": {}}
        group = entered(host.ask(**start)["pid"])
        remove_leftovers(None)
        assert all(folder.exists() for folder in group.folders)
        host.process.kill()
        host.process.wait()
        remove_leftovers(None)
    assert not any(folder.exists() for folder in group.folders)


def test_commands_reach_all_processes_of_a_node(tmp_path: Path) -> None:
    """If it failed, a store behind a wrapper would live through pauses and kills, or outlive the supervisor."""
    with supervised(tmp_path) as host:
        command = ["sh", "-c", "setsid sleep 600 & echo $!; wait"]
        output = host.folder / "nodes/n1/output.txt"
        for number in (10, 20):
            host.ask(id=number, do="start", node="n1", command=command, environment={})
            wait_until(partial(_has_lines, output, number // 10))
            sleeper = psutil.Process(int(output.read_text().split()[-1]))
            assert host.ask(id=number + 1, do="pause", node="n1")["stopped"] is True
            assert sleeper.status() == psutil.STATUS_STOPPED
            host.ask(id=number + 2, do="continue", node="n1")
            if number == 10:
                assert "sleep 600" in host.ask(id=13, do="left", node="n1", host="127.0.0.1", port=1)["left"]
                host.ask(id=14, do="kill", node="n1")
                assert is_gone(sleeper)
                assert host.ask(id=15, do="left", node="n1", host="127.0.0.1", port=1)["left"] == ""
        os.kill(host.process.pid, signal.SIGKILL)
        host.process.wait()
        assert not is_gone(sleeper)
        assert bootstrap.clean(str(host.folder)) == {"removed": True}
        assert is_gone(sleeper)


@pytest.mark.long
def test_processes_that_outlive_their_node_are_told(tmp_path: Path) -> None:
    """If it failed, a run over SSH would end orphans without a word."""
    with supervised(tmp_path) as host:
        command = ["sh", "-c", "setsid sleep 600 & exit 3"]
        host.say(id=1, do="start", node="n1", command=command, environment={})
        told = [host.hear(), host.hear(), host.hear()]
        (orphans,) = [line["orphans"] for line in told if "orphans" in line]
        assert "sleep 600" in orphans
        worker = "setsid sh -c 'trap \"\" TERM; exec sleep 601'"
        command = ["sh", "-c", f"trap 'exit 0' TERM; {worker} & echo up; wait"]
        host.ask(id=2, do="start", node="n2", command=command, environment={})
        wait_until(partial(_has_lines, host.folder / "nodes/n2/output.txt", 1))
        time.sleep(0.1)  # the worker is deaf now
        host.say(id=3, do="terminate", node="n2", patience_s=0.5)
        told = [host.hear()]
        while told[-1].get("id") != 3:
            told.append(host.hear())
        (orphans,) = [line["orphans"] for line in told if "orphans" in line]
        assert "sleep 601" in orphans
        assert told[-1]["in_order"] is True


def _has_lines(path: Path, count: int) -> bool:
    return len(path.read_text().split()) == count
