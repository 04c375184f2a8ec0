"""Whole runs in containers: what they find, what they leave, and what becomes of a run that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cluster.ownership import (
    OWNER_LABEL,
    RUN_LABEL,
    lives,
    remove_leftovers,
    tables,
    this_harness,
)
from tests import needs
from tests.harness.cluster.containers.in_containers import CUTS, cut_checks, lines_of, run
from tests.harness.in_effect import faults_in_effect, until_in_effect

pytestmark = pytest.mark.docker


ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    found = needs.docker()
    yield found
    found.close()


def ours(client: Any, harness: int = 0) -> tuple[list[str], list[str], list[str]]:
    """What there is of runs of this process, of the process `harness`, and of dead ones: containers, networks, packet
    rules. Somebody else's run may go on meanwhile."""

    def is_ours(owner: str) -> bool:
        return owner == this_harness() or owner.startswith(f"{harness}@") or not lives(owner)

    containers = client.containers.list(all=True, filters={"label": RUN_LABEL}, ignore_removed=True)
    networks = client.networks.list(filters={"label": RUN_LABEL})
    return (
        [each.name for each in containers if is_ours(each.labels[OWNER_LABEL])],
        [each.name for each in networks if is_ours(each.attrs["Labels"][OWNER_LABEL])],
        [name for name in tables() if is_ours(owner_of_rules(name))],
    )


def owner_of_rules(table: str) -> str:
    """As it stands in the name; what has none there was left by an older version."""
    number, _, started = table.split("_", 2)[2].partition("_") if table.count("_") > 1 else ("", "", "")
    return f"{number}@{started.replace('_', '.')}"


def test_partitions_kills_and_pauses_bite_and_nothing_is_left(client: Any, tmp_path: Path) -> None:
    """If it failed, a run in containers would prove nothing, or the machine would fill up with what runs leave."""
    words = ("--faults", "isolate-owner,kill,pause", "--time-limit", "12", "--seed", "4", "--rate", "100")
    for verdict in until_in_effect(lambda: run(tmp_path, *words), "isolate-owner", "kill", "pause"):
        logs = list(Path(verdict["folder"]).glob("nodes/n1/*.xlog"))
        assert logs, "the logs of the nodes did not come home"
        printed = (Path(verdict["folder"]) / "nodes/n1/output.txt").read_text()
        assert '"ready"' in printed, "what the nodes printed did not come home"
    assert ours(client) == ([], [], [])


def test_a_run_that_was_killed_is_cleaned_up_by_the_next(client: Any, tmp_path: Path) -> None:
    """If it failed, every killed run would keep its containers, addresses and packet rules for ever."""
    words = ["--cluster", "docker", "--faults", "isolate-owner", "--time-limit", "60", "--seed", "1"]
    harness = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "run", *words, "--results", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while len(ours(client, harness.pid)[0]) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(2.5)  # into the first fault
    os.kill(harness.pid, signal.SIGKILL)
    harness.wait()
    containers, networks, rules = ours(client)
    assert len(containers) == 3 and len(networks) == 1 and len(rules) == 1
    removed = remove_leftovers(client)
    assert {f"container {name}" for name in containers} < {*removed}
    assert {f"network {networks[0]}", f"packet rules {rules[0]}"} < {*removed}
    assert ours(client) == ([], [], [])
    (history,) = tmp_path.glob("*/*/history.jsonl")
    checked = subprocess.run(
        [sys.executable, "-m", "harness.cli", "check", str(history.parent)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode in (0, 2, 3), checked.stderr


def test_containers_are_limited_and_ended_for_want_of_memory(client: Any, tmp_path: Path) -> None:
    """If it failed, limits would only be asked for, or the kernel's ends of nodes be called crashes of the store."""
    words = ("--faults", "oom,cpu-limit,memory-limit", "--time-limit", "16", "--seed", "3", "--rate", "100")
    for verdict in until_in_effect(lambda: run(tmp_path, *words), any_of=("oom", "memory-limit")):
        assert all(fault["healed"] is not False for fault in verdict["evidence"]["faults"])
    assert ours(client) == ([], [], [])


def test_slow_uneven_narrow_and_unordered_links_are_measured(client: Any, tmp_path: Path) -> None:
    """If it failed, packets would only be believed to come late, and nothing of it would heal."""
    words = (
        "--faults",
        "slow,jitter,reorder,bandwidth",
        "--time-limit",
        "30",
        "--seed",
        "3",
        "--rate",
        "100",
    )
    for verdict in until_in_effect(lambda: run(tmp_path, *words), "bandwidth", "jitter", "reorder", "slow"):
        for asked, told in faults_in_effect(lines_of(verdict)):
            if asked["name"] in ("slow", "jitter"):
                least_us = (asked["delay_ns"] - asked["jitter_ns"]) // 1000
                assert told["healed"] is not False, told
                assert told["counters"]["packets_held"] > 0
                assert told["counters"]["shortest_held_us"] >= least_us
                assert told["counters"].get("round_trip_us", least_us) >= least_us
    assert ours(client) == ([], [], [])


def test_what_holds_packets_ends_with_its_harness(client: Any, tmp_path: Path) -> None:
    """If it failed, a killed harness would leave a process behind, or links that stay slow."""
    words = ["--cluster", "docker", "--faults", "slow", "--time-limit", "60", "--seed", "1"]
    harness = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "run", *words, "--results", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    holders: list[psutil.Process] = []
    deadline = time.monotonic() + 120
    try:
        while not holders and time.monotonic() < deadline:
            time.sleep(0.05)
            holders = [child for child in psutil.Process(harness.pid).children() if _holds_packets(child)]
    finally:
        harness.kill()
        harness.wait(10)
    assert holders, "no fault began"
    assert psutil.wait_procs(holders, timeout=60)[1] == []
    remove_leftovers(client)
    assert ours(client) == ([], [], [])


@pytest.mark.parametrize("containers", [1, 3], ids=["while it starts", "under load"])
def test_the_run_after_a_killed_one_starts_clean(client: Any, tmp_path: Path, containers: int) -> None:
    """If it failed, a killed run would stand in the way of the next one, or its record would be lost.

    `bench/containers.py --kills 20` does so at random moments.
    """
    words = ["--cluster", "docker", "--faults", "all", "--time-limit", "60", "--seed", "5"]
    harness = subprocess.Popen(
        [sys.executable, "-m", "harness.cli", "run", *words, "--results", str(tmp_path / "killed")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    history = None
    while time.monotonic() < deadline and harness.poll() is None:
        history = next(tmp_path.glob("killed/*/*/history.jsonl"), None)
        is_loaded = containers == 1 or (history is not None and b'"nemesis"' in history.read_bytes())
        if len(ours(client, harness.pid)[0]) >= containers and is_loaded:
            break
        time.sleep(0.02)
    harness.kill()
    harness.wait()
    assert ours(client)[0], "nothing was left: this proves nothing"
    verdict = run(tmp_path / "next", "--faults", "none", "--time-limit", "3", "--rate", "50", "--seed", "6")
    assert verdict["evidence"]["ok"] > 0, verdict["sentence"]
    assert ours(client) == ([], [], [])
    assert history is not None
    command = [sys.executable, "-m", "harness.cli", "check", str(history.parent)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode in (0, 2, 3), checked.stderr


def test_what_is_not_ours_stays(client: Any) -> None:
    """If it failed, cleaning up would end somebody else's containers, or those of a run that goes on."""
    foreign = client.networks.create("not-a-qsync-network", internal=True)
    living = client.networks.create(
        "qsync-of-a-living-run", internal=True, labels=dict(_labels_of_this_process())
    )
    try:
        removed = remove_leftovers(client)
        assert not [what for what in removed if foreign.name in what or living.name in what]
        assert {"not-a-qsync-network", "qsync-of-a-living-run"} <= {
            each.name for each in client.networks.list()
        }
    finally:
        foreign.remove()
        living.remove()


def _holds_packets(process: psutil.Process) -> bool:
    try:
        return "harness.cluster.containers.shaping" in process.cmdline()
    except psutil.Error:  # it has just ended
        return False


def _labels_of_this_process() -> dict[str, str]:
    from harness.cluster.ownership import RunId

    return RunId.new().labels


def test_cuts_of_nodes_in_containers_are_right_and_restored(client: Any, tmp_path: Path) -> None:
    """If it failed, cuts of a right store would be wrong in containers, or its nodes would lack what they import."""
    words = (*CUTS, "--faults", "isolate-one,kill", "--calm", "4", "--time-limit", "20", "--seed", "4")
    verdict = run(tmp_path, *words, "-o", "restores=1")
    assert verdict["violations"] == []
    found = cut_checks(verdict)
    for level in ("messages", "transactions", "form", "closure", "state", "finish", "restored"):
        assert found[f"cuts-{level}"] == "valid", (level, verdict["sentence"])
    assert ours(client) == ([], [], [])
