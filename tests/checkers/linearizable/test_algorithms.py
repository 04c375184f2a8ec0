"""Zones and the compiled search on long histories: the same answers, within limits of time and memory."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from checkers import linearizable
from checkers.compiled import PLAIN_VARIABLE
from checkers.history import Event, Header, History, parquet
from checkers.limits import Limits as TimeLimit
from checkers.limits import OutOfTime, within
from checkers.linearizable import (
    decide,
    forward,
    layout_kernels,
    search,
    search_kernels,
    zone_kernels,
    zones,
)
from checkers.linearizable.columns import NEVER, Columns
from checkers.linearizable.models import ILLEGAL, Action, Model, Register
from checkers.linearizable.order import placed
from checkers.linearizable.search import Call, Decision, Limits
from checkers.linearizable.search_kernels import OBSERVE, OVERWRITE, REFUSE, UPDATE
from checkers.linearizable.table import MODELS
from checkers.proofs import verify
from checkers.proofs.meaning import Terms
from tests.checkers.linearizable import all_orders, generated, tiny_histories
from tests.checkers.linearizable.test_agreement import calls_by_keys

ROOT = Path(__file__).parents[3]
WORDS = {OBSERVE: "read", REFUSE: "is-not", OVERWRITE: "write", UPDATE: "cas"}
KINDS = {OBSERVE: "observe", REFUSE: "observe", OVERWRITE: "overwrite", UPDATE: "update"}


def calls_of(columns: Columns) -> list[Call]:
    """The same as objects, for the plain search."""
    calls = []
    for invoke, complete, kind, old, new in zip(
        columns.invoke.tolist(), columns.complete.tolist(), columns.kind.tolist(), columns.old.tolist(),
        columns.new.tolist(), strict=True,
    ):  # fmt: skip
        values = tuple(value for value in (old, new) if value >= 0)
        calls.append(
            Call(Action(KINDS[kind], WORDS[kind], values), invoke, None if complete >= NEVER else complete)
        )  # type: ignore[arg-type]  # a kind
    return calls


def replayed(columns: Columns, order: list[int]) -> bool:
    """Whether the order is one: legal, within real time, nothing that happened left out."""
    state, latest = 0, -1
    for place in order:
        kind, old = columns.kind[place], columns.old[place]
        legal = kind == OVERWRITE or (state == old) == (kind != REFUSE)
        if not legal or columns.complete[place] < latest:
            return False
        state = state if kind <= REFUSE else int(columns.new[place])
        latest = max(latest, int(columns.invoke[place]))
    done = numpy.flatnonzero(columns.complete < NEVER)
    return len(set(order)) == len(order) and set(done.tolist()) <= set(order)


@pytest.mark.parametrize("operations", [120, pytest.param(300, marks=pytest.mark.long)])
@pytest.mark.parametrize("seed", range(20))
def test_compiled_and_plain_agree_at_length(seed: int, operations: int) -> None:
    """If this fails, the two searches part where histories are too long for the brute-force twin."""
    chance = random.Random(seed)
    columns = generated.columns(
        operations,
        chance.randint(2, 6),
        seed=seed,
        unique=seed % 3 == 0,
        crashed=chance.randint(0, 4),
        stale=seed % 4 == 0,
    )
    compiled = forward.search_columns(columns, Limits())
    plain = search.search(Register(initial=0), calls_of(columns), Limits())
    assert (compiled.result, compiled.failing) == (plain.result, plain.failing)


# The plain search decides the longer queues that seed 11 draws first, and not all those of seed 12.
@pytest.mark.parametrize(
    ("name", "most", "count", "seed"),
    [
        ("cas-register", 80, 20, 11),
        ("kv", 80, 20, 11),
        ("queue", 24, 8, 11),
        pytest.param("cas-register", 80, 200, 11, marks=pytest.mark.long),
        pytest.param("kv", 80, 200, 11, marks=pytest.mark.long),
        pytest.param("queue", 24, 75, 11, marks=pytest.mark.long),
        pytest.param("cas-register", 80, 2000, 12, marks=pytest.mark.nightly),
        pytest.param("kv", 80, 2000, 12, marks=pytest.mark.nightly),
        pytest.param("queue", 16, 750, 12, marks=pytest.mark.nightly),
    ],
)
def test_compiled_and_plain_agree_on_middling_histories(name: str, most: int, count: int, seed: int) -> None:
    """If this fails, the quick way to a yes, or going on without it, loses something: tiny histories don't take it."""
    chance = random.Random(seed)
    model = MODELS[name]()
    for _ in range(count):
        for calls in calls_by_keys(model, tiny_histories.history(name, chance, most, most + most // 8)):
            plain, compiled = (way.search(model, calls, Limits()) for way in (search, forward))
            assert plain.result != "unknown", "too hard for the plain search: there is nothing to compare"
            assert (compiled.result, compiled.failing) == (plain.result, plain.failing), calls
            if compiled.log is not None:
                assert replays(model, calls, placed(model, calls, compiled.log, model.initial))


@pytest.mark.parametrize("count", [100, pytest.param(400, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ["queue", "cas-register", "kv"])
def test_calls_that_share_an_event_are_all_looked_at(name: str, count: int) -> None:
    """If this fails, of what one operation stands for (a drain is many dequeues) all but one call is forgotten."""
    chance = random.Random(5)
    model = MODELS[name]()
    seen = set()
    for _ in range(count):
        for calls in calls_by_keys(model, tiny_histories.history(name, chance, most=6, length=4)):
            tied = [replace(call, invoke=call.invoke // 3, complete=_coarse(call)) for call in calls]
            plain, compiled = (way.search(model, tied, Limits()) for way in (search, forward))
            legal = all_orders.linearizable(model, tied)
            assert (compiled.result == "yes", plain.result == "yes") == (legal, legal), tied
            assert (decide.decide(model, tied, Limits()).result == "yes") == legal, tied
            seen.add(legal)
    assert seen == {True, False}


def _coarse(call: Call) -> int | None:
    return None if call.complete is None else call.complete // 3


def replays(model: Model, calls: list[Call], order: list[int]) -> bool:
    """Whether the order of the calls is legal and within real time, and nothing that happened is missing."""
    state, latest = model.initial, -1
    for place in order:
        result = model.step(state, calls[place].action)
        returned = calls[place].complete
        if result is ILLEGAL or (returned is not None and returned < latest):
            return False
        state, latest = result, max(latest, calls[place].invoke)
    done = {place for place, call in enumerate(calls) if call.complete is not None}
    return len(set(order)) == len(order) and done <= set(order)


@pytest.mark.parametrize(
    ("operations", "crashed"), [(1_000, 10), pytest.param(20_000, 40, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("unique", [True, False])
def test_the_order_of_a_long_history_is_one(unique: bool, operations: int, crashed: int) -> None:
    """If this fails, the proof of a long valid history is wrong, or the history was not valid."""
    columns = generated.columns(operations, 8, unique=unique, crashed=crashed)
    found = forward.search_columns(columns, Limits())
    assert found.result == "yes" and found.log is not None
    assert replayed(columns, placed(Register(initial=0), calls_of(columns), found.log, 0))


@pytest.mark.parametrize(
    ("count", "operations"), [(10, 200), pytest.param(30, 2_000, marks=pytest.mark.long)]
)
def test_zones_and_search_agree_at_length(count: int, operations: int) -> None:
    """If this fails, one of two unrelated algorithms is wrong about registers whose values are written once."""
    for seed in range(count):
        columns = generated.columns(
            operations, 6, seed=seed, unique=True, cas=False, crashed=seed, stale=seed % 2 == 0
        )
        by_zones = zones.decide(columns)
        assert by_zones is not None
        found = forward.search_columns(columns, Limits())
        assert (found.result == "yes") == (not by_zones.values) == (seed % 2 == 1)
        if by_zones.order is not None:
            assert replayed(columns, by_zones.order.tolist())


@pytest.mark.parametrize(
    ("operations", "clients"), [(140, 70), pytest.param(1_000, 130, marks=pytest.mark.long)]
)
def test_more_clients_than_a_word_has_bits(operations: int, clients: int) -> None:
    """If this fails, the number of operations that may run at once has a limit that nobody was told of."""
    for stale, answer in ((False, "yes"), (True, "no")):
        columns = generated.columns(operations, clients, seed=3, values=4, cas=False, stale=stale)
        assert forward.search_columns(columns, Limits()).result == answer


@pytest.mark.parametrize("count", [30, pytest.param(150, marks=pytest.mark.long)])
def test_the_plain_twin_of_the_kernels_says_the_same(count: int) -> None:
    """If this fails, a machine without a compiler gets other verdicts."""
    code = (
        "from tests.checkers.linearizable.test_agreement import agree\n"
        "from checkers.compiled import why_plain\n"
        "assert why_plain()\n"
        f"agree('cas-register', {count}, seed=5); agree('unique-register', {count}, seed=6)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=ROOT, env={PLAIN_VARIABLE: "1", "PATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_time_limit_is_looked_at_between_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, a check that was asked for seconds takes as long as its search."""
    monkeypatch.setattr(forward, "SLICE", 1_000)
    ticks = iter(range(10**9))
    columns = generated.columns(300, 12, stale=True, crashed=9)
    with within(TimeLimit(5.0), clock=lambda: next(ticks)), pytest.raises(OutOfTime):
        forward.search_columns(columns, Limits())
    assert next(ticks) < 10


@pytest.mark.long
def test_the_time_limit_is_kept_inside_the_compiled_search() -> None:
    """If this fails, a check that was asked for seconds takes minutes."""
    columns = generated.columns(10_000, 60, stale=True, crashed=300)
    forward.search_columns(generated.columns(100, 3), Limits())
    began_s = time.process_time()  # of this process alone: others may be at work
    with within(TimeLimit(1.0)), pytest.raises(OutOfTime):
        forward.search_columns(columns, Limits(50_000_000))
    assert time.process_time() - began_s < 5.0


def test_no_limit_of_time_is_passed_by_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """If this fails, the first check on a machine takes half a minute although a few seconds were asked for."""
    monkeypatch.setattr(decide, "waiting_for", lambda module, kernel: "compiling")
    plain: list[str] = []
    monkeypatch.setattr(search, "search", lambda *_: plain.append("asked") or Decision("unknown"))
    columns = generated.columns(6_000, 30, stale=True)
    for look in (
        lambda limits: decide.decide_columns(columns, limits),
        lambda limits: decide.decide(Register(initial=0), calls_of(columns), limits),
    ):
        with within(TimeLimit(10.0)):
            look(Limits(50_000_000))
    assert plain == ["asked", "asked"]


@pytest.mark.parametrize(
    ("operations", "most"), [(300, 30), pytest.param(10_000, 300, marks=pytest.mark.long)]
)
def test_the_memory_limit_is_kept_inside_the_compiled_search(operations: int, most: int) -> None:
    """If this fails, a search that explodes eats the machine."""
    columns = generated.columns(operations, 40, stale=True)
    found = forward.search_columns(columns, Limits(configurations=most))
    assert (found.result, found.reason) == ("unknown", f"more than {most} configurations")


def test_unread_crashed_write_explains_a_mismatch() -> None:
    """The trap: a crashed write that nobody reads is left out, although a refused compare may have seen it."""
    history = [
        Call(Action("overwrite", "write", (1,)), 0, 1), Call(Action("overwrite", "write", (2,)), 2, None),
        Call(Action("observe", "is-not", (1,)), 3, 4), Call(Action("observe", "read", (2,)), 5, 6),
    ]  # fmt: skip
    for calls in (history[:3], history):
        assert all_orders.linearizable(Register(), calls)
        assert decide.decide(Register(), calls, Limits()).result == "yes"
        assert forward.search(Register(), calls, Limits()).result == "yes"
    without = [history[0], history[2]]
    assert forward.search(Register(), without, Limits()).result == "no"


@pytest.mark.parametrize(
    ("operations", "crashed"), [(6_000, 1_000), pytest.param(100_000, 2_500, marks=pytest.mark.long)]
)
def test_thousands_of_crashed_writes_cost_little(operations: int, crashed: int) -> None:
    """If this fails, a cluster that was cut off for long makes a history undecidable."""
    columns = generated.columns(operations, 10, unique=True, cas=False, crashed=crashed)
    zones.decide(generated.columns(2_000, 3, unique=True, cas=False))
    began_s = time.process_time()
    found = zones.decide(columns)
    assert found is not None and not found.values
    assert time.process_time() - began_s < 5.0


@pytest.mark.parametrize("name", ["register", "unique-register", "cas-register", "deleting-register"])
@pytest.mark.parametrize("count", [20, pytest.param(100, marks=pytest.mark.long)])
def test_columns_from_parquet_say_the_same(name: str, tmp_path: Path, count: int) -> None:
    """If this fails, a big run is judged differently from a small one."""
    chance = random.Random(4)
    path = tmp_path / "history.parquet"
    for _ in range(count):
        history = tiny_histories.history(name, chance, most=10)
        parquet.write(path, history)
        verdict, columns = linearizable.check(history), linearizable.check(parquet.read(path))
        assert columns.result == verdict.result
        for detail in ("operations", "observations", "keys_invalid", "reads_not_judged"):
            assert columns.details[detail] == verdict.details[detail]


def test_what_is_no_register_of_numbers_is_read_as_objects(tmp_path: Path) -> None:
    """If this fails, a file that columns cannot hold is refused, or its values are mixed up."""
    events = [
        Event(index=0, time_ns=0, type="invoke", process=0, f="write", key="x", value="1"),
        Event(index=1, time_ns=1, type="ok", process=0, f="write", key="x", value="1"),
        Event(index=2, time_ns=2, type="invoke", process=0, f="read", key="x"),
        Event(index=3, time_ns=3, type="ok", process=0, f="read", key="x", value=1),
    ]
    parquet.write(tmp_path / "history.parquet", History.of(Header(), events))
    assert linearizable.check(parquet.read(tmp_path / "history.parquet")).result == "invalid"


def test_an_invalid_long_history_has_a_proof() -> None:
    """If this fails, nobody can check what was said of a big run."""
    history = generated.history_of([generated.columns(5_000, 4, unique=True, cas=False, stale=True)])
    verdict = linearizable.check(history)
    assert (verdict.result, verdict.details["decided_by"]) == ("invalid", {"zones": 1})
    assert verdict.details["proofs"][0]["kind"] == "zones"
    assert verify.check(history, verdict, Terms(model="register", failed_cas_observes=True)).holds


def test_kernels_know_the_same_numbers() -> None:
    """If this fails, two files that must each stand alone have parted."""
    for name in ("NEVER", "OBSERVE", "OVERWRITE"):
        assert getattr(zone_kernels, name) == getattr(search_kernels, name)
    names = (
        "NEVER OBSERVE REFUSE OVERWRITE UPDATE INVOKE RETURN RETIRE KIND OLD NEW ACTION WORD MASK RETURNS BIT"
    )
    for name in (*names.split(), "BASE", "OP", "INVOKED", "TRIED_AT", "TOTAL", "BITS"):
        assert getattr(layout_kernels, name) == getattr(search_kernels, name)


def test_a_drain_is_many_dequeues_without_a_name() -> None:
    """If this fails, a queue that was drained is called broken, or its verdict is refused for want of a proof."""
    events = []
    for place in range(60):
        for ends in (False, True):
            events.append(
                Event(
                    index=len(events), time_ns=len(events), type="ok" if ends else "invoke", process=0, f="enqueue",
                    key="q", value=place % 50,
                )
            )  # fmt: skip
    for ends in (False, True):
        shown = [place % 50 for place in range(60)] if ends else None
        events.append(
            Event(
                index=len(events), time_ns=len(events), type="ok" if ends else "invoke", process=1, f="drain", key="q",
                value=shown,
            )
        )  # fmt: skip
    history = History.of(Header(), events)
    verdict = linearizable.check(history, model="queue")
    assert verdict.result == "valid"
    assert (verdict.details["proofs"], verdict.details["decided_without_proof"]) == ([], 1)
