"""What is said of containers that dead harnesses left, and whose rules and networks are taken for theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster import ownership
from harness.cluster.family import MARK
from harness.cluster.ownership import OWNER_LABEL, RUN_LABEL, RunId, lives, this_harness
from tests import needs
from tests.harness.processes import wait_until


class Container:
    """One that the daemon removes, or never does."""

    name = "qsync-n1"

    def __init__(self, failures: int) -> None:
        self.labels: dict[str, str] = {}
        self.failures = failures

    def unpause(self) -> None:
        raise RuntimeError("it is not paused")

    def remove(self, *, force: bool, v: bool) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise RuntimeError("the daemon is slow")


@pytest.mark.parametrize(
    ("failures", "said"),
    [
        (0, "container qsync-n1"),
        (3, "container qsync-n1"),
        (99, "container qsync-n1: no, it is still there (RuntimeError: the daemon is slow)"),
    ],
)
def test_what_is_still_there_is_not_said_to_be_gone(
    failures: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a clean-up that cleaned nothing says that it did, and why it could not is lost."""
    monkeypatch.setattr(ownership, "_TRY_AGAIN_S", 0)
    monkeypatch.setattr(ownership, "tables", list)
    containers = SimpleNamespace(list=lambda **_: [Container(failures)])
    client = SimpleNamespace(containers=containers, networks=SimpleNamespace(list=lambda **_: []))
    assert ownership.remove_leftovers(client) == [said]


NOBODY = "999999999@1.00"
NOBODYS = "qsync_abcd_999999999_1_00"


class Rules:
    """Stands for nft: the tables that there are, those that were deleted, one that cannot be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str, stuck: str = "") -> None:
        self.deleted: list[str] = []
        self._names = names
        self._stuck = stuck
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, words: list[str], **_: object) -> Any:
        if words[1] == "list":
            listed = "".join(f"table bridge {name}\n" for name in self._names)
            return SimpleNamespace(returncode=0, stdout=f"table ip filter\n{listed}", stderr="")
        if words[-1] == self._stuck:
            return SimpleNamespace(returncode=1, stdout="", stderr="Device or resource busy\n")
        self.deleted.append(words[-1])
        return SimpleNamespace(returncode=0, stdout="", stderr="")


def client_with(*networks: Any) -> Any:
    return SimpleNamespace(
        containers=SimpleNamespace(list=lambda **_: []),
        networks=SimpleNamespace(list=lambda **_: [*networks]),
    )


def network(run: str, owner: str, error: Exception | None = None) -> Any:
    def remove() -> None:
        if error is not None:
            raise error

    labels = {RUN_LABEL: run, OWNER_LABEL: owner}
    return SimpleNamespace(name=f"qsync-{run}", attrs={"Labels": labels}, remove=remove)


def test_rules_of_a_living_run_stay_whichever_daemon_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run in another Docker daemon, or one that is just beginning, would lose its partitions."""
    mine = RunId.new().table
    foreign = ("qsync", "qsync_", "somebodys_qsync_abcd", "qsync_xyz", f"{NOBODYS}_more")
    rules = Rules(monkeypatch, mine, NOBODYS, *foreign)
    assert ownership.remove_leftovers(client_with()) == [f"packet rules {NOBODYS}"]
    assert rules.deleted == [NOBODYS]


def test_rules_that_name_no_harness_go_with_their_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, rules that an older version left would stay for ever, or those of its living run be removed."""
    rules = Rules(monkeypatch, "qsync_aaaa", "qsync_bbbb")
    assert ownership.remove_tables() == [], "without a daemon nobody knows whose they are"
    ownership.remove_leftovers(client_with(network("aaaa", this_harness())))
    assert rules.deleted == ["qsync_bbbb"]


def test_rules_are_listed_before_the_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run that begins between the two looks would have rules and no network, as leftovers do."""
    looked: list[str] = []
    monkeypatch.setattr(ownership, "tables", lambda: looked.append("rules") or [])
    client = client_with()
    client.networks.list = lambda **_: looked.append("networks") or []
    ownership.remove_leftovers(client)
    assert looked == ["rules", "networks"]


def test_what_cannot_be_removed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, rules that go on dropping packets would be told as gone, and a network that stays not at all."""
    Rules(monkeypatch, NOBODYS, stuck=NOBODYS)
    stuck = network("abcd", NOBODY, RuntimeError("active endpoints"))
    assert ownership.remove_leftovers(client_with(stuck)) == [
        "network qsync-abcd: no, it is still there (RuntimeError: active endpoints)",
        f"packet rules {NOBODYS}: no, they are still there (Device or resource busy)",
    ]


def test_a_harness_lives_though_the_clock_of_the_machine_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, setting the clock would make every run that goes on a leftover for the next one to remove."""
    assert lives(this_harness())
    assert not lives(f"{os.getpid()}@1.00"), "it had our number before us"
    for words in (["python", "-m", "harness.cli", "run"], ["python", "/usr/local/bin/qsync", "run"]):
        monkeypatch.setattr(psutil, "Process", lambda pid=0, words=words: FarProcess(pid, words))
        assert lives("4242@1.00")
    monkeypatch.setattr(psutil, "Process", lambda pid=0: FarProcess(pid, ["editor"]))
    assert not lives("4242@1.00")


@pytest.mark.parametrize("hides", [psutil.NoSuchProcess, psutil.AccessDenied])
def test_a_harness_that_proc_hides_lives(hides: type[psutil.Error], monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run would remove the containers of another user where /proc is mounted with hidepid."""

    def hidden(pid: int) -> None:
        raise hides(pid)

    def kill(pid: int, number: int) -> None:
        raise PermissionError if pid == 4242 else ProcessLookupError

    monkeypatch.setattr(psutil, "Process", hidden)
    monkeypatch.setattr(ownership, "this_harness", lambda: "1@1.00")
    monkeypatch.setattr(os, "kill", kill)
    assert lives("4242@1.00")
    assert not lives("4243@1.00")


class FarProcess:
    """One that has the number of a harness and began at another time, as this machine's clock has it now."""

    def __init__(self, pid: int, words: list[str]) -> None:
        self.pid = pid
        self._words = words

    def create_time(self) -> float:
        return 7.0

    def cmdline(self) -> list[str]:
        return self._words


def test_a_dead_harness_is_dead() -> None:
    """If it failed, nothing would ever be cleaned up."""
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    assert not lives(f"{int(ended.stdout)}@1.00")


def test_a_step_of_the_clock_makes_nobody_a_dead_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a harness would remove its own containers and folders after the clock was set."""
    before = this_harness()
    began_s = psutil.Process().create_time()
    monkeypatch.setattr(psutil.Process, "create_time", lambda process: began_s + 3600)
    assert lives(before)
    assert this_harness() == before
    assert not lives(f"{os.getpid()}@{began_s - 7:.2f}")  # an older process with this number


def marked(owner: str, *before: str) -> subprocess.Popen[bytes]:
    """A process that a harness started for a node, and that is there until it is killed."""
    return subprocess.Popen([*before, "env", f"{MARK}={owner}/n1/a1", "sleep", "60"])


def sleepers(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
    return [member for member in family if member.name() == "sleep"]


def test_nodes_of_a_harness_that_was_killed_with_its_relay_are_ended() -> None:
    """If it failed, a `killall -9 python3` would leave stores on their ports for ever, or a clean-up end a run."""
    left, ours = marked(NOBODY), marked(this_harness())
    try:
        wait_until(lambda: all(map(sleepers, (left, ours))))
        assert f"process {left.pid} (sleep 60)" in ownership.remove_processes()
        assert not psutil.pid_exists(left.pid)
        assert ours.poll() is None
    finally:
        for process in (left, ours):
            process.kill()
            process.wait()


@pytest.mark.real
@needs.linux
@needs.root
def test_nodes_of_a_harness_in_a_container_are_left_alone() -> None:
    """If it failed, a clean-up would end the nodes of a run in a container, where processes have other numbers."""
    inside = marked(NOBODY, "unshare", "--pid", "--fork", "--kill-child")
    try:
        wait_until(lambda: bool(sleepers(inside)))
        (sleeper,) = sleepers(inside)
        assert str(sleeper.pid) not in " ".join(ownership.remove_processes())
        assert sleeper.is_running()
    finally:
        inside.kill()
        inside.wait()
