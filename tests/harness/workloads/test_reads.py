"""Reads: where they go, how they ask, and in which mode one shows at the end all that there is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from harness.systems.plans import planned
from harness.workloads.generators import Context
from harness.workloads.reads import drawn_read, final_mode


@pytest.mark.parametrize(
    ("mode", "given"),
    [
        ("read-confirmed", {}),
        ("linearizable", {"configuration": "D"}),
        ("linearizable", {"faults": ("reconfigure",)}),
        ("read-confirmed", {"faults": ("reconfigure",), "mvcc": False}),
    ],
    ids=[
        "one owner",
        "another owner",
        "elections may be switched on",
        "and no node serves linearizable reads",
    ],
)
def test_the_last_read_is_fresh(mode: str, given: dict[str, Any]) -> None:
    """Breaks if elections that a fault switches on left the check `balances` no read to judge (seed 75000290)."""
    fields = {"configuration": "C", "faults": ("slow",), **given}
    assert final_mode(planned(cluster="sim", workload="bank", **fields)) == mode


@pytest.mark.parametrize(
    ("modes", "given"),
    [
        ({"linearizable", "read-confirmed", "dirty"}, {}),
        ({"read-confirmed", "dirty"}, {"configuration": "C"}),
        ({"dirty"}, {"configuration": "A"}),
        ({"dirty"}, {"mvcc": False}),
        ({"linearizable"}, {"read": "usual"}),
        ({"read-confirmed"}, {"configuration": "C", "read": "usual"}),
    ],
    ids=["elections", "one owner", "2.6", "no versions", "the usual mode", "the usual mode of one owner"],
)
def test_reads_are_drawn_in_every_mode_that_the_configuration_serves(
    modes: set[str], given: dict[str, Any]
) -> None:
    """Breaks if the checks `prefix` and `dirty` of a run without a word about reads had nothing to judge."""
    plan = planned(**given)
    reads = [drawn_read(plan, Context(0, 0, Random(number))) for number in range(400)]
    assert {mode for _, mode in reads} == modes
    assert {(node, mode) for node, mode in reads} == {(n, m) for n in ("@owner", "@replica") for m in modes}
