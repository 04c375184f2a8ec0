"""As shipped, an acknowledged write is lost (Tarantool's issue 9376); with a synchronous PROMOTE it is not.

The stored plan came from the hunt (`./qsync simulate --configuration F --faults all,holds`): two leaders die around
PROMOTEs that reached nobody, and the first comes back and discards what the second had acknowledged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.campaigns.hunt import hunted, try_seed
from harness.systems.plans import planned, read

PLAN = Path(__file__).parent / "plans" / "as-shipped" / "loses-an-acknowledged-write.json"


def test_as_shipped_an_acknowledged_write_is_lost_for_clients() -> None:
    """If it failed, the loss for which the default configuration exists would go unseen by clients' own records."""
    plan = read(PLAN)
    assert plan.expectations.configuration == "F"
    found = try_seed(plan)
    assert found.outcome == "anomaly", found.sentence
    assert {"linearizable", "audit"} <= set(found.violated)
    assert "although the write of 20010" in found.sentence


def test_with_a_synchronous_promote_it_is_kept() -> None:
    """If it failed, the default configuration would lose what it exists to keep."""
    kept = try_seed(read(PLAN).changed(configuration="H"))
    assert (kept.outcome, kept.violated) == ("valid", ())


@pytest.mark.long
def test_the_hunt_finds_it_from_a_seed() -> None:
    """If it failed, only a plan that somebody wrote down would find it, and no hunt."""
    given = {"configuration": "F", "faults": ("all", "holds")}
    for seed in range(8):
        plan = hunted(planned(cluster="sim", seed=seed, **given), frozenset(given))  # type: ignore[arg-type]
        if "linearizable" in try_seed(plan).violated:
            return
    raise AssertionError("no seed of eight lost an acknowledged write")
