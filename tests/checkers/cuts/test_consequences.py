"""A finding that follows from what a different level says of the cut is not said again; any other is."""

from __future__ import annotations

import pytest

from checkers.cuts import Cut, Given, Report, Restored, check, trace_of
from checkers.cuts.report import Level
from checkers.cuts.trace import LifeRows, Trace
from tests.checkers.cuts import scripts

TORN = {"n1": "S:k F:k t1 t2", "n2": "t1 t2 S:k F:k"}


def finish_inside(*xids: str) -> Trace:
    """n1 sends the finish of t1 and of t2 behind the cut; n2 takes those of `xids` before it."""
    mark: list[object] = ["mark", "cut", {"cut": "k"}, 5]
    sends = [["send", seq, "n2", "finish", xid, 9] for seq, xid in enumerate(("t1", "t2"), 1)]
    takes = {xid: ["receive", "n1", 1, seq, 20] for seq, xid in enumerate(("t1", "t2"), 1)}
    inside = [takes[xid] for xid in xids]
    behind = [row for xid, row in takes.items() if xid not in xids]
    return trace_of(
        [
            LifeRows(node="n1", life=1, rows=[mark, *sends]),
            LifeRows(node="n2", life=1, rows=[*inside, [*mark[:3], 30], *behind]),
        ]
    )


def judged(logs: dict[str, str], **more: object) -> Report:
    given = Given(cuts=[Cut(id="k")], baseline=["n1", "n2"], logs=scripts.logs(logs), **more)  # type: ignore[arg-type]
    return check(given)


def wrong(report: Report) -> dict[Level, str]:
    return {
        level: each.summary for level, said in report.judgements.items() for each in said if each.witnesses
    }


def test_torn_by_a_message_from_outside() -> None:
    """If it failed, one missing marker would be reported as two bugs."""
    report = judged(TORN, trace=finish_inside("t1", "t2"))
    assert wrong(report).keys() == {"messages"}
    said = report.of("transactions", "k")
    assert said.standing == "consequence"
    assert said.summary == "not judged apart: t1 is torn by a message from outside (level messages)"
    assert report.verdict("transactions").result == "unknown"


def test_torn_without_such_a_message() -> None:
    """If it failed, a wrong sign would go unseen beside a missing marker."""
    report = judged(TORN, trace=finish_inside("t1"))
    assert wrong(report).keys() == {"messages", "transactions"}
    assert "t2" in wrong(report)["transactions"]
    assert report.of("transactions", "k").count == 1
    assert wrong(judged(TORN, trace=finish_inside())).keys() == {"transactions"}


@pytest.mark.parametrize(
    ("logs", "says"),
    [
        (
            {"n1": "S:k S:k F:k t1", "n2": "t1 S:k F:k"},
            "not judged apart: n1 wrote START of k twice (level form)",
        ),
        (
            {"n1": "S:k F:k t1", "n2": "S:k t1! F:k+t1"},
            "not judged apart: t1 is torn, and a record of the cut names it wrongly (level form)",
        ),
        (
            {"n1": "S:k t1 F:k-t1", "n2": "t1 S:k F:k"},
            "not judged apart: t1 is torn, and a record of the cut names it wrongly (level form)",
        ),
    ],
    ids=["no place", "recovered", "swapped"],
)
def test_torn_by_a_breach_of_form(logs: dict[str, str], says: str) -> None:
    """If it failed, FINISH with the wrong sets would be reported as two bugs."""
    report = judged(logs, strict_sets=True)
    assert wrong(report).keys() == {"form"}
    assert report.of("transactions", "k").summary == says


def test_torn_beside_a_breach_that_names_another() -> None:
    """If it failed, any breach of form would hide what is torn."""
    report = judged({"n1": "S:k t1! F:k+t1 t2", "n2": "t2 S:k t1! F:k+t1"})
    assert wrong(report).keys() == {"form", "transactions"}


def test_an_older_cut_that_began_anew_breaks_into_a_newer_one() -> None:
    """If it failed, one late marker would be reported as a message from outside of every cut that it breaks into."""

    def mark(cut: str) -> list[object]:
        return ["mark", "cut", {"cut": cut}, 1]

    late = [["send", 1, "n2", "finish", "t1", 9], ["receive", "n1", 1, 1, 20]]
    trace = trace_of(
        [
            LifeRows(node="n1", life=1, rows=[mark("j"), mark("k"), mark("j"), late[0]]),
            LifeRows(node="n2", life=1, rows=[mark("j"), late[1], mark("k")]),
        ]
    )
    report = check(Given(cuts=[Cut(id="j"), Cut(id="k")], baseline=["n1", "n2"], trace=trace))
    assert report.of("form", "j").witnesses[0].rule == "second-colour-change"
    said = report.of("messages", "k")
    assert (said.result, said.standing) == ("unknown", "consequence")
    assert said.summary == "not judged apart: n1 began j anew while k was its newest cut (level form)"


def restored(n2: dict[str, int]) -> dict[str, Restored]:
    """t1 and t2 write the key x."""
    rows = {"n1": {0: {"y": 1}}, "n2": {0: n2}}
    return {"k": Restored(cut="k", rows=rows, primary={0: "n1"}, oracle={"x": 2, "y": 1})}


def test_values_of_torn_transactions_are_not_judged_apart() -> None:
    """If it failed, each torn transaction would be reported as a wrong restore as well."""
    report = judged(TORN, restored=restored({"x": 2, "y": 1}))
    assert wrong(report).keys() == {"transactions"}
    assert report.of("state", "k").standing == "consequence"


def test_values_that_no_torn_transaction_wrote_are() -> None:
    """If it failed, a torn transaction would hide a wrong restore."""
    report = judged(TORN, restored=restored({"x": 2, "y": 7}))
    assert wrong(report).keys() == {"transactions", "state"}
    assert "y" in wrong(report)["state"]
    assert "x" not in wrong(report)["state"]


def test_a_cut_restored_by_half() -> None:
    """If it failed, a restore could bring back some nodes and leave the others out."""
    half = Restored(cut="k", rows={"n1": {0: {}}}, primary={0: "n1"}, refused={"n2": "no FINISH of k"})
    report = judged({"n1": "S:k F:k", "n2": "S:k"}, restored={"k": half})
    assert report.of("state", "k").witnesses[0].rule == "half-restored"
    assert wrong(report)["state"] == "k is restored, and n2 cannot be: no FINISH of k"
