"""The cluster `ssh` against an sshd of this machine: disks, members and limits of its nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import needs
from tests.harness.cluster.ssh.on_loopback import run
from tests.harness.cluster.ssh.sshd import Sshd
from tests.harness.in_effect import until_in_effect

pytestmark = [pytest.mark.real, needs.sshd, needs.root]


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


@needs.limits
def test_far_nodes_are_limited_and_ended_for_want_of_memory(host: Sshd) -> None:
    """If it failed, nobody could see what a store does on a host that has little of a core or of memory."""
    faults = ("--faults", "oom,cpu-limit,memory-limit", "--time-limit", "12")
    for verdict in until_in_effect(lambda: run(host, *faults), any_of=("oom", "memory-limit")):
        assert all(fault["healed"] is not False for fault in verdict["evidence"]["faults"])
