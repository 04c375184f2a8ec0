"""Queues that must be refused, and their close neighbours that must not. Else masters may disagree unseen."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.checkers.logs.txlog.scripts import (
    Records,
    acquired,
    added,
    caught_up,
    cut,
    executed,
    heard,
    history,
    is_shown,
    life,
    made,
    operation,
    ref,
    verdicts,
)
from tests.checkers.logs.txlog.scripts import rules as rules_of

rules = partial(rules_of, of=("order", "once"))
A, B = ref(1, "n1-1"), ref(2, "n2-1")


def two_masters() -> dict[str, Records]:
    """Both have A and B, in this order, by one round each."""
    return {
        "n1": [
            life(),
            made(1, "n1-1"),
            heard("n2", 2, 2, B),
            acquired("n2-1"),
            added(0, 2, ["n2"], [], A, B),
        ],
        "n2": [
            life(),
            heard("n1", 1, 1, A),
            made(2, "n2-1"),
            acquired("n1-1"),
            heard("n1", 2, 2),
            added(0, 2, ["n1"], [], A, B),
        ],
    }


def changed(master: str, place: int, *records: list[Any]) -> dict[str, Records]:
    """The logs of `two_masters` with other records in place of one; places count from 0."""
    logs = two_masters()
    logs[master][place : place + 1] = records
    return logs


def test_masters_that_agree_are_valid_and_say_what_was_compared() -> None:
    said = verdicts(two_masters())
    assert said["order"].result == said["once"].result == "valid"
    assert said["order"].details["compared"] == {
        "masters": 2,
        "transactions": 2,
        "entries": 4,
        "pairs_of_queues": 1,
        "prefixes": 2,
    }


def test_a_queue_may_lag() -> None:
    assert rules(changed("n2", 5)) == set()
    assert rules(changed("n2", 5, added(0, 1, ["n1"], [], A))) == set()


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("diverged", [added(0, 2, ["n1"], [], B, A)]),
        ("out-of-order", [added(0, 2, ["n1"], [], B, A)]),
        ("not-a-prefix", [added(0, 2, ["n1"], [], B)]),
        ("skipped", [added(0, 2, ["n1"], [], B)]),
        ("twice", [added(0, 2, ["n1"], [], A, B), added(2, 2, ["n1"], [], A)]),
        ("twice", [added(0, 2, ["n1"], [], A, A)]),
        ("entries-removed", [added(0, 2, ["n1"], [], A, B), caught_up(1, "n1", B)]),
        ("entries-removed", [added(0, 2, ["n1"], [], A, B), added(1, 2, ["n1"], [])]),
        ("not-behind", [added(1, 2, ["n1"], [], A, B)]),
    ],
)
def test_wrong_queues(rule: str, records: Records) -> None:
    assert rule in rules(changed("n2", 5, *records))


def test_an_entry_below_the_last_one_of_an_earlier_record_is_out_of_order() -> None:
    """Broken, only the entries of one record would be compared with each other."""
    logs = changed("n2", 5, added(0, 2, ["n1"], [], B), added(1, 2, ["n1"], [], A))
    (witness,) = [each for each in verdicts(logs)["order"].witnesses if each.rule == "out-of-order"]
    assert witness.explanation == ("record 6 of n2", "record 7 of n2")


@pytest.mark.parametrize(
    ("records", "shown"),
    [
        ([added(0, 1, ["n1"], [], A), added(1, 2, ["n1"], [], A, B)], ("record 6 of n2", "record 7 of n2")),
        ([added(0, 2, ["n1"], [], A, B), added(2, 2, ["n1"], [], A)], ("record 6 of n2", "record 7 of n2")),
        ([added(0, 2, ["n1"], [], A, B, A)], ("record 6 of n2", "record 6 of n2")),
    ],
    ids=["right behind itself", "behind another", "in one record"],
)
def test_an_entry_that_is_twice_names_both_records(records: Records, shown: tuple[str, ...]) -> None:
    """Broken, the entry that comes right behind itself would be one, or a witness would name a record without it."""
    (witness,) = verdicts(changed("n2", 5, *records))["once"].witnesses
    assert witness.explanation == shown


def test_entries_that_differ_are_found_behind_any_number_of_equal_ones() -> None:
    """Broken, queues would be compared only from where the last record of an epoch put its entries."""
    logs = changed("n2", 5, added(0, 2, ["n1"], [], B), added(1, 2, ["n1"], [], A), added(2, 2, ["n1"], []))
    logs["n1"][-1:] = [added(0, 2, ["n2"], [], A), added(1, 2, ["n2"], [], B), added(2, 2, ["n2"], [])]
    found = [each for each in verdicts(logs)["order"].details["proofs"] if each["rule"] == "diverged"]
    assert [each["index"] for each in found] == [0]


def test_a_master_that_skips_its_own_transaction_is_refused() -> None:
    """Broken, only what a master heard would count as known to it."""
    logs = two_masters()
    logs["n1"][-1] = added(0, 2, ["n2"], [], B)
    assert "skipped" in rules(logs)
    assert is_shown(logs, "skipped", "n1", id="n1-1")


def test_a_round_that_adds_nothing_skips_nothing() -> None:
    """Broken, an idle round would be blamed for what waits for updates or a counter."""
    logs = two_masters()
    logs["n1"].insert(3, added(0, 0, ["n2"], []))
    logs["n2"].insert(2, added(0, 0, ["n1"], []))
    assert rules(logs) == set()


@pytest.mark.parametrize(
    ("strategy", "before", "is_wrong"),
    [
        ("smart", [["split", ["n1"], [0, b""]]], False),
        ("none", [["split", ["n1"], None]], False),
        ("smart", [["split", ["n3"], [0, b""]]], True),
        ("smart", [acquired("n1-1"), ["split", ["n1"], [0, b""]]], True),
        ("smart", [], True),
    ],
    ids=["without its updates", "no strategy", "not missing", "with its updates", "no split"],
)
def test_a_part_does_not_wait_for_updates_of_a_missing_master(
    strategy: str, before: Records, is_wrong: bool
) -> None:
    """If it failed, a part that goes on would be blamed, or one that skips what it could add would not be."""
    log = [life(strategy=strategy), heard("n1", 1, 1, A), made(2, "n2-1"), *before, added(0, 2, [], [], B)]
    logs = {"n1": [life(strategy=strategy), made(1, "n1-1")], "n2": log, "n3": [life(strategy=strategy)]}
    assert ("skipped" in rules(logs, strategy=strategy, split_ns=1)) is is_wrong
    assert is_shown(logs, "skipped", "n2", id="n1-1") is is_wrong


@pytest.mark.parametrize("is_split", [True, False])
def test_in_a_split_what_comes_too_late_waits_for_the_recovery(is_split: bool) -> None:
    """If it failed, a part that goes on would be blamed, or the verifier would accept the blame."""
    split: Records = [["split", ["n3"], [0, b""]]] if is_split else []
    began = [made(2, "n2-1"), added(0, 2, [], [], B), heard("n1", 2, 1, A), acquired("n1-1"), made(3, "n2-2")]
    log = [life(strategy="smart"), *split, *began, added(1, 3, [], [], ref(3, "n2-2"))]
    logs = {"n1": [life(), made(1, "n1-1")], "n2": log, "n3": [life()]}
    assert ("skipped" in rules(logs, strategy="smart", split_ns=1)) is not is_split
    assert is_shown(logs, "skipped", "n2", id="n1-1") is not is_split


def test_in_a_split_too_late_is_what_sorts_before_the_last_entry() -> None:
    """Broken, what came between the last two entries of a part would be called skipped."""
    began = [made(2, "n2-1"), made(4, "n2-2"), added(0, 4, [], [], B, ref(4, "n2-2"))]
    late = [heard("n1", 4, 3, ref(3, "n1-1")), acquired("n1-1"), made(5, "n2-3")]
    log = [life(strategy="smart"), ["split", ["n3"], [0, b""]], *began, *late]
    logs = {
        "n1": [life(), made(3, "n1-1")],
        "n2": [*log, added(2, 5, [], [], ref(5, "n2-3"))],
        "n3": [life()],
    }
    assert "skipped" not in rules(logs, strategy="smart", split_ns=1)


def test_what_sorts_between_the_entries_of_a_round_is_skipped() -> None:
    """Broken, only what sorts before the first entry of a round would be."""
    logs = changed("n2", 4, heard("n1", 3, 3, ref(3, "n1-2")), added(0, 3, ["n1"], [], A, ref(3, "n1-2")))
    logs["n1"].append(made(3, "n1-2"))
    assert "skipped" in rules(logs)


def test_an_entry_comes_in_two_rounds() -> None:
    """The neighbour of `entries-removed` and `twice`: the same entries, each behind those before it."""
    assert rules(changed("n2", 5, added(0, 1, ["n1"], [], A), added(1, 2, ["n1"], [], B))) == set()
    assert rules(changed("n2", 5, added(0, 1, ["n1"], [], A), caught_up(1, "n1", B))) == set()


def test_a_transaction_that_nobody_adds_must_still_be_before_greater_ones() -> None:
    """All masters agree, so only the prefix of all transactions shows the lost one."""
    logs = two_masters()
    logs["n3"] = [life(), made(1, "n3-1")]
    assert rules(logs) == {"not-a-prefix"}
    logs["n3"] = [life(), heard("n1", 2, 2), made(3, "n3-1")]
    assert rules(logs) == set()


def split(missing_says: bool = True) -> dict[str, Records]:
    """n3 is left out, and both parts go on."""
    part = ["split", ["n3"], None] if missing_says else ["matched"]
    other = ["split", ["n1", "n2"], None] if missing_says else ["matched"]
    mine, theirs = ref(1, "n1-1"), ref(2, "n3-1")
    return {
        "n1": [life(), made(1, "n1-1"), part, added(0, 1, ["n2"], [], mine)],
        "n2": [life(), heard("n1", 1, 1, mine), acquired("n1-1"), part, added(0, 1, ["n1"], [], mine)],
        "n3": [life(), heard("n1", 1, None), made(2, "n3-1"), other, added(0, 2, [], [], theirs)],
    }


APART = cut([("n1", "n3"), ("n2", "n3")], 1, 5)


def test_a_split_that_a_fault_explains_is_the_documented_price() -> None:
    said = verdicts(split(), history(APART), split_ns=2_000_000_000)["order"]
    assert said.result == "valid"
    assert "unrepaired divergence" in said.details["findings"][0]


@pytest.mark.parametrize(
    "fields",
    [
        {"split_ns": 0},
        {"split_ns": 6_000_000_000},
    ],
)
def test_a_split_that_cannot_be_is_none(fields: dict[str, Any]) -> None:
    """Masters never split, or the fault was shorter than their time-out."""
    assert "diverged" in rules(split(), history(APART), **fields)


def test_a_split_without_a_fault_between_the_parts_is_none() -> None:
    assert "diverged" in rules(split(), history(cut([("n1", "n2")], 1, 5)), split_ns=2_000_000_000)
    assert "diverged" in rules(split(), split_ns=2_000_000_000)


def test_masters_that_had_not_split_may_not_differ_whatever_the_faults() -> None:
    assert "diverged" in rules(split(missing_says=False), history(APART), split_ns=2_000_000_000)


@pytest.mark.parametrize(("cut_s", "is_wrong"), [(1, False), (8, True)])
def test_a_split_excuses_only_what_comes_after_it(cut_s: int, is_wrong: bool) -> None:
    """If it failed, a fault at the end of a run would excuse an order that was wrong before any master was away."""
    fault = cut([("n1", "n3"), ("n2", "n3")], cut_s, cut_s + 4)
    late = ref(1, "n3-1")
    first = [life(), made(2, "n1-1"), heard("n3", 2, 1, late), added(0, 2, ["n2"], [], ref(2, "n1-1"), late)]
    logs = {
        "n1": [*first, executed(1, "n1-1"), ["split", ["n3"], None]],
        "n2": [life()],
        "n3": [life(), made(1, "n3-1")],
    }
    told_by = history(fault, operation(0, 5, 6, "n1-1"))
    assert ("out-of-order" in rules(logs, told_by, split_ns=2_000_000_000)) is is_wrong
    logs = split()
    names = {"n1": "n1-1", "n3": "n3-1"}
    for name, mine in names.items():
        logs[name].append(executed(1, mine))
    asked = [operation(number, 5, 6, names[name], node=name) for number, name in enumerate(names)]
    assert ("diverged" in rules(logs, history(fault, *asked), split_ns=2_000_000_000)) is is_wrong


@pytest.mark.parametrize("strategy", ["none", "simple"])
def test_masters_of_one_part_may_not_differ_in_a_split(strategy: str) -> None:
    """If it failed, a fork of masters that never lost each other would be excused, because a third one was away."""
    logs = split()
    theirs = ref(2, "n3-1")
    logs["n2"] = [life(), heard("n3", 2, 2, theirs), ["split", ["n3"], None], added(0, 2, [], [], theirs)]
    for records in logs.values():
        records[0] = life(strategy=strategy)
    found = rules(logs, history(APART), split_ns=2_000_000_000, strategy=strategy)
    assert "diverged" in found


def test_after_the_recovery_queues_must_agree() -> None:
    """With `simple` both branches are sorted into one."""
    both = [ref(1, "n1-1"), ref(2, "n3-1")]
    logs = split()
    for master, records in logs.items():
        records[0] = life(strategy="simple")
        records += [
            ["recovering", 0, None],
            ["recovered", 1, 0, "n1", {"n1": 2, "n2": 2, "n3": 1}, [], both, 2, {}],
            added(0, 2, [each for each in logs if each != master], [], *both),
        ]
    fields: dict[str, Any] = {"strategy": "simple", "split_ns": 2_000_000_000}
    assert not {"diverged", "not-a-prefix", "out-of-order"} & rules(logs, history(APART), **fields)
    logs["n3"][-1] = added(0, 2, ["n1", "n2"], [], both[1])
    assert {"diverged", "not-a-prefix"} <= rules(logs, history(APART), **fields)


def test_nothing_is_valid_without_all_logs() -> None:
    logs = two_masters()
    logs["n3"] = [["nonsense"]]
    said = verdicts(logs)["order"]
    assert (said.result, "record 1 of n3" in said.summary) == ("unknown", True)


def test_a_violation_stays_one_where_a_log_is_missing() -> None:
    logs = changed("n2", 5, added(0, 2, ["n1"], [], B, A))
    logs["n3"] = [["nonsense"]]
    assert verdicts(logs)["order"].result == "invalid"


def test_logs_without_a_transaction_show_nothing() -> None:
    said = verdicts({"n1": [life()], "n2": [life()]})["order"]
    assert (said.result, said.details["vacuous"]) == ("unknown", True)


def test_a_transaction_is_shown_by_the_record_of_the_master_that_made_it() -> None:
    """If it failed, a recovery that names a wrong origin would make the proof point to another master's record."""

    def begins(*own: list[Any]) -> list[list[Any]]:
        restamped = [5, "n1-1", "n2"]
        return [
            life(1, "simple"),
            *own,
            ["recovering", 0, [0, b"", []]],
            ["recovered", 1, 0, "n1", {"n1": 2, "n2": 2}, [], [restamped], 9, {"n1": 0, "n2": 0}],
        ]

    logs = {
        "n1": [*begins(made(1, "n1-1")), added(0, 12, ["n2"], [], ref(11, "n2-1"))],
        "n2": [*begins(), made(11, "n2-1")],
    }
    (proof,) = (
        proof for proof in verdicts(logs)["order"].details["proofs"] if proof["rule"] == "not-a-prefix"
    )
    assert proof["records"] == [["n1", 2], ["n1", 5]]
