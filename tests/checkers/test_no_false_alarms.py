"""True histories of a store under faults raise no alarm, and those of a broken one do.

The store is `tiny_store`: rows that travel in roundabout ways, links that hold what was said, pauses that overlap,
clients that give up and writes that appear late.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from checkers import CHECKERS, run_safely
from checkers.history import History
from tests.checkers.tiny_store import TinyStore

SEEDS = pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(150), marks=pytest.mark.long)], ids=len
)
JUDGES = ("linearizable", "prefix", "convergence", "quorum", "availability")


@cache
def true_history(seed: int) -> History:
    return TinyStore(seed).run()


@SEEDS
@pytest.mark.parametrize("checker", JUDGES)
def test_a_true_history_is_valid(checker: str, seeds: range) -> None:
    """A correct store would be accused."""
    for seed in seeds:
        verdict = run_safely(CHECKERS[checker], true_history(seed))
        assert verdict.result == "valid", (seed, verdict.summary, verdict.witnesses[:1])


@SEEDS
def test_the_true_histories_are_worth_it(seeds: range) -> None:
    """The runs above would be too tame to raise any alarm."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        history = true_history(seed)
        seen.update(operation.type for operation in history.operations)
        seen["starved"] += CHECKERS["quorum"](history).details["writes_in_starved_time"]
        seen["stale"] += CHECKERS["prefix"](history).details["stale_reads"]
        seen["mismatch"] += sum(operation.error == "mismatch" for operation in history.operations)
        seen["deleted"] += sum(each.is_deletion and each.type == "ok" for each in history.operations)
        seen["nothing"] += sum(each.found_nothing for each in history.operations)
    assert seen["ok"] > 50 * len(seeds)
    for what in ("info", "fail", "starved", "stale", "mismatch", "deleted", "nothing"):
        assert seen[what] > len(seeds), seen


@pytest.mark.parametrize("runs", [8, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("bug", "checker", "rule"),
    [
        ("owner-reads-stale", "linearizable", "stale-read"),
        ("replica-goes-back", "prefix", "went-back"),
        ("dumps-differ", "convergence", "diverged"),
        ("lose-the-last", "convergence", "lost-write"),
        ("confirm-early", "quorum", "acknowledged-without-quorum"),
    ],
)
def test_a_broken_store_is_found(bug: str, checker: str, rule: str, runs: int) -> None:
    """A whole class of bugs would be missed by the checker that is there for it."""
    found = 0
    for seed in range(runs):
        verdict = CHECKERS[checker](TinyStore(seed, bug).run())
        found += any(witness.rule == rule for witness in verdict.witnesses)
    assert found >= runs // 2, f"found in {found} of {runs} runs"
