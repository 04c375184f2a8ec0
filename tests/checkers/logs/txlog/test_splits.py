"""Splits, recoveries and their votes that must be refused: else parts of a cluster may go on without need."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import pytest

from checkers.history.history import History
from checkers.logs.txlog import log_of
from tests.checkers.logs.txlog.scripts import (
    Records,
    added,
    cut,
    executed,
    history,
    life,
    made,
    operation,
    ref,
    verdicts,
)
from tests.checkers.logs.txlog.scripts import rules as rules_of

rules = partial(rules_of, of=("policy", "vote"))
A, B, C = ref(1, "n1-1"), ref(1, "n2-1"), ref(1, "n3-1")
CAN: dict[str, Any] = {"strategy": "simple", "split_ns": 2_000_000_000, "max_peer_lag_ns": 2_000_000_000}
AWAY = history(cut([("n1", "n3"), ("n2", "n3")], 1, 5))
BACKUP = [0, b"", []]


def logs(*of_n1: list[Any], strategy: str = "simple") -> dict[str, Records]:
    return {
        "n1": [life(strategy=strategy), *of_n1],
        "n2": [life(strategy=strategy)],
        "n3": [life(strategy=strategy)],
    }


@pytest.mark.parametrize(
    ("faults", "is_cause"),
    [
        (AWAY, True),
        (history(), False),
        (history(cut([("n1", "n2"), ("n2", "n3")], 1, 5)), False),
        (history(cut([("n1", "n3")], 1, 5)), False),
        (history(cut([("n1", "n3"), ("n2", "n3")], 1, 1.5)), False),
        (history(cut([("n1", "n3")], 1, 5), cut([("n2", "n3")], 2, 5, number=1)), True),
        (history(cut([("n1", "n3")], 1, 5), cut([("n2", "n3")], 7, 11, number=1)), False),
    ],
)
def test_a_split_needs_a_fault_that_keeps_all_others_away_at_once(faults: History, is_cause: bool) -> None:
    """n2 hears n3, and is a hub, unless both links are lost at one time."""
    found = rules(logs(["split", ["n3"], BACKUP]), faults, **CAN)
    assert found == (set() if is_cause else {"split-without-cause"})


@pytest.mark.parametrize(("faults", "is_cause"), [(AWAY, True), (history(), False)])
def test_without_a_strategy_one_split_is_the_cause_of_all_later_ones(faults: History, is_cause: bool) -> None:
    """If it failed, parts that take pieces of a third one, and contradict each other then, would be an alarm."""
    found = rules(logs(["split", ["n2"], None], strategy="none"), faults, **{**CAN, "strategy": "none"})
    assert ("split-without-cause" in found) == (not is_cause)


def test_a_split_that_came_before_its_fault() -> None:
    """The answer of what was executed behind it says when it was over."""
    split = logs(["split", ["n3"], BACKUP], made(1, "n1-1"), added(0, 1, ["n2"], [], A), executed(1, "n1-1"))
    fault = cut([("n1", "n3"), ("n2", "n3")], 4, 9)
    assert "split-without-cause" in rules(split, history(fault, operation(0, 1, 2, "n1-1")), **CAN)
    assert rules(split, history(fault, operation(0, 8, 9, "n1-1")), **CAN) == set()


def test_where_masters_never_split_no_split_has_a_cause() -> None:
    assert rules(logs(["split", ["n3"], BACKUP]), AWAY, strategy="simple") == {"split-without-cause"}


@pytest.mark.parametrize(
    ("rule", "strategy", "records"),
    [
        ("split-without-backup", "simple", [["split", ["n3"], None]]),
        ("acted-without-strategy", "none", [["split", ["n3"], BACKUP]]),
        ("acted-without-strategy", "none", [["recovering", 0, None]]),
        ("strategy-changed", "simple", [["split", ["n3"], BACKUP], ["strategy", "smart"]]),
        ("strategy-changed", "simple", [["split", ["n3"], BACKUP], life(2, "none")]),
        ("strategy-changed", "simple", [["recovering", 0, BACKUP], ["strategy", "none"]]),
    ],
)
def test_wrong_policies(rule: str, strategy: str, records: Records) -> None:
    assert rule in rules(logs(*records, strategy=strategy), AWAY, **CAN | {"strategy": strategy})


@pytest.mark.parametrize(
    ("strategy", "records"),
    [
        ("none", [["split", ["n3"], None], ["rejoined"], ["strategy", "smart"]]),
        ("simple", [["split", ["n3"], BACKUP], ["split", ["n2", "n3"], None]]),
        ("simple", [["strategy", "smart"], life(2, "smart"), ["split", ["n3"], BACKUP]]),
    ],
)
def test_their_neighbours(strategy: str, records: Records) -> None:
    away = history(cut([("n1", "n3"), ("n2", "n3"), ("n1", "n2")], 1, 5))
    assert rules(logs(*records, strategy=strategy), away, **CAN | {"strategy": strategy}) == set()


def executes(end_s: float, strategy: str = "simple") -> set[str]:
    """A transaction is executed in the split; its client has the answer at `end_s`."""
    split = logs(
        made(1, "n1-1"),
        ["split", ["n3"], None if strategy == "none" else BACKUP],
        added(0, 1, ["n2"], [], A),
        executed(1, "n1-1"),
        strategy=strategy,
    )
    told = history(cut([("n1", "n3"), ("n2", "n3")], 1, 9), operation(0, 0.5, end_s, "n1-1"))
    return rules(split, told, **CAN | {"strategy": strategy})


def test_a_split_cluster_waits_for_max_peer_lag() -> None:
    """The fault begins at 1 s: no split can be before 3 s (less the drift of clocks), no execution before 5 s."""
    assert executes(3.5) == executes(4.5) == {"executed-too-early"}
    assert executes(5.1) == executes(3.5, "none") == set()


def test_nothing_is_executed_in_a_recovery() -> None:
    frozen = logs(made(1, "n1-1"), added(0, 1, ["n2"], [], A), ["recovering", 0, BACKUP], executed(1, "n1-1"))
    assert rules(frozen, AWAY, **CAN) == {"executed-in-recovery"}


# ---- votes

VOTES = {"n1": 2, "n2": 2, "n3": 1}


def recovery(
    strategy: str = "simple",
    winner: str = "n1",
    votes: dict[str, int] | None = None,
    digests: int = 3,
    **more: Any,
) -> dict[str, Records]:
    """n1 and n2 have [A, B], n3 has [A, C]. `more`: by master `common` and `refs` of its recovery."""
    second, third = ref(2, "n2-1"), ref(2, "n3-1")
    branches = {"n1": [A, second], "n2": [A, second], "n3": [A, third]}
    found: dict[str, Records] = {}
    for number, (name, branch) in enumerate(branches.items()):
        common, refs = more.get(name, (1, []))
        frozen = [["recovering", 0, None]] if number < digests else []
        over = ["recovered", 1, common, winner, VOTES if votes is None else votes, refs, [], 2, {}]
        found[name] = [life(strategy=strategy), ["caught-up", 0, branch, "n9"], *frozen, over]
    return found


def votes_of(*arguments: Any, **more: Any) -> set[str]:
    return rules_of(recovery(*arguments, **more), of=("vote",), **CAN)


def test_right_recoveries() -> None:
    assert votes_of() == set()
    second = ref(2, "n2-1")
    assert votes_of("smart", n1=(2, []), n2=(2, []), n3=(1, [second])) == set()
    said = verdicts(recovery(), **CAN)["vote"]
    assert said.details["compared"] == {"masters": 3, "recoveries": 3, "digests": 9}


def test_wrong_recoveries() -> None:
    assert votes_of(winner="n2") == votes_of(winner="n3") == {"wrong-winner"}
    assert votes_of(votes={"n1": 2, "n2": 1, "n3": 1}) == {"wrong-winner"}
    assert "partial-vote" in votes_of(votes={"n1": 2, "n2": 2})
    assert votes_of(digests=2) == {"voted-without-digest"}
    assert votes_of(n3=(2, [])) == {"wrong-branch"}
    assert votes_of("smart", n1=(2, []), n2=(2, []), n3=(1, [])) == {"wrong-branch"}


def test_two_masters_elect_different_winners() -> None:
    logs = recovery()
    logs["n3"][-1][3] = "n3"
    assert rules_of(logs, of=("vote",), **CAN) == {"wrong-winner", "two-winners"}


def test_a_recovery_without_the_log_of_a_master_is_not_judged_by_its_digest() -> None:
    logs = recovery(digests=2)
    logs["n3"] = [["nonsense"]]
    said = verdicts(logs, **CAN)["vote"]
    assert said.result == "unknown"


# ---- networks without a hub, recoveries that thaw, a MaxPeerLag that is set


FOUR = ("n1", "n2", "n3", "n4")
RING = cut([("n1", "n3"), ("n2", "n4")], 1, 9)
CHAIN = cut([("n1", "n3"), ("n1", "n4"), ("n2", "n4")], 1, 9)
APART = cut([(one, other) for one in ("n1", "n2") for other in ("n3", "n4")], 1, 9)


@pytest.mark.parametrize(
    ("fault", "gone", "is_cause"),
    [
        (RING, ["n3"], False),
        (RING, ["n3", "n4"], False),
        (RING, ["n2", "n3", "n4"], False),
        (CHAIN, ["n4"], False),
        (CHAIN, ["n3", "n4"], False),
        (APART, ["n3", "n4"], True),
        (APART, ["n3"], False),
    ],
)
def test_no_master_that_can_be_reached_is_left_out(fault: Any, gone: list[str], is_cause: bool) -> None:
    """If it failed, a master of a connected network could be left out, although others pass its POSTs on."""
    four = {name: [life(strategy="simple")] for name in FOUR}
    four["n1"].append(["split", gone, BACKUP])
    assert rules(four, history(fault), **CAN) == (set() if is_cause else {"split-without-cause"})


def test_a_recovery_that_thaws() -> None:
    """If it failed, a master that works on would be blamed, or one that works while its queues are frozen would not."""
    frozen = [
        ["split", ["n3"], BACKUP],
        ["recovering", 0, None],
        made(1, "n1-1"),
        added(0, 1, ["n2"], [], A),
        executed(1, "n1-1"),
    ]
    assert rules(logs(*frozen), AWAY, **{**CAN, "max_peer_lag_ns": 0}) == {"executed-in-recovery"}
    thawed = [*frozen[:2], ["thawed"], *frozen[2:]]
    assert rules(logs(*thawed), AWAY, **{**CAN, "max_peer_lag_ns": 0}) == set()
    changed = rules(logs(*thawed[:3], ["strategy", "smart"]), AWAY, **CAN)
    assert changed == {"strategy-changed"}, "the recovery is not over"


def test_max_peer_lag_is_the_one_that_an_operator_chose() -> None:
    """If it failed, a master would be blamed for what its operator wanted, or one that waits too little would not."""
    work = [made(1, "n1-1"), added(0, 1, ["n2"], [], A), executed(1, "n1-1")]
    told = history(cut([("n1", "n3"), ("n2", "n3")], 1, 9), operation(0, 1.1, 3.5, "n1-1"))
    short, long = ["max-peer-lag", 100_000_000], ["max-peer-lag", 5_000_000_000]
    split = ["split", ["n3"], BACKUP]
    assert rules(logs(split, *work), told, **CAN) == {"executed-too-early"}
    assert rules(logs(split, short, *work), told, **CAN) == set()
    assert rules(logs(short, split, *work), told, **CAN) == set()
    assert rules(logs(short, life(2, "simple"), split, *work), told, **CAN) == {"executed-too-early"}
    assert rules(logs(long, split, *work), told, **{**CAN, "max_peer_lag_ns": 0}) == {"executed-too-early"}


def recovered(*queue: list[Any]) -> list[Any]:
    votes = dict.fromkeys(("n1", "n2", "n3"), 3)
    return ["recovered", 1, 0, "n1", votes, [], [*queue], 9, {"n2": 9, "n3": 9}, []]


def test_what_a_master_made_since_the_freeze_is_kept() -> None:
    """If it failed, a transaction that a master accepted while a recovery waited could vanish when it is over."""
    kept = partial(rules_of, of=("kept",))
    since = [["split", ["n3"], BACKUP], ["recovering", 0, None], ["thawed"], made(1, "n1-1")]
    others = {name: [life(strategy="simple"), ["recovering", 0, BACKUP]] for name in ("n2", "n3")}
    dropped = {**logs(*since, recovered()), **others}
    assert kept(dropped, AWAY, **CAN) == {"dropped-at-recovery"}
    summary = verdicts(dropped, AWAY, **CAN)["kept"].witnesses[0].summary
    assert summary.endswith("n1 finishes a recovery without n1-1, which it had made")
    again = recovered(ref(9, "n1-1"))
    assert kept({**logs(*since, again), **others}, AWAY, **CAN) == set()


@pytest.mark.parametrize(
    "record",
    [
        ["life", 1, 7],
        ["strategy", None],
        ["recovered", 1, 0, ["n1"], {}, [], [], 9, {}, []],
        ["recovered", 1, 0, "n1", {"n1": "three"}, [], [], 9, {}, []],
        ["recovered", 1, 0, "n1", {}, [], [], 9, {"n2": -1}, []],
        ["split", "n2", None],
        ["added", 1, [], 2, ["n1"], "n2"],
        ["max-peer-lag", True],
        ["made", 1, 1, "n1-1", None],
        ["made", 1, 1, "n1-1", [7]],
        ["restored", True, b"12345678"],
        ["strategy", reduce(lambda inner, _: [inner], range(2_000), [])],
    ],
    ids=lambda record: str(record[0]),
)
def test_a_malformed_record_is_damage(record: list[Any]) -> None:
    """If it failed, a damaged log would end a checker with a traceback, or be judged by what it does not say."""
    log = log_of("n1", [life(), record])
    assert (len(log.rows), "record 2 of n1 cannot be read" in log.damage) == (1, True)


def test_what_waits_for_the_end_of_a_recovery_has_no_place_yet() -> None:
    """If it failed, a master that has finished would be blamed for lacking what another one stamps anew later."""
    late = [["recovering", 0, BACKUP], ["thawed"], made(1, "n1-1")]
    others = {name: [life(strategy="simple"), ["recovering", 0, BACKUP]] for name in ("n2", "n3")}
    others["n2"] += [recovered(B), made(2, "n2-1", 9), added(0, 9, ["n1", "n3"], [], ref(2, "n2-1"))]
    of_order = partial(rules_of, of=("order",))
    assert of_order({**logs(*late), **others}, AWAY, **CAN) == set()
    assert of_order({**logs(*late[2:]), **others}, AWAY, **CAN) == {"not-a-prefix"}


@pytest.mark.parametrize(
    ("faults", "is_stalled"),
    [
        ((cut([("n1", "n3"), ("n2", "n4")], 1, 30),), True),
        ((cut([("n1", "n3"), ("n1", "n4"), ("n2", "n4")], 1, 30),), True),
        ((cut([(one, other) for one in ("n1", "n2") for other in ("n3", "n4")], 1, 30),), False),
        (
            (cut([("n1", "n3"), ("n2", "n4")], 1, 30), cut([("n1", "n2"), ("n3", "n4")], 2, 29, number=1)),
            False,
        ),
        ((cut([("n1", "n3"), ("n2", "n4")], 1, 30), cut([("n1", "n2")], 11, 11.1, number=1)), False),
        ((), True),
    ],
    ids=["ring", "chain", "apart", "two faults part them", "the links change", "no fault"],
)
def test_a_connected_network_is_no_reason_to_stand_still(faults: tuple[Any, ...], is_stalled: bool) -> None:
    """If it failed, a cluster that stands still beside lost links would be excused, or one that is parted would not."""
    four = {name: [life(strategy="simple")] for name in FOUR}
    waits = operation(0, 2, 23, "n1-1")
    found = rules_of(four, history(*faults, waits), of=("drained",), agrees_within_ns=12_000_000_000, **CAN)
    assert ("stalled" in found) == is_stalled
