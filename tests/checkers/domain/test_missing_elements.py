"""What may have taken an element that never came out of a queue, and what may not."""

from __future__ import annotations

from typing import Any

import pytest

from checkers import linearizable
from checkers.domain import queues
from checkers.history import Header, History
from checkers.history.operation import Event, Phase

Call = tuple[str, str, Any]
PUT: Call = ("enqueue", "ok", 5)
EMPTY: Call = ("drain", "ok", [])
TOOK_SOMETHING: Call = ("dequeue", "info", None)
MAY_HAVE_DRAINED: Call = ("drain", "info", None)


def one_by_one(*calls: Call) -> History:
    """Each call ends before the next one is asked; those of unknown outcome have clients of their own."""
    events: list[Event] = []
    for number, (f, outcome, value) in enumerate(calls):
        process = number if outcome == "info" else 100
        asked = value if f == "enqueue" else None
        for type_, shown in (("invoke", asked), (outcome, value)):
            at, phase = len(events), "final" if f == "drain" else "load"
            event = Event(index=at, time_ns=at, type=type_, process=process, f=f, value=shown, phase=phase)
            events.append(event)
    return History.of(Header(), events)


@pytest.mark.parametrize(
    ("calls", "rules"),
    [
        ([PUT, EMPTY, TOOK_SOMETHING], ["lost"]),
        ([PUT, EMPTY, TOOK_SOMETHING, EMPTY], ["lost"]),
        ([PUT, EMPTY, MAY_HAVE_DRAINED], ["lost"]),
        ([PUT, TOOK_SOMETHING, EMPTY], []),
        ([PUT, MAY_HAVE_DRAINED, EMPTY], []),
        ([PUT, ("enqueue", "ok", 6), ("dequeue", "ok", 6), TOOK_SOMETHING], ["lost"]),
        ([PUT, ("enqueue", "ok", 6), TOOK_SOMETHING, ("dequeue", "ok", 6)], []),
        ([PUT, TOOK_SOMETHING, EMPTY, ("enqueue", "ok", 6), EMPTY], ["lost"]),
        ([PUT, TOOK_SOMETHING, EMPTY, ("enqueue", "ok", 6), TOOK_SOMETHING, EMPTY], []),
        ([PUT, PUT, ("dequeue", "ok", 5), EMPTY], ["lost"]),
        ([PUT, PUT, ("dequeue", "ok", 5), TOOK_SOMETHING, EMPTY], []),
        ([PUT, PUT, ("dequeue", "ok", 5), ("dequeue", "ok", 5), EMPTY], []),
        ([PUT, ("enqueue", "info", 5), EMPTY], ["lost"]),
        ([PUT, ("enqueue", "info", 5), ("dequeue", "ok", 5), EMPTY], []),
    ],
)
def test_what_was_over_before_cannot_have_taken_an_element(calls: list[Call], rules: list[str]) -> None:
    """If it failed, a lost element would be explained by a dequeue that came too late, or a queue falsely accused."""
    history = one_by_one(*calls)
    found = queues.check(history)
    assert [each.rule for each in found.witnesses] == rules, found.summary
    assert (
        linearizable.check(history, model="queue").result == found.result == ("invalid" if rules else "valid")
    )


@pytest.mark.parametrize(
    ("phase", "settled", "rules"),
    [("final", True, ["lost"]), ("final", False, []), ("final", None, []), ("load", True, [])],
)
def test_an_empty_answer_is_sure_when_no_node_is_behind(
    phase: Phase, settled: bool | None, rules: list[str]
) -> None:
    """If it failed, a queue that only takes can empty would lose its last elements unseen where reads may be stale; or
    a stale answer would accuse a right store."""
    events = list(one_by_one(PUT).events)
    if settled is not None:
        told = Event(index=2, time_ns=2, type="info", process="harness", f="settled", value=settled)
        events.append(told)
    for type_, error in (("invoke", None), ("fail", "empty")):
        at = len(events)
        events.append(
            Event(index=at, time_ns=at, type=type_, process=100, f="dequeue", error=error, phase=phase)  # type: ignore[arg-type]  # of two words
        )
    found = queues.check(History.of(Header(), events), failed_cas_observes=False)
    assert [each.rule for each in found.witnesses] == rules, found.summary


def test_a_valid_verdict_names_what_was_forgiven() -> None:
    """If it failed, "0 elements of 1 came out, once each" would pass for an observation."""
    found = queues.check(one_by_one(PUT, TOOK_SOMETHING, EMPTY))
    assert found.summary == "0 elements of 1 came out; operations of unknown outcome may have taken 5"


@pytest.mark.parametrize(
    ("calls", "rules", "findings"),
    [
        ([PUT, ("dequeue", "ok", 5), ("dequeue", "ok", 5), EMPTY], [], ["duplicated"]),
        ([PUT, ("enqueue", "ok", 6), ("dequeue", "ok", 6), ("dequeue", "ok", 5), EMPTY], [], ["reordered"]),
        ([PUT, ("enqueue", "ok", 6), ("dequeue", "ok", 6), TOOK_SOMETHING, EMPTY], [], []),
        ([PUT, EMPTY, ("dequeue", "ok", 5), EMPTY], [], []),
        ([PUT, ("dequeue", "ok", None)], [], ["queue"]),
        ([PUT, EMPTY], ["lost"], []),
        ([("dequeue", "ok", 5), EMPTY], ["never-enqueued"], []),
        ([("dequeue", "ok", 5), PUT, EMPTY], ["before-its-enqueue"], []),
    ],
)
def test_at_least_once_may_be_again_and_late_but_not_never(
    calls: list[Call], rules: list[str], findings: list[str]
) -> None:
    """If it failed, a broker that delivers at least once would be blamed for a second delivery, or lose elements and be
    called valid."""
    found = queues.check(one_by_one(*calls), again=True)
    assert [each.rule for each in found.witnesses] == rules, found.summary
    assert [each.split()[1] for each in found.details["findings"]] == findings
    assert "once" not in found.summary


@pytest.mark.parametrize(("settled", "result"), [(True, "invalid"), (False, "valid")])
def test_what_a_node_may_hold_that_is_away_is_not_lost(settled: bool, result: str) -> None:
    """If it failed, a broker would be blamed for a message of a queue whose node does not answer at the end."""
    history = one_by_one(PUT, EMPTY)
    told = Event(index=4, time_ns=4, type="info", process="harness", f="settled", value=settled)
    found = queues.check(History.of(Header(), [*history.events, told]), again=True)
    assert found.result == result


def test_an_equal_element_does_not_come_out_before_it_is_put_in_again() -> None:
    """If it failed, an element that comes out twice would pass if a client puts it in again later."""
    out = ("dequeue", "ok", 5)
    found = queues.check(one_by_one(PUT, out, out, PUT))
    assert [each.rule for each in found.witnesses] == ["before-its-enqueue"]
    assert found.summary == "5 came out twice before it was put in twice"
    assert found.witnesses[0].events == (0, 1, 2, 3, 4, 5, 6, 7)
    for right in ((PUT, out, PUT, out), (PUT, PUT, out, out), (("enqueue", "info", 5), PUT, out, out, PUT)):
        assert queues.check(one_by_one(*right)).result == "valid"


def test_elements_of_unknown_enqueues_are_counted_where_they_came_out() -> None:
    """If it failed, "1 element of 0 came out" would stand under a valid verdict."""
    unknown, out = ("enqueue", "info", 5), ("dequeue", "ok", 5)
    assert queues.check(one_by_one(unknown, out)).summary == "1 element of 1 came out, once each and in order"
    assert "2 elements of 2 came out" in queues.check(one_by_one(unknown, PUT, out, out)).summary
    assert "1 element of 1 came out" in queues.check(one_by_one(unknown, PUT, out)).summary


def test_a_witness_shows_all_that_was_put_in_and_came_out() -> None:
    """If it failed, nobody could see from the witness that one of two equal elements is gone."""
    found = queues.check(one_by_one(PUT, PUT, ("dequeue", "ok", 5), EMPTY))
    assert found.witnesses[0].events == (0, 1, 2, 3, 4, 5, 6, 7)
    assert found.summary == "5 was acknowledged twice and came out once, and the queue was seen empty"


def test_a_group_that_is_too_large_is_one_witness_with_all_its_proofs() -> None:
    """If it failed, the witness would name fewer elements than it takes to prove the loss."""
    calls = [PUT, TOOK_SOMETHING, EMPTY, ("enqueue", "ok", 6), EMPTY]
    (found,) = queues.check(one_by_one(*calls)).witnesses
    assert found.summary == "2 elements never came out, and dequeues of unknown outcome explain 1 at most"
    assert found.events == (0, 1, 4, 5, 6, 7, 8, 9)


def test_the_failed_enqueue_that_is_named_is_the_first_one() -> None:
    """If it failed, the witness would show an enqueue that was asked after its element had come out."""
    failed: Call = ("enqueue", "fail", 5)
    (found,) = queues.check(one_by_one(failed, ("dequeue", "ok", 5), failed)).witnesses
    assert (found.rule, found.events) == ("enqueued-by-failure", (0, 1, 2, 3))


def test_an_element_that_came_out_before_it_was_put_in_again_is_found_whichever_was_asked_first() -> None:
    """If it failed, a slow dequeue that was asked earlier would hide the one that was over too early."""
    clients = [
        (0, "invoke", "dequeue", None),
        (1, "invoke", "dequeue", None),
        (1, "ok", "dequeue", 5),
        *((client, type_, "enqueue", 5) for client in (2, 3) for type_ in ("invoke", "ok")),
        (0, "ok", "dequeue", 5),
    ]
    events = [
        Event(index=index, time_ns=index, process=process, type=type_, f=f, value=value)
        for index, (process, type_, f, value) in enumerate(clients)
    ]
    (found,) = queues.check(History.of(Header(), events)).witnesses
    assert (found.rule, found.events) == ("before-its-enqueue", (1, 2, 3, 4, 5, 6))


@pytest.mark.parametrize(
    ("calls", "gone"), [([], True), ([TOOK_SOMETHING], False), ([("dequeue", "ok", 5)], False)]
)
def test_an_element_of_the_start_that_no_node_holds_is_named(calls: list[Call], gone: bool) -> None:
    """If it failed, what a queue began with could vanish from every node unseen."""
    history = one_by_one(*calls, ("dump", "ok", {})).starting_at([5])
    found = list(queues.gone_everywhere(history, history.select(f="dump")))
    assert [each.rule for each in found] == (["lost-element"] if gone else [])


def test_a_dequeue_after_the_last_dump_explains_nothing_that_is_gone() -> None:
    """If it failed, a dequeue that was asked at last would hide the loss of an element."""
    history = one_by_one(PUT, ("dump", "ok", {}), TOOK_SOMETHING)
    (found,) = queues.gone_everywhere(history, history.select(f="dump"))
    assert found.summary == "5 had been acknowledged, never came out of None, and no node held it at the end"
