"""Whole runs in containers: what they find, what they leave, and what becomes of a run that was killed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types
import pytest

from harness.cli.main import main
from harness.cluster.ownership import (
    OWNER_LABEL,
    RUN_LABEL,
    lives,
    remove_leftovers,
    tables,
    this_harness,
)
from harness.plan.plan import to_json
from nodes.version import VERSION
from tests import needs
from tests.harness.in_effect import faults_in_effect, until_in_effect
from tests.harness.node_versions import INCOMPATIBLE, wheel
from tests.harness.run.administration.test_upgrades import OLDER, plan

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


def run(folder: Path, *words: str) -> dict[str, Any]:
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(["run", "--cluster", "docker", *words, "--json", "--results", str(folder)])
    verdict: dict[str, Any] = json.loads(printed.getvalue())
    return verdict


def lines_of(verdict: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record of a run, without its header."""
    yield from map(json.loads, (Path(verdict["folder"]) / "history.jsonl").read_text().splitlines()[1:])


def test_partitions_kills_and_pauses_bite_and_nothing_is_left(client: Any, tmp_path: Path) -> None:
    """If it failed, a run in containers would prove nothing, or the machine would fill up with what runs leave."""
    words = ("--faults", "isolate-owner,kill,pause", "--time-limit", "12", "--seed", "4", "--rate", "100")
    for verdict in until_in_effect(lambda: run(tmp_path, *words), "isolate-owner", "kill", "pause"):
        logs = list(Path(verdict["folder"]).glob("nodes/n1/*.xlog"))
        assert logs, "the logs of the nodes did not come home"
    assert ours(client) == ([], [], [])


def test_each_node_comes_to_the_newer_version_and_back(client: Any, tmp_path: Path) -> None:
    """If it failed, an upgrade would start a container of the image that was there, or leave the one before."""
    steps = (("upgrade", "n3"), ("upgrade", "n1"), ("upgrade", "n2"), ("downgrade", "n1"))
    asked = tmp_path / "plan.json"
    asked.write_bytes(to_json(plan(tmp_path, *steps)))
    verdict = run(tmp_path, "--plan", str(asked))
    faults = verdict["evidence"]["faults"]
    assert [(each["took_effect"], each["healed"]) for each in faults] == [(True, True)] * 4, verdict[
        "sentence"
    ]
    assert {row["version"].partition("+")[0] for row in verdict["versions"]} == {OLDER, VERSION}
    assert verdict["violations"] == []


def test_a_version_that_does_not_start_in_its_container_is_told(client: Any, tmp_path: Path) -> None:
    """If it failed, a container that ends at its start would be a crash, or an error of the harness."""
    newer = wheel(tmp_path, "0.2.0", INCOMPATIBLE)
    asked = tmp_path / "plan.json"
    asked.write_bytes(to_json(plan(tmp_path, ("upgrade", "n2"), nodes=2, node_to=str(newer))))
    verdict = run(tmp_path, "--plan", str(asked))
    assert verdict["outcome"] == "inconclusive"
    assert verdict["violations"] == []
    (finding,) = [each for each in verdict["findings"] if each["checker"] == "upgrade"]
    assert "its format is that of the version before" in finding["summary"]


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


def test_partitions_change_and_the_record_says_how(client: Any, tmp_path: Path) -> None:
    """If it failed, a node could be accused by a cut that was another one at that time."""
    words = ("--faults", "changing-partitions", "--time-limit", "12", "--seed", "4", "--rate", "100")
    for verdict in until_in_effect(lambda: run(tmp_path, *words), "changing-partitions"):
        for asked, told in faults_in_effect(lines_of(verdict)):
            planned = iter([shape["links"] for shape in asked["shapes"]])
            assert all(shape["links"] in planned for shape in told["shapes"]), "in the order of the plan"
            assert len(told["shapes"]) > 1
            times = [(shape["asked_ns"], shape["in_effect_ns"]) for shape in told["shapes"]]
            assert times == sorted(times)
            for shape, after in pairwise(told["shapes"]):
                assert after["in_effect_ns"] <= shape["until_ns"], "something was open between two shapes"


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


WRAPPED = """
from pathlib import Path
from harness.systems.own import OwnStore
SOURCE = Path({example!r}).read_text()
APART = "import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])"  # the image need not have setsid
SYSTEM = OwnStore("a dictionary behind a wrapper", start=lambda place: (
    "sh", "-c", 'export PYTHONPATH="$0"; "$@" & wait', place.root,
    place.python, "-c", APART, place.python, "-c", SOURCE, place.listen
))
"""
MISSING = """
from harness.systems.own import OwnStore
SYSTEM = OwnStore("a file that is not in the image", start=lambda place: (place.python, "/nowhere/store.py"))
"""


def test_faults_of_a_process_reach_a_store_behind_a_wrapper(client: Any, tmp_path: Path) -> None:
    """If it failed, a store would pass kills and pauses that only its wrapper has felt."""
    store = tmp_path / "wrapped.py"
    store.write_text(WRAPPED.format(example=str(ROOT / "docs" / "mystore.py")))
    options = ("--system", str(store), "--nodes", "1", "--rate", "100", "--time-limit", "10")
    verdict = run(tmp_path, *options, "--faults", "kill,pause", "--seed", "1")
    assert {"kill", "pause"} <= set(verdict["evidence"]["kinds_in_effect"]), verdict["sentence"]
    assert {"linearizable", "convergence"} & set(verdict["violations"]), "what is in memory survived a kill"


def test_a_store_that_is_not_in_the_image_is_a_start_that_failed(
    client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a file that was forgotten would be told as an anomaly of the store."""
    store = tmp_path / "missing.py"
    store.write_text(MISSING)
    words = [
        "--system",
        str(store),
        "--nodes",
        "1",
        "--faults",
        "none",
        "--results",
        str(tmp_path / "results"),
    ]
    assert main(["run", "--cluster", "docker", *words]) == 3
    told = capsys.readouterr().err
    assert "ended before it was ready (exit 2)" in told
    assert "can't open file" in told


CUTS = (
    "--system",
    "twophase",
    "--nodes",
    "5",
    "--workload",
    "restore",
    "--rate",
    "60",
    "-o",
    "cut_every_s=1",
)


def cut_checks(verdict: dict[str, Any]) -> dict[str, str]:
    return {
        each["checker"]: each["result"] for each in verdict["checks"] if each["checker"].startswith("cuts-")
    }


def test_cuts_of_nodes_in_containers_are_right_and_restored(client: Any, tmp_path: Path) -> None:
    """If it failed, cuts of a right store would be wrong in containers, or its nodes would lack what they import."""
    words = (*CUTS, "--faults", "isolate-one,kill", "--calm", "4", "--time-limit", "20", "--seed", "4")
    verdict = run(tmp_path, *words, "-o", "restores=1")
    assert verdict["violations"] == []
    found = cut_checks(verdict)
    for level in ("messages", "transactions", "form", "closure", "state", "finish", "restored"):
        assert found[f"cuts-{level}"] == "valid", (level, verdict["sentence"])
    assert ours(client) == ([], [], [])


def test_a_wrong_cut_is_found_in_containers(client: Any, tmp_path: Path) -> None:
    """If it failed, a right cut in containers would say nothing."""
    words = ("--faults", "slow", "--calm", "0.5", "--time-limit", "10", "--seed", "7", "--workers", "15")
    verdict = run(
        tmp_path, *CUTS, *words, "-o", "cut_every_s=0.3", "--rate", "150", "--bug", "finish-at-once"
    )
    assert cut_checks(verdict)["cuts-transactions"] == "invalid", verdict["sentence"]
