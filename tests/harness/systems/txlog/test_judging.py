"""Simulated runs whose logs are judged: their reports, and the worth of a run without its logs."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.check import run_here
from checkers.history.history import Header, History
from checkers.logs.txlog import CHECKS, PREFIX
from harness.campaigns.hunt.seeds import try_seed
from harness.plan.plan import Plan
from harness.systems import system_of
from harness.systems.plans import planned
from harness.systems.txlog.judging import agrees_within_ns, checks_of_logs
from harness.systems.txlog.options import said_of
from nodes.txlog import bugs

NAMES = {f"{PREFIX}{name}" for name in CHECKS}


def plan(**fields: Any) -> Plan:
    usual = {
        "system": "txlog",
        "split_timeout": 0.0,
        "cluster": "sim",
        "workload": "register",
        "time_limit_s": 10,
        "rate": 100,
        "workers": 24,
        "least_ok": 150,
        "seed": 1,
    }
    return planned(**{**usual, **fields})


def test_every_check_is_promised_with_its_source() -> None:
    """If it failed, a check could be invalid and change no exit code, or for no reason that a reader finds."""
    asked = plan()
    system = system_of("txlog")
    checks = system.logs.checks_of_files(asked, {})
    assert {check.name for check in checks} == NAMES
    assert all(check.model for check in checks)
    assert set(system.promise(asked).documented) >= NAMES


def test_without_logs_no_check_is_valid() -> None:
    """If it failed, a run that left nothing would count as one that was judged."""
    history = History.of(Header(system="txlog"), [])
    for check in checks_of_logs(plan(), {}):
        verdict = run_here(check, history)
        assert (verdict.result, "left no log" in verdict.summary) == ("unknown", True), check.name


@pytest.mark.parametrize("name", bugs.NAMES)
def test_a_bug_names_a_check_that_there_is(name: str) -> None:
    """If it failed, a bug would be said to be found by a check that nobody runs."""
    assert NAMES.issuperset(bugs.bug(name).checkers)


def test_a_sound_run_is_judged_and_valid() -> None:
    tried = try_seed(plan(faults=("halves",), split_timeout=1.1, strategy="simple", nodes=3, time_limit_s=5))
    assert tried.violated == ()


def test_a_bug_is_found_in_the_logs() -> None:
    """If it failed, the logs of a run would not come to the checks."""
    tried = try_seed(plan(bugs=("stamp-before-increment",), faults=("isolate-one",), time_limit_s=4))
    assert "txlog-counters" in tried.violated


def test_the_bound_of_an_agreement_grows_with_what_masters_wait_for() -> None:
    short, long = (agrees_within_ns(said_of(plan(max_peer_lag=lag))) for lag in (0.2, 2.0))
    assert long - short == 1_800_000_000
    assert short < plan().settle_timeout_s * 1e9


def test_a_slow_run_of_sound_masters_is_no_stall() -> None:
    """If it failed, masters that need long for a round or a transaction would be said to stand still."""
    slow = {"split_timeout": 0, "faults": (), "request_timeout_s": 60, "time_limit_s": 40, "rate": 30}
    for options in ({"busy_ms": 6_000.0, "workers": 5}, {"execute_ms": 1_000.0, "workers": 30}):
        tried = try_seed(plan(**slow, **options))
        assert tried.violated == (), options
