"""Events of nemesis, monitor, harness and operator in a large record: packed, they are the same as in a list."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import Header, History, others
from checkers.history.alike import Alike
from checkers.history.operation import Event
from checkers.history.others import Others
from checkers.history.stored import StoredEvents

NAMES = ("state", "used", "skipped", "kill", "settled")
PROCESSES = ("monitor", "harness", "nemesis", "operator")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
TOLD = st.tuples(st.sampled_from(NAMES), st.sampled_from(PROCESSES), st.sampled_from((None, "n1")), VALUES)


@given(told=st.lists(TOLD, max_size=12), block_bytes=st.sampled_from((0, 100, others.BLOCK_BYTES)))
def test_events_that_are_packed_are_the_events(
    told: list[tuple[str, str, str | None, object]], block_bytes: int
) -> None:
    """A check would miss a report of a node, or a fault with the name of one."""
    events = [
        Event(index=2 * place, time_ns=place, type="info", process=process, f=f, node=node, value=value)
        for place, (f, process, node, value) in enumerate(told)
    ]
    packed = Others()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(others, "BLOCK_BYTES", block_bytes)
        for event in events:
            packed.add(event)
    assert repr([*packed]) == repr(events)
    for count in range(1, len(NAMES) + 1):
        for names in combinations(NAMES, count):
            found = [*packed.named(names)]
            assert repr(found) == repr([event for event in events if event.f in names])
    listed = History(header=Header(), events=events, operations=())
    stored = replace(listed, events=StoredEvents(len(events), lambda: iter(events), packed))
    for process in PROCESSES:
        for names in ((), *combinations(NAMES, 1), NAMES):
            assert [*stored.told(process, *names)] == [*listed.told(process, *names)]
    assert [*listed.told("nemesis")] == [event for event in events if event.process == "nemesis"]
    rare = [event for event in events if event.process == "harness" and event.f in ("kill", "settled")]
    assert [*listed.told("harness")] == rare


def test_reports_share_what_they_have_in_common() -> None:
    """The reports of a long run would not fit into memory; or true would be taken for 1, which Python calls equal."""
    alike = Alike()

    def report(node: str, lsn: str = "4000000000") -> dict[str, Any]:
        written = '{"role":"the owner","up":true,"one":1,"lsn":4000000000,"vclock":{"1":%s,"2":4000000000},"queue":[1]}'
        return alike.of(node, json.loads(written % lsn))

    first, other, second, moved = report("n1"), report("n2", "5"), report("n1"), report("n1", "5")
    assert first["role"] is second["role"] and first["lsn"] is first["vclock"]["1"] is first["vclock"]["2"]
    assert first["vclock"] is second["vclock"] and first["queue"] is second["queue"] is moved["queue"]
    assert moved["vclock"] == other["vclock"] == {"1": 5, "2": 4_000_000_000}
    for value in (
        {"a": 1, "b": True},
        {"a": True, "b": 1},
        {"a": [1]},
        {"a": [True]},
        {"a": {"c": 1, "d": True}},
    ):
        assert repr(alike.of("n1", value)) == repr(value)
