"""Elections in the simulator: owners die and others take over, and linearizable reads stay linearizable."""

from __future__ import annotations

from typing import Any

import pytest

from harness.systems.plans import planned
from tests.harness.runs import judged, small

SHORT = {"time_limit_s": 9.0, "rate": 30.0, "faults": ("kill",)}


@pytest.mark.parametrize(
    ("seed", "given"),
    [
        (9, SHORT),
        pytest.param(9, {}, marks=pytest.mark.long),
        *(pytest.param(seed, {}, marks=pytest.mark.nightly) for seed in (1, 105)),
    ],
)
def test_owners_change_and_nothing_acknowledged_is_lost(seed: int, given: dict[str, Any]) -> None:
    """Broken, a failover loses an acknowledged write, or there is none to test."""
    history, verdict = judged(planned(cluster="sim", seed=seed, election_mode="candidate", **given))
    assert verdict["outcome"] == "valid", verdict["sentence"]
    owners = {state.node for state in history.states if state.status.get("role") == "owner"}
    assert len(owners) > 1
    assert verdict["promise"]["configuration"].startswith("H")


@pytest.mark.long
def test_five_nodes() -> None:
    """Broken, a quorum of three of five is counted as one of two of three."""
    assert judged(small(seed=3, rate=40.0, nodes=5, election_mode="candidate"))[1]["outcome"] == "valid"
