"""`qsync doctor`: what is missing is named, with the one command that gets it; what stays is not told as removed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.verbs import doctor
from harness.cli.verbs.doctor import Finding, command
from harness.cluster.containers.shaping import presence
from harness.cluster.limits import enclosure
from harness.cluster.mounted_disk import mounts


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with Python and nothing else, and a user with no rights."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(mounts, "DEVICE", "/dev/no-such-device")
    monkeypatch.setattr(presence, "why_not", lambda: "this user cannot execute iptables")

    def no_groups() -> None:
        raise ValueError("no groups of processes can be made here")

    monkeypatch.setattr(enclosure, "parent", no_groups)


EXPECTED = {
    "git": "apt-get install git",
    "chromium": "apt-get install chromium",
    "tarantool": "apt-get install tarantool",
    "docker": "apt-get install --no-install-recommends docker.io iptables nftables, and start dockerd",
    "compose": "apt-get install docker-compose",
    "nft": "apt-get install nftables",
    "sshd": "apt-get install openssh-server",
    "root": "sudo ./qsync",
    "limits": "sudo ./qsync",
    "nfqueue": "apt-get install iptables",
    "fuse": "",
}


@pytest.mark.usefixtures("bare")
def test_what_is_missing_is_named_with_the_command_that_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, somebody on a fresh machine would be told that something is missing, and not what to do."""
    elsewhere = {
        "_java",
        "_pyspark",
        "_disk",
        "_faketime",
        "_python",
        "_processes",
        "_addresses",
        "_results",
        "_clock_source",
    }
    looks = tuple(look for look in doctor.LOOKS if look.__name__ not in elsewhere)
    monkeypatch.setattr(doctor, "LOOKS", looks)
    told = CliRunner().invoke(command, ["--json"], standalone_mode=False)
    found = {each["what"]: each for each in json.loads(told.output)}
    assert {*found} == {*EXPECTED, "netem", "tbf"}, (
        "what this kernel itself can do needs nothing to be installed"
    )
    assert not any(found[what]["is_there"] for what in EXPECTED)
    for what, remedy in EXPECTED.items():
        assert found[what]["remedy"].startswith(remedy) and found[what]["remedy"], what
        assert "\n" not in found[what]["remedy"]
    lines = CliRunner().invoke(command, [], standalone_mode=False).output.splitlines()
    for line in lines:
        what = line.split()[1]
        assert ("try: " in line) == (what in EXPECTED), line


@pytest.mark.parametrize(("is_needed", "code"), [(True, 3), (False, 0)])
def test_only_what_a_run_needs_makes_it_fail(
    monkeypatch: pytest.MonkeyPatch, is_needed: bool, code: int
) -> None:
    """If it failed, a script could not ask whether this machine can run anything, or would be told no for no reason."""
    missing = Finding(
        "teapot", "not found", is_there=False, is_needed=is_needed, remedy="brew install teapot"
    )
    monkeypatch.setattr(doctor, "LOOKS", (lambda: missing,))
    done = CliRunner().invoke(command, [], standalone_mode=False)
    assert done.return_value == code
    assert done.output.split() == [
        *("MISS" if is_needed else "none", "teapot", "not", "found"),
        *("try:", "brew", "install", "teapot"),
    ]


def test_a_disk_is_measured_and_a_slow_one_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, nobody would hear that every write of a run will look like a timeout on this disk."""
    monkeypatch.setenv("QSYNC_RESULTS", str(tmp_path))
    monkeypatch.setattr(doctor, "_synced_in_s", lambda number: 0.2)
    slow = doctor._disk()
    assert not slow.is_there and "200.0 ms" in slow.state and slow.remedy
    monkeypatch.setattr(doctor, "_synced_in_s", lambda number: 0.001)
    assert doctor._disk().is_there


def test_results_go_where_a_run_would_put_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, doctor would miss a folder that each run makes, or promise one where a file is."""
    monkeypatch.setenv("QSYNC_RESULTS", str(tmp_path / "not" / "made" / "yet"))
    assert doctor._results().is_there and doctor._disk().is_there
    (tmp_path / "file").write_text("")
    for name in ("file", "file/results"):
        monkeypatch.setenv("QSYNC_RESULTS", str(tmp_path / name))
        assert not doctor._results().is_there and not doctor._disk().is_there


@pytest.mark.parametrize(
    ("left", "code", "said"),
    [
        ([], 0, "nothing was left behind\n"),
        (["network a"], 0, "removed  network a\n"),
        (
            ["network a: no, it is still there (busy)"],
            3,
            "KEPT     network a: no, it is still there (busy)\n",
        ),
    ],
)
def test_what_is_still_there_is_not_told_as_removed(
    monkeypatch: pytest.MonkeyPatch, left: list[str], code: int, said: str
) -> None:
    """If it failed, a clean-up that removed nothing would read like one that did."""
    nothing: Callable[[], list[str]] = list
    for look in ("_left_mounted", "_left_by_processes", "_old_versions", "_old_images"):
        monkeypatch.setattr(doctor, look, nothing)
    monkeypatch.setattr(doctor, "_left_here", lambda: left)
    done = CliRunner().invoke(command, ["--clean"], standalone_mode=False)
    assert (done.return_value, done.output) == (code, said)


def test_without_a_daemon_the_rest_is_cleaned_and_what_was_not_looked_for_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, who has no Docker could clean up nothing, or would take containers that wait for it for gone."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    monkeypatch.setattr(enclosure, "remove_leftovers", lambda lives: ["group of processes qsync-a"])
    monkeypatch.setattr("harness.cluster.ownership.remove_tables", lambda: ["packet rules qsync_b"])
    for look in ("_left_mounted", "_left_by_processes", "_old_versions"):
        monkeypatch.setattr(doctor, look, list)
    done = CliRunner().invoke(command, ["--clean"], standalone_mode=False)
    assert done.return_value == 0
    assert "removed  group of processes qsync-a\nremoved  packet rules qsync_b\n" in done.output
    assert "containers and networks were not looked for: no Docker daemon answers" in done.output


def test_who_needs_one_list_of_addresses_is_sent_to_containers() -> None:
    """If it failed, an author of such a store would look for the fault in the store."""
    told = {each.what: each.state for each in (look() for look in (doctor._addresses,))}
    assert "one list of addresses: --cluster docker" in told["local addresses"]
