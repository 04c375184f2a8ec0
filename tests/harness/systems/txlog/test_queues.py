"""The queues of a master over its log: the same as the node's own, at about the right times."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from checkers.history.faults import FaultSpan
from checkers.history.history import Header, History, State
from checkers.history.operation import Operation
from harness.systems.txlog.logs import Placed, logs_in
from harness.systems.txlog.queues import Queues, at, place_at, rows_of, times_ns
from nodes.records import Record
from nodes.txlog.configuration import MILLISECOND
from nodes.txlog.journal import FILE
from tests import examples
from tests.nodes.txlog.driver import Driver

SECOND_NS = 10**9


@examples.up_to(12)
@given(st.integers(0, 10_000), st.sampled_from(["none", "simple", "smart"]), st.integers(1, 4))
def test_the_queues_are_those_of_the_node(seed: int, strategy: str, splits: int) -> None:
    """If it failed, the picture would show a log that no master had."""
    driver = Driver(
        seed,
        strategy=strategy,
        split_ns=1_200 * MILLISECOND,
        max_peer_lag_ns=100 * MILLISECOND,
    )
    for _ in range(splits):
        driver.pass_ms(300)
        driver.run(60)
        driver.partition()
        driver.pass_ms(1_500)
        driver.run(60)
        driver.cut.clear()
        driver.pass_ms(700)
    for name, host in driver.hosts.items():
        while host.unsynced:
            driver.persist(name)
        records = logs_in({name: {FILE: host.disk}}, (name,))[name].records
        queues = Queues()
        for record in records:
            queues.apply(record)
        journal = host.node.journal
        assert queues.synced == journal.synced
        assert queues.waiting == journal.queue
        assert (queues.executed, queues.counter) == (journal.executed, journal.counter)
        assert (queues.missing, queues.is_recovering) == (journal.missing, journal.is_recovering)
        rows = rows_of(records)
        assert rows[-1][:3] == (len(journal.synced), len(journal.queue), journal.executed)
        some = {0, len(records) // 2, len(records)}
        for place, found in at(records, some).items():
            assert rows[place][:4] == (len(found.synced), len(found.incoming), found.executed, found.counter)


RECORDS: list[Record] = [
    ["life", 1, "simple"],
    ["made", 1, 1, "n1-1-1", []],
    ["added", 0, [[1, "n1-1-1", "n1"]], 1, ["n2"], []],
    ["executed", 1, "n1-1-1", b"x"],
    ["split", ["n2"], None],
    ["heard", "n3", 5, 5, []],
    ["life", 2, "simple"],
    ["made", 9, 9, "n1-2-1", []],
]


def _placed() -> list[Placed]:
    return [
        Placed("n1", place, 1 if place < 7 else 2, record[0], record[1:])
        for place, record in enumerate(RECORDS, 1)
    ]


def _history() -> History:
    operation = Operation(
        process=0,
        f="write",
        key=None,
        value=1,
        type="ok",
        invoke_ns=SECOND_NS,
        complete_ns=3 * SECOND_NS,
        invoke_index=1,
        complete_index=2,
        node="n1",
        transaction="n1-1-1",
    )
    fault = FaultSpan(
        id=1,
        name="kill",
        does="kill",
        nodes=("n1",),
        start_index=3,
        start_ns=6 * SECOND_NS,
        first_effect_ns=6 * SECOND_NS,
        heal_asked_ns=8 * SECOND_NS,
    )
    return History(header=Header(), events=(), operations=(operation,), faults=(fault,))


def test_times_come_from_clients_lines_and_faults() -> None:
    """If it failed, a split would stand beside the fault that did not cause it."""
    lines = json.dumps({"time_ns": 5 * SECOND_NS, "message": "split", "missing": ["n2"]}).encode()
    records = _placed()
    times = times_ns(records, rows_of(records), _history(), b"no line\n" + lines)
    made, added, executed, split, heard, started = (each / SECOND_NS for each in times[1:7])
    assert (made, added, executed, split, heard, started) == (1, 2, 3, 5, 6, 8)
    assert times == sorted(times)
    assert place_at(times, 5 * SECOND_NS) == 4


def test_without_any_hint_all_records_stand_at_the_start() -> None:
    """If it failed, a log of a run without clients could not be drawn."""
    records = _placed()
    assert times_ns(records, rows_of(records), History(header=Header(), events=(), operations=()), b"") == [
        0
    ] * len(records)


def test_a_report_to_the_monitor_places_what_is_behind_it() -> None:
    """If it failed, a stall would look like slow progress: nothing else has times while no client is answered."""
    told = {"life": 1, "counter": 1, "synchronised": 1, "executed": 1}
    states = [State(7, 4 * SECOND_NS, "n1", told), State(9, 9 * SECOND_NS, "n1", told)]
    history = History(header=Header(), events=(), operations=(), states=tuple(states))
    records = _placed()
    times = times_ns(records, rows_of(records), history, b"")
    assert times[4] == 4 * SECOND_NS, "the first report counts: the later one says that nothing has changed"


def test_odd_values_in_lines_and_reports_place_nothing() -> None:
    """If it failed, one odd line of a node would end the judging of its run."""
    records, odd = _placed(), ({"message": []}, {"message": {}, "time_ns": 1})
    history = History(
        header=Header(), events=(), operations=(), states=(State(7, 4 * SECOND_NS, "n1", {"life": [1]}),)
    )
    lines = b"\n".join(json.dumps(line).encode() for line in odd)
    assert times_ns(records, rows_of(records), history, lines) == [0] * len(records)
