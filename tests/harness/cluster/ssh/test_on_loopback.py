"""The cluster `ssh` against an sshd of this machine: what runs show and leave, who is let in, who is believed."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cli.main import main
from harness.cluster.ssh import inventory
from harness.cluster.ssh.leftovers import remove_leftovers
from harness.cluster.ssh.machine import Machine
from harness.cluster.ssh.remote.bootstrap import FORMAT, MARK, PREFIX
from harness.plan.plan import to_json
from nodes.version import VERSION
from tests import needs
from tests.harness.cluster.ssh.sshd import Sshd, sshd
from tests.harness.in_effect import TRIES, until_in_effect
from tests.harness.processes import is_gone, wait_until
from tests.harness.run.administration.test_upgrades import OLDER, plan

pytestmark = [pytest.mark.real, needs.sshd, needs.root]
ROOT = Path(__file__).parents[4]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path) as running:
        yield running


def words(host: Sshd, *more: str, hosts: int = 3, lease_s: float = 4) -> list[str]:
    path = host.inventory(hosts=hosts, lease_s=lease_s)
    told = ["--cluster", "ssh", "--inventory", str(path)]
    drawn = [] if "--plan" in more else ["--seed", "5", "--rate", "100"]
    return ["run", *told, *drawn, "--results", str(host.folder / "results"), *more]


def run(host: Sshd, *more: str, hosts: int = 3) -> dict[str, Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main([*words(host, *more, hosts=hosts), "--json"])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


def refused(host: Sshd, *more: str) -> tuple[int, str]:
    """Exit code and the line of a run that cannot be."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        code = main([*words(host, hosts=1), "--faults", "none", "--time-limit", "1", *more])
    lines = [line for line in said.getvalue().splitlines() if line.startswith("qsync: ")]
    assert len(lines) == 1, said.getvalue()
    return code, lines[0]


def background(host: Sshd, *more: str, lease_s: float = 4) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "harness.cli", *words(host, *more, lease_s=lease_s)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def processes_in(host: Sshd) -> list[psutil.Process]:
    """Supervisors and nodes: whoever was started for a folder of a run."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if any(str(host.folder / "remote" / PREFIX) in word for word in process.cmdline()):
                found.append(process)
        except psutil.Error:  # it ended meanwhile
            continue
    return found


def loaded(host: Sshd) -> bool:
    return any("ok" in path.read_text() for path in host.folder.glob("results/*/*/history.jsonl"))


def test_each_node_comes_to_the_newer_version(host: Sshd) -> None:
    """If it failed, hosts would be sent one version, or a node would not be started in the other one."""
    steps = (("upgrade", "n3"), ("upgrade", "n1"), ("upgrade", "n2"))
    asked = host.folder / "plan.json"
    asked.write_bytes(to_json(plan(host.folder, *steps)))
    verdict = run(host, "--plan", str(asked))
    faults = verdict["evidence"]["faults"]
    assert [(each["took_effect"], each["healed"]) for each in faults] == [(True, True)] * 3, verdict[
        "sentence"
    ]
    assert {row["version"].partition("+")[0] for row in verdict["versions"]} == {OLDER, VERSION}
    assert verdict["violations"] == []
    assert host.left == []


@pytest.mark.nightly  # containers have the same tools, and are tested by day
def test_links_are_uneven_narrow_and_cut_by_turns(host: Sshd) -> None:
    """If it failed, what the relays of several hosts do together would not be what one relay does."""
    kinds = ("jitter", "bandwidth", "changing-partitions")
    until_in_effect(lambda: run(host, "--faults", ",".join(kinds), "--time-limit", "16"), *kinds)
    assert host.left == []


def test_faults_bite_logs_come_home_and_nothing_is_left(host: Sshd) -> None:
    """If it failed, a run over SSH would prove nothing, or fill the hosts, or tell where somebody's key lies."""
    kinds = ("one-way", "kill", "pause", "clock", "clock-strobe", "slow", "terminate")
    faults = ("--faults", ",".join(kinds), "--overlap", "3", "--time-limit", "14")
    verdict = until_in_effect(lambda: run(host, *faults), *kinds)[-1]
    folder = Path(verdict["folder"])
    for node in ("n1", "n2", "n3"):
        assert list(folder.glob(f"nodes/{node}/*.xlog")), "the logs of the nodes did not come home"
        lines = (folder / "nodes" / node / "log.jsonl").read_text().splitlines()
        assert -5e9 < json.loads(lines[-1])["time_ns"] < 60e9, "its times are not those of the run"
    assert host.left == []
    assert processes_in(host) == []
    key = host.folder / "key"
    secrets = (str(key).encode(), key.read_bytes().splitlines()[2])
    for path in host.folder.glob("results/**/*"):
        content = path.read_bytes() if path.is_file() else b""
        assert not any(secret in content for secret in secrets), f"{path} tells of the key"


def test_cuts_of_far_nodes_are_judged_by_records_of_their_messages(host: Sshd) -> None:
    """If it failed, the record of messages would stay on the hosts, and no cut of them could be judged."""
    store = ("--system", "twophase", "--nodes", "4", "--near-clients", "1", "--rate", "30")
    verdict = run(host, *store, "--faults", "kill", "--time-limit", "10")
    results = {check["checker"]: check["result"] for check in verdict["checks"]}
    assert results["cuts-messages"] == results["cuts-state"] == "valid", verdict["sentence"]
    assert verdict["violations"] == []
    assert host.left == []


def test_disks_of_far_nodes_fail_forget_and_are_damaged(host: Sshd) -> None:
    """If it failed, what only a disk reveals would be tested on this machine alone."""
    names = "power-owner,power-one,slow-disk,full-disk,io-error,torn-tail"
    power, disk = {"power-owner", "power-one"}, {"slow-disk", "full-disk", "io-error"}
    verdicts = until_in_effect(
        lambda: run(host, "--faults", names, "--time-limit", "40"), "torn-tail", any_of=power
    )
    affected = {kind for verdict in verdicts for kind in verdict["evidence"]["kinds_in_effect"]}
    if not affected & disk:
        until_in_effect(lambda: run(host, "--faults", ",".join(disk), "--time-limit", "20"), any_of=disk)
    assert host.left == []


def test_far_members_leave_and_come_on_empty_disks(host: Sshd) -> None:
    """If it failed, members could change on this machine alone, or a newcomer would find somebody's data."""
    faults = ("--faults", "replace-node", "--time-limit", "16")
    folder = Path(until_in_effect(lambda: run(host, *faults), "replace-node")[-1]["folder"])
    assert list(folder.glob("nodes/*/lost-disk-1/*.xlog")), "what lay on the lost disk did not come home"
    assert host.left == []


@needs.tarantool
def test_real_tarantool_is_driven_as_anywhere(host: Sshd) -> None:
    """If it failed, real stores could be judged on this machine only."""
    for _ in range(TRIES):  # what it then finds is no business of this test
        verdict = run(host, "--system", "tarantool", "--faults", "kill", "--time-limit", "8", hosts=1)
        if verdict["evidence"]["kinds_in_effect"] == ["kill"]:
            break
    assert verdict["evidence"]["kinds_in_effect"] == ["kill"], verdict["sentence"]
    assert list(Path(verdict["folder"]).glob("nodes/n1/*.xlog"))
    assert host.left == []


def test_a_run_that_was_killed_is_cleaned_up_by_the_next(host: Sshd) -> None:
    """If it failed, every killed run would keep its processes and files on somebody's hosts."""
    harness = background(
        host, "--faults", "pause", "--time-limit", "60", lease_s=600
    )  # nobody else cleans up
    wait_until(lambda: loaded(host))
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    assert len(host.left) == 3 and len(processes_in(host)) >= 6
    verdict = run(host, "--faults", "none", "--time-limit", "2", hosts=3)
    assert verdict["outcome"] in ("valid", "inconclusive"), verdict["sentence"]
    assert host.left == []
    assert processes_in(host) == []
    first = min(host.folder.glob("results/*/2*/history.jsonl"))
    with redirect_stdout(io.StringIO()):
        assert main(["check", str(first.parent)]) in (0, 2, 3), (
            "what the killed run recorded cannot be checked"
        )


def test_nodes_do_not_outlive_their_harness_for_long(host: Sshd) -> None:
    """If it failed, hosts would run nodes for ever if nobody came to clean up."""
    harness = background(host, "--faults", "none", "--time-limit", "60")
    wait_until(lambda: loaded(host))
    left = processes_in(host)
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    wait_until(lambda: all(map(is_gone, left)) and host.left == [])


def test_a_lost_connection_does_not_end_the_run(host: Sshd) -> None:
    """If it failed, a hiccup of the network between harness and hosts would look like dead nodes."""
    harness = background(host, "--faults", "none", "--time-limit", "6")
    wait_until(lambda: loaded(host))
    ours = psutil.Process(harness.pid)
    ports = {
        each.laddr.port for each in ours.net_connections("tcp") if each.raddr and each.raddr.port == host.port
    }
    for process in psutil.process_iter(["name"]):
        if process.info["name"] in ("sshd", "sshd-session"):
            mine = {each.raddr.port for each in process.net_connections("tcp") if each.raddr}
            if mine & ports:
                process.kill()
    assert harness.wait(60) == 0
    assert host.left == []


def test_what_is_not_ours_stays(host: Sshd) -> None:
    """If it failed, cleaning up would remove somebody's files, or end a run that goes on."""
    hosts = inventory.read(str(host.inventory()))
    foreign = host.folder / "remote" / f"{PREFIX}notes"
    foreign.mkdir()
    lying = host.folder / "remote" / f"{PREFIX}lying"
    lying.mkdir()
    (lying / MARK).write_text(json.dumps({"format": FORMAT, "run": "other", "owner": "", "lease_s": 0}))
    living = Machine(hosts[0], "living", lambda machine, told: None)

    async def story() -> None:
        try:
            await living.reach()
            await living.install()
            assert await asyncio.to_thread(remove_leftovers, hosts) == []
            assert (await living.ask("clock"))["wall_ns"] > 0
        finally:
            await living.remove()

    asyncio.run(story())
    assert host.left == [lying, foreign]


def test_a_host_that_is_not_known_is_refused_until_somebody_says_so(host: Sshd) -> None:
    """If it failed, anybody between the harness and its hosts could take over."""
    known = host.folder / "known_hosts"
    line = known.read_text()
    known.write_text("")
    code, said = refused(host)
    assert code == 3 and "the host key of 127.0.0.1" in said and "is not known" in said, said
    assert known.read_text() == ""
    code, said = refused(host, "--accept-new-host-keys", "--system", "tarantool", "--read", "linearizable")
    assert code == 64  # it is refused before anybody is believed
    assert known.read_text() == ""
    hosts = inventory.read(str(host.inventory()), accept_new_host_keys=True)
    assert remove_leftovers(hosts) == []
    assert known.read_text().split()[1:] == line.split()[1:]
    assert remove_leftovers(inventory.read(str(host.inventory()))) == []


def test_a_host_key_that_changed_is_refused_whatever_was_said(host: Sshd) -> None:
    """If it failed, `--accept-new-host-keys` would believe whoever took the host's place."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", host.folder / "other"], check=True)
    other = (host.folder / "other.pub").read_text().split()[:2]
    (host.folder / "known_hosts").write_text(f"[127.0.0.1]:{host.port} {' '.join(other)}\n")
    code, said = refused(host, "--accept-new-host-keys")
    assert code == 3 and "has changed" in said and said.count("SHA256:") == 2, said


def test_who_is_not_let_in_is_told_without_the_key(host: Sshd) -> None:
    """If it failed, a wrong key would end in a traceback, or a path of keys stand in a stored line."""
    (host.folder / "authorized_keys").write_text("")
    code, said = refused(host)
    assert code == 3 and "does not let root in" in said and "key" not in said.replace("the key it", ""), said


def test_what_a_host_lacks_is_told_in_one_line(host: Sshd) -> None:
    """If it failed, people would look for what is missing on every host by hand."""

    def told(**fields: object) -> str:
        path = host.inventory(**fields)
        with redirect_stderr(io.StringIO()) as said, redirect_stdout(io.StringIO()):
            code = main(
                ["run", "--cluster", "ssh", "--inventory", str(path), "--results", str(host.folder / "r")]
            )
        assert code == 3
        return said.getvalue().splitlines()[-1]

    assert "has no Python 3.11 or newer as /bin/false" in told(python="/bin/false")
    assert "there is no folder /nowhere there" in told(folder="/nowhere")
    assert "cannot be reached" in told(port=1)


@needs.limits
def test_far_nodes_are_limited_and_ended_for_want_of_memory(host: Sshd) -> None:
    """If it failed, nobody could see what a store does on a host that has little of a core or of memory."""
    faults = ("--faults", "oom,cpu-limit,memory-limit", "--time-limit", "12")
    for verdict in until_in_effect(lambda: run(host, *faults), any_of=("oom", "memory-limit")):
        assert all(fault["healed"] is not False for fault in verdict["evidence"]["faults"])
