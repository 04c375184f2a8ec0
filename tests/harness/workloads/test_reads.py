"""Reads: in which mode a read shows at the end all that there is."""

from __future__ import annotations

from typing import Any

import pytest

from harness.systems.plans import planned
from harness.workloads.reads import final_mode


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
