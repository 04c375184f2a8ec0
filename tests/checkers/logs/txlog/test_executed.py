"""Executions, backups and restores that must be refused: else a client may read a state that never was."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.checkers.logs.txlog.scripts import (
    Records,
    added,
    caught_up,
    cut,
    executed,
    history,
    is_shown,
    life,
    made,
    operation,
    ref,
    verdicts,
)
from tests.checkers.logs.txlog.scripts import rules as rules_of

rules = partial(rules_of, of=("executed", "state"))
A, B = ref(1, "n1-1"), ref(2, "n1-2")
BEGIN: Records = [life(strategy="simple"), made(1, "n1-1"), made(2, "n1-2"), added(0, 2, [], [], A, B)]
FIRST, SECOND = executed(1, "n1-1"), executed(2, "n1-2")


def one(*records: list[Any]) -> dict[str, Records]:
    return {"n1": [*BEGIN, *records]}


def test_all_in_turn() -> None:
    said = verdicts(one(FIRST, SECOND))["executed"]
    assert (said.result, said.details["compared"]["executions"]) == ("valid", 2)


def test_states_of_several_masters_are_counted_once() -> None:
    """Broken, `state` would be valid where no two masters executed the same, or unknown where they did."""
    log = [*BEGIN[:1], *BEGIN[3:], FIRST, SECOND]
    logs = {"n1": [*BEGIN, FIRST, SECOND], "n2": log, "n3": log[:-1]}
    said = verdicts(logs)["state"]
    assert said.details["compared"] == {"executions": 5, "states": 2, "of_several_masters": 2}
    assert said.result == "valid"
    alone = verdicts({"n1": [*BEGIN, FIRST], "n2": BEGIN[:1]})["state"]
    assert (alone.result, alone.details["compared"].get("of_several_masters", 0)) == ("unknown", 0)


def test_a_state_that_differs_is_told_once_until_it_is_restored() -> None:
    """Broken, one update that went wrong would be as many violations as there are executions behind it."""
    log = [*BEGIN[:1], *BEGIN[3:], executed(1, "n1-1", b"wrong"), executed(2, "n1-2", b"wrong, too")]
    said = verdicts({"n1": [*BEGIN, FIRST, SECOND], "n2": log})["state"]
    assert [each.explanation for each in said.witnesses] == [("record 5 of n1", "record 3 of n2")]


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("executed-out-of-turn", [SECOND]),
        ("executed-out-of-turn", [FIRST, FIRST]),
        ("executed-another", [executed(1, "n1-2")]),
        ("executed-another", [FIRST, SECOND, executed(3, "n1-3")]),
        ("executed-entry-removed", [FIRST, SECOND, caught_up(1, "n2", B)]),
        ("backup-differs", [FIRST, ["split", ["n2"], [1, b"other", []]]]),
        ("backup-differs", [FIRST, ["split", ["n2"], [2, b"2 n1-2", []]]]),
        ("restored-another", [FIRST, ["restored", 0, b""]]),
        ("restored-without-split", [["split", ["n2"], [0, b"", []]], FIRST, ["restored", 0, b""]]),
    ],
)
def test_wrong_executions(rule: str, records: Records) -> None:
    assert rule in rules(one(*records))


def test_a_restart_is_no_restore() -> None:
    assert rules(one(FIRST, life(2), SECOND)) == set()
    assert "executed-out-of-turn" in rules(one(FIRST, life(2), FIRST, SECOND))


def test_a_state_differs_only_after_the_same_transactions() -> None:
    other = {"n2": [life(), caught_up(0, "n1", A), executed(1, "n1-1", b"other")]}
    assert rules(one(FIRST) | other) == {"state-differs"}
    other = {"n2": [life(), caught_up(0, "n1", B), executed(1, "n1-2", b"other")]}
    assert rules(one(FIRST) | other) == set()


def test_masters_that_execute_nothing_in_common_show_nothing_of_states() -> None:
    said = verdicts(one(FIRST) | {"n2": [life()]})["state"]
    assert (said.result, said.details["vacuous"]) == ("unknown", True)


def test_masters_that_are_apart_from_the_begin_have_no_state_in_common() -> None:
    """If it failed, a run would rest on a comparison that it cannot have, or not need one that it could have had."""

    def opportunities(strategy: str, until_s: float, *of_other: list[Any]) -> object:
        logs = {
            "n1": [life(), made(1, "n1-1"), added(0, 1, [], [], A), FIRST],
            "n2": [life(), made(1, "n2-1"), added(0, 1, [], [], ref(1, "n2-1")), *of_other],
        }
        told = history(cut([("n1", "n2")], 1, until_s))
        said = verdicts(logs, told, strategy=strategy, split_ns=2_000_000_000)["state"]
        assert (said.result, said.details["vacuous"]) == ("unknown", True)
        return said.details.get("opportunities")

    second = executed(1, "n2-1")
    assert opportunities("none", 5, second) == 0
    assert opportunities("none", 5) is None, "n2 may come to the same"
    assert opportunities("none", 1.5, second) is None, "no split can have happened"
    assert opportunities("simple", 5, second) is None, "a recovery makes one log"


C = ref(2, "n2-1")
APART = history(cut([("n1", "n2")], 1, 5))
CAN: dict[str, Any] = {"strategy": "simple", "split_ns": 2_000_000_000}


def restored(
    index: int = 1, digest: bytes = b"1 n1-1", *, common: int = 1, does: bool = True
) -> dict[str, Records]:
    """n1 has executed B in a split; the recovery sorts C before it."""
    back: Records = [["restored", index, digest]] if does else []
    over = ["recovered", 1, common, "n2", {"n1": 1, "n2": 1}, [A, C, B][common:], [], 2, {}]
    again = [
        [],
        [FIRST, executed(2, "n2-1")],
        [executed(2, "n2-1"), executed(3, "n1-2")],
        [executed(3, "n1-2")],
    ]
    return one(
        FIRST,
        ["split", ["n2"], [1, b"1 n1-1", []]],
        SECOND,
        ["recovering", 0, None],
        over,
        *back,
        *again[index + 1],
    )


def test_a_restore_goes_back_to_the_backup_and_on_from_there() -> None:
    assert rules(restored(), APART, **CAN) == set()


def test_rounds_go_on_between_a_recovery_and_its_restore() -> None:
    """The executed index is still the old one; what the recovery kept must stay."""
    logs = restored()
    recovery = next(at for at, record in enumerate(logs["n1"]) if record[0] == "recovered")
    logs["n1"][recovery][5:7] = [], [C, B]
    late = logs["n1"][recovery + 1 :]
    logs["n1"][recovery + 1 :] = [added(1, 2, [], [], C, B), *late]
    assert rules(logs, APART, **CAN) == set()
    logs["n1"][recovery + 1 :] = [added(0, 2, [], [], A, C, B), *late]
    assert rules(logs, APART, **CAN) == {"executed-entry-removed"}


def test_wrong_restores() -> None:
    assert "restored-another" in rules(restored(0, b""), APART, **CAN)
    assert "restored-another" in rules(restored(1, b"other"), APART, **CAN)
    assert "restored-too-much" in rules(restored(common=0), APART, **CAN)
    assert "executed-without-restore" in rules(restored(2, does=False), APART, **CAN)
    assert "executed-out-of-turn" in rules(one(*restored()["n1"][4:-2], executed(3, "n1-2")), APART, **CAN)


SPLIT = ["split", ["n2"], [1, b"1 n1-1", []]]
BACK = ["restored", 1, b"1 n1-1"]


def recovered(epoch: int, common: int, *refs: list[Any]) -> list[Any]:
    return ["recovered", epoch, common, "n2", {"n1": 1, "n2": 1}, [*refs], [], 2, {}]


KEPT_ALL: Records = [FIRST, SPLIT, ["recovering", 0, None], recovered(1, 1, B)]
"""A recovery that takes away nothing that was executed: no restore follows, and the backup is void."""


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("executed-entry-removed", [*KEPT_ALL, SECOND, caught_up(1, "n2", C)]),
        ("restored-another", [*KEPT_ALL, BACK]),
    ],
)
def test_a_recovery_that_takes_nothing_away_needs_no_restore(rule: str, records: Records) -> None:
    """If this fails, the verifier refuses the proof of a violation."""
    assert rules(one(*records), APART, **CAN) == {rule}


TAKEN: Records = [FIRST, SPLIT, SECOND, ["recovering", 0, None], recovered(1, 1, C, B)]


def test_a_missing_restore_is_told_once() -> None:
    """Broken, one cause would be as many violations as there are executions behind it."""
    said = verdicts(one(*TAKEN, executed(2, "n2-1"), executed(3, "n1-2")), APART, **CAN)["executed"]
    assert [each.rule for each in said.witnesses].count("executed-without-restore") == 1


@pytest.mark.parametrize(
    ("rule", "records"),
    [
        ("executed-without-restore", [*KEPT_ALL, SECOND, executed(3, "n1-3")]),
        (
            "restored-too-much",
            [
                *(*TAKEN, BACK, executed(2, "n2-1"), executed(3, "n1-2")),
                *(["recovering", 1, [2, b"2 n2-1", []]], recovered(2, 2, B), ["restored", 2, b"2 n2-1"]),
            ],
        ),
        (
            "restored-another",
            [
                *(*TAKEN, ["split", ["n2"], None], BACK, executed(2, "n2-1")),
                *(["recovering", 1, None], recovered(2, 1, C, B), BACK),
            ],
        ),
    ],
)
def test_a_proof_that_forgets_what_a_recovery_kept_is_refused(rule: str, records: Records) -> None:
    """If this fails, the verifier accepts a violation that the last record does not show."""
    logs = one(*records)
    assert rule not in rules(logs, APART, **CAN)
    assert not is_shown(logs, rule, "n1")


def test_an_answer_that_a_restore_takes_back_is_the_price_of_a_split() -> None:
    told = history(cut([("n1", "n2")], 1, 5), operation(0, 3, 4, "n1-2"), operation(1, 1, 2, "n1-1"))
    said = verdicts(restored(), told, **CAN)["executed"]
    assert said.result == "valid"
    assert [
        f"operation {told.operations[1].invoke_index}: n1 answered n1-2" in said.details["findings"][0]
    ] == [True]
    assert "undone-answer" in rules(restored(), told)


def test_a_read_of_an_undone_state_is_reported_and_one_behind_the_restore_is_not() -> None:
    """A transaction made before the second execution tells the earliest time of that execution."""
    logs = restored()
    logs["n1"].insert(-1, made(3, "n1-3"))
    late = operation(0, 6, 7, "n1-3")
    early = operation(1, 3, 4, f="read", value="n1-2")
    after = operation(1, 8, 9, f="read", value="n1-2")
    fault = cut([("n1", "n2")], 1, 5)
    logs["n1"] += [added(3, 3, [], [], ref(3, "n1-3")), executed(4, "n1-3")]
    findings = verdicts(logs, history(fault, late, early), **CAN)["executed"].details["findings"]
    assert ["showed n1-2" in each for each in findings] == [True]
    assert verdicts(logs, history(fault, late, after), **CAN)["executed"].details["findings"] == []


def test_an_answer_needs_an_execution_on_its_master() -> None:
    told = history(operation(0, 1, 2, "n1-2"))
    assert rules(one(FIRST), told) == {"answered-unexecuted"}
    assert rules(one(FIRST, SECOND), told) == set()
