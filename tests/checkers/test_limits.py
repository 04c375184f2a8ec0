"""Limits: a verdict depends on no clock unless the caller gives a time limit, and that one keeps what was decided."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from checkers import CHECKERS, by_model, compiled, limits, linearizable, transactional
from checkers.history import Event, Header, History, jsonl
from checkers.limits import Limits, within
from checkers.linearizable import checker, forward
from checkers.linearizable.decide import COLD_CALLS, SHORT, Way, decide, in_rounds
from checkers.linearizable.models import Register
from checkers.linearizable.search import Limits as Budget
from checkers.transactional import checker as transactional_checker
from checkers.verdict import Verdict, run_safely
from tests.checkers.linearizable import generated
from tests.checkers.linearizable.test_algorithms import calls_of
from tests.checkers.linearizable.test_linearizable_checker import built, history_of, mismatched
from tests.checkers.tiny_store import BUGS, TinyStore

HISTORIES = Path(__file__).parent / "histories"
WRITTEN = sorted(path for path in HISTORIES.glob("*/*.jsonl"))


def functions_with_a_clock() -> Iterator[FunctionType]:
    """Of all checkers that are imported, those that take a clock and would ask the machine's."""
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "checkers":
            for each in vars(module).values():
                if isinstance(each, FunctionType) and time.monotonic in (each.__kwdefaults__ or {}).values():
                    yield each


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Called, it makes an hour pass between any two looks at a clock.

    What a process has loaded decides which search is taken, and so does machine code that another process has left:
    before and after, this one has loaded nothing, and kernels stay plain.
    """
    monkeypatch.setenv(compiled.PLAIN_VARIABLE, compiled.AS_COMPILED)

    def forget() -> None:
        monkeypatch.setattr(compiled, "_LOADED", set())
        monkeypatch.setattr(compiled, "_PASSED", {})

    def begin() -> None:
        forget()
        ticks = count(0, 3600)
        for each in dict.fromkeys(functions_with_a_clock()):
            fast = {
                name: (lambda: float(next(ticks))) if default is time.monotonic else default
                for name, default in (each.__kwdefaults__ or {}).items()
            }
            monkeypatch.setattr(each, "__kwdefaults__", fast)

    forget()
    return begin


def said(verdict: Verdict) -> object:
    return {name: value for name, value in verdict.to_json().items() if name != "seconds"}


def test_no_verdict_depends_on_a_clock(hasty: Callable[[], None]) -> None:
    """If it failed, the same trace would be valid on an idle machine and unknown on a busy one."""
    asked: list[tuple[str, History]] = [
        (path.parent.name, jsonl.read(path)) for path in WRITTEN if path.parent.name in CHECKERS
    ]
    for seed, bug in enumerate(("", *BUGS)):
        history = TinyStore(seed, bug).run()
        asked += [(name, history) for name in ("linearizable", "coherence", "convergence", "prefix")]
    before = [said(run_safely(CHECKERS[name], history, name=name)) for name, history in asked]
    hasty()
    assert list(functions_with_a_clock()) == []
    after = [said(run_safely(CHECKERS[name], history, name=name)) for name, history in asked]
    assert after == before


def test_no_verdict_on_transactions_depends_on_a_clock(hasty: Callable[[], None]) -> None:
    """If it failed, transactions would be unknown where the machine is busy."""
    from checkers.transactional.columns import WORKLOADS
    from tests.checkers.transactional.tiny_database import LEVELS, TinyDatabase

    asked = [
        (words, TinyDatabase(random.Random(level), words, LEVELS[level]).history(20, 4, "xyz"))
        for words in WORKLOADS
        for level in range(len(LEVELS))
    ]
    before = [said(transactional.check(history, workload=words)) for words, history in asked]
    hasty()
    assert [said(transactional.check(history, workload=words)) for words, history in asked] == before


@pytest.mark.parametrize(
    "operations", [48, *(pytest.param(more, marks=pytest.mark.long) for more in (300, 1_500))]
)
def test_a_cold_process_decides_what_a_warm_one_does(
    operations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a verdict would depend on what the process, or the machine, had done before."""
    calls = calls_of(generated.columns(operations, 12, stale=True, crashed=3))
    found = {}
    for steps in (20_000, 400_000, SHORT.steps, limits.STEPS):
        for waiting in ("nothing", "loading", "compiling"):
            monkeypatch.setattr(
                "checkers.linearizable.decide.waiting_for", lambda module, kernel, now=waiting: now
            )
            found[waiting] = decide(Register(initial=0), calls, Budget(steps=steps))
        results = {(each.result, each.failing) for each in found.values()}
        assert len(results) == 1, (steps, results)
    assert found["nothing"].result == "no"


@pytest.mark.parametrize(
    ("operations", "crashed"), [(150, 3), pytest.param(2_000, 20, marks=pytest.mark.long)]
)
def test_the_same_steps_are_counted_every_time(operations: int, crashed: int) -> None:
    """If it failed, a search would give up at another place each time."""
    columns = generated.columns(operations, 12, stale=True, crashed=crashed)
    steps = {forward.search_columns(columns, Budget()).steps for _ in range(2)}
    assert len(steps) == 1
    least = steps.pop()
    assert least > 20_000
    assert forward.search_columns(columns, Budget(steps=least)).result == "no"
    found = forward.search_columns(columns, Budget(steps=least // 2))
    assert (found.result, found.reason) == ("unknown", f"gave up after {least // 2:,} steps (--budget)")


def test_shares_depend_on_nothing_but_the_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, whether a key is decided would depend on how long others took."""
    monkeypatch.setattr(compiled, "_LOADED", set())
    monkeypatch.setattr(compiled, "_PASSED", {})
    asked: list[tuple[int, int]] = []
    ways: list[Way] = []

    def decided(key: int, share: Budget, way: Way) -> bool:
        ways.append(way)
        asked.append((key, share.steps))
        return key != 1 and share.steps >= (1 + key) * 1_000

    in_rounds(3, COLD_CALLS, Budget(steps=1_000_000), decided)
    assert ways == ["plain"] * 6 + ["either"]
    assert asked == [(0, 500), (1, 500), (2, 500), (0, 50_000), (1, 50_000), (2, 50_000), (1, 1_000_000)]


def test_steps_that_are_used_up_are_told() -> None:
    """If it failed, nobody could tell a search that gave up from one that a time limit stopped."""
    history = generated.history_of([generated.columns(300, 12, stale=True, crashed=9)])
    verdict = linearizable.check(history, steps=10_000)
    assert verdict.result == "unknown"
    assert verdict.summary == "1 key of 1 could not be decided: gave up after 10,000 steps (--budget)"


# ---- the time limit


def ticking(step_s: float = 1.0) -> Callable[[], float]:
    ticks = count()
    return lambda: step_s * next(ticks)


def test_an_anomaly_that_was_found_in_time_stays() -> None:
    """If it failed, a time limit would turn an anomaly into unknown."""
    wrong = history_of(("write", "ok", 1), ("write", "ok", 2), ("read", "ok", 1), key="r1")
    # Texts: registers of numbers would be decided all at once.
    rest = [
        line
        for key in range(2, 60)
        for line in history_of(("write", "ok", "a"), ("write", "ok", "a"), ("read", "ok", "a"), key=f"r{key}")
    ]
    history = mismatched(built([*wrong, *rest]))
    verdict = linearizable.check(history, timeout_s=20.0, clock=ticking())
    assert (verdict.result, verdict.details["keys_invalid"]) == ("invalid", ["r1"])
    assert set(verdict.details["keys_undecided"].values()) == {"stopped by the time limit of 20 s"}


def test_an_alarm_does_not_interrupt_the_compiler() -> None:
    """numba would be left with half of a kernel: a traceback on the screen, and "the checker broke" as the verdict."""
    lock: Any = import_module("numba.core.compiler_lock").global_compiler_lock
    done: list[str] = []

    def compile_and_check(history: object) -> Verdict:
        with lock:
            for _ in range(50):
                limits.interrupt()
            done.append("compiled")
        for _ in range(50):
            limits.interrupt()
        raise AssertionError("the alarm was not heard")

    with within(Limits(timeout_s=10.0), clock=ticking()):
        assert run_safely(compile_and_check, None).summary == "stopped by the time limit of 10 s: not decided"
    assert done == ["compiled"]


def test_an_alarm_interrupts_a_check_that_looks_at_no_clock() -> None:
    """If it failed, one check in plain Python would pass every time limit; or break instead of saying unknown."""
    begun: list[str] = []

    def slow(history: object) -> Verdict:
        begun.append("slow")
        for _ in range(50):
            limits.interrupt()  # as the signal does, at any moment
        raise AssertionError("the alarm was not heard")

    with within(Limits(timeout_s=10.0), source="--timeout", clock=ticking()):
        first = run_safely(slow, None, name="first")
        second = run_safely(slow, None, name="second")
        limits.interrupt()  # outside of a check nothing is interrupted
    assert begun == ["slow"], "behind the limit a check was begun"
    for verdict in (first, second):
        assert verdict.result == "unknown"
        assert verdict.summary == "stopped by the time limit of 10 s (--timeout): not decided"


def test_an_alarm_waits_until_a_verdict_is_put_together() -> None:
    """If it failed, an anomaly could be lost in the moment in which it is written down."""

    def found(history: object) -> Verdict:
        with limits.shielded():
            for _ in range(50):
                limits.interrupt()
        return Verdict(checker="found", result="valid", summary="in time")

    with within(Limits(timeout_s=10.0), clock=ticking()):
        assert run_safely(found, None).summary == "in time"


def test_a_limit_inside_another_ends_no_later() -> None:
    """If it failed, a check could take longer than its command may."""
    now = [0.0]
    with within(Limits(timeout_s=5.0), source="--timeout", clock=lambda: now[0]):
        with within(Limits(timeout_s=60.0, steps=7), clock=lambda: now[0]):
            assert (limits.left_s(), limits.given().steps) == (5.0, 7)
            now[0] = 5.0
            assert limits.why_ended() == "stopped by the time limit of 5 s (--timeout)"
        assert limits.given() == Limits(timeout_s=5.0)
    assert (limits.left_s(), limits.why_ended()) == (None, "")


def test_the_time_that_is_left_elsewhere_is_a_limit_by_itself() -> None:
    """If it failed, a worker whose caller has a limit of time around it would have none, or end in a TypeError."""
    now = [0.0]
    with within(Limits(timeout_s=5.0), clock=lambda: now[0]), within(Limits(memory_mib=1.0)):
        assert limits.given().timeout_s == 5.0
    with within(Limits(), left_s=3.0, clock=lambda: now[0]):
        assert limits.left_s() == 3.0
        now[0] = 3.0
        assert limits.why_ended() == "stopped by the time limit of 3 s"


@pytest.mark.parametrize("memory_mib", [1e308, float("inf")])
def test_any_memory_has_room_for_so_many_configurations(memory_mib: float) -> None:
    """If it failed, `--memory 1e308` would break every check."""
    assert Limits(memory_mib=memory_mib).configurations >= 1 << 50


@pytest.mark.parametrize("where", ["longest_prefix", "shrunk"])
def test_an_alarm_behind_an_anomaly_leaves_it(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, an anomaly would be unknown because the time ended while more was looked for."""
    now_s = [0.0]

    def alarm(*_: Any) -> Any:
        now_s[0] = 100.0
        limits.interrupt()
        raise AssertionError("the alarm was not heard")

    monkeypatch.setattr(checker, where, alarm)
    history = built([*history_of(("write", "ok", "a"), ("read", "ok", "b"), key="x")])
    with within(Limits(10.0), clock=lambda: now_s[0]):
        verdict = run_safely(linearizable.check, history, name="linearizable", longest_prefixes=True)
    assert (verdict.result, now_s) == ("invalid", [100.0]), verdict.summary


def test_an_alarm_while_an_anomaly_gets_its_time_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, an anomaly of a large record would be unknown: its events are read behind the search."""
    now_s = [0.0]

    def alarm(witness: Any, _: History) -> Any:
        now_s[0] = 100.0
        limits.interrupt()
        return witness

    monkeypatch.setattr(transactional_checker, "with_time", alarm)
    micros = ([["w", "x", 1]], [["r", "x", None]])
    events = [
        Event(index=2 * place + half, time_ns=0, type=kind, process=0, f="txn", value=value)
        for place, value in enumerate(micros)
        for half, kind in enumerate(("invoke", "ok"))
    ]
    with within(Limits(10.0), clock=lambda: now_s[0]):
        verdict = run_safely(
            transactional.check,
            History.of(Header(), events),
            name="transactional",
            workload="rw-register",
            model="strict-serializable",
        )
    assert (verdict.result, now_s) == ("invalid", [100.0]), verdict.summary


def test_every_check_of_a_file_shares_the_time() -> None:
    """If it failed, a command with five checks would take five times what it was given."""
    history = jsonl.read(HISTORIES / "linearizable" / "readers-disagree.jsonl")
    with within(Limits(timeout_s=1.0), source="--timeout", clock=ticking()):
        judged = by_model.judge(history, "cas-register")
    assert judged.result == "unknown"
    assert all("stopped by the time limit of 1 s" in each.summary for each in judged.verdicts)
