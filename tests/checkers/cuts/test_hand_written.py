"""Every way for a cut to be wrong, each with close neighbours that are right.

Only the level that is responsible may reject a case; every proof must be accepted by the verifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from checkers.cuts import Cut, Given, Operation, Report, check, total, verify, verify_logs
from checkers.cuts.checker import sideless
from checkers.cuts.logs import NodeLog, Record, logs_of
from checkers.cuts.state import differences
from checkers.history.errors import HistoryError
from tests.checkers.cuts.right_cuts import FAILED, RIGHT, TIMED, TWO, given, operation
from tests.checkers.cuts.wrong_cuts import WRONG

OF_LOGS = ("transactions", "closure", "external-causality")


def _proved(given_cut: Given, report: Report) -> None:
    for each in report.judgements["messages"]:
        if each.proof is not None and given_cut.trace is not None:
            (cut,) = (cut for cut in given_cut.cuts if cut.id == each.cut)
            apart = sideless(given_cut, cut, given_cut.trace)
            verify.check(given_cut.trace, each.cut, each.result, each.proof, sideless=apart)
    for level in OF_LOGS:
        for each in report.judgements[level]:  # type: ignore[index] # the tuple is of levels
            if each.proof is not None and given_cut.logs is not None:
                asked = given_cut.operations or ()
                verify_logs.check(
                    given_cut.logs, given_cut.baseline, each.cut, level, each.result, each.proof, asked
                )


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_cut_is_rejected_by_no_level(name: str) -> None:
    """A false alarm, or a case in which nothing was judged."""
    given_cut = RIGHT[name]
    report = check(given_cut)
    said = {each.level: each for level in report.judgements.values() for each in level if each.cut == "k1"}
    assert not [each.summary for each in said.values() if each.result == "invalid"]
    assert any(each.result == "valid" for each in said.values())
    _proved(given_cut, report)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_cut_is_rejected_by_the_responsible_level_alone(name: str) -> None:
    """A missed way to be wrong, or one that shows on a level that is not responsible."""
    level, rule, given_cut = WRONG[name]
    report = check(given_cut)
    wrong = [each for said in report.judgements.values() for each in said if each.result == "invalid"]
    assert [each.level for each in wrong] == [level], [each.summary for each in wrong]
    assert rule in [witness.rule for witness in wrong[0].witnesses]
    assert wrong[0].count > 0
    verdict = report.verdict(wrong[0].level)
    assert verdict.result == "invalid"
    assert bool(verdict.model) == (level != "external-causality")
    _proved(given_cut, report)


def test_nothing_given_is_not_judged() -> None:
    """A level without material that passes."""
    report = check(Given(cuts=[Cut(id="k1")]))
    for level, said in report.judgements.items():
        assert [each.result for each in said] == ["unknown"], level
        assert said[0].summary.startswith("not judged: ")
        assert report.verdict(level).details["vacuous"]
        assert report.verdict(level).result == "unknown"


def test_nothing_that_happened_is_no_evidence() -> None:
    """A cut of an idle store is taken for one that was tested."""
    report = check(given(trace={"n1": "*k1 +a>n2", "n2": "*k1"}, logs={"n1": "S:k1 F:k1", "n2": "S:k1 F:k1"}))
    for level in ("messages", "transactions"):
        assert report.of(level, "k1").standing == "nothing to judge"  # type: ignore[arg-type] # they are levels
        assert report.verdict(level).details["vacuous"]  # type: ignore[arg-type]


def test_a_failed_cut_does_not_make_a_level_unknown() -> None:
    """A run with one failed cut could never be valid."""
    given_cut = given(
        logs={"n1": "S:k1 t1 S:k2 F:k2", "n2": "S:k1 t1 S:k2 F:k2"}, cuts=(FAILED, Cut(id="k2"))
    )
    report = check(given_cut)
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
    report = check(given(logs=logs, cuts=(Cut(id="k1", outcomes={"n1": "finished"}),)))
    said = report.of(level, "k1")  # type: ignore[arg-type] # one of the two above
    assert said.result == "unknown"
    assert "not whole" in said.summary


@pytest.mark.parametrize(
    "baseline", [(), ("n1", "n2", "n3")], ids=["nothing known", "a server without a log"]
)
def test_records_of_the_baseline_that_are_not_here_leave_it_open(baseline: tuple[str, ...]) -> None:
    """A server whose log is missing is taken for one that did not finish, or is left out of the count."""
    wrong = {"n1": "*k1 +a>n2", "n2": "-a *k1"}
    report = check(given(trace=wrong, logs=TWO, baseline=baseline, cuts=(FAILED,)))
    for level in ("transactions", "closure", "finish"):
        assert report.of(level, "k1").standing == "lacks material", level  # type: ignore[arg-type] # they are levels
    assert report.of("messages", "k1").result == "invalid"


def test_a_failed_cut_needs_no_log_that_is_missing() -> None:
    """A cut that all nodes report as failed stays open because a killed node has no log."""
    cut = Cut(id="k1", outcomes={"n1": "failed"}, causes=("n2 was killed",))
    report = check(given(logs={"n1": "S:k1"}, baseline=("n1", "n2"), cuts=(cut,)))
    assert report.of("finish", "k1").result == "valid"
    assert report.of("transactions", "k1").standing == "nothing to judge"


def test_times_of_a_cut_that_are_not_known_leave_it_open() -> None:
    """A cut passes although half of the rule was not judged; or what the other half shows is lost."""
    cuts = (Cut(id="k1", asked_ns=100), Cut(id="k2", ended_ns=200, causes=("k2 failed",)))
    logs = {"n1": "t1 S:k1 F:k1 S:k2 t3 F:k2+t3", "n2": "t1 S:k1 F:k1 S:k2 t3 F:k2+t3"}
    asked = [operation("t1", 1, 9), operation("t3", 300, 400)]
    report = check(given(logs=logs, cuts=cuts, operations=asked))
    assert report.of("acknowledged", "k1").summary == "not judged: it is not known when the cut was over"
    assert report.of("acknowledged", "k2").result == "invalid"
    assert report.of("acknowledged", "k2").witnesses[0].rule == "invoked-later-included"


def test_a_name_in_a_log_that_begins_late_is_no_breach() -> None:
    """A FINISH breaks its form although the record of the commit may have stood before the log begins."""
    logs = {"n1": "t1 B:b1 S:k1 F:k1-t1", "n2": "… B:b1 S:k1 F:k1-t1"}
    assert check(given(logs=logs)).of("form", "k1").result == "valid"
    here = {"n1": "B:b1 S:k1 F:k1-t1 t1", "n2": "… B:b1 S:k1 F:k1-t1 t1"}
    assert check(given(logs=here)).of("form", "k1").count == 2, "committed behind FINISH is seen in any log"


def test_a_cut_without_a_record_has_no_form() -> None:
    """A cut that never began gives a green light for the form of its records."""
    report = check(given(logs={"n1": "t1", "n2": "t1"}, cuts=(FAILED,)))
    assert report.of("form", "k1").standing == "nothing to judge"
    assert report.verdict("form").result == "unknown"


def test_what_a_server_outside_of_the_baseline_acknowledged_is_not_lost() -> None:
    """A transaction is called lost ("no log has it") although the log of another server has it."""
    logs = {"n1": "t1 S:k1 F:k1", "n2": "t1 S:k1 F:k1", "n3": "t9@n3"}
    asked = [operation("t9", 1, 50), operation("t1", 60, 70)]
    report = check(given(logs=logs, baseline=("n1", "n2"), cuts=TIMED, operations=asked))
    assert report.of("acknowledged", "k1").result == "valid"


def test_acknowledged_in_a_log_that_begins_late_is_open() -> None:
    """An acknowledged transaction is called lost although its record may have stood before the log begins."""
    logs = {"n1": "… B:b1 S:k1 F:k1", "n2": "… B:b1 S:k1 F:k1"}
    report = check(given(logs=logs, cuts=TIMED, operations=[operation("t9", 1, 99)]))
    assert report.of("acknowledged", "k1").result == "unknown"


@pytest.mark.parametrize(
    ("signs", "told"),
    [(("", ""), ""), (("None", "None"), "; its records are signed alike"),
     (("None", "k1"), "; its records are signed differently")],
)  # fmt: skip
def test_a_torn_transaction_tells_whether_its_nodes_signed_alike(signs: tuple[str, str], told: str) -> None:
    """Breaks if a node that signs for itself, and a FINISH that drops a set, left the same fingerprint."""

    def commit(sign: str) -> Record:
        return Record(kind="committed", xid="t1", participants=("n1", "n2"), sign=sign)

    start, finish = Record(kind="start", cut="k1"), Record(kind="finish", cut="k1")
    logs = logs_of(
        [
            NodeLog(node="n1", records=[commit(signs[0]), start, finish]),
            NodeLog(node="n2", records=[start, commit(signs[1]), finish]),
        ]
    )
    report = check(Given(cuts=(Cut(id="k1"),), baseline=("n1", "n2"), trace=None, logs=logs, operations=None))
    (torn,) = report.verdict("transactions").witnesses
    assert torn.how.endswith(f"FINISH records name no transactions{told}")


def test_logs_that_are_missing_or_begin_late_say_what_they_can() -> None:
    """If it failed, a lost record of a finished cut would be excused, or one that failed for a reason be left open."""
    failed = Cut(id="k1", outcomes={"n1": "failed"}, causes=["n2 was killed"])
    material = given(logs={"n1": "S:k1 F:k1"}, cuts=(failed,), baseline=("n1", "n2"))
    (judged,) = check(material).judgements["finish"]
    assert (judged.result, judged.summary) == ("valid", "it did not finish: n2 was killed")
    finished = Cut(id="k1", outcomes={"n1": "finished"})
    (lost,) = check(given(logs={"n1": "S:k1 F:k1", "n2": "… S:k1"}, cuts=(finished,))).judgements["finish"]
    assert [witness.rule for witness in lost.witnesses] == ["finished-without-record"]


def test_a_cut_may_break_two_rules_of_its_end() -> None:
    """If it failed, the record that a finished cut lacks would hide behind two nodes that disagree."""
    cut = Cut(id="k1", outcomes={"n1": "finished", "n2": "failed"})
    report = check(given(logs={"n1": "S:k1 F:k1", "n2": "S:k1"}, cuts=(cut,)))
    (finish,) = report.judgements["finish"]
    assert [witness.rule for witness in finish.witnesses] == ["finished-without-record", "finished-on-some"]


@pytest.mark.parametrize(
    ("expected", "rows", "words"),
    [
        (0.3, {"a": 0.1, "b": 0.2}, ""),
        (3, {"a": 1, "b": 1}, "the total is 2, expected 3"),
        (3, {"a": 3, "b": None}, "nothing is no number, and the total must be 3"),
    ],
)
def test_a_total_is_exact(expected: float, rows: dict[str, Any], words: str) -> None:
    """A false alarm: a tenth and two tenths would be more than three tenths."""
    assert total(expected)(rows) == words


def test_states_differ_by_values_and_not_by_how_they_are_written() -> None:
    """A false alarm: 0.0 and -0.0 are one value."""
    assert differences({"a": -0.0, "b": [1, {"c": -0.0}]}, {"a": 0.0, "b": [1, {"c": 0.0}]}) == []
    assert differences({"a": 1}, {"a": True}) == ['"a": 1, and true']


@pytest.mark.parametrize(
    ("record", "lacks"),
    [
        (Record(kind="finish"), "the cut of a finish record"),
        (Record(kind="committed", writes=[("a", 1)]), "the xid of a committed record"),
        (Record(kind="done"), "a kind among"),  # type: ignore[arg-type]
    ],
)
def test_a_record_that_is_of_nothing_is_refused(record: Record, lacks: str) -> None:
    """It would count as one of the cut that came last: a cut with a nameless FINISH would be finished."""
    with pytest.raises(HistoryError, match=lacks):
        logs_of([NodeLog(node="n1", records=[Record(kind="start", cut="k1"), record])])


@pytest.mark.parametrize(
    "asked",
    [
        {"xid": "t9", "completed_ns": 6, "ok": True, "wrote": False},
        {"xid": "t9", "completed_ns": 6},
        {"xid": "t9"},
    ],
)
def test_clients_that_asked_for_nothing_in_the_logs_hold_a_cut_to_nothing(asked: dict[str, Any]) -> None:
    """If it failed, a cut would keep what its clients knew and had acknowledged, and nothing stood behind that."""
    operations = [Operation(process=1, invoked_ns=5, **asked)]
    cut = Cut(id="k1", asked_ns=8, ended_ns=9)
    logs = logs_of(
        [NodeLog(node="n1", records=[Record(kind=kind, cut="k1") for kind in ("start", "finish")])]
    )
    report = check(Given(cuts=[cut], baseline=["n1"], logs=logs, operations=operations))
    for level in ("external-causality", "acknowledged"):
        assert report.of(level, "k1").standing == "nothing to judge"  # type: ignore[arg-type] # they are levels
        assert report.verdict(level).result == "unknown"  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcomes", "result", "says"),
    [
        ({"n1": "finished"}, "valid", "it finished everywhere"),
        ({"n1": "failed"}, "invalid", "k1 did not finish, and nothing is known that kept it"),
        ({"n1": "failed", "n2": "finished"}, "invalid", "n2 reports k1 as finished and n1 as failed"),
        ({}, "unknown", "not judged: nothing says how the cut ended"),
    ],
)
def test_without_logs_a_cut_ended_as_its_nodes_report(outcomes: Any, result: str, says: str) -> None:
    """If it failed, a cut that failed without a cause would count as finished, or the wrong node be named."""
    (judged,) = check(Given(cuts=[Cut(id="k1", outcomes=outcomes)])).judgements["finish"]
    assert (judged.result, judged.summary) == (result, says)
