"""The picture of a witness: the message that violates goes from behind the cut to before it, and forward in rank."""

from __future__ import annotations

from checkers.cuts import Cut, Given, check, logs_of, trace_of
from checkers.cuts.logs import NodeLog, Record
from checkers.cuts.trace import LifeRows


def rows(node: str, *told: list[object]) -> LifeRows:
    return LifeRows(node=node, life=1, rows=[[*row, place] for place, row in enumerate(told)])


SENDER = rows(
    "n1",
    ["send", 1, "n2", "prepare", "t0"],
    ["mark", "cut", {"cut": "k"}],
    ["send", 2, "n2", "finish", "t1"],
)
MARK, FIRST, SECOND = ["mark", "cut", {"cut": "k"}], ["receive", "n1", 1, 1], ["receive", "n1", 1, 2]
TRACE = trace_of([SENDER, rows("n2", FIRST, SECOND, MARK)])
RIGHT_TRACE = trace_of([SENDER, rows("n2", FIRST, MARK, SECOND)])


def test_the_violating_message_is_drawn_across_the_cut() -> None:
    """If it failed, a reader would see two nodes and not why they contradict each other."""
    verdict = check(Given(cuts=[Cut(id="k")], baseline=["n1", "n2"], trace=TRACE)).verdict("messages")
    assert verdict.result == "invalid"
    picture = verdict.details["anomalies"][verdict.witnesses[0].rule]
    (arrow,) = [each for each in picture["arrows"] if each["kind"] == "violating"]
    assert arrow["text"] == "finish t1"
    frontier = picture["cuts"][0]["at"]
    assert arrow["from"]["at"] > frontier["n1"]
    assert arrow["to"]["at"] < frontier["n2"]
    assert all(each["from"]["at"] < each["to"]["at"] for each in picture["arrows"])
    assert [lane["name"] for lane in picture["lanes"]] == ["n1", "n2"]
    assert picture["not_drawn"] == 6 - len(picture["events"])


def test_a_torn_transaction_is_drawn_by_its_messages() -> None:
    """If it failed, the picture would show other transactions, or none."""
    committed = Record(kind="committed", xid="t1", participants=("n1", "n2"))
    start, finish = Record(kind="start", cut="k"), Record(kind="finish", cut="k")
    logs = logs_of(
        [
            NodeLog(node="n1", records=[start, finish, committed]),
            NodeLog(node="n2", records=[committed, start, finish]),
        ]
    )
    given = Given(cuts=[Cut(id="k")], baseline=["n1", "n2"], trace=RIGHT_TRACE, logs=logs)
    verdict = check(given).verdict("transactions")
    picture = verdict.details["anomalies"]["torn-transaction"]
    assert [arrow["text"] for arrow in picture["arrows"]] == ["finish t1"]
    assert (
        "anomalies"
        not in check(Given(cuts=[Cut(id="k")], baseline=["n1", "n2"], logs=logs))
        .verdict("transactions")
        .details
    )
