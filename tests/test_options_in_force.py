"""Clusters whose nodes differ in options, or whose options change: nothing is lost, and nobody stops.

Each plan is one of a set of five with which the nodes of commit fc6d03c, where a PROMOTE did not say whether it waits
for a quorum, lose acknowledged writes, stop, or depose a living leader (`tests/plans/README.md`).
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.campaigns.hunt import try_seed
from harness.systems.plans import read
from tests.suites import mostly_long

PLANS = sorted((Path(__file__).parent / "plans" / "changed-options").glob("*.json"))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("path", mostly_long(PLANS, quick=PLANS[3:]), ids=lambda path: path.stem)
def test_a_stored_change_of_options_is_survived(path: Path, seed: int) -> None:
    """If it failed, what a row means would hang on the options of its reader again."""
    found = try_seed(msgspec.structs.replace(read(path), seed=seed))
    assert (found.outcome, found.violated) == ("valid", ()), found.sentence


def test_all_plans_are_there() -> None:
    """If it failed, the test above would try fewer changes, or none."""
    assert len(PLANS) == 5
