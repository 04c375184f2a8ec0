"""The cluster `ssh` against an sshd of this machine: what killed runs leave, who is let in, who is believed."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import subprocess
from contextlib import redirect_stderr, redirect_stdout

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cli.main import main
from harness.cluster.ssh import inventory
from harness.cluster.ssh.leftovers import remove_leftovers
from harness.cluster.ssh.machine import Machine
from harness.cluster.ssh.remote.bootstrap import FORMAT, MARK, PREFIX
from tests import needs
from tests.harness.cluster.ssh.on_loopback import background, loaded, processes_in, refused, run
from tests.harness.cluster.ssh.sshd import Sshd
from tests.harness.processes import is_gone, wait_until

pytestmark = [pytest.mark.real, needs.sshd, needs.root]


def test_a_run_that_was_killed_is_cleaned_up_by_the_next(host: Sshd) -> None:
    """If it failed, every killed run would keep its processes and files on somebody's hosts."""
    # Nobody else cleans up.
    harness = background(host, "--faults", "pause", "--time-limit", "60", lease_s=600)
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
