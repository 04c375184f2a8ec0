"""The cluster `ssh` against an sshd of this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.plan.plan import to_json
from nodes.version import VERSION
from tests import needs
from tests.harness.cluster.ssh.on_loopback import processes_in, run
from tests.harness.cluster.ssh.sshd import Sshd
from tests.harness.in_effect import TRIES, until_in_effect
from tests.harness.run.administration.test_upgrades import OLDER, plan

pytestmark = [pytest.mark.real, needs.sshd, needs.root]


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
