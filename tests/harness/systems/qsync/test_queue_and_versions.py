"""A reference cluster with a small queue and many snapshots; one without versions, whose reads say what they are."""

from __future__ import annotations

import pytest

from harness.judge import Case, judge
from harness.run.assemble import parts_of
from tests.harness.runs import recorded, small

PLAN = small(mvcc=False, seed=3, time_limit_s=8.0, replica_reads=0.4, synchro_timeout_s=0.3)


def test_every_read_is_labelled_dirty_and_the_run_is_judged_by_its_own_row() -> None:
    """If it failed, dirty reads would be taken for linearizable ones: a false alarm, or worse, a promise."""
    history = recorded(PLAN).history
    reads = history.select(f="read", outcome="ok")
    assert len(reads) > 100
    assert {read.mode for read in reads} == {"dirty"}
    verdict = judge(Case(PLAN, history, given_promise=parts_of(PLAN).system.promise(PLAN)))
    assert verdict["violations"] == []
    assert "MVCC off" in verdict["promise"]["configuration"]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_a_full_queue_and_snapshots_change_no_promise(seed: int) -> None:
    """If it failed, who waits for room could be lost, or a snapshot in the middle of a run lose or raise rows."""
    plan = small(seed=seed, queue_max_size="40", checkpoint_interval_s=0.3, workers=20, rate=200.0)
    history = recorded(plan).history
    verdict = judge(Case(plan, history, given_promise=parts_of(plan).system.promise(plan)))
    assert verdict["violations"] == []
    assert verdict["evidence"]["ok"] > 300
