"""Rows written once: every rule rings on a history that breaks it alone, and rests where no more is promised."""

from __future__ import annotations

import random
from typing import Any

import pytest

from checkers.domain import write_once
from checkers.history import Event, Header, History
from checkers.history.errors import ModelError

Line = tuple[int, str, str, Any]  # process, type, f, value; the node is n1 unless the value says so

NODES = ("n1", "n2")


def put(
    process: int, type_: str, *, fails: str = "", node: str = "n1", **spaces: list[int]
) -> dict[str, Any]:
    value = {"spaces": spaces, "fails": fails}
    return {"process": process, "type": type_, "f": "insert", "node": node, "value": value}


def read(process: int, type_: str = "ok", *, node: str = "n1", **fields: Any) -> dict[str, Any]:
    spaces = {space: fields.pop(space) for space in ("once", "notes") if space in fields}
    value: dict[str, Any] = {"from": 0, "below": 100}
    if type_ == "ok":
        value["spaces"] = spaces
    role = "owner" if node == "n1" else "replica"
    return {
        "process": process,
        "type": type_,
        "f": "read",
        "node": node,
        "value": value,
        "role": role,
        **fields,
    }


def whole(lines: list[dict[str, Any]], **spaces: list[int]) -> History:
    """These, each asked for and answered at once unless it says otherwise, and then equal dumps of both nodes."""
    events: list[Event] = []

    def add(line: dict[str, Any], type_: str) -> None:
        events.append(Event(index=len(events), time_ns=len(events), **{**line, "type": type_}))

    for line in lines:
        if line["type"] != "late":
            add(line, "invoke")
        if line["type"] != "invoke":
            add(line, "ok" if line["type"] == "late" else line["type"])
    for number, node in enumerate(NODES):
        rows = {space: [[key, key] for key in keys] for space, keys in spaces.items()}
        dump = {
            "process": 90 + number,
            "f": "dump",
            "node": node,
            "phase": "final",
            "value": {"spaces": rows},
        }
        add(dump, "invoke")
        add(dump, "ok")
    return History.of(Header(nodes=NODES, owner="n1"), events)


WRITTEN = [put(1, "ok", once=[1], notes=[2]), put(2, "ok", notes=[3])]
ALL = {"once": [1], "notes": [2, 3]}
BROKEN: dict[str, tuple[list[dict[str, Any]], dict[str, list[int]]]] = {
    "never-written": ([*WRITTEN, read(3, node="n2", once=[1, 9], notes=[2, 3])], ALL),
    "failed-yet-seen": (
        [
            *WRITTEN,
            put(3, "fail", fails="compare", once=[4]),
            read(4, once=[1, 4], notes=[2, 3], mode="dirty"),
        ],
        ALL,
    ),
    "torn-transaction": ([*WRITTEN, read(3, node="n2", once=[1], notes=[])], ALL),
    "later-without-earlier": ([*WRITTEN, read(3, node="n2", once=[], notes=[3])], ALL),
    "gone-back": (
        [*WRITTEN, read(3, node="n2", once=[1], notes=[2, 3]), read(4, node="n2", once=[], notes=[])],
        ALL,
    ),
    "stale": ([*WRITTEN, read(3, once=[1], notes=[2])], ALL),
    "lost-row": (WRITTEN, {"once": [1], "notes": [2]}),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_each_rule_rings(rule: str) -> None:
    """A lost, torn or reordered row, or one of a transaction that failed, would pass."""
    lines, held = BROKEN[rule]
    verdict = write_once.check(whole(lines, **held))
    assert verdict.result == "invalid"
    assert rule in {witness.rule for witness in verdict.witnesses}


def test_a_read_of_one_space_says_nothing_of_the_other() -> None:
    """A linearizable read, which no node serves of asynchronous spaces, would be called torn; or its stale row pass."""
    after = [read(3, mode="linearizable", once=[1]), read(4, once=[1], notes=[2, 3])]
    fresh = write_once.check(whole([*WRITTEN, *after], **ALL))
    assert fresh.result == "valid", fresh.witnesses
    gone = write_once.check(whole([*WRITTEN, read(3, mode="linearizable", once=[])], **ALL))
    assert {witness.rule for witness in gone.witnesses} == {"stale"}


def test_what_nobody_promised_is_no_alarm() -> None:
    """Replicas that are behind, answers that were lost, and dirty reads would be called anomalies."""
    lines = [
        put(1, "ok", once=[1], notes=[2]),
        read(2, node="n2", once=[], notes=[]),
        put(3, "info", once=[4]),
        read(4, node="n2", once=[1], notes=[2]),
        put(5, "fail", notes=[5]),
        read(6, once=[1], notes=[2, 5], mode="dirty"),
        read(7, once=[1], notes=[2]),
    ]
    assert write_once.check(whole(lines, once=[1], notes=[2])).result == "valid"
    assert write_once.check(whole(lines, once=[1, 4], notes=[2])).result == "valid"


def test_of_two_reads_that_overlap_neither_is_the_later_one() -> None:
    """A read that took long and saw an old state would count as a node that went back."""
    lines = [
        put(1, "ok", once=[1]),
        put(2, "invoke", once=[2]),
        read(3, "invoke", node="n2"),
        read(4, node="n2", once=[1, 2]),
        {**read(3, node="n2", once=[1]), "type": "late"},
        {**put(2, "ok", once=[2]), "type": "late"},
    ]
    assert write_once.check(whole(lines, once=[1, 2])).result == "valid"


def test_a_row_that_was_there_is_not_that_of_the_insert_which_failed() -> None:
    """A client that asks again after a lost answer, and hears that the row is there, would make a right store wrong."""
    lines = [put(1, "info", once=[1]), put(2, "fail", once=[1]), read(3, once=[1]), put(4, "fail", once=[2])]
    assert write_once.check(whole(lines, once=[1])).result == "valid"
    again = whole([*lines, put(5, "ok", once=[2])], once=[1, 2])
    assert write_once.check(again).result == "valid"


@pytest.mark.parametrize(("mode", "rules"), [("dirty", []), (None, ["failed-yet-seen"])])
def test_a_row_that_is_inserted_later_was_that_of_the_failed_insert_before(
    mode: str | None, rules: list[str]
) -> None:
    """A dirty read of what was rolled back later would be a false alarm as soon as a client asks for the row again."""
    lines = [
        put(1, "fail", once=[1]),
        read(2, once=[1], mode=mode),
        put(3, "ok", once=[1]),
        read(4, once=[1]),
    ]
    verdict = write_once.check(whole(lines, once=[1]))
    assert [witness.rule for witness in verdict.witnesses] == rules


def test_a_range_that_is_no_range_of_numbers_is_refused() -> None:
    """The checker would break on a text."""
    line = read(2, once=[1])
    line["value"]["from"] = "a"
    with pytest.raises(ModelError, match="whole numbers as from and below"):
        write_once.check(whole([line]))


def test_where_the_owner_changes_an_asynchronous_row_stays_on_the_node_that_acknowledged_it() -> None:
    """A deposed leader's asynchronous rows would be demanded of all nodes, or of none."""
    lines = [put(1, "ok", notes=[1]), put(2, "ok", once=[2])]
    history = whole(lines, once=[2])
    elected = write_once.check(history, is_fixed=False, is_equal=False)
    assert [witness.rule for witness in elected.witnesses] == ["lost-where-answered"]
    assert elected.witnesses[0].node == "n1"
    elsewhere = whole([put(1, "info", notes=[1]), put(2, "ok", once=[2])], once=[2])
    assert write_once.check(elsewhere, is_fixed=False, is_equal=False).result == "valid"


def test_what_is_gone_from_every_node_is_found_where_nodes_may_differ() -> None:
    """A lost write would be seen by nobody where no node must hold everything."""
    history = whole([put(1, "ok", once=[1, 3]), put(2, "ok", notes=[2])])
    (gone,) = write_once.gone_everywhere(history, history.dumps)
    assert gone.rule == "lost-row" and "rows 1 of once" in gone.summary


def test_what_is_later_without_what_is_earlier_may_be_dirty_or_without_order() -> None:
    """Rows that may be rolled back, and replicas that keep no order, would be called anomalies."""
    shows = read(3, node="n2", once=[], notes=[3])
    dirty = whole([*WRITTEN, {**shows, "mode": "dirty"}], **ALL)
    assert write_once.check(dirty).result == "valid"
    assert write_once.check(whole([*WRITTEN, shows], **ALL), is_ordered=False).result == "valid"


def test_rows_that_no_sight_can_show_are_not_judged() -> None:
    """A green light: inserts that nothing was asked about would be whole."""
    inserts = [event for event in whole(WRITTEN).events if event.f == "insert"]
    assert write_once.check(History.of(Header(nodes=NODES), inserts)).result == "unknown"


def random_history(seed: int, lost: bool = False) -> History:
    """A right store, whose replica follows some transactions behind; with `lost` it forgets one of them."""
    chance = random.Random(seed)
    log: list[dict[str, list[int]]] = []
    behind, forgets = 0, chance.randrange(10, 30)
    lines: list[dict[str, Any]] = []
    for count in range(60):
        if chance.random() < 0.6:
            spaces = {
                space: [10 * count + place]
                for place, space in enumerate(("once", "notes"))
                if chance.random() < 0.6
            }
            spaces = spaces or {"once": [10 * count]}
            outcome = chance.choice(("ok", "ok", "ok", "info", "fail"))
            if outcome == "ok" or (outcome == "info" and chance.random() < 0.5):
                log.append({} if lost and len(log) == forgets else spaces)
            lines.append({**put(count, outcome), "value": {"spaces": spaces, "fails": ""}})
            continue
        behind = chance.randint(behind, len(log))
        node = chance.choice(NODES)
        shown: dict[str, Any] = {"once": [], "notes": []}
        for each in log[: len(log) if node == "n1" else behind]:
            for space, keys in each.items():
                shown[space] += keys
        lines.append(
            {**read(count, node=node, **shown), "value": {"from": 0, "below": 10**6, "spaces": shown}}
        )
    held: dict[str, list[int]] = {"once": [], "notes": []}
    for each in log:
        for space, keys in each.items():
            held[space] += keys
    return whole(lines, **held)


def test_a_right_store_passes_and_one_that_forgets_a_transaction_does_not() -> None:
    """The checker would be wrong in situations that nobody wrote down."""
    for seed in range(60):
        assert write_once.check(random_history(seed)).result == "valid", seed
    found = [write_once.check(random_history(seed, lost=True)).result for seed in range(60)]
    assert found.count("invalid") > 30


def test_a_node_goes_back_exactly_if_a_later_read_of_a_row_lacks_it() -> None:
    """A row would be lost between reads of different ranges, or demanded of a read that was not asked for it."""
    outcomes = set()
    for seed in range(300):
        chance = random.Random(seed)
        keys = list(range(9))
        lines = [put(key, "ok", once=[key], notes=[key]) for key in keys]
        for number in range(chance.randint(2, 6)):
            low = chance.choice([0, 3, 6, 2])
            spaces = chance.choice([("once",), ("notes",), ("once", "notes")])
            shown = {
                space: [key for key in keys if low <= key < low + 3 and chance.random() < 0.9]
                for space in spaces
            }
            if chance.random() < 0.1:
                shown[spaces[0]].append(chance.choice(keys))  # it was not asked for
            line = read(100 + number, node="n2", **shown)
            lines.append({**line, "value": {"from": low, "below": low + 3, "spaces": shown}})
        verdict = write_once.check(whole(lines, once=keys, notes=keys))
        sights = [write_once._sight(each) for each in whole(lines).operations if each.f == "read"]
        expected = any(
            row not in later.rows and later.covers(row)
            for place, later in enumerate(sights)
            for before in sights[:place]
            for row in before.rows
        )
        found = any(each.rule == "gone-back" for each in verdict.witnesses)
        assert found == expected, seed
        outcomes.add(found)
    assert outcomes == {True, False}


@pytest.mark.parametrize("f", ["insert", "read"])
@pytest.mark.parametrize(
    "value", [5, None, [1], {}, {"spaces": {"once": ["a"]}}, {"spaces": {"once": [True]}}]
)
def test_rows_of_another_form_are_not_judged(f: str, value: Any) -> None:
    """A green light: a row that is not read as one would be missing nowhere."""
    lines = [put(0, "ok", once=[1]), read(1, once=[1])]
    lines[f == "read"]["value"] = value
    with pytest.raises(ModelError, match="whole number"):
        write_once.check(whole(lines, once=[1]))
