"""The parts of the drawings that are easily wrong: ticks, node states, open ends, labels."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from checkers.history import Event, Operation
from checkers.history.operation import EventType, paired
from harness.pages.cycle_drawing import cycle_drawing
from harness.pages.fault_bands import FaultBand, Shape, parts_of
from harness.pages.node_states import node_story
from harness.pages.operation_rows import LINE_HEIGHT, LINES_WITH_NEIGHBOURS, operation_rows
from harness.pages.operation_words import operation_label, operation_value
from harness.pages.svg import WIDTH, Scale, duration, element, text_width, time_ticks
from harness.pages.time_lanes import GUTTER, TimeLanes
from harness.pages.witness_timeline import window


def band(does: str, start_ns: int, end_ns: int, **fields: object) -> FaultBand:
    given_fields: dict[str, object] = {"nodes": (), "links": (), "took_effect": True}
    return FaultBand(
        id=0,
        name=does,
        does=does,
        start_ns=start_ns,
        end_ns=end_ns,
        sure=None,
        ended=True,
        healed=True,
        evidence={},
        **(given_fields | fields),  # type: ignore[arg-type]
    )


def state(time_ns: int, **status: object) -> Event:
    return Event(index=0, time_ns=time_ns, type="info", process="monitor", f="state", node="n1", value=status)


def test_what_happened_to_a_node_alone_is_shown_with_what_led_to_it() -> None:
    """If it failed, the picture of a crash would be a millisecond in which nothing else happens."""
    second_ns = 1_000_000_000
    crash = [state(9 * second_ns)]
    assert window([], crash, {}, run_end_ns=30 * second_ns) == (4 * second_ns, 10 * second_ns)
    assert window([], [state(second_ns)], {}, run_end_ns=second_ns) == (0, second_ns + 1)


def test_a_record_without_times_is_as_wide_as_its_lines() -> None:
    """Where lines are counted as nanoseconds, the operations of a witness would all be drawn in one place."""
    state_lines = [state(40), state(75)]
    start_ns, end_ns = window([], state_lines, {}, run_end_ns=172)
    assert (start_ns, end_ns) == (26, 89)
    assert window([], state_lines, {}, run_end_ns=20 * 10**9) == (0, 1_000_000_075)


@given(start_ns=st.integers(0, 10**14), span_ns=st.integers(10, 10**14), count=st.integers(2, 14))
def test_ticks_are_few_round_and_told_apart(start_ns: int, span_ns: int, count: int) -> None:
    """If it failed, an axis would be crowded, empty, or say the same time twice."""
    ticks = time_ticks(start_ns, start_ns + span_ns, count)
    assert len(ticks) <= count + 1
    assert all(start_ns <= time_ns <= start_ns + span_ns for time_ns, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


def test_places_in_a_log_without_times_are_told_as_events() -> None:
    """If it failed, the cursor, the axis and the tooltips of such a log would say "0.000 s" everywhere."""
    events = Scale(0, 90_000, 0, 900, has_times=False)
    assert (events.moment(17), events.ticks(3)[1]) == ("event 17", (50_000, "#50000"))
    seconds = Scale(0, 9 * 10**9, 0, 900)
    assert (seconds.moment(17), seconds.ticks(3)[1]) == ("0.000 s", (5 * 10**9, "5 s"))
    drawn = {
        has_times: TimeLanes((0, 900), (), has_times=has_times).drawn("", "") for has_times in (True, False)
    }
    assert 'data-counts="events"' in drawn[False] and "data-counts" not in drawn[True]


@given(time_ns=st.integers(-(10**12), 10**12))
def test_a_scale_stays_within_its_edges(time_ns: int) -> None:
    """If it failed, a fault that began before the window would be drawn over the labels."""
    assert 92 <= Scale(1_000, 2_000, 92, 1148)(time_ns) <= 1148


def test_a_fault_wins_over_what_the_node_last_said() -> None:
    """If it failed, a paused node would be drawn as up until the monitor missed it."""
    story = node_story(
        "n1", [state(0, up=True, role="owner", term=2)], [band("pause", 40, 60, nodes=("n1",))]
    )
    assert [(found.start_ns, found.end_ns, found.kind) for found in story.stretches(0, 100)] == [
        (0, 40, "owner"),
        (40, 60, "paused"),
        (60, 100, "owner"),
    ]


def test_a_cut_names_whom_the_node_lost_and_keeps_its_state() -> None:
    """If it failed, one could not see that it was the isolated node which still called itself owner."""
    cut = band("cut", 40, 60, links=(("n1", "n2"), ("n2", "n1"), ("n1", "client")))
    middle = node_story("n1", [state(0, up=True, role="owner", term=2)], [cut]).stretches(0, 100)[1]
    assert (middle.kind, middle.words, middle.cut) == ("owner", "owner · term 2, cut from n2", True)


def test_a_partition_that_changes_names_whom_the_node_lost_when() -> None:
    """If it failed, the page would say that a node was cut off from all whom it was ever cut off from."""
    shapes = (
        Shape((("n1", "n2"), ("n2", "n1")), 40, 50, True),
        Shape((("n3", "n1"),), 50, 60, True),
        Shape((("n3", "n2"),), 60, 70, True),
    )
    links = tuple(link for shape in shapes for link in shape.links)
    changing = band("changing-cut", 40, 70, links=links, shapes=shapes)
    story = node_story("n1", [state(0, up=True, role="replica")], [changing])
    assert [(found.start_ns, found.words) for found in story.stretches(0, 100)] == [
        (0, "replica"),
        (40, "replica, cut from n2"),
        (50, "replica, cut from n3"),
        (60, "replica"),
    ]
    assert "n1 ↮ n2" in changing.targets and "n3 ↛ n1" in changing.targets


def test_a_fault_that_did_not_bite_changes_no_state() -> None:
    """If it failed, the lanes would show a node down that was up."""
    idle = band("kill", 40, 60, nodes=("n1",), took_effect=False)
    assert len(node_story("n1", [state(0, up=True, role="replica")], [idle]).stretches(0, 100)) == 1


def test_labels_say_what_was_asked_and_answered() -> None:
    """If it failed, the bars of a witness would not tell the story."""

    def label(
        f: str, asked: object, type_: EventType | None, answer: object = None, error: str | None = None
    ) -> str:
        invoke = Event(index=0, time_ns=0, type="invoke", process=1, f=f, key="r3", value=asked, node="n1")
        end = (
            Event(index=1, time_ns=9, type=type_, process=1, f=f, value=answer, error=error)
            if type_
            else None
        )
        return operation_label(paired(invoke, end), "r3")

    assert label("write", 7, "ok") == "write 7 · n1"
    assert label("read", None, "ok", 3) == "read → 3 · n1"
    assert label("read", None, "ok") == "read → ∅ · n1"
    assert label("read", None, "fail", error="timeout") == "read ✗ timeout · n1"
    assert label("read", None, None) == "read → ? · n1"
    assert label("cas", [3, 7], "fail", error="mismatch") == "cas 3→7 ✗ mismatch · n1"
    assert label("cas", [3, 7], "ok", [3, 7, 3]) == "cas 3→7 · n1"
    assert label("dump", None, "ok", {"spaces": {"register": [["r3", 7]]}}) == "dump r3 = 7 · n1"


def test_the_value_of_an_operation_is_cut_when_it_is_long() -> None:
    """If it failed, one long value would push everything else out of the drawing."""
    invoke = Event(index=0, time_ns=0, type="invoke", process=1, f="write", key="r3", value="x" * 10_000)
    assert len(operation_value(paired(invoke, None), 24)) == 24


def test_elements_escape_everything_but_elements() -> None:
    """If it failed, a value could end the attribute or the element in which it stands."""
    inner = element("title", "a<b")
    assert element("g", inner, "<&>", class_='x"y', stroke_width=1.25) == (
        '<g class="x&#34;y" stroke-width="1.2"><title>a&lt;b</title>&lt;&amp;&gt;</g>'
    )


def test_wide_characters_take_two_places() -> None:
    """If it failed, labels in Chinese or Japanese would run into each other."""
    assert text_width("東京", 10) == text_width("abcd", 10)


def test_durations_are_short_and_have_units() -> None:
    """If it failed, tables would be full of nanoseconds."""
    assert [duration(ns) for ns in (340_000, 1_200_000, 2_310_000_000, 200 * 10**9, 3 * 3600 * 10**9)] == [
        "340 µs",
        "1.2 ms",
        "2.31 s",
        "3 min 20 s",
        "3 h 0 min",
    ]
    assert [duration(ns) for ns in (999_499, 999_500, 999_499_999, 999_600_000)] == [
        "999 µs",
        "1 ms",
        "999 ms",
        "1 s",
    ]


def operation(process: int, start_ns: int, end_ns: int | None, type_: EventType = "ok") -> Operation:
    invoke = Event(
        index=0, time_ns=start_ns, type="invoke", process=process, f="write", key="r3", value=start_ns
    )
    if end_ns is None:
        return paired(invoke, None)
    return paired(invoke, Event(index=1, time_ns=end_ns, type=type_, process=process, f="write"))


@given(
    proving=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 999), st.integers(0, 400)), max_size=30),
    near=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 999), st.integers(0, 400)), max_size=60),
)
def test_rows_never_overlap_and_neighbours_only_fill_room(
    proving: list[tuple[int, int, int]], near: list[tuple[int, int, int]]
) -> None:
    """If it failed, bars would lie on each other, or harmless operations push the proof off the first screen."""
    scale = Scale(0, 1_000, GUTTER, 1148)
    named = [operation(process, start, start + took) for process, start, took in proving]
    others = [operation(process, start, start + took) for process, start, took in near]
    alone = operation_rows(named, [], "r3", scale)
    rows = operation_rows(named, others, "r3", scale)
    lines = [line for row in rows.rows for line in row.lines]
    assert rows.height <= max(alone.height, LINES_WITH_NEIGHBOURS * LINE_HEIGHT)
    assert sum(map(len, lines)) + rows.left_out == len(named) + len(others)
    for line in lines:
        for a, b in combinations(line, 2):
            assert a.right <= b.left or b.right <= a.left
        assert all(bar.left >= GUTTER and bar.right <= WIDTH for bar in line)


def test_an_operation_that_was_never_answered_reaches_to_the_edge() -> None:
    """If it failed, an open end would look like a known one, and an impossible order like a proof."""
    scale = Scale(0, 1_000, GUTTER, 1148)
    rows = operation_rows([operation(1, 100, None), operation(2, 100, 200, "info")], [], "r3", scale)
    crashed, timed_out = (row.lines[0][0] for row in rows.rows)
    assert crashed.tail == 1148
    assert timed_out.end == scale(200) < timed_out.tail < 1148


def transaction(value: object, f: str = "txn") -> Operation:
    asked = Event(index=0, time_ns=0, type="invoke", process=3, f=f, value=value, node="n1")
    return paired(asked, Event(index=1, time_ns=1, type="ok", process=3, f=f, value=value, node="n1"))


def test_a_transaction_is_told_by_what_it_did_to_each_key() -> None:
    """If it failed, a reader would have to make out JSON in the bars of a witness."""
    found = transaction([["append", "x", 3], ["w", "y", 4], ["r", "z", [1, 2]], ["r", "u", None]])
    assert operation_value(found, 160) == "x ⊕ 3, y := 4, z → [1, 2], u → ∅"
    assert operation_label(found, "z") == "txn z → [1, 2], … · n1"
    long = transaction([["r", "z", list(range(100))]])
    assert operation_value(long, 24).endswith("98, 99]")
    assert len(operation_value(long, 24)) < 32
    longer = transaction([["r", "z", list(range(5_000))]])
    assert operation_value(longer, 24).endswith("4998, 4999]")
    moved = transaction({"from": "a1", "to": "a2", "amount": 5}, "transfer")
    assert operation_value(moved, 40) == "5 a1→a2"
    assert operation_value(transaction({"a1": 7, "a2": 3}, "read"), 40, "a2") == "→ a2 = 3"


def test_a_circle_is_drawn_whole_and_what_is_none_is_not_drawn() -> None:
    """If it failed, the page would hide why transactions have no order, or break on odd details."""
    boxes = [{"name": name, "events": [0, 1], "operations": [["append", "x", 1]]} for name in ("T1", "T2")]
    edges = [
        {"from": "T1", "to": "T2", "kind": "ww", "key": "x"},
        {"from": "T2", "to": "T1", "kind": "rw", "key": "y"},
    ]
    found = transaction([["append", "x", 1]])
    drawn = cycle_drawing({"transactions": boxes, "edges": edges}, {0: found})
    assert drawn.count("<rect") == 3
    assert "process 3 at n1" in drawn
    assert "ww: its write of x comes before that of" in drawn
    for odd in (None, {}, {"transactions": boxes, "edges": []}, {"transactions": 3, "edges": "x"}):
        assert cycle_drawing(odd, {}) == ""


def test_a_cut_names_the_parts_that_it_leaves() -> None:
    """If it failed, a reader would have to find out elsewhere which node was cut off."""
    alone = [link for other in ("n1", "n2", "client") for link in (("n3", other), (other, "n3"))]
    assert parts_of(alone) == "n3 | n1 n2"
    halves = [(a, b) for a in ("n1", "n2") for b in ("n3", "n4")]
    assert parts_of([*halves, *(link[::-1] for link in halves)]) == "n1 n2 | n3 n4"
    assert parts_of(halves) == "", "one way only"
    assert parts_of([("n1", "n2"), ("n2", "n1"), ("n3", "n4"), ("n4", "n3")]) == "", (
        "they reach each other around"
    )
