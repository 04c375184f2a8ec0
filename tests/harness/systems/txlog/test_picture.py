"""The picture of a run's queues: the design's own example, a fork with its recovery, and what a long run leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from bench.txlog_figure import FIGURE, example, figure
from checkers.history.history import Header, History
from harness.judge import Case
from harness.run import finish
from harness.systems.plans import planned
from harness.systems.txlog.picture import BOXES, MARKS_MAX, POINTS, STRETCHES_MAX, _put, drawn
from nodes.records import Record, framed
from nodes.txlog.journal import FILE

NONE = History(header=Header(), events=(), operations=())
SECOND_NS = 10**9


def _cells(board: dict[str, Any], column: int, queue: str) -> list[str]:
    return [" ".join(row["cells"][column][queue]) for row in board["rows"]]


def test_the_example_of_the_design() -> None:
    """If it failed, the picture would contradict the document that it is to explain."""
    board = example()
    assert board["columns"] == ["start", "after COLLECT", "after ADD"]
    assert _cells(board, 0, "incoming") == ["A B", "C", "D E"]
    assert _cells(board, 1, "incoming") == ["A B C D E", "A B C", "A B C D E"]
    for column in (0, 1):
        assert _cells(board, column, "synced") == ["U8 U9 U10"] * 3
    assert _cells(board, 2, "synced") == ["U8 U9 U10 A B C"] * 3
    assert _cells(board, 2, "incoming") == ["D E F G"] * 3


def test_the_figure_in_the_documentation_is_current() -> None:
    """If it failed, run `python -m bench.txlog_figure`: the document shows an older drawing."""
    assert FIGURE.read_text(encoding="utf-8") == figure() + "\n"


# ---- a fork


def _ref(ts: int, origin: str) -> list[Any]:
    return [ts, f"{origin}-1-{ts}", origin]


ONE, TWO, THREE, FOUR = _ref(1, "n1"), _ref(2, "n2"), _ref(3, "n1"), _ref(4, "n2")


def _part(own: list[Any], other: str) -> list[Record]:
    """Executes an entry of its own behind the common one, and goes back when all have met."""
    return [
        ["life", 1, "simple"],
        ["heard", other, 1, 1, [ONE]],
        ["added", 0, [ONE], 1, [], []],
        ["executed", 1, ONE[1], b"1"],
        ["split", [other], [1, b"1", []]],
        ["heard", other, own[0], None, [own]],
        ["added", 1, [own], own[0], [], []],
        ["executed", 2, own[1], b"2"],
        ["recovering", 0, None],
        ["recovered", 1, 1, "n1", {"n1": 1, "n2": 1}, [], [TWO, THREE], 3, {}],
        ["restored", 1, b"1"],
        ["added", 1, [TWO, THREE], 4, [], []],
        ["executed", 2, TWO[1], b"3"],
        ["executed", 3, THREE[1], b"4"],
    ]


LOGS = {"n1": _part(THREE, "n2"), "n2": _part(TWO, "n1")}
LINES = b"".join(
    b'{"time_ns":%d,"message":"%s","%s":%s}\n' % line
    for line in (
        (2 * SECOND_NS, b"split", b"missing", b'["n2"]'),
        (2 * SECOND_NS, b"split", b"missing", b'["n1"]'),
        (4 * SECOND_NS, b"recovering", b"epoch", b"0"),
        (5 * SECOND_NS, b"recovered", b"epoch", b"1"),
    )
)


def _drawn(logs: dict[str, list[Record]], verdict: dict[str, Any] | None = None) -> dict[str, Any]:
    files = {
        name: {FILE: b"".join(map(framed, records)), "log.jsonl": LINES} for name, records in logs.items()
    }
    picture = drawn(sorted(files), files, NONE, verdict or {})
    assert picture is not None
    return picture


def _marks(lane: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {mark["kind"]: mark for mark in lane["marks"]}


def _check(name: str, result: str, **details: Any) -> dict[str, Any]:
    return {"checker": f"txlog-{name}", "result": result, "details": {"violations": 0, **details}}


def _place(name: str, kind: str) -> int:
    return [record[0] for record in LOGS[name]].index(kind) + 1


def test_a_split_has_a_verdict_for_each_phase() -> None:
    """If it failed, a reader would not know whether what went wrong is a price of the split, and when it happened."""
    first, split = _place("n1", "added"), _place("n1", "split")
    breach = {"rule": "diverged", "records": [["n1", split], ["n2", 1]]}
    lost = {"rule": "lost", "records": [["n1", first]]}
    last = {"rule": "state-differs", "records": [["n1", len(LOGS["n1"])]]}
    checks = [
        _check("order", "valid", documented=[breach]),
        _check("kept", "invalid", violations=1, proofs=[lost]),
        _check("state", "invalid", violations=1, proofs=[last]),
    ]
    (stretch,) = _drawn(LOGS, {"checks": checks})["stretches"]
    assert [told for told in stretch["told"] if told.startswith("Verdict")] == [
        "Verdict before the split: violation of lost (txlog-kept).",
        "Verdict in the split: no violation; the documented price of the strategy: diverged (txlog-order).",
        "Verdict in the recovery: no violation.",
        "Verdict after it: violation of state-differs (txlog-state).",
    ]
    many = [*checks[:2], _check("state", "invalid", violations=9, proofs=[last])]
    (stretch,) = _drawn(LOGS, {"checks": many})["stretches"]
    assert "Verdict in the recovery: none of the violations that are listed." in stretch["told"]
    dear = [_check("order", "valid", documented=[breach], documented_left_out=9), *checks[1:]]
    (stretch,) = _drawn(LOGS, {"checks": dear})["stretches"]
    left_out = "no violation; none of the documented prices that are listed"
    assert f"Verdict in the recovery: {left_out}." in stretch["told"]
    some = (
        "no violation; the documented price of the strategy, as far as it is listed: diverged (txlog-order)"
    )
    assert f"Verdict in the split: {some}." in stretch["told"]
    unknown = [*checks, _check("vote", "unknown")]
    (stretch,) = _drawn(LOGS, {"checks": unknown})["stretches"]
    assert stretch["told"][-1] == "No verdict by phase: txlog-vote came to none."


def test_a_split_is_a_fork_with_a_vote_and_a_jump_back() -> None:
    """If it failed, a reader would not see what a recovery took back."""
    picture = _drawn(LOGS)
    (stretch,) = picture["stretches"]
    lane = stretch["lanes"][0]
    assert [(span["kind"], span["text"]) for span in lane["spans"]] == [
        ("split", "without n2"),
        ("recovering", "recovering"),
    ]
    marks = _marks(lane)
    assert marks["split"]["text"] == "leaves out n2; backup of the state at entry 1"
    assert marks["vote"]["text"] == "recovery 1: the branch of n1 wins with 1 vote"
    assert (marks["vote"]["from"], marks["vote"]["to"]) == (2, 1)
    assert (marks["restored"]["from"], marks["restored"]["to"]) == (2, 1)
    assert marks["vote"]["at_ns"] == 5 * SECOND_NS
    board = stretch["board"]
    assert board["columns"] == ["before the split", "the parts apart", "after the vote", "in one order again"]
    assert _cells(board, 1, "synced") == ["n1-1-1 n1-1-3", "n1-1-1 n2-1-2"]
    assert _cells(board, 2, "incoming") == ["n2-1-2 n1-1-3"] * 2
    assert _cells(board, 3, "synced") == ["n1-1-1 n2-1-2 n1-1-3"] * 2
    assert stretch["told"] == [
        "n1 leaves out n2. Backup of the state at entry 1.",
        "n2 leaves out n1. Backup of the state at entry 1.",
        "n1, n2 finish recovery 1: the branch of n1 wins. Votes for the branch of each master: n1 1, n2 1.",
        "n1 restores its backup: from entry 2 back to 1. It executes 1 transaction again, or others in their place.",
        "n2 restores its backup: from entry 2 back to 1. It executes 1 transaction again, or others in their place.",
    ]


def test_the_points_have_both_ends_of_a_fall() -> None:
    """If it failed, a jump back would look like a slow decline, or like none."""
    lane = _drawn(LOGS)["whole"]["lanes"][0]
    points = [tuple(map(int, point.split(","))) for point in lane["points"].split()]
    executed = [point[3] for point in points]
    assert max(executed) == 3 and (2, 1) in pairwise(executed)


def test_the_record_of_a_violation_is_marked_even_without_a_split() -> None:
    """If it failed, the reader of a violation would have to look for its place by hand."""
    logs = {name: records[:4] for name, records in LOGS.items()}
    verdict = {
        "checks": [
            {
                "result": "invalid",
                "details": {
                    "proofs": [
                        {"rule": "skipped", "records": [["n1", 3], ["n9", 1]]},
                        {"rule": "skipped", "records": [["n2", 3]]},
                    ]
                },
            },
            {"result": "valid", "details": {"proofs": [{"rule": "twice", "records": [["n2", 2]]}]}},
            {"result": "invalid", "details": None},
        ]
    }
    picture = _drawn(logs, verdict)
    assert [stretch["title"] for stretch in picture["stretches"]] == ["Violations"]
    assert picture["stretches"][0]["told"] == ["Violation of skipped: record 3 of n1 (added)."]
    assert picture["stretches"][0]["board"]["columns"] == ["at the start", "at the end"]
    lanes = picture["stretches"][0]["lanes"]
    assert _marks(lanes[0])["wrong"]["text"] == "violation of skipped: record 3 (added)"
    assert "wrong" not in _marks(lanes[1]), "the first proof of a rule is enough"


def test_a_master_whose_records_begin_behind_a_split_has_empty_queues_in_it() -> None:
    """If it failed, a run in which one master was silent for long would have no picture at all."""
    second = [["recovering", 1, None], ["recovered", 2, 3, "n1", {"n1": 1, "n2": 1}, [], [], 4, {}]]
    logs = {
        name: [*LOGS[name], ["split", [other], None], *second] for name, other in (("n1", "n2"), ("n2", "n1"))
    }
    logs["n3"] = [["life", 1, "simple"], ["split", ["n1"], None]]
    more = b"".join(
        b'{"time_ns":%d,"message":"%s","%s":%s}\n' % line
        for line in (
            (20 * SECOND_NS, b"split", b"missing", b'["n2"]'),
            (20 * SECOND_NS, b"split", b"missing", b'["n1"]'),
            (21 * SECOND_NS, b"recovering", b"epoch", b"1"),
            (22 * SECOND_NS, b"recovered", b"epoch", b"2"),
        )
    )
    late = b'{"time_ns":%d,"message":"split","missing":["n1"]}\n' % (60 * SECOND_NS)
    lines = {"n1": LINES + more, "n2": LINES + more, "n3": late}
    files = {
        name: {FILE: b"".join(map(framed, records)), "log.jsonl": lines[name]}
        for name, records in logs.items()
    }
    picture = drawn(sorted(files), files, NONE, {})
    assert picture is not None
    first = picture["stretches"][0]["board"]["rows"][2]
    assert first["name"] == "n3"
    assert [cell["synced"] + cell["incoming"] for cell in first["cells"]] == [[]] * 4


def _long(splits: int, entries: int) -> list[Record]:
    records: list[Record] = [["life", 1, "none"]]
    for number in range(entries):
        ref = [number + 1, f"n1-1-{number + 1}", "n1"]
        records.append(["made", ref[0], ref[0], ref[1], []])
        records.append(["added", number, [ref], ref[0], [], []])
        if number % (entries // splits) == 0:
            records += [["split", ["n2"], None], ["rejoined"]]
    return records


def test_a_long_run_stays_small_and_says_what_is_left_out() -> None:
    """If it failed, the page of a soak would be too large to open, or hide that it shows a part."""
    records = _long(40, 4_000)
    lines = b"".join(
        b'{"time_ns":%d,"message":"split","missing":["n2"]}\n' % (number * 10 * SECOND_NS)
        for number in range(1, 41)
    )
    files = {"n1": {FILE: b"".join(map(framed, records)), "log.jsonl": lines}}
    picture = drawn(("n1",), files, NONE, {})
    assert picture is not None
    assert len(picture["stretches"]) == STRETCHES_MAX
    assert picture["not_drawn"].endswith("only in the picture of the whole run: 35.")
    for stretch in (picture["whole"], *picture["stretches"]):
        for lane in stretch["lanes"]:
            assert 0 < len(lane["points"].split()) <= POINTS + 2
    cells: Sequence[dict[str, Any]] = picture["stretches"][-1]["board"]["rows"][0]["cells"]
    assert all(len(cell["synced"]) <= BOXES for cell in cells)


def test_small_marks_are_all_drawn_or_none_and_the_rest_is_counted() -> None:
    """If it failed, a lane whose first half alone has marks would look as if all was quiet later."""
    helped: list[Record] = [
        ["caught-up", number, [_ref(number + 1, "n2")], "n2"] for number in range(MARKS_MAX + 5)
    ]
    lane = _drawn({"n1": [["life", 1, "none"], *helped, ["life", 2, "none"]]})["whole"]["lanes"][0]
    assert [mark["kind"] for mark in lane["marks"]] == ["start"]
    assert lane["marks_left_out"] == MARKS_MAX + 5
    few = _drawn({"n1": [["life", 1, "none"], *helped[:5]]})["whole"]["lanes"][0]
    assert (len(few["marks"]), few["marks_left_out"]) == (5, 0)


@pytest.mark.parametrize("data", [b"", b"\0" * 40, b"no records at all, but bytes"])
def test_there_is_no_picture_without_records(data: bytes) -> None:
    """If it failed, a run whose nodes never started would have a page with an empty section."""
    assert drawn(("n1", "n2"), {"n1": {FILE: data}}, NONE, {}) is None


def test_a_damaged_log_is_named() -> None:
    """If it failed, a lane would be missing from the picture without a word."""
    damaged = bytearray(b"".join(map(framed, LOGS["n2"])))
    damaged[12] ^= 1
    files = {"n1": {FILE: b"".join(map(framed, LOGS["n1"]))}, "n2": {FILE: bytes(damaged)}}
    picture = drawn(("n1", "n2"), files, NONE, {})
    assert picture is not None
    assert len(picture["damage"]) == 1 and "n2" in picture["damage"][0]
    assert [lane["name"] for lane in picture["whole"]["lanes"]] == ["n1"]


def test_a_defect_of_the_picture_takes_no_verdict_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a run with an anomaly could end without a verdict, for the sake of its picture."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("harness.systems.txlog.picture.drawn", broken)
    plan = planned(system="txlog", cluster="sim")
    assert "a defect" in finish.drawings_of(Case(plan, NONE), {})["broken"]


def test_both_ends_of_a_fall_stay_whichever_queue_falls() -> None:
    """If it failed, a queue that loses entries and gets others within a slot would look as if it had lost fewer."""
    for fallen in ([20, 3, 0, 4], [20, 5, 0, 2]):
        points = [[0, 5, 0, 4]]
        _put(points, [10, 5, 1, 4], 1000, is_kept=False)
        _put(points, fallen, 1000, is_kept=True)
        _put(points, [30, 5, 0, 4], 1000, is_kept=False)
        assert points == [[0, 5, 0, 4], [10, 5, 1, 4], fallen, [30, 5, 0, 4]]
