"""Availability: what was not served, and how fast the rest."""

from __future__ import annotations

import random

import pytest

from checkers.history import Event, Header, History, Operation
from checkers.replicas import availability
from checkers.replicas.availability import Asked, gaps_of, quantiles_ms

MS = 1_000_000


def history_of(*operations: tuple[int, int | None, str, str]) -> History:
    """(asked at ms, ended at ms, how, node) each, and one fault in effect from 1000 to 2000 ms."""
    moments: list[tuple[int, int, int, str]] = []
    for process, (asked, ended, how, _) in enumerate(operations):
        moments.append((asked, 1, process, "invoke"))
        if ended is not None:
            moments.append((ended, 2, process, how))
    moments += [(999, 0, -1, "invoke"), (2001, 3, -1, "info")]
    events = []
    for index, (time_ms, _, process, how) in enumerate(sorted(moments)):
        value: object = None
        if process < 0:
            value = {"id": 0, "name": "kill", "does": "kill", "nodes": ["n2"]}
            if how == "info":
                value = {
                    "id": 0,
                    "took_effect": True,
                    "all_in_effect_ns": 1000 * MS,
                    "heal_asked_ns": 2000 * MS,
                }
        events.append(
            Event(
                index=index, time_ns=time_ms * MS, type=how,  # type: ignore[arg-type]  # one of the four
                process="nemesis" if process < 0 else process, f="kill" if process < 0 else "write", value=value,
                node=None if process < 0 else operations[process][3],
            )
        )  # fmt: skip
    return History.of(Header(nodes=("n1", "n2"), heartbeat_ns=300 * MS), events)


def gaps(history: History, node: str) -> list[tuple[float, float]]:
    found = availability.check(history).details["gaps"].get(node, [])
    return [(gap["from_s"] * 1000, gap["to_s"] * 1000) for gap in found]


def test_a_gap_is_between_what_ended_ok() -> None:
    """An outage would be shown too short, too long or not at all."""
    history = history_of(
        (0, 10, "ok", "n1"), (100, 110, "fail", "n1"), (500, 520, "info", "n1"), (900, 910, "ok", "n1"),
        (950, 960, "ok", "n1"),
    )  # fmt: skip
    assert gaps(history, "n1") == [(100, 910)]


def test_a_slow_answer_is_a_gap() -> None:
    """A node that let everybody wait would look available."""
    assert gaps(history_of((0, 10, "ok", "n1"), (20, 800, "ok", "n1")), "n1") == [(20, 800)]


def test_nobody_asked_is_no_gap() -> None:
    """A quiet time would look like an outage."""
    assert gaps(history_of((0, 10, "ok", "n1"), (5000, 5010, "ok", "n1")), "n1") == []


def test_never_served_is_a_gap() -> None:
    """A node that never answered would look available, having no answers to lie between."""
    assert gaps(history_of((0, 10, "fail", "n2"), (700, 900, "info", "n2")), "n2") == [(0, 900)]


def test_each_node_by_itself_and_all_together() -> None:
    """One dead node would look like a dead cluster, or hide behind the others."""
    history = history_of(*((t, t + 10, "ok", "n1") for t in range(0, 1000, 100)), (50, 990, "info", "n2"))
    details = availability.check(history).details
    assert details["longest_gap"]["node"] == "n2"
    assert details["cluster_gaps"] == []


def test_load_under_faults_and_series() -> None:
    """A run that was idle while the faults were on would count as tested."""
    history = history_of(
        (0, 10, "ok", "n1"), (1100, 1110, "ok", "n1"), (1990, 2005, "ok", "n1"), (2500, None, "", "n1")
    )
    details = availability.check(history).details
    assert (details["ok"], details["info"], details["ok_under_fault"]) == (3, 1, 1)
    assert details["per_second"] == {"ok": [1, 1, 1], "fail": [0, 0, 0], "info": [0, 0, 1]}
    assert details["latency_ms"]["write"]["fault"]["max"] == 10
    assert details["latency_ms"]["write"]["no fault"]["count"] == 2


def test_a_record_with_the_time_of_day_has_no_windows() -> None:
    """Otherwise every second since 1970 takes its places in memory, 13 GB for each kind of answer."""
    now_ns = 1_700_000_000_000_000_000
    events = [
        Event(index=index, time_ns=now_ns + index, type=type_, process=0, f="read", node="n1")  # type: ignore[arg-type]
        for index, type_ in enumerate(("invoke", "ok"))
    ]
    details = availability.check(History.of(Header(nodes=("n1",)), events)).details
    assert details["per_second"] == {"ok": [], "fail": [], "info": []}
    assert (details["ok"], details["gaps"]) == (1, {"n1": []})


def test_nothing_asked_is_unknown() -> None:
    """An empty run would look available."""
    assert availability.check(history_of()).result == "unknown"


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_quantiles_by_nearest_rank(count: int) -> None:
    """Latencies would be told that nobody measured."""
    quantiles = quantiles_ms([number * MS for number in range(count, 0, -1)])
    assert quantiles["max"] == count
    assert quantiles["p50"] == (count + 1) // 2


def test_gaps_against_the_plain_definition() -> None:
    """The walk over moments would differ from what a gap is said to be."""
    for seed in range(1_000):
        chance = random.Random(seed)
        operations = []
        for number in range(chance.randrange(1, 7)):
            start = chance.randrange(40)
            end = start + chance.randrange(1, 12)
            how = chance.choice(("ok", "fail", "info"))
            operations.append(
                Operation(
                    type=how, process=number, f="read", key=None, value=None, invoke_index=0, invoke_ns=start,  # type: ignore[arg-type]  # one of the three
                    complete_index=1, complete_ns=end,
                )
            )  # fmt: skip
        operations.sort(key=lambda each: each.invoke_ns)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(availability, "AT_ONCE", chance.choice((1, 2, 3, availability.AT_ONCE)))
            history = History(header=Header(), events=(), operations=tuple(operations))
            found = gaps_of(Asked.of_load(history), 1)
        assert found == plain_gaps(operations), (seed, operations)


def plain_gaps(operations: list[Operation]) -> list[tuple[int, int]]:
    """From ok to ok (or to the last end): the part from the first moment at which anybody was waiting."""
    last = max(operation.complete_ns or 0 for operation in operations)
    oks = sorted({operation.complete_ns or 0 for operation in operations if operation.type == "ok"})
    gaps = []
    for start, end in zip([-1, *oks], [*oks, last], strict=True):
        waiting = [
            max(start, operation.invoke_ns)
            for operation in operations
            if operation.invoke_ns < end and (operation.complete_ns or 0) > start
        ]
        if waiting and min(waiting) < end:
            gaps.append((min(waiting), end))
    return gaps
