"""Long forks: a run that has not looked at enough says what to change."""

from __future__ import annotations

from harness.campaigns.hunt import try_seed
from harness.systems.plans import planned


def test_one_worker_alone_has_no_group_to_read() -> None:
    """If it failed, a run with one worker would only ever end with "0 of 0", and no word on what to try."""
    tried = try_seed(
        planned(cluster="sim", workload="long-fork", workers=1, time_limit_s=4, faults=("none",), least_ok=1)
    )
    assert tried.outcome == "inconclusive"
    assert "try --workers 3" in tried.sentence
