"""Session guarantees and staleness: against every order there is, and against each other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkers import linearizable
from checkers.history import Event, Header, History, Operation
from checkers.sessions import GUARANTEES, check, check_staleness, version_graph
from tests import examples

Line = tuple[int, str, Any]  # process, what it did, value
LETTERS = {"r": "read", "w": "write", "c": "cas"}
INFO_READ = ("read", "info")


def history(lines: Sequence[Line]) -> History:
    """One operation after the other: ("r", 1) read 1, ("w?", 2) wrote 2 of unknown outcome, ("w!", 2) failed."""
    events: list[Event] = []
    for process, what, value in lines:
        f = LETTERS[what[0]]
        outcome: Any = {"": "ok", "?": "info", "!": "fail"}[what[1:]]
        asked = None if f == "read" else value
        types: tuple[Any, Any] = ("invoke", outcome)
        for type_, told in zip(types, (asked, value), strict=True):
            events.append(
                Event(
                    index=len(events),
                    time_ns=len(events) * 1_000_000,
                    type=type_,
                    process=process,
                    f=f,
                    key="x",
                    value=told,
                )
            )
    return History.of(Header(), events)


def result(guarantee: str, *lines: Line) -> str:
    return check(history(lines), guarantee=guarantee).result


# ---- the plain twin: try everything


def orders(sessions: Sequence[Sequence[Operation]]) -> Iterator[list[Operation]]:
    """Every order of all operations that keeps each session's own, without or with those of unknown outcome."""
    if not any(sessions):
        yield []
    for number, session in enumerate(sessions):
        if not session:
            continue
        rest = [*sessions[:number], session[1:], *sessions[number + 1 :]]
        for order in orders(rest):
            yield [session[0], *order]
            if session[0].type == "info":
                yield order


def fits(order: Sequence[Operation]) -> bool:
    """A register would have answered so."""
    value = None
    for operation in order:
        if operation.f == "write":
            value = operation.value
        elif operation.f == "read":
            if operation.value != value:
                return False
        else:
            if operation.value[0] != value:
                return False
            value = operation.value[1]
    return True


def coherent(operations: Sequence[Operation]) -> bool:
    """By trying every order. A late write's place is after what its process had done: checked apart from the order."""
    main, late = [], []
    for parts in _parts(operations).values():
        main.append(parts[0])
        late += parts[1]
    for order in orders([*main, *([operation] for _, operation in late)]):
        place = {id(operation): number for number, operation in enumerate(order)}
        kept = all(
            id(operation) not in place or all(place[id(each)] < place[id(operation)] for each in before)
            for before, operation in late
        )
        if kept and fits(order):
            return True
    return False


def _parts(
    operations: Sequence[Operation],
) -> dict[int, tuple[list[Operation], list[tuple[list[Operation], Operation]]]]:
    by_process: dict[int, tuple[list[Operation], list[tuple[list[Operation], Operation]]]] = {}
    for operation in operations:
        if operation.type == "fail" or (operation.f, operation.type) == INFO_READ:
            continue
        sure, late = by_process.setdefault(operation.process, ([], []))
        if operation.type == "info":
            late.append((list(sure), operation))
        else:
            sure.append(operation)
    return by_process


def monotonic_reads(operations: Sequence[Operation]) -> bool:
    """By trying every order of the versions."""
    seen: dict[int, list[Any]] = {}
    replaced = []
    for operation in operations:
        if operation.type == "ok" and operation.f != "write":
            seen.setdefault(operation.process, []).append(
                operation.value if operation.f == "read" else operation.value[0]
            )
        if operation.type == "ok" and operation.f == "cas":
            replaced.append(tuple(operation.value))
    values = sorted({value for each in seen.values() for value in each} - {None})
    values += [new for _, new in replaced if new not in values]
    for order in permutations(values):
        place = {None: -1, **{value: number for number, value in enumerate(order)}}
        forward = all(
            place[first] <= place[second] for each in seen.values() for first, second in pairwise(each)
        )
        if forward and all(place[old] < place[new] for old, new in replaced if old in place):
            return True
    return False


@st.composite
def little_histories(draw: st.DrawFn) -> list[Line]:
    """A few operations of three processes; written values are unique, read ones are any."""
    lines: list[Line] = []
    for value in range(1, draw(st.integers(2, 6)) + 1):
        process = draw(st.integers(0, 2))
        known = st.sampled_from([None, *range(1, value + 2)])
        match draw(st.sampled_from(["r", "r", "w", "w", "w?", "c", "c?"])):
            case "r":
                lines.append((process, "r", draw(known)))
            case "w" | "w?" as what:
                lines.append((process, what, value))
            case what:
                old = draw(known)
                lines.append((process, what, [None if old == value else old, value]))
    return lines


def is_written(lines: Sequence[Line]) -> bool:
    """Nobody saw what nobody wrote."""
    values = {None, *(value if what[0] == "w" else value[1] for _, what, value in lines if what[0] != "r")}
    shown = [value if what == "r" else value[0] for _, what, value in lines if what in ("r", "c")]
    return set(shown) <= values


@given(little_histories())
@example([(0, "w?", 1), (0, "c?", [1, 2]), (1, "r", 2), (1, "r", 1)])
@example([(0, "c", [None, 1]), (1, "r", 2), (1, "w", 2)])
@example([(0, "w", 1), (0, "c", [1, 2]), (1, "r", 1), (1, "w", 3), (1, "r", 2)])
def test_coherence_is_exact(lines: list[Line]) -> None:
    """A violation would be missed, or a store blamed for what it did not do."""
    made = history(lines)
    observed = any(what in ("r", "c") for _, what, _ in lines)
    expected = "invalid" if not coherent(made.operations) else "valid" if observed else "unknown"
    assert check(made).result == expected


def drawn(chance: random.Random) -> list[Line]:
    """As `little_histories`, a little larger, and much faster."""
    lines: list[Line] = []
    for value in range(1, chance.randint(3, 7)):
        what = chance.choice(["r", "r", "w", "w", "w?", "c", "c?", "w!", "c!"])
        shown = chance.choice([None, *range(1, value + 1)])
        old = None if shown == value else shown
        told = shown if what == "r" else value if what[0] == "w" else [old, value]
        lines.append((chance.randint(0, 2), what, told))
    return lines


def agrees(lines: list[Line]) -> bool:
    made = history(lines)
    return (check(made).result == "invalid") == (not coherent(made.operations))


@pytest.mark.parametrize("count", [1_500, pytest.param(3_000, marks=pytest.mark.long)])
def test_coherence_agrees_with_every_order_there_is(count: int) -> None:
    """A rare kind of history would be judged wrongly."""
    chance = random.Random("sessions")
    wrong = [lines for lines in (drawn(chance) for _ in range(count)) if not agrees(lines)]
    assert not wrong[:1]


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(4))
def test_coherence_agrees_all_night(block: int) -> None:
    """A still rarer one would be."""
    chance = random.Random(f"sessions {examples.night} {block}")
    wrong = [lines for lines in (drawn(chance) for _ in range(5_000)) if not agrees(lines)]
    assert not wrong[:1]


@given(little_histories().filter(is_written))
def test_monotonic_reads_are_exact(lines: list[Line]) -> None:
    """Reads that went back would be missed, or made up."""
    made = history(lines)
    invalid = check(made, guarantee="monotonic-reads").result == "invalid"
    assert not invalid or not coherent(made.operations)
    if not any(what == "c?" for _, what, _ in lines):
        assert invalid == (not monotonic_reads(made.operations))


def reads_own_writes(operations: Sequence[Operation]) -> bool:
    """By drawing every pair: a read is no older than an earlier own write, a cas is newer than what it replaced."""
    newer: dict[Any, set[Any]] = {None: {each.value for each in operations if each.f == "write"}}
    written: dict[int, list[Any]] = {}
    for operation in operations:
        read = {"read": [operation.value], "cas": operation.value}.get(operation.f, [])[:1]
        wrote = {"write": [operation.value], "cas": operation.value}.get(operation.f, [])[-1:]
        for own in written.setdefault(operation.process, []):
            newer.setdefault(own, set()).update(value for value in read if value != own)
        if operation.f == "cas":
            newer.setdefault(read[0], set()).update(wrote)
            newer[None].update(wrote)
        written[operation.process] += wrote
    left = set(newer).union(*newer.values())
    while True:
        last = {value for value in left if not newer.get(value, set()) & left}
        if not last:
            return not left
        left -= last


def test_read_your_writes_looks_at_all_own_writes() -> None:
    """A read that is older than an own write would pass if that write was not the last before it."""
    chance, told = random.Random("own writes"), set()
    for _ in range(1_000):
        lines: list[Line] = []
        for value in range(1, chance.randint(4, 20)):
            known = chance.choice([None, *range(1, value)])
            steps: list[tuple[str, Any]] = [("r", known), ("w", value), ("w", value), ("c", [known, value])]
            what, shown = chance.choice(steps)
            lines.append((chance.randint(0, 1), what, shown))
        if is_written(lines) and any(what in ("r", "c") for _, what, _ in lines):
            made = history(lines)
            verdict = check(made, guarantee="read-your-writes")
            assert (verdict.result == "valid") == reads_own_writes(made.operations), lines
            told.add((verdict.result, check(made).result))
    assert told == {("valid", "valid"), ("valid", "invalid"), ("invalid", "invalid")}


@given(little_histories())
def test_coherence_implies_every_guarantee(lines: list[Line]) -> None:
    """The strongest model that is named would not be the strongest."""
    made = history(lines)
    if check(made).result == "valid":
        assert all(check(made, guarantee=each).result == "valid" for each in GUARANTEES)


@given(little_histories())
def test_linearizable_histories_are_coherent(lines: list[Line]) -> None:
    """A weaker check would fail what a stronger one passes."""
    made = history(lines)
    if linearizable.check(made).result == "valid":
        assert all(check(made, guarantee=each).result == "valid" for each in GUARANTEES)
        assert check_staleness(made).details["stale_reads"] == 0


# ---- each guarantee by itself

VIOLATIONS: dict[str, tuple[Line, ...]] = {
    "monotonic-reads": ((0, "w", 1), (0, "w", 2), (1, "r", 1), (1, "r", 2), (2, "r", 2), (2, "r", 1)),
    "read-your-writes": ((0, "w", 1), (0, "r", None)),
    "monotonic-writes": ((0, "w", 1), (0, "w", 2), (1, "r", 2), (1, "r", 1)),
    "writes-follow-reads": ((0, "w", 1), (1, "r", 1), (1, "w", 2), (2, "r", 2), (2, "r", 1)),
}


@pytest.mark.parametrize("guarantee", VIOLATIONS)
def test_what_breaks_a_guarantee_is_named(guarantee: str) -> None:
    """A client could not learn which of its expectations the store does not keep."""
    lines = VIOLATIONS[guarantee]
    assert result(guarantee, *lines) == "invalid"
    assert result("coherence", *lines) == "invalid"
    assert check(history(lines)).witnesses[0].rule == guarantee
    kept = {"monotonic-reads", "read-your-writes", "monotonic-writes", "writes-follow-reads"} - {guarantee}
    others = {each: result(each, *lines) for each in sorted(kept)}
    assert "invalid" not in others.values(), others


def test_a_lost_update() -> None:
    """Two compare-and-sets from one value would pass, if nobody read what they wrote."""
    verdict = check(history([(0, "w", 1), (0, "c", [1, 2]), (1, "c", [1, 3])]))
    assert verdict.witnesses[0].rule == "lost-update"
    assert verdict.witnesses[0].events == (2, 3, 4, 5)


@pytest.mark.parametrize(
    ("old", "key", "words"),
    [
        (None, "x", "the initial value (nothing) of key x was replaced by 1 and by 2"),
        (0, "x", "the value 0 of key x was replaced by 1 and by 2"),
        (0, None, "the value 0 of the register was replaced by 1 and by 2"),
    ],
)
def test_a_lost_update_names_its_key_and_the_initial_value(
    old: int | None, key: str | None, words: str
) -> None:
    """ "Nothing was replaced twice" would be read as an all-clear."""
    written: list[Line] = [] if old is None else [(0, "w", old)]
    made = history([*written, (0, "c", [old, 1]), (1, "c", [old, 2])])
    made = replace(made, operations=tuple(msgspec.structs.replace(each, key=key) for each in made.operations))
    assert check(made).witnesses[0].summary == words


def test_a_missing_key_is_counted_beside_the_key_none() -> None:
    """Two keys that are not judged would be counted as one."""
    twice = history([(0, "w", 1), (1, "w", 1)])
    keys = (None, None, "None", "None")
    operations = tuple(
        msgspec.structs.replace(each, key=key, invoke_index=4 * place, complete_index=4 * place + 1)
        for place, (each, key) in enumerate(zip([*twice.operations] * 2, keys, strict=True))
    )
    verdict = check(replace(twice, operations=operations))
    assert verdict.summary == "2 keys of 2 could not be judged: the register, where a value was written twice"
    assert set(verdict.details["keys_not_judged"]) == {"no key", "None"}


def test_a_chain_cannot_be_cut() -> None:
    """A value could stand between a compare-and-set and what it replaced."""
    verdict = check(history([(0, "w", 1), (0, "c", [1, 2]), (1, "r", 1), (1, "w", 3), (1, "r", 2)]))
    (witness,) = verdict.witnesses
    assert witness.rule == "between-compare-and-set"
    assert "process 0 replaced 1 by 2: so 2 is the newer of the two." in witness.explanation


def test_values_from_nowhere() -> None:
    """A value that cannot have been there would be left to other checkers."""
    assert check(history([(0, "w!", 1), (1, "r", 1)])).witnesses[0].rule == "read-of-failed-write"
    assert check(history([(1, "r", 1)])).witnesses[0].rule == "never-written"


def test_a_write_of_unknown_outcome_may_come_late() -> None:
    """A store would be blamed for a write that nobody had acknowledged."""
    for guarantee in GUARANTEES:
        assert result(guarantee, (0, "w?", 1), (0, "r", None), (1, "r", None), (1, "r", 1)) == "valid"


def test_a_cas_of_a_value_with_itself_that_got_no_answer_shows_nothing() -> None:
    """A false alarm: it may never have happened, so its process need not have met the value."""
    lines: list[Line] = [(0, "w", 1), (1, "w", 2), (1, "c?", [1, 1]), (2, "r", 1), (2, "r", 2)]
    assert coherent(history(lines).operations)
    for guarantee in GUARANTEES:
        assert result(guarantee, *lines) == "valid"


def test_a_deletion_is_not_said_to_be_a_second_write() -> None:
    """The reason why a key is not judged would not be so."""
    verdict = check(history([(0, "w", 1), (0, "w", None), (0, "r", None)]))
    assert verdict.details["keys_not_judged"] == {"x": "the value from before the first write was written"}


def test_values_written_twice_are_not_judged() -> None:
    """A read of either write would be held against the wrong one."""
    verdict = check(history([(0, "w", 1), (1, "w", 1), (0, "r", 1)]))
    assert verdict.result == "unknown"
    assert verdict.details["keys_not_judged"] == {"x": "a value was written twice"}


def test_dirty_reads_are_not_judged() -> None:
    """What is promised nothing would be held to something."""
    made = history([(0, "w", 1), (0, "r", None)])
    assert check(made, reads=lambda role, mode: False).result == "unknown"


def test_time_runs_out() -> None:
    """A check would run on for ever."""
    seconds = iter(range(100))
    verdict = check(history([(0, "w", 1), (0, "r", 1)]), timeout_s=0.5, clock=lambda: next(seconds))
    assert verdict.result == "unknown"


# ---- staleness


def test_how_stale() -> None:
    """A reader would not learn how far behind it is."""
    made = history(
        [(0, "w", 1), (0, "w", 2), (0, "w", 3), (0, "w?", 4), (1, "r", 1), (1, "r", None), (1, "r", 3)]
    )
    details = check_staleness(made).details
    assert (details["stale_reads"], details["stale_versions_max"], details["stale_ms_max"]) == (2, 3, 9.0)
    assert check_staleness(made, ms_max=10, versions_max=3).result == "valid"
    verdict = check_staleness(made, versions_max=2)
    assert (verdict.result, verdict.witnesses[0].rule) == ("invalid", "stale-read")
    assert verdict.witnesses[0].events == (0, 1, 10, 11)
    assert "of key x, stale" in verdict.witnesses[0].summary
    keyless = replace(
        made, operations=tuple(msgspec.structs.replace(each, key=None) for each in made.operations)
    )
    assert "of the register, stale" in check_staleness(keyless, versions_max=2).witnesses[0].summary
    assert check_staleness(made, ms_max=4.5).result == "invalid"
    # The lines of a file without times stand one nanosecond apart.
    timeless = replace(
        made,
        operations=tuple(
            msgspec.structs.replace(each, invoke_ns=each.invoke_index, complete_ns=each.complete_index)
            for each in made.operations
        ),
    )
    assert check_staleness(timeless, ms_max=10).result == "unknown"
    assert check_staleness(timeless, versions_max=3).result == "valid"


@given(little_histories())
def test_versions_are_counted_as_by_hand(lines: list[Line]) -> None:
    """The count would be one off."""
    made = history([line for line in lines if line[1][0] != "c"])
    operations = made.operations
    worst = 0
    for read in made.select(f="read", outcome="ok"):
        writers = [each for each in operations if each.f == "write" and each.value == read.value]
        if (read.value is not None and not writers) or any(each.type == "info" for each in writers):
            continue
        newer = [
            each
            for each in operations
            if each.f == "write" and each.type == "ok" and each.precedes(read)
            if all(writer.precedes(each) for writer in writers)
        ]
        worst = max(worst, len(newer))
    found = check_staleness(made).details["stale_versions_max"]
    assert found == worst if not any(what == "w?" for _, what, _ in lines) else found >= worst


def test_a_cycle_behind_many_values_that_are_in_none() -> None:
    """If it failed, values between two cycles would hide both, and a history that breaks coherence would pass."""
    between = [f"b{number}" for number in range(40)]
    way = ["x1", *between, "y1"]
    pairs = [*pairwise(between), *pairwise(way)]
    pairs += [("x1", "x2"), ("x2", "x3"), ("x3", "x1"), ("y1", None), (None, "y1")]
    found = version_graph.cycle(
        version_graph.graph((version_graph.Edge(*pair, "replaced", ()) for pair in pairs), frozenset())
    )
    assert found is not None
    assert {edge.older for edge in found} == {"y1", None}, "the shorter one"
