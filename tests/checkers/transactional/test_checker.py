"""The checker of transactions as a whole: what it refuses, what it leaves open, its options and limits."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import numpy
import pytest

from checkers import compiled, run_safely, transactional
from checkers.history import Event, Header, History
from checkers.history.errors import ModelError
from checkers.limits import Limits, interrupt, within
from checkers.proofs import verify_isolation
from checkers.proofs.meaning import Terms
from checkers.transactional import append_kernels, checker, execution, polygraph
from checkers.transactional.columns import READ, WRITE, Columns, Workload, columns_of
from checkers.transactional.graph import Constraints
from checkers.transactional.proving import Prover
from checkers.transactional.search import Search
from checkers.verdict import CheckerDefect
from tests.checkers.transactional.tiny_database import TinyDatabase
from tests.checkers.transactional.txns import Txn, history, ok, register, txn


def test_nothing_read_is_no_evidence() -> None:
    """If this fails, an empty history, or one that observes nothing, passes."""
    assert transactional.check(history()).result == "unknown"
    assert transactional.check(history(ok(1, "ax1"), txn("fail", 2, "rx"))).result == "unknown"


@pytest.mark.parametrize(
    "value", [None, 7, [["r", "x"]], [["w", "x", 1]], [["append", "x", None]], [["r", "x", 5]], [7]]
)
def test_what_is_no_transaction_is_refused(value: Any) -> None:
    """If this fails, a history of another workload gets a verdict."""
    asked = Event(index=0, time_ns=0, type="invoke", process=1, f="txn")
    answered = Event(index=1, time_ns=1, type="ok", process=1, f="txn", value=value)
    with pytest.raises(ModelError, match="event 0"):
        columns_of(History.of(Header(), [asked, answered]), "append")


def test_a_value_written_twice_is_refused() -> None:
    """If this fails, a read of that value is taken for evidence of either write."""
    twice = history(ok(1, "ax1"), ok(2, "ax1"), ok(3, "rx1"))
    with pytest.raises(ModelError, match="every value written to a key once"):
        transactional.check(twice)
    assert run_safely(transactional.check, twice, name="transactional").result == "unknown"


@pytest.mark.parametrize(("keys", "is_plain"), [("x", False), ("xy", True)])
def test_reads_that_found_nothing_are_judged_by_machine_code(
    keys: str, is_plain: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a store that shows no write keeps its checker busy for minutes: each read precedes each write."""
    monkeypatch.setattr(compiled, "_LOADED", set())
    monkeypatch.setattr(compiled, "_PASSED", {})
    few = [ok(1, f"w{keys[0]}{number}") for number in range(450)]
    columns = columns_of(history(*few, *(register(2, f"r{keys[-1]}") for _ in few)), "rw-register")
    assert checker._are_plain(columns, checker.PLAIN_BELOW) == is_plain


def test_an_unsure_transaction_counts_once_it_is_seen() -> None:
    """If this fails, an unsure transaction that took place is taken for a wrong read, or one that was never seen for
    a lost write."""
    seen = history(txn("info", 1, "ax1 ay1", 0, None), ok(2, "rx1"), ok(3, "ry1"))
    verdict = transactional.check(seen, model="strict-serializable")
    assert verdict.result == "valid"
    assert verdict.details["unsure_but_seen"] == 1
    assert transactional.check(history(txn("info", 1, "ax1", 0, None), ok(2, "rx"))).result == "valid"


def test_an_unsure_transaction_may_take_effect_late() -> None:
    """If this fails, real time binds an unsure transaction whose client gave up."""
    late = history(txn("info", 1, "ax1", 0, 1), ok(2, "rx", 2, 3), ok(2, "rx1", 4, 5))
    assert transactional.check(late, model="strict-serializable").result == "valid"


def test_what_is_promised_of_single_keys_orders_their_versions() -> None:
    """If this fails, the options for registers find nothing, or find it without being asked."""
    blind = history(ok(1, "wx1", 0, 1), ok(2, "wx2", 2, 3), register(3, "rx1", 4, 5))
    found = {
        (sequential, linearizable): transactional.check(
            blind, workload="rw-register", sequential_keys=sequential, linearizable_keys=linearizable
        ).result
        for sequential, linearizable in itertools.product((False, True), repeat=2)
    }
    assert found[False, False] == "valid"
    assert found[False, True] == found[True, True] == "invalid"
    one_client = history(ok(1, "wx1", 0, 1), ok(1, "wx2", 2, 3), register(1, "rx1", 4, 5))
    assert transactional.check(one_client, workload="rw-register").result == "valid"
    assert transactional.check(one_client, workload="rw-register", sequential_keys=True).result == "invalid"


def test_a_promise_of_single_keys_that_does_not_hold_is_said() -> None:
    """If this fails, conclusions are drawn from an order of versions that contradicts itself."""
    stale = history(ok(1, "wx1", 0, 1), ok(2, "rx1 wx2", 2, 3), register(3, "rx1", 4, 5))
    verdict = transactional.check(stale, workload="rw-register", linearizable_keys=True)
    assert "cyclic-versions" in verdict.details["violations"]


def test_a_store_with_linearizable_keys_is_believed() -> None:
    """If this fails, the option makes false alarms."""
    for seed in range(60):
        right = TinyDatabase(random.Random(seed), "rw-register", "strict-serializable").history(25, clients=5)
        verdict = transactional.check(
            right,
            workload="rw-register",
            model="strict-serializable",
            linearizable_keys=True,
            sequential_keys=True,
        )
        assert verdict.result == "valid", f"seed {seed}: {verdict.summary}"


def test_out_of_time_is_unknown_unless_something_was_found() -> None:
    """If this fails, a search that was not finished passes for one that found nothing, or hides what was found."""
    skew = history(ok(1, "rx ay1", 0, 9), ok(2, "ry ax1", 0, 9), ok(3, "rx1 ry1", 10, 11))
    clock = itertools.count(0.0, 100.0).__next__
    verdict = transactional.check(skew, timeout_s=10, clock=clock)
    assert verdict.result == "unknown"
    assert "time limit" in verdict.summary and "G2-item" in verdict.summary
    failed = history(txn("fail", 1, "ax1"), ok(2, "rx1 ay1", 0, 9), ok(3, "ry rx1", 0, 9))
    assert (
        transactional.check(failed, timeout_s=10, clock=itertools.count(0.0, 100.0).__next__).result
        == "invalid"
    )


def test_an_alarm_in_a_search_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, an anomaly that was found in time is unknown because of what was looked for after it."""
    read_of_failed = [txn("fail", 5, "az1"), ok(4, "rz1", 0, 9)]
    skew = [ok(1, "rx ay1", 0, 9), ok(2, "ry ax1", 0, 9), ok(3, "rx1 ry1", 10, 11)]
    now_s = [0.0]

    def alarm(_: Search) -> Any:
        now_s[0] = 100.0
        interrupt()
        return iter(())

    monkeypatch.setattr(Search, "_process", alarm)
    with within(Limits(10.0), clock=lambda: now_s[0]):
        verdict = run_safely(transactional.check, history(*read_of_failed, *skew), name="transactional")
    assert now_s[0] == 100.0, "the search was not interrupted"
    assert verdict.result == "invalid", verdict.summary
    assert {"G1a", "G2-item"} <= set(verdict.details["violations"])
    assert verdict.details["undecided"]


@pytest.mark.parametrize("step", ["smallest", "_searched"])
def test_a_history_without_an_order_stays_invalid_when_time_is_over(
    step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this fails, a history that was refuted is unknown because a smaller part of it was looked for afterwards."""
    now_s, real, refuted = [0.0], getattr(checker, step), []
    attempt = Prover.attempt

    def attempted(self: Prover, model: str, part: int = 1) -> Any:
        refuted.append((found := attempt(self, model, part)).result)
        return found

    def alarm(*arguments: Any) -> Any:
        if not refuted:
            return real(*arguments)
        now_s[0] = 100.0
        return interrupt()

    monkeypatch.setattr(Prover, "attempt", attempted)
    monkeypatch.setattr(checker, step, alarm)
    gone = history(ok(1, "wx1"), ok(2, "wx2"), ok(3, "wx1"), ok(4, "wx2"), register(5, "rx1"))
    with within(Limits(10.0), clock=lambda: now_s[0]):
        verdict = run_safely(
            transactional.check,
            gone,
            name="transactional",
            workload="rw-register",
            model="strict-serializable",
        )
    assert now_s[0] == 100.0 and refuted[0] == "refuted"
    assert verdict.result == "invalid", verdict.summary
    assert verdict.details["violations"] == ["no-order"]
    assert len(verdict.details["anomalies"]["no-order"]["transactions"]) == 5


def test_the_steps_of_a_command_are_those_of_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, `--budget` changes nothing where transactions are judged."""
    blind = concurrent(random.Random(3), 60, clients=25, stale=True)
    monkeypatch.setattr(Prover, "_keeps", lambda *_: False)
    monkeypatch.setattr(checker, "HELD_MAX", 0)  # no other model is looked at
    with within(Limits(steps=3)):
        verdict = transactional.check(blind, workload="rw-register")
    assert verdict.result == "unknown"
    assert "the budget of the search did not suffice" in verdict.summary


@pytest.mark.parametrize("model", ["strict-serializable", "snapshot-isolation", "read-committed"])
def test_a_proof_that_does_not_replay_is_a_defect(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, valid can stand on a proof that proves nothing, or the defect hides behind an unknown."""

    def backwards(self: Constraints, kernels: Any, time: Any) -> Any:
        return numpy.array([1, 0] if not self.split else [1, 3, 0, 2], numpy.int32)

    skew = history(ok(1, "ax1", 0, 1), ok(2, "rx1", 2, 3), ok(2, "rx", 4, 5))
    monkeypatch.setattr(Constraints, "order", backwards)
    with pytest.raises(CheckerDefect, match="does not replay"):
        run_safely(transactional.check, skew, model=model)


@pytest.mark.parametrize(("seeds", "length"), [(1, 300), pytest.param(3, 400, marks=pytest.mark.long)])
def test_concurrent_blind_writes_of_a_correct_store_are_decided(seeds: int, length: int) -> None:
    """If this fails, ordinary runs are unknown because registers do not tell the order of their writes."""
    for seed in range(seeds):
        for stale, model in ((False, "strict-serializable"), (True, "strong-session-serializable")):
            found = concurrent(random.Random(seed), length, clients=25, stale=stale)
            verdict = transactional.check(found, workload="rw-register", model=model)
            assert verdict.result == "valid", f"seed {seed}: {verdict.summary}"
            assert verdict.details["proof"]["kind"] == "serial-order"
            assert verify_isolation.check(found, verdict, Terms(model=model)).holds


def concurrent(chance: random.Random, count: int, *, clients: int, stale: bool) -> History:
    """What many clients see of a serial store of five registers; who only reads may see an older state, but never one
    older than before.
    """
    begins, moments = [0.0] * clients, []
    for number in range(count):
        client = begins.index(min(begins))
        begin = begins[client] + chance.random()
        end = begin + 0.1 + chance.random() * 10
        begins[client] = end + 0.01
        moments.append((begin + (end - begin) * chance.random(), begin, end, client, number))
    past: list[dict[str, int]] = [{}]
    seen = [0] * clients
    made = []
    for _, begin, end, client, number in sorted(moments):
        plan = [(chance.choice("wwr"), chance.choice("vwxyz")) for _ in range(chance.randint(1, 4))]
        writes = any(f == "w" for f, _ in plan)
        old = stale and not writes
        seen[client] = max(seen[client], len(past) - 1 - chance.randrange(30)) if old else len(past) - 1
        state = dict(past[seen[client]])
        micros: list[list[Any]] = []
        for place, (f, key) in enumerate(plan):
            if f == "w":
                state[key] = 10 * number + place
            micros.append([f, key, state.get(key)])
        if writes:
            past.append(state)
            seen[client] = len(past) - 1
        made.append(Txn(type="ok", process=client, micros=micros, begin=begin, end=end))
    return history(*made)


def test_a_snapshot_isolated_store_is_decided_where_nobody_reads_its_last_appends() -> None:
    """If this fails, who wins of two appends that no read shows keeps a correct store from being decided."""
    for seed in range(4):
        store = TinyDatabase(random.Random(seed), "append", "strong-snapshot-isolation")
        found = store.history(200, clients=8, keys="abcdefghijklmnopqrstuvwxyz")
        verdict = transactional.check(found, model="strong-snapshot-isolation")
        assert verdict.result == "valid", f"seed {seed}: {verdict.summary}"


def test_the_budget_is_counted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, a verdict depends on how fast the machine is, or a spent budget passes for no anomaly."""
    blind = concurrent(random.Random(3), 60, clients=25, stale=True)
    monkeypatch.setattr(Prover, "_keeps", lambda *_: False)
    monkeypatch.setattr(execution, "limit_of", lambda _: 3)
    monkeypatch.setattr(polygraph, "limit_of", lambda _: 3)
    monkeypatch.setattr(checker, "HELD_MAX", 0)  # no other model is looked at
    for clock in (itertools.count(0.0, 100.0).__next__, lambda: 0.0):
        verdict = transactional.check(blind, workload="rw-register", clock=clock)
        assert verdict.result == "unknown"
        assert "the budget of the search did not suffice" in verdict.summary


def test_values_and_keys_are_any_json() -> None:
    """If this fails, a foreign history with words, floats or negative numbers is misread or named wrongly."""
    values = [-1, "one", 1.5, [1, 2], True, 2**70]
    writes = [Txn(type="ok", process=1, micros=[["append", {"k": 1}, value]]) for value in values]
    read = Txn(type="ok", process=2, micros=[["r", {"k": 1}, [*values, "stranger"]]])
    verdict = transactional.check(history(*writes, read))
    assert verdict.details["violations"] == ["garbage-read"]
    assert verdict.witnesses[0].summary.endswith(
        'read {"k":1} as [-1, one, 1.5, [1,2], true, 1180591620717411303424, stranger], '
        "which holds a value that was never written"
    )


def test_events_far_apart_or_at_once() -> None:
    """If this fails, foreign histories whose events are clock times need much memory, or lose their real time."""
    stale = columns_of(history(ok(1, "ax1", 0, 1), ok(2, "rx", 2, 3), ok(3, "rx1", 0, 4)), "append")
    far = replace(stale, invoke=stale.invoke * 10**12, complete=stale.complete * 10**12)
    assert transactional.check_columns(far, model="strict-serializable").details["violations"] == [
        "G-single-realtime"
    ]
    reader = int(stale.process.argmax())
    together = stale.complete.copy()
    together[reader] = stale.complete[stale.process == 1][0]
    at_once = replace(stale, complete=together)
    found = transactional.check_columns(at_once, model="strict-serializable").details["violations"]
    assert found == ["G-single-realtime"]


@pytest.mark.parametrize(("workload", "write"), [("append", "ax1"), ("rw-register", "wx1")])
def test_what_begins_as_another_ends_is_concurrent_with_it(workload: Workload, write: str) -> None:
    """If this fails, events that are clock times raise a false alarm: one must come before what it ran beside."""
    stale = columns_of(history(ok(1, write, 0, 1), ok(2, "rx", 2, 3)), workload)
    beside = replace(stale, invoke=numpy.array([0, 1], numpy.int64))
    for model in ("strict-serializable", "strong-snapshot-isolation", "strong-parallel-snapshot-isolation"):
        results = [
            transactional.check_columns(each, workload=workload, model=model).result
            for each in (stale, beside)
        ]
        assert results == ["invalid", "valid"], model


def _columns(**changed: Any) -> Columns:
    good: dict[str, Any] = {
        "outcome": numpy.zeros(1, numpy.int8),
        "process": numpy.zeros(1, numpy.int64),
        "invoke": numpy.zeros(1, numpy.int64),
        "complete": numpy.ones(1, numpy.int64),
        "first": numpy.array([0, 1]),
        "f": numpy.zeros(1, numpy.int8),
        "key": numpy.zeros(1, numpy.int32),
        "value": numpy.zeros(1, numpy.int64),
        "length": numpy.zeros(1, numpy.int32),
        "key_count": 1,
    }
    return Columns(**good | changed)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"key": numpy.zeros(1, numpy.int64)}, "int32"),
        ({"f": numpy.zeros(2, numpy.int8)}, "equal length"),
        ({"first": numpy.array([0, 2])}, "ascend"),
        ({"key_count": 0}, "keys"),
        ({"length": numpy.array([3], numpy.int32)}, "within elements"),
    ],
)
def test_columns_that_do_not_fit_are_refused(changed: dict[str, Any], expected: str) -> None:
    """If this fails, compiled code reads beyond an array."""
    assert transactional.check_columns(_columns()).result == "valid"
    with pytest.raises(ValueError, match=expected):
        _columns(**changed)


@pytest.mark.parametrize(("count", "room"), [(70_000, 1 << 28), (3, 2)])
def test_dependencies_that_only_reads_have_find_room(count: int, room: int) -> None:
    """If this fails, compiled code writes beyond an array: of a list that nobody appends to again, a read has no
    dependency behind it.
    """
    keys = numpy.arange(count, dtype=numpy.int32)
    appends = numpy.stack([numpy.full(count, -1, numpy.int32), keys], axis=1).ravel()
    source, target, kind, cause, effect, whole = append_kernels.dependencies(
        f=numpy.repeat(numpy.array([WRITE, READ], numpy.int8), count),
        key=numpy.tile(keys, 2),
        owner=numpy.repeat(numpy.array([0, 1], numpy.int32), count),
        version=numpy.tile(2 * keys + 1, 2),
        base=numpy.arange(0, 2 * count + 1, 2),
        maker=appends,
        committed=numpy.ones(2, numpy.int8),
        edges_max=room,
    )
    assert whole == (count <= room)
    found = zip(source, target, kind, cause, effect, strict=True)
    assert list(found) == [(0, 1, 1, one, count + one) for one in range(min(count, room))]
