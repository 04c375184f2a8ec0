"""A relay: what it sends of a log, in which portions, and again when."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from nodes.iproto.messages import Row, Type
from nodes.kernel.events import Instant
from nodes.qsync.relay import WINDOW_ROWS, Relay

US, REPLICA, OTHER = 1, 2, 3


def transaction(first_lsn: int, length: int, origin: int = US) -> list[Row]:
    return [
        Row(Type.NOP.value, origin, first_lsn + place, 0.0, first_lsn, is_commit=place == length - 1)
        for place in range(length)
    ]


def log_of(*lengths: int) -> list[Row]:
    """Transactions of these lengths."""
    log: list[Row] = []
    for length in lengths:
        log += transaction(len(log) + 1, length)
    return log


def test_a_window_stays_shut_until_rows_are_acknowledged() -> None:
    """Broken, a silent replica costs memory without bound."""
    log, relay = log_of(*[1] * (3 * WINDOW_ROWS)), Relay(9, REPLICA, {}, Instant(0, 0))
    assert len(relay.take(log, None)) == WINDOW_ROWS
    assert relay.take(log, None) == ()
    relay.acknowledge({US: 10}, log, Instant(5, 5))
    assert [row.lsn for row in relay.take(log, None)] == list(range(WINDOW_ROWS + 1, WINDOW_ROWS + 11))
    assert relay.heard.monotonic_ns == 5


def test_a_transaction_is_never_cut_in_two() -> None:
    """Broken, a transaction longer than the window shuts it for ever."""
    log, relay = log_of(WINDOW_ROWS - 1, 3 * WINDOW_ROWS, 1), Relay(9, REPLICA, {}, Instant(0, 0))
    assert len(relay.take(log, None)) == 4 * WINDOW_ROWS - 1
    relay.acknowledge({US: log[-2].lsn}, log, Instant(0, 0))
    assert relay.take(log, None) == (log[-1],)


def test_what_a_replica_knows_costs_no_round_trips() -> None:
    """Broken, a replica that comes back to a long log waits one heartbeat for each window that it has already."""
    log = log_of(*[1] * (5 * WINDOW_ROWS))
    relay = Relay(9, REPLICA, {US: len(log) - 1}, Instant(0, 0))
    assert relay.take(log, None) == (log[-1],)


def test_a_replica_is_not_sent_its_own_rows() -> None:
    """Broken, rows go in circles."""
    log = [*transaction(1, 1, REPLICA), *transaction(1, 1, OTHER), *transaction(1, 1)]
    assert [row.replica_id for row in Relay(9, REPLICA, {}, Instant(0, 0)).take(log, None)] == [OTHER, US]


def test_a_relay_goes_on_behind_the_rows_that_the_log_has_dropped() -> None:
    """Broken, a replica gets rows twice or not at all after a log file went, or those of a failed write never again."""
    log, relay = log_of(*[1] * 4), Relay(9, REPLICA, {}, Instant(0, 0))
    assert [row.lsn for row in relay.take(log, None)] == [1, 2, 3, 4]
    log += [*transaction(5, 1), *transaction(6, 1), *transaction(7, 1)]
    assert [row.lsn for row in relay.take(log, 70)] == [5, 6, 7]
    relay.acknowledge({US: 4}, log, Instant(0, 0))
    del log[:4]
    relay.shift(4)
    log += transaction(8, 1)
    assert [row.lsn for row in relay.take(log, 80)] == [8]
    del log[2:]  # the records 70 and 80 fail, and take 5 and 6 with them on their way
    relay.cut(2, 70)
    log += transaction(7, 1)
    assert [row.lsn for row in relay.take(log, 90)] == [5, 6, 7]
    relay.acknowledge({US: 7}, log, Instant(0, 0))
    assert not relay.hanging


def test_the_lag_is_that_of_the_newest_row_that_is_acknowledged() -> None:
    """Broken, an operator sees a replica far behind that keeps up, or the other way round."""
    log = [replace(row, timestamp=float(row.lsn)) for row in log_of(1, 1, 1)]
    relay = Relay(9, REPLICA, {}, Instant(0, 0))
    relay.take(log, None)
    relay.acknowledge({US: 2}, log, Instant(5, 9_500_000_000))
    assert relay.lag_s == 7.5
    relay.acknowledge({US: 2}, log, Instant(6, 20_000_000_000))
    assert relay.lag_s == 7.5, "nothing new was acknowledged"


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 3)),
        st.tuples(st.sampled_from(("durable", "fail", "take", "ack")), st.just(0)),
    ),
    max_size=50,
)


@given(steps=STEPS)
def test_every_durable_row_arrives_whatever_fails(steps: list[tuple[str, int]]) -> None:
    """Broken, rows that travelled with a failed write are never sent again, and the replica has a gap."""
    log: list[Row] = []
    in_flight: list[tuple[int, int]] = []  # (token, the length of the log with it)
    on_the_way: list[tuple[int, tuple[Row, ...]]] = []  # (the token that they hang on, rows)
    relay, tokens, durable, got = Relay(9, REPLICA, {}, Instant(0, 0)), 0, 0, 0
    for step, number in [*steps, ("durable", 0), ("take", 0)]:
        if step == "write":
            tokens += 1
            log += transaction(len(log) + 1, number)
            in_flight.append((tokens, len(log)))
        elif step == "durable" and in_flight:
            durable = in_flight.pop(0)[1]
        elif step == "fail" and in_flight:
            lost_from = in_flight[0][0]
            del log[durable:]
            in_flight.clear()
            on_the_way = [message for message in on_the_way if message[0] < lost_from]
            relay.cut(len(log), lost_from)
        elif step == "take":
            after = in_flight[-1][0] if in_flight else None
            on_the_way.append((after or 0, relay.take(log, after)))
        elif step == "ack":
            relay.acknowledge({US: got}, log, Instant(0, 0))
        while on_the_way and (not in_flight or on_the_way[0][0] < in_flight[0][0]):
            for row in on_the_way.pop(0)[1]:
                assert row.lsn <= got + 1, "there is a gap"
                got = max(got, row.lsn)
    assert got >= durable or in_flight
