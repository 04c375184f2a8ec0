"""Statements that change what is there: lists, sums, ranges, several in one transaction."""

from __future__ import annotations

import math

import pytest

from nodes.iproto.codes import Code
from nodes.iproto.packing import pack
from nodes.qsync.configuration import SpaceDefinition
from nodes.qsync.definitions import IndexDefinition
from nodes.qsync.evaluation import Evaluation, Outcome
from nodes.qsync.keys import Part, Rejected
from nodes.qsync.spaces import Space, Transaction, commit, prepare
from nodes.qsync.statements import run, writes


def space(*tuples: tuple[object, ...]) -> Space:
    made = Space(SpaceDefinition(id=512, name="s", is_sync=True))
    for each in tuples:
        assert isinstance(each[0], str | int)
        made.confirmed[each[0]] = each
    return made


def evaluated(of: Space, *statements: list[object], dirty: bool = True) -> Outcome:
    return run(Evaluation({"s": of, 512: of}, confirmed_only=not dirty), statements)


def changes(outcome: Outcome) -> list[object]:
    return [(change.key, change.tuple) for change in outcome.changes]


def test_append_and_take_work_at_the_two_ends_of_a_list() -> None:
    """If it failed, list-append and the queue would test something else than they say."""
    made = space(("x", [1]))
    found = evaluated(made, ["append", "s", "x", 2], ["append", "s", "y", 3], ["take", "s", "x"])
    assert found.results == [True, True, 1]
    assert changes(found) == [("x", ("x", (1, 2))), ("y", ("y", (3,))), ("x", ("x", (2,)))]
    assert evaluated(made, ["take", "s", "z"]).results == [None]
    assert not evaluated(made, ["take", "s", "z"]).changes


def test_a_sum_that_would_fall_too_low_stops_the_whole_transaction() -> None:
    """If it failed, a transfer could overdraw an account, or take money without giving it to anybody."""
    made = space(("a", 5))
    transfer = [["add", "s", "a", -3, 0], ["add", "s", "b", 3]]
    assert evaluated(made, *transfer).results == [2, 3]
    refused = evaluated(made, ["add", "s", "b", 3], ["add", "s", "a", -6, 0])
    assert refused.mismatch == (1, 5)
    assert evaluated(made, ["add", "s", "a", -5, 0]).results == [0]
    assert evaluated(made, ["add", "s", "a", -9]).results == [-4]


@pytest.mark.parametrize(
    ("value", "old", "is_same"),
    [
        (math.nan, float("nan"), True),
        ((1, {"b": 2, "a": (3,)}), [1, {"a": [3], "b": 2}], True),
        (1, True, False),
        ({"a": 1}, {"a": True}, False),
        ([{"a": 1}], [{"a": 1.0}], False),
        (None, 0, False),
    ],
)
def test_a_compare_is_of_what_clients_see(value: object, old: object, is_same: bool) -> None:
    """If it failed, `cas` would change a value that a client did not name, or refuse the one that it has read."""
    found = evaluated(space(("x", value)), ["cas", "s", "x", old, "new"])
    assert (found.mismatch is None, bool(found.changes)) == (is_same, is_same)


def test_a_scan_sees_a_range_in_order_with_what_the_transaction_itself_did() -> None:
    """If it failed, a read of a whole set would miss elements that are there, or show them in no order."""
    made = space((3, "c"), (1, "a"), (2, "b"), (9, "z"))
    scan: list[object] = ["scan", "s", 1, 9]
    assert evaluated(made, scan).results == [((1, "a"), (2, "b"), (3, "c"))]
    own = evaluated(made, ["insert", "s", [4, "d"]], ["delete", "s", 1], scan)
    assert own.results[-1] == ((2, "b"), (3, "c"), (4, "d"))
    assert evaluated(made, ["scan", "s", None, None]).results == [((1, "a"), (2, "b"), (3, "c"), (9, "z"))]


def test_a_scan_that_decides_waits_for_what_it_saw() -> None:
    """If it failed, a writing transaction could reveal what is rolled back later."""
    made = space((1, "a"))
    evaluation = Evaluation({"s": made}, confirmed_only=False)
    waiting = Transaction(tuple(run(evaluation, [["insert", "s", [2, "b"]]]).changes), number=7)
    prepare(waiting)
    scan: list[object] = ["scan", "s", None, None]
    assert evaluated(made, scan, dirty=False).results == [((1, "a"),)]
    seen = evaluated(made, scan)
    assert seen.results == [((1, "a"), (2, "b"))]
    assert seen.looked_at is waiting
    commit(waiting)
    assert evaluated(made, scan, dirty=False).results == [((1, "a"), (2, "b"))]


@pytest.mark.parametrize(
    "statement",
    [
        ["append", "s", "x"],
        ["append", "s", "number", 1],
        ["take", "s", "number"],
        ["add", "s", "list", 1],
        ["add", "s", "x", "1"],
        ["add", "s", "x", 1, "0"],
        ["add", "s", "x", 1, 0, 0],
        ["add", "s", "x", 1, True],
        ["scan", "s"],
    ],
)
def test_what_makes_no_sense_is_refused(statement: list[object]) -> None:
    """If it failed, a slip in a client would break a node."""
    made = space(("number", 3), ("list", (1,)))
    with pytest.raises(Rejected) as refused:
        evaluated(made, statement)
    assert refused.value.code == Code.ILLEGAL_PARAMS


def test_what_changes_something_is_a_write() -> None:
    """If it failed, a replica would take a write, or a read would wait for a quorum."""
    assert all(writes([[word, "s", 1]]) for word in ("append", "take", "add", "insert", "cas"))
    assert not any(writes([[word, "s", 1]]) for word in ("get", "scan"))


def test_lists_are_compared_by_what_they_hold() -> None:
    """If it failed, a cas of a list would fit before a restart and not after it: an append makes a tuple of it."""
    for stored in ([1, [2]], (1, (2,))):
        made = space(("x", stored))
        assert evaluated(made, ["cas", "s", "x", [1, [2]], 3]).results == [True]
        assert evaluated(made, ["cas", "s", "x", [1, [True]], 3]).mismatch is not None


def test_a_sum_beyond_64_bits_is_refused() -> None:
    """If it failed, the node would end when it writes the row."""
    made = space(("x", 2**64 - 1))
    with pytest.raises(Rejected, match="does not fit"):
        evaluated(made, ["add", "s", "x", 1])


def test_a_scan_of_a_view_shows_what_it_is_a_view_of() -> None:
    """If it failed, a view would look empty to a scan, and full to a get."""
    view = Space(SpaceDefinition(id=513, name="v", is_sync=False))
    view.source = space((1, "a"))
    found = run(Evaluation({"v": view, 513: view}, confirmed_only=False), [["scan", "v", None, None]])
    assert found.results == [((1, "a"),)]


def test_a_statement_that_is_no_statement_writes_nothing() -> None:
    """If it failed, one malformed request would end the node."""
    assert not writes([[["x"], "s", 1], [], 5, [None]])


def test_a_truth_is_no_number_to_add() -> None:
    """If it failed, true would count as 1, as it does nowhere else."""
    with pytest.raises(Rejected, match="statement 0"):
        evaluated(space(("a", 1)), ["add", "s", "a", True])
    with pytest.raises(Rejected, match="True is no whole number"):
        evaluated(space(("a", True)), ["add", "s", "a", 1])


def test_a_path_with_a_long_number_leads_nowhere() -> None:
    """If it failed, the node would end by a request of a client."""
    with pytest.raises(Rejected, match="invalid JSON in position 2"):
        evaluated(space(("a", [1])), ["update", "s", "a", [["=", f"[{'1' * 5000}]", 2]]])


@pytest.mark.parametrize(
    ("path", "position"),
    [("[2]..b", 5), ("[2][", 4), ("[2][0]", 5), ("[2]x", 4), ("[0]", 2), ("..a", 2), (".", 2)],
)
def test_a_path_that_is_none_is_refused_as_by_2_6(path: str, position: int) -> None:
    """If it failed, clients would get another error, or an upsert be refused that 2.6.0 takes."""
    with pytest.raises(Rejected) as refused:
        evaluated(space(("a", [1])), ["update", "s", "a", [["=", path, 2]]])
    assert refused.value.code == 29
    assert str(refused.value) == f"Field '{path}' UPDATE error: invalid JSON in position {position}"
    upsert = ["upsert", "s", ["a", [1]], [["=", path, 2], ["!", 2, "b"]]]
    if path.startswith("[2]"):
        (change,) = evaluated(space(("a", [1])), upsert).changes
        assert change.tuple is not None and change.tuple[0] == "a" and "b" in change.tuple
    else:
        with pytest.raises(Rejected, match="invalid JSON"):
            evaluated(space(("a", [1])), upsert)


@pytest.mark.parametrize("path", ["[00]", "[2][00]"])
def test_a_position_of_several_zeros_is_none(path: str) -> None:
    """If it failed, the last field, or element, would be changed: positions count from 1, and −1 is the last one."""
    with pytest.raises(Rejected, match="invalid JSON in position"):
        evaluated(space(("a", [1])), ["update", "s", "a", [["=", path, 2]]])


@pytest.mark.parametrize("statement", [["cas", "s", 5, 5, 9], ["append", "s", 5, 1], ["add", "s", 5, 1]])
def test_a_key_that_is_not_the_first_field_is_not_written_into_it(statement: list[object]) -> None:
    """If it failed, such a statement would write a tuple of another key beside the one that it is about."""
    made = Space(SpaceDefinition(id=512, name="s", indexes=(IndexDefinition(parts=(Part(1, "unsigned"),)),)))
    made.confirmed[5] = ("x", 5) if statement[0] != "append" else ("x", [])
    with pytest.raises(Rejected, match="the key of space 's' is not the first field"):
        evaluated(made, statement)


def test_nil_names_no_tuple_of_a_unique_index() -> None:
    """If it failed, a delete or update by nil would change any one of the tuples without a value there."""
    second = IndexDefinition(1, "second", (Part(1, "unsigned", is_nullable=True),))
    made = Space(SpaceDefinition(id=512, name="s", indexes=(IndexDefinition(), second)))
    made.confirmed |= {"a": ("a", None), "b": ("b",)}
    with pytest.raises(
        Rejected, match="Supplied key type of part 0 does not match index part type"
    ) as refused:
        Evaluation({"s": made}, confirmed_only=False).key_by(made, 1, (None,))
    assert refused.value.code == 18


def test_a_unique_index_finds_what_the_transaction_itself_wrote() -> None:
    """If it failed, a transaction would not find by another index what it wrote, or find what it took away."""
    second = IndexDefinition(1, "second", (Part(1, "unsigned"),))
    made = Space(SpaceDefinition(id=512, name="s", indexes=(IndexDefinition(), second)))
    made.confirmed["a"] = ("a", 1)
    evaluation = Evaluation({"s": made}, confirmed_only=False)
    run(evaluation, [["insert", "s", ["b", 2]], ["delete", "s", "a"]])
    assert evaluation.key_by(made, 1, (2,)) == "b"
    assert evaluation.key_by(made, 1, (1,)) != "a"


def test_a_tuple_that_no_log_could_hold_is_refused() -> None:
    """If it failed, a value that a path leads into another one would end the node when it writes its log."""
    deep: object = 1
    for _ in range(600):
        deep = [deep]
    made = space(("a", deep))
    into = ["update", "s", "a", [["=", "[2]" + "[1]" * 599, deep]]]
    with pytest.raises(Rejected, match="the tuple is nested too deep"):
        evaluated(made, into)
    (change,) = evaluated(made, ["replace", "s", ["b", deep]]).changes
    assert pack({"spaces": {"s": [change.tuple]}})
