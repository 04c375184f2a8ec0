"""Long forks: a run that has not looked at enough says what to change."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.history import foreign
from harness.campaigns.hunt import try_seed
from harness.systems.plans import planned
from harness.workloads.long_fork import LONG_FORK


def test_one_worker_alone_has_no_group_to_read() -> None:
    """If it failed, a run with one worker would only ever end with "0 of 0", and no word on what to try."""
    tried = try_seed(
        planned(cluster="sim", workload="long-fork", workers=1, time_limit_s=4, faults=("none",), least_ok=1)
    )
    assert tried.outcome == "inconclusive"
    assert "try --workers 3" in tried.sentence


PART, NOTHING, ALL = "[:r x nil] [:r y 1]", "[:r x nil] [:r y nil]", "[:r x 1] [:r y 1]"


@pytest.mark.parametrize(
    ("reads", "lacks"),
    [
        ([PART], []),
        ([PART, PART, *[ALL] * 98], []),
        ([PART, *[ALL] * 99], ["too few reads saw a part of their group: 1 of 100, 2 are needed"]),
        ([NOTHING, ALL], ["too few reads saw a part of their group: 0 of 2, 1 are needed"]),
        (["[:r x 1]"], ["no read of several keys succeeded; with one worker there is none: try --workers 3"]),
    ],
)
def test_some_reads_must_have_seen_a_part_of_their_group(
    tmp_path: Path, reads: list[str], lacks: list[str]
) -> None:
    """If it failed, a run whose reads saw all or nothing would be evidence that there is no fork."""
    file = tmp_path / "history.edn"
    ends = ((micros, end) for micros in reads for end in (":invoke", ":ok"))
    file.write_text(
        "".join(f"{{:type {end}, :process 0, :f :txn, :value [{micros}]}}\n" for micros, end in ends)
    )
    assert list(LONG_FORK.missing(foreign.read(file))) == lacks


def test_a_transaction_that_writes_is_no_read_of_a_group(tmp_path: Path) -> None:
    """If it failed, writers alone would make a run one of reads."""
    file = tmp_path / "history.edn"
    ends = (":invoke", ":ok")
    file.write_text(
        "".join(f"{{:type {end}, :process 0, :f :txn, :value [[:r x nil] [:w y 1]]}}\n" for end in ends)
    )
    assert next(LONG_FORK.missing(foreign.read(file))).startswith("no read of several keys succeeded")
