"""The promise of every pair of concurrency and isolation: kept, and not stronger than the node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.errors import WrongUse
from harness.plan.promise import STRICT, WRITES, Promise, promised
from harness.run.assemble import parts_of
from harness.systems.twophase.promises import DOCUMENTED, WEAKER, WHY, promise_of
from tests.harness.systems.twophase.test_twophase import kept, plan
from tests.suites import mostly_long

PAIRS = tuple(WHY)
WEAK = [pair for pair in PAIRS if promise_of(*pair).isolation(are_plain=True) == WEAKER]
QUICK = (("pessimistic", "serializable"), ("optimistic", "read-committed"))
"""The strongest pair, and the weakest one."""
SMALL: dict[str, Any] = {"nodes": 3, "time_limit_s": 4, "faults": ("none",)}
SHOWN_BY: dict[Any, dict[str, Any]] = {("optimistic", "repeatable-read"): {"seed": 4}}
"""The run in which a pair's transactions see a part of others; a small one for those without one here."""
LOSES_UPDATES: dict[Any, dict[str, Any]] = {("optimistic", "read-committed"): {"seed": 2, "rate": 400}}
"""The run of `register` that loses an update: at the usual rate, one in seven does."""


def by_checker(verdict: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {check["checker"]: check for check in verdict["checks"]}


def judged_valid(pair: Any, results: Path, **fields: Any) -> None:
    concurrency, isolation = pair
    settings = {"workload": "rw-register", "concurrency": concurrency, "isolation": isolation}
    verdict, _ = kept(plan(**settings, faults=("all",), **fields), results)
    assert verdict["violations"] == [], verdict["sentence"]
    assert verdict["promise"]["transactional"] == promise_of(concurrency, isolation).isolation(are_plain=True)
    assert by_checker(verdict)["transactional"]["result"] == "valid"


@pytest.mark.parametrize("pair", mostly_long(PAIRS, quick=QUICK[:1]), ids=" ".join)
def test_a_pair_keeps_its_promise_under_faults(pair: Any, tmp_path: Path) -> None:
    """If it failed, a right store would be blamed, or nothing would be judged."""
    judged_valid(pair, tmp_path, seed=2, nodes=3, time_limit_s=8)


@pytest.mark.nightly
@pytest.mark.parametrize("pair", PAIRS, ids=" ".join)
def test_every_pair_keeps_its_promise_often(pair: Any, tmp_path: Path) -> None:
    """The same for 21 seeds."""
    for seed in range(1, 22):
        judged_valid(pair, tmp_path / str(seed), seed=seed)


@pytest.mark.parametrize("pair", mostly_long(WEAK, quick=[("pessimistic", "read-committed")]), ids=" ".join)
def test_a_weaker_promise_is_needed(pair: Any, tmp_path: Path) -> None:
    """If it failed, a pair could promise the next stronger model, read-atomic, and does not."""
    concurrency, isolation = pair
    run = SHOWN_BY.get(pair, SMALL)
    drawn = plan(workload="rw-register", concurrency=concurrency, isolation=isolation, **run)
    verdict, _ = kept(drawn, tmp_path)
    check = by_checker(verdict)["transactional"]
    assert (verdict["violations"], check["result"]) == ([], "valid")
    assert {"read-atomic", STRICT} <= set(check["details"]["ruled_out"])
    assert any(each["checker"] == "transactional" for each in verdict["findings"])
    assert "see a partial transaction state" in verdict["documented"]["transactional"]


@pytest.mark.parametrize(
    ("pair", "workload", "broken", "held"),
    [
        pytest.param(
            ("pessimistic", "read-committed"), "bank", {"bank"}, {"balances"}, marks=pytest.mark.long
        ),
        pytest.param(
            ("pessimistic", "read-committed"), "register", set(), {"linearizable"}, marks=pytest.mark.long
        ),
        pytest.param(
            ("optimistic", "repeatable-read"), "bank", {"bank", "balances"}, set(), marks=pytest.mark.long
        ),
        pytest.param(
            ("optimistic", "repeatable-read"), "append", {"transactional"}, set(), marks=pytest.mark.long
        ),
        (("optimistic", "read-committed"), "register", {"linearizable"}, set()),
        (("optimistic", "read-committed"), "read-write", set(), {"linearizable"}),
    ],
)
def test_what_is_not_promised_is_a_finding(
    pair: Any, workload: str, broken: set[str], held: set[str], tmp_path: Path
) -> None:
    """If it failed, a lost update or a torn read of a weak pair would be a violation, or what the pair keeps would not
    be judged."""
    concurrency, isolation = pair
    run = {**SMALL, **(LOSES_UPDATES.get(pair, {}) if workload == "register" else {})}
    verdict, _ = kept(plan(workload=workload, concurrency=concurrency, isolation=isolation, **run), tmp_path)
    found = by_checker(verdict)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    assert {name for name in broken if found[name]["result"] == "invalid"} == broken
    assert broken.isdisjoint(verdict["promise"])
    assert held <= verdict["promise"].keys()
    assert broken <= {each["checker"] for each in verdict["findings"]}


def test_every_pair_says_why_and_where_that_stands() -> None:
    """If it failed, a reader of a verdict could not look the promise up."""
    for pair in PAIRS:
        promise = promise_of(*pair)
        assert promise.why and promise.documented["transactional"] == DOCUMENTED[pair]
        assert not promise.has_leader and promise.has_fresh_reads


def test_the_isolation_of_transactions_follows_from_writes_where_nothing_else_is_said() -> None:
    """If it failed, stores that promise linearizable writes would promise nothing of transactions, or the reverse."""

    def isolations(promise: Promise) -> tuple[str, str]:
        return promise.isolation(are_plain=True), promise.isolation(are_plain=False)

    assert isolations(promised("a", "b")) == ("", "")
    assert isolations(promised("a", "b", writes="linearizable")) == (STRICT, STRICT)
    assert isolations(promise_of("pessimistic", "read-committed")) == (WEAKER, WEAKER)
    assert isolations(promise_of("optimistic", "read-committed")) == (WEAKER, "")
    assert promise_of("optimistic", "read-committed").model(WRITES) == ""


@pytest.mark.parametrize(
    ("workload", "checker"),
    [pytest.param("register", "linearizable", marks=pytest.mark.long), ("counter", "counter")],
)
def test_an_atomic_space_is_linearizable_under_faults(workload: str, checker: str, tmp_path: Path) -> None:
    """If it failed, an atomic space would lose writes, or be as weak as the transactions beside it; or a cut would not
    finish because of it."""
    settings = {"concurrency": "optimistic", "isolation": "read-committed", "seed": 2}
    size = {"nodes": 3, "time_limit_s": 8}
    drawn = plan(workload=workload, atomic=workload, faults=("all",), **settings, **size)
    verdict, _ = kept(drawn, tmp_path)
    found = by_checker(verdict)
    assert verdict["outcome"] == "valid", verdict["sentence"]
    assert verdict["promise"]["configuration"] == f"atomic space {workload}"
    assert checker in verdict["promise"] and found[checker]["result"] == "valid"
    assert verdict["documented"]["linearizable"].endswith("(Atomicity Modes)")
    assert found["cuts-finish"]["result"] == found["cuts-form"]["result"] == "valid"
    assert "cuts-transactions" not in found


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"workload": "bank", "atomic": "bank"}, "expected a workload of single steps"),
        ({"workload": "register", "atomic": "register", "backups": 2}, "at most 1 backup"),
        ({"workload": "register", "atomic": "notes"}, "register writes to register alone"),
    ],
)
def test_an_atomic_space_that_cannot_be_is_refused(fields: dict[str, Any], words: str) -> None:
    """If it failed, a run would begin in which every operation fails."""

    def begin() -> None:
        drawn = plan(**fields)
        parts_of(drawn).system.configurations(drawn, ("register",))

    with pytest.raises((WrongUse, ValueError), match=words):
        begin()
