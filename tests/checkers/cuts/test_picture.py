"""The picture of a witness: the message that violates goes from behind the cut to before it, and forward in rank."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkers.cuts import Cut, Given, check, logs_of, trace_of
from checkers.cuts.checker import PICTURES_MAX
from checkers.cuts.links import Links
from checkers.cuts.logs import NodeLog, Record
from checkers.cuts.picture import of_cut
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


@pytest.mark.parametrize("lacks", ["what", "xid", "time_ns"])
def test_a_trace_without_a_column_is_judged(lacks: str) -> None:
    """If it failed, the picture of a wrong cut would end the check with a traceback in place of its verdict."""
    trace = replace(TRACE, **{lacks: getattr(TRACE, lacks)[:0]})
    assert check(Given(cuts=[Cut(id="k")], trace=trace)).of("messages", "k").result == "invalid"


def test_a_mark_beside_the_message_says_what_it_is() -> None:
    """If it failed, the beginning of another cut, and any other mark of a node, would be drawn as that of this one."""
    other, note = ["mark", "cut", {"cut": 8}], ["mark", "paused", {}]
    trace = trace_of([SENDER, rows("n2", FIRST, SECOND, note, other, MARK)])
    verdict = check(Given(cuts=[Cut(id="k")], trace=trace)).verdict("messages")
    picture = verdict.details["anomalies"][verdict.witnesses[0].rule]
    told = [
        (each["text"], each["kind"]) for each in picture["events"] if each["lane"] == "n2" and each["text"]
    ]
    assert told == [("paused", "state"), ("8 begins", "cut"), ("k begins", "cut")]


def test_a_cut_whose_name_is_a_number_has_its_records() -> None:
    """If it failed, START and FINISH of such a cut would not be drawn."""
    marks = [["mark", kind, {"cut": 8}] for kind in ("cut", "start", "finish")]
    picture = of_cut(Links.of(trace_of([rows("n1", *marks)])), "8")
    assert picture is not None
    assert [each["kind"] for each in picture["events"]] == ["cut", "record", "record"]
    assert len(picture["brackets"]) == 1


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


WHOLE = trace_of(
    [
        rows(
            "n1",
            ["send", 1, "n2", "prepare", "t0"],
            ["mark", "cut", {"cut": "k"}],
            ["mark", "start", {"cut": "k"}],
            ["send", 2, "n2", "beat", None],
            ["mark", "finish", {"cut": "k"}],
        ),
        rows(
            "n2",
            ["mark", "cut", {"cut": "k"}],
            ["mark", "start", {"cut": "k"}],
            ["receive", "n1", 1, 1],
            ["receive", "n1", 1, 2],
            ["mark", "finish", {"cut": "k"}],
            ["mark", "start", {"cut": "other"}],
        ),
    ]
)


def test_a_whole_cut_is_drawn_with_its_records_and_the_messages_on_their_way() -> None:
    """If it failed, a reader would not see where START and FINISH stand beside the cut, or what it went through."""
    picture = of_cut(Links.of(WHOLE), "k")
    assert picture is not None
    (arrow,) = picture["arrows"]
    assert arrow["text"] == "prepare t0", "messages of no transaction are left out"
    frontier = picture["cuts"][0]["at"]
    assert arrow["from"]["at"] < frontier["n1"]
    assert frontier["n2"] < arrow["to"]["at"]
    assert [bracket["lane"] for bracket in picture["brackets"]] == ["n1", "n2"]
    for bracket in picture["brackets"]:
        assert frontier[bracket["lane"]] < bracket["from"] < bracket["to"]
    assert [each["text"] for each in picture["events"] if each["kind"] == "record"].count("FINISH") == 2
    assert of_cut(Links.of(WHOLE), "none") is None


def test_a_whole_cut_is_drawn_forward_whatever_clocks_say() -> None:
    """If it failed, a message would be drawn as received before it was sent."""
    late = LifeRows(
        node="n1", life=1, rows=[["send", 1, "n2", "w", "t", 900], ["mark", "cut", {"cut": "k"}, 901]]
    )
    early = LifeRows(node="n2", life=1, rows=[["receive", "n1", 1, 1, 3], ["mark", "cut", {"cut": "k"}, 4]])
    picture = of_cut(Links.of(trace_of([early, late], is_one_clock=False)), "k")
    assert picture is not None
    (arrow,) = picture["arrows"]
    assert arrow["from"]["at"] < arrow["to"]["at"]


def test_only_the_first_cuts_and_wrong_ones_are_drawn() -> None:
    """If it failed, the verdict of a long run would be mostly pictures, or the wrong cut would have none."""
    cuts = [f"k{number}" for number in range(20)]
    log = [Record(kind=kind, cut=cut) for cut in cuts for kind in ("start", "finish")]
    logs = logs_of([NodeLog(node="n1", records=[*log, Record(kind="start", cut="k19")])])
    changes: list[list[object]] = [["mark", "cut", {"cut": cut}] for cut in cuts]
    trace = trace_of([rows("n1", *changes)])
    report = check(Given(cuts=[Cut(id=cut) for cut in cuts], baseline=["n1"], trace=trace, logs=logs))
    assert report.of("form", "k19").result == "invalid"
    drawn = report.verdict("messages").details["pictures"]
    assert list(drawn) == ["k19", *cuts[: PICTURES_MAX - 1]]
    assert "pictures" not in report.verdict("form").details


def test_all_pictures_of_a_trace_share_one_pass_over_its_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, every wrong cut of a long trace would cost as much as judging all of its cuts."""
    passes = []
    of = Links.of
    monkeypatch.setattr(Links, "of", lambda trace: passes.append(trace) or of(trace))
    marks = [["mark", "cut", {"cut": cut}] for cut in ("k", "l", "m")]
    trace = trace_of([rows("n1", *marks, ["send", 1, "n2", "finish", "t1"]), rows("n2", FIRST, *marks)])
    report = check(Given(cuts=[Cut(id=cut) for cut in ("k", "l", "m")], baseline=["n1", "n2"], trace=trace))
    assert [each.result for each in report.judgements["messages"]] == ["invalid"] * 3
    assert report.pictures.keys() == {"k", "l", "m"}
    assert len(passes) == 1
