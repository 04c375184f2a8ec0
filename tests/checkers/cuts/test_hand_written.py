"""Every way for a cut to be wrong, written by hand, each with close neighbours that are right.

Only the level that is responsible may reject a case; every proof must be accepted by the verifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from checkers.cuts import Cut, Given, Operation, Report, Restored, check, verify, verify_logs
from checkers.cuts.state import DELETED, total
from tests.checkers.cuts import scripts

OF_LOGS = ("transactions", "closure", "external-causality")


def _given(
    *,
    trace: Mapping[str, str] | None = None,
    logs: Mapping[str, str] | None = None,
    cuts: tuple[Cut, ...] = (Cut(id="k1"),),
    operations: list[Operation] | None = None,
    **more: Any,
) -> Given:
    baseline = tuple(logs or ())
    return Given(
        cuts=cuts,
        baseline=more.pop("baseline", baseline),
        trace=None if trace is None else scripts.trace(trace),
        logs=None if logs is None else scripts.logs(logs),
        operations=operations,
        **more,
    )


def _proved(given: Given, report: Report) -> None:
    for each in report.judgements["messages"]:
        if each.proof is not None and given.trace is not None:
            verify.check(given.trace, each.cut, each.result, each.proof)
    for level in OF_LOGS:
        for each in report.judgements[level]:  # type: ignore[index] # the tuple is of levels
            if each.proof is not None and given.logs is not None:
                asked = given.operations or ()
                verify_logs.check(given.logs, given.baseline, each.cut, level, each.result, each.proof, asked)


def _op(xid: str, invoked: int, completed: int = -1, process: int = 1, **more: Any) -> Operation:
    return Operation(
        xid=xid, process=process, invoked_ns=invoked, completed_ns=completed, ok=completed >= 0, **more
    )


TWO = {"n1": "t1 S:k1 F:k1 t2", "n2": "t1 S:k1 F:k1 t2"}
K12 = (Cut(id="k1"), Cut(id="k2"))
FAILED = Cut(id="k1", causes=("n2 was killed",))
TIMED = (Cut(id="k1", asked_ns=100, ended_ns=200),)

RIGHT: dict[str, Given] = {
    "a message on its way": _given(trace={"n1": "+a>n2 *k1", "n2": "*k1 -a"}),
    "a message behind the cut": _given(trace={"n1": "*k1 +a>n2", "n2": "*k1 -a"}),
    "a message before the cut, doubled": _given(trace={"n1": "+a>n2 *k1", "n2": "-a -a *k1"}),
    "a lost message": _given(trace={"n1": "*k1 +a>n2", "n2": "*k1"}),
    "a client that took a message before it sent": _given(
        trace={"n1": "+a>c *k1", "c": "-a +b>n2", "n2": "-b *k1"}
    ),
    "a client that sent before it took one": _given(
        trace={"n1": "*k1 +a>c", "c": "+b>n2 -a", "n2": "-b *k1"}
    ),
    "a client with a new life in between": _given(
        trace={"n1": "*k1 +a>c", "c": "-a | +b>n2", "n2": "-b *k1"}
    ),
    "a colour change in the next life": _given(trace={"n1": "+a>n2 *k1", "n2": "-a | *k1"}),
    "a node that came later": _given(trace={"n1": "*k1 +a>n3", "n2": "*k1", "n3": "-a +b>n1"}),
    "the same side everywhere": _given(logs=TWO),
    "included where it is late": _given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 t1 F:k1+t1"}),
    "excluded where it is early": _given(logs={"n1": "S:k1 t1 F:k1", "n2": "t1 S:k1 F:k1-t1"}),
    "late everywhere and included nowhere": _given(logs={"n1": "S:k1 t1 F:k1", "n2": "S:k1 t1 F:k1"}),
    "a participant without a log": _given(logs={"n1": "t1@n1,client S:k1 F:k1", "n2": "S:k1 F:k1"}),
    "a transaction of one node": _given(logs={"n1": "t1@n1 S:k1 F:k1", "n2": "S:k1 F:k1"}),
    "rolled back everywhere": _given(logs={"n1": "r:t1 S:k1 F:k1", "n2": "p:t1 r:t1 S:k1 F:k1"}),
    "what a copy brought": _given(logs={"n1": "t1 B:b1 S:k1 F:k1", "n2": "R B:b1 S:k1 F:k1"}),
    "what was before the log began": _given(logs={"n1": "t1 B:b1 S:k1 F:k1", "n2": "… B:b1 S:k1 F:k1"}),
    "a failed cut before it": _given(
        logs={"n1": "S:k1 t1 S:k2 F:k2", "n2": "S:k1 t1 S:k2 F:k2"}, cuts=(FAILED, Cut(id="k2"))
    ),
    "two cuts": _given(logs={"n1": "S:k1 t1 F:k1 S:k2 F:k2", "n2": "S:k1 F:k1 t1 S:k2 F:k2"}, cuts=K12),
    "torn by a cut that did not finish": _given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 t1"}, cuts=(FAILED,)),
    "a message from outside a cut that did not finish": _given(
        trace={"n1": "*k1 +a>n2", "n2": "-a *k1"},
        logs={"n1": "S:k1", "n2": "S:k1"},
        cuts=(FAILED,),
    ),
    "recovered behind the cut": _given(logs={"n1": "S:k1 F:k1 t1!", "n2": "S:k1 F:k1 t1!"}),
    "had to fail, and did": _given(
        logs={"n1": "S:k1 F:k1", "n2": "S:k1"},
        cuts=(Cut(id="k1", had_to_fail=("n3 left",), causes=("n3 was killed",)),),
    ),
    "sets that name what was right by position": _given(
        logs={"n1": "t1 S:k1 t2 F:k1+t1-t2", "n2": "t1 S:k1 t2 F:k1+t1-t2"}
    ),
    "a prefix of the versions": _given(logs={"n1": "t1 S:k1 t2 F:k1+t2 t3", "n2": "t1 S:k1 t2 F:k1+t2 t3"}),
    "the later version left out": _given(logs={"n1": "t1 t2 S:k1 F:k1-t2", "n2": "t1 t2 S:k1 F:k1-t2"}),
    "clients that ran beside each other": _given(
        logs={"n1": "t1 S:k1 F:k1 t2", "n2": "t1 S:k1 F:k1 t2"}, operations=[_op("t2", 1, 8), _op("t1", 5, 9)]
    ),
    "an unanswered one before it": _given(
        logs={"n1": "t1 S:k1 F:k1 t2", "n2": "t1 S:k1 F:k1 t2"}, operations=[_op("t2", 1), _op("t1", 5, 9)]
    ),
    "acknowledged in time, and included": _given(logs=TWO, cuts=TIMED, operations=[_op("t1", 1, 99)]),
    "acknowledged while the cut ran": _given(logs=TWO, cuts=TIMED, operations=[_op("t2", 1, 101)]),
    "invoked while the cut ran": _given(logs=TWO, cuts=TIMED, operations=[_op("t1", 199, 220)]),
    "a read that no log has": _given(logs=TWO, cuts=TIMED, operations=[_op("t9", 1, 9, wrote=False)]),
    "finished, as all report": _given(
        logs=TWO, cuts=(Cut(id="k1", outcomes={"n1": "finished", "n2": "finished"}),)
    ),
    "failed, with a cause": _given(
        logs={"n1": "S:k1 F:k1", "n2": "S:k1"},
        cuts=(Cut(id="k1", outcomes={"n1": "failed", "n2": "failed"}, causes=("n2 was killed",)),),
    ),
    "the state of the oracle": _given(
        logs=TWO,
        cuts=K12[:1],
        restored={
            "k1": Restored(
                cut="k1",
                rows={"n1": {0: {"a": 1}, 1: {"b": 2}}, "n2": {0: {"a": 1}}},
                primary={0: "n1", 1: "n1"},
                oracle={"a": 1, "b": 2},
            )
        },
        invariant=total(3),
    ),
    "the state before, and what changed": _given(
        restored={
            "k0": Restored(cut="k0", rows={"n1": {0: {"a": 1, "b": 1}}}, primary={0: "n1"}),
            "k1": Restored(
                cut="k1",
                rows={"n1": {0: {"a": 2, "c": 1}}},
                primary={0: "n1"},
                since="k0",
                delta={"a": 2, "b": DELETED, "c": 1},
            ),
        }
    ),
}


def _restored(**more: Any) -> Restored:
    rows = more.pop("rows", {"n1": {0: {"a": 1}}, "n2": {0: {"a": 1}}})
    return Restored(cut="k1", rows=rows, primary={0: "n1"}, **more)


WRONG: dict[str, tuple[str, str, Given]] = {
    "a message from outside": (
        "messages",
        "message-from-outside",
        _given(trace={"n1": "*k1 +a>n2", "n2": "-a *k1"}),
    ),
    "the second of two copies inside": (
        "messages",
        "message-from-outside",
        _given(trace={"n1": "+a>n2 *k1 +b>n2", "n2": "-a -b *k1 -b"}),
    ),
    "from outside through a client": (
        "messages",
        "message-from-outside",
        _given(trace={"n1": "*k1 +a>c", "c": "-a +b>n2", "n2": "-b *k1"}),
    ),
    "from outside through two clients": (
        "messages",
        "message-from-outside",
        _given(trace={"n1": "*k1 +a>c", "c": "-a +b>d", "d": "-b +e>n2", "n2": "-e *k1"}),
    ),
    "taken by a life before the colour change": (
        "messages",
        "message-from-outside",
        _given(trace={"n1": "*k1 +a>n2", "n2": "-a | *k1"}),
    ),
    "sent by a life behind the colour change": (
        "messages",
        "message-from-outside",
        _given(trace={"n1": "*k1 | +a>n2", "n2": "-a *k1"}),
    ),
    "a second colour change": (
        "form",
        "second-colour-change",
        _given(trace={"n1": "*k1 +a>n2 *k1", "n2": "*k1 -a"}),
    ),
    "late and not included": (
        "transactions",
        "torn-transaction",
        _given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 t1 F:k1"}),
    ),
    "early and not excluded": (
        "transactions",
        "torn-transaction",
        _given(logs={"n1": "S:k1 t1 F:k1", "n2": "t1 S:k1 F:k1"}),
    ),
    "excluded on one of two": (
        "transactions",
        "torn-transaction",
        _given(logs={"n1": "t1 S:k1 F:k1", "n2": "t1 S:k1 F:k1-t1"}),
    ),
    "the sets exchanged": (
        "transactions",
        "torn-transaction",
        _given(logs={"n1": "t1 S:k1 t2 F:k1", "n2": "t2 S:k1 t1 F:k1+t2-t1"}),
    ),
    "a participant that never committed": (
        "transactions",
        "missing-transaction",
        _given(logs={"n1": "t1 S:k1 F:k1", "n2": "p:t1 S:k1 F:k1"}),
    ),
    "a participant without a word of it": (
        "transactions",
        "missing-transaction",
        _given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 F:k1"}),
    ),
    "rolled back by one": (
        "transactions",
        "missing-transaction",
        _given(logs={"n1": "t1 S:k1 F:k1", "n2": "r:t1 S:k1 F:k1"}),
    ),
    "a copy that came too soon": (
        "transactions",
        "missing-transaction",
        _given(logs={"n1": "B:b1 t1 S:k1 F:k1", "n2": "R B:b1 S:k1 F:k1"}),
    ),
    "a base and no copy": (
        "transactions",
        "missing-transaction",
        _given(logs={"n1": "t1 B:b1 S:k1 F:k1", "n2": "B:b1 S:k1 F:k1"}),
    ),
    "START twice": ("form", "second-start", _given(logs={"n1": "S:k1 S:k1 F:k1", "n2": "S:k1 F:k1"})),
    "FINISH twice": ("form", "second-finish", _given(logs={"n1": "S:k1 F:k1 F:k1", "n2": "S:k1 F:k1"})),
    "FINISH without START": (
        "form",
        "finish-without-start",
        _given(logs={"n1": "F:k1", "n2": "S:k1"}, cuts=(FAILED,)),
    ),
    "FINISH of another cut": (
        "form",
        "id-mismatch",
        _given(
            logs={"n1": "S:k1 S:k2 F:k1", "n2": "S:k1 F:k1 S:k2"}, cuts=(K12[0], Cut(id="k2", causes=("x",)))
        ),
    ),
    "in both sets": (
        "form",
        "in-both-sets",
        _given(logs={"n1": "S:k1 t1 F:k1+t1-t1", "n2": "S:k1 t1 F:k1+t1"}),
    ),
    "FINISH that did not wait": (
        "form",
        "named-but-not-committed",
        _given(logs={"n1": "S:k1 F:k1+t1 t1", "n2": "S:k1 t1 F:k1+t1"}),
    ),
    "FINISH that names what is rolled back": (
        "form",
        "named-but-not-committed",
        _given(logs={"n1": "S:k1 r:t1 F:k1+t1", "n2": "S:k1 r:t1 F:k1"}),
    ),
    "included, committed before START": (
        "form",
        "included-before-start",
        _given(logs={"n1": "t1 S:k1 F:k1+t1", "n2": "t1 S:k1 F:k1"}, strict_sets=True),
    ),
    "excluded, committed behind START": (
        "form",
        "excluded-behind-start",
        _given(logs={"n1": "S:k1 t1 F:k1-t1", "n2": "S:k1 t1 F:k1"}, strict_sets=True),
    ),
    "a recovered transaction in it": (
        "form",
        "had-to-fail",
        _given(logs={"n1": "S:k1 t1! F:k1+t1", "n2": "S:k1 t1! F:k1+t1"}),
    ),
    "finished although a node left": (
        "form",
        "had-to-fail",
        _given(logs={"n1": "S:k1 F:k1", "n2": "S:k1 F:k1"}, cuts=(Cut(id="k1", had_to_fail=("n3 left",)),)),
    ),
    "a later cut has less": (
        "form",
        "not-growing",
        _given(
            logs={"n1": "t1 S:k1 F:k1 S:k2 F:k2-t1", "n2": "t1 S:k1 F:k1 S:k2 F:k2-t1"},
            cuts=K12,
        ),
    ),
    "a later version alone": (
        "closure",
        "version-gap",
        _given(logs={"n1": "t1 t2 S:k1 F:k1-t1", "n2": "t1 t2 S:k1 F:k1-t1"}),
    ),
    "one client's later transaction alone": (
        "external-causality",
        "session-order",
        _given(
            logs={"n1": "t1 S:k1 F:k1 t2", "n2": "t1 S:k1 F:k1 t2"},
            operations=[_op("t2", 1, 4), _op("t1", 5, 9)],
        ),
    ),
    "the later of two clients' transactions alone": (
        "external-causality",
        "real-time-order",
        _given(
            logs={"n1": "t1 S:k1 F:k1 t2", "n2": "t1 S:k1 F:k1 t2"},
            operations=[_op("t2", 1, 4), _op("t1", 5, 9, process=2)],
        ),
    ),
    "acknowledged in time and not included": (
        "acknowledged",
        "acknowledged-not-included",
        _given(logs=TWO, cuts=TIMED, operations=[_op("t2", 1, 99)]),
    ),
    "acknowledged, and in no log": (
        "acknowledged",
        "acknowledged-in-no-log",
        _given(logs=TWO, cuts=TIMED, operations=[_op("t9", 1, 99)]),
    ),
    "invoked behind the end and included": (
        "acknowledged",
        "invoked-later-included",
        _given(logs=TWO, cuts=TIMED, operations=[_op("t1", 201, 220)]),
    ),
    "reported as finished and as failed": (
        "finish",
        "finished-on-some",
        _given(logs=TWO, cuts=(Cut(id="k1", outcomes={"n1": "finished", "n2": "failed"}, causes=("x",)),)),
    ),
    "reported as finished without FINISH": (
        "finish",
        "finished-without-record",
        _given(logs={"n1": "S:k1 F:k1", "n2": "S:k1"}, cuts=(Cut(id="k1", outcomes={"n1": "finished"}),)),
    ),
    "not finished, without a cause": (
        "finish",
        "no-cause",
        _given(logs={"n1": "S:k1 F:k1", "n2": "S:k1"}),
    ),
    "another state than the oracle's": (
        "state",
        "differs-from-oracle",
        _given(restored={"k1": _restored(oracle={"a": 1, "b": 1})}),
    ),
    "one and true": (
        "state",
        "differs-from-oracle",
        _given(restored={"k1": _restored(oracle={"a": True})}),
    ),
    "a backup that differs": (
        "state",
        "replica-differs",
        _given(restored={"k1": _restored(rows={"n1": {0: {"a": 1}}, "n2": {0: {"a": 2}}}, oracle={"a": 1})}),
    ),
    "a primary without its partition": (
        "state",
        "replica-differs",
        _given(restored={"k1": _restored(rows={"n2": {0: {}}}, oracle={})}),
    ),
    "a wrong total": (
        "state",
        "invariant",
        _given(restored={"k1": _restored()}, invariant=total(2)),
    ),
    "not what changed": (
        "state",
        "differs-from-delta",
        _given(
            restored={
                "k0": Restored(cut="k0", rows={"n1": {0: {"a": 1, "b": 1}}}, primary={0: "n1"}),
                "k1": _restored(since="k0", delta={"a": 1}),
            }
        ),
    ),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_cut_is_rejected_by_no_level(name: str) -> None:
    """A false alarm, or a case in which nothing was judged."""
    given = RIGHT[name]
    report = check(given)
    said = {each.level: each for level in report.judgements.values() for each in level if each.cut == "k1"}
    assert not [each.summary for each in said.values() if each.result == "invalid"]
    assert any(each.result == "valid" for each in said.values())
    _proved(given, report)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cut_is_rejected_by_the_responsible_level_alone(name: str) -> None:
    """A missed way to be wrong, or one that shows on a level that is not responsible."""
    level, rule, given = WRONG[name]
    report = check(given)
    wrong = [each for said in report.judgements.values() for each in said if each.result == "invalid"]
    assert [each.level for each in wrong] == [level], [each.summary for each in wrong]
    assert rule in [witness.rule for witness in wrong[0].witnesses]
    assert wrong[0].count > 0
    verdict = report.verdict(wrong[0].level)
    assert verdict.result == "invalid"
    assert bool(verdict.model) == (level != "external-causality")
    _proved(given, report)


def test_nothing_given_is_not_judged() -> None:
    """A level without material that passes."""
    report = check(Given(cuts=[Cut(id="k1")]))
    for level, said in report.judgements.items():
        assert [each.result for each in said] == ["unknown"], level
        assert said[0].summary.startswith("not judged: ")
        assert report.verdict(level).details["vacuous"]
        assert report.verdict(level).result == "unknown"


def test_a_failed_cut_does_not_make_a_level_unknown() -> None:
    """A run with one failed cut could never be valid."""
    given = _given(logs={"n1": "S:k1 t1 S:k2 F:k2", "n2": "S:k1 t1 S:k2 F:k2"}, cuts=(FAILED, Cut(id="k2")))
    report = check(given)
    assert report.verdict("transactions").result == "valid"
    assert report.of("transactions", "k1").standing == "nothing to judge"


@pytest.mark.parametrize(
    ("logs", "level"),
    [
        ({"n1": "t1 S:k1 F:k1", "n2": "S:k1 …"}, "finish"),
        ({"n1": "t1 S:k1 F:k1", "n2": "… F:k1"}, "transactions"),
    ],
    ids=["a torn end", "a lost beginning"],
)
def test_a_log_that_is_not_whole_leaves_it_open(logs: Mapping[str, str], level: str) -> None:
    """A lost record is taken for one that was never written."""
    report = check(_given(logs=logs, cuts=(Cut(id="k1", outcomes={"n1": "finished"}),)))
    said = report.of(level, "k1")  # type: ignore[arg-type] # one of the two above
    assert said.result == "unknown"
    assert "not whole" in said.summary


def test_acknowledged_in_a_log_that_begins_late_is_open() -> None:
    """An acknowledged transaction is called lost although its record may have stood before the log begins."""
    logs = {"n1": "… B:b1 S:k1 F:k1", "n2": "… B:b1 S:k1 F:k1"}
    report = check(_given(logs=logs, cuts=TIMED, operations=[_op("t9", 1, 99)]))
    assert report.of("acknowledged", "k1").result == "unknown"
