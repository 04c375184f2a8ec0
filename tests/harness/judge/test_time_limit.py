"""The time limit of a command: one for all checks, kept by those that look at no clock; nothing decided is lost."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec
import pytest

from checkers import limits
from checkers.limits import Limits
from checkers.verdict import Verdict, run_safely
from harness.campaigns.hunt.seeds import try_seed
from harness.judge import Case
from harness.judge.time_limit import Elsewhere, limited
from harness.results import RunFolder
from harness.run.finish import finish, read_history
from harness.systems.plans import read
from tests.checkers.test_limits import hasty
from tests.harness.cli.verbs.conftest import Qsync, qsync, results
from tests.harness.pipeline.stored_runs import store_run
from tests.harness.runs import small

__all__ = ["hasty", "qsync", "results"]  # fixtures


def busy(history: object) -> Verdict:
    """A check in plain Python that never ends."""
    while True:
        pass


def test_a_busy_check_ends_at_the_limit() -> None:
    """If it failed, a check that never looks at a clock would hold up its command for ever."""
    before = signal.getsignal(signal.SIGALRM)
    with limited(Limits(timeout_s=0.05)):
        verdict = run_safely(busy, None, name="busy")
        assert run_safely(busy, None, name="never begun").result == "unknown"
    assert verdict.summary == "stopped by the time limit of 0.05 s (--timeout): not decided"
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "an alarm was left behind"


def test_another_process_gets_the_time_that_is_left() -> None:
    """If it failed, each worker would begin the whole limit anew."""
    with limited(Limits(timeout_s=100.0, steps=7)):
        given = Elsewhere.now()
    with given.held():
        seconds = limits.left_s()
        assert seconds is not None
        assert 0.0 < seconds <= 100.0
        assert limits.given() == Limits(timeout_s=100.0, steps=7)
    assert Elsewhere.now().until_s is None


def test_a_simulated_run_is_judged_the_same_however_the_clock_runs(hasty: Callable[[], None]) -> None:
    """If it failed, a seed would be unknown on a busy machine and valid on another."""
    plan = small(seed=4, time_limit_s=3.0)
    before = try_seed(plan)
    hasty()
    assert try_seed(plan) == before


def test_a_run_that_is_cut_short_keeps_the_verdict_that_it_had(tmp_path: Path) -> None:
    """If it failed, judging a run again in too little time would throw away what was known of it."""
    folder = RunFolder(store_run(tmp_path, 1, time_limit_s=3.0, faults=("none",)))
    stored = folder.read_verdict()
    assert stored is not None
    ticks = count()
    with limited(Limits(timeout_s=1e6), clock=lambda: 1e5 * next(ticks)):
        verdict = finish(folder, read(folder.plan_file))
    assert (verdict["outcome"], verdict["exit_code"]) == ("unknown", 2)
    assert "stopped by the time limit" in verdict["sentence"]
    assert folder.read_verdict() == stored


def test_runs_that_no_time_is_left_for_are_not_judged(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, a folder of runs would take the limit for each of them, or lose the verdicts that they had."""
    folders = [RunFolder(store_run(tmp_path, seed, time_limit_s=3.0, faults=("none",))) for seed in (1, 2)]
    stored = [folder.read_verdict() for folder in folders]
    done = qsync("check", tmp_path, "--timeout", "0.000001", "--json")
    assert done.code == 2
    told = [json.loads(line) for line in done.out.splitlines()]
    assert {each["outcome"] for each in told} == {"unknown"}
    assert told[1]["sentence"] == "Not judged: stopped by the time limit of 1e-06 s (--timeout)."
    assert [folder.read_verdict() for folder in folders] == stored


def test_a_verification_that_is_cut_short_takes_the_word_back(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, `--verify` would say that proofs were checked that nobody looked at."""
    from harness.judge.files import verified

    folder = RunFolder(store_run(tmp_path, 1, time_limit_s=3.0, faults=("none",)))
    verdict = msgspec.json.decode(folder.path.joinpath("verdict.json").read_bytes())
    assert verdict["outcome"] == "valid"
    history = read_history(folder)
    judged = verified.verifiers(verified.judged_in_run(Case(read(folder.plan_file), history)))
    ticks = count()
    with limited(Limits(timeout_s=1e6), clock=lambda: 1e9 * next(ticks)):
        verified.add_to(verdict, history, judged)
    assert (verdict["outcome"], verdict["exit_code"]) == ("unknown", 2)
    assert "the proofs were not all checked: stopped by the time limit" in verdict["sentence"]


def test_steps_and_memory_are_those_of_the_command(tmp_path: Path, qsync: Qsync) -> None:
    """If it failed, `--budget` would be accepted and change nothing, or the message would not say what ended it."""
    path = hard(tmp_path)
    done = qsync("check", path, "--model", "cas-register", "--budget", "40000", "--json")
    assert done.code == 2
    verdict = json.loads(done.out)
    assert "gave up after 40,000 steps (--budget)" in verdict["sentence"]
    assert verdict["repeat"]["command"].endswith("--budget 40000")


@pytest.mark.nightly
@pytest.mark.parametrize("options", [(), ("--verify",)])
def test_the_limit_is_kept_within_a_tenth(tmp_path: Path, options: tuple[str, ...], qsync: Qsync) -> None:
    """If it failed, a check that was asked for two seconds would take half a minute.

    In seconds of CPU, which are no more than those of a clock, and which other work on the machine does not lengthen.
    """
    path = hard(tmp_path)
    qsync("check", path, "--timeout", "0.001", *options)  # what is imported stays
    began_s = time.process_time()
    qsync("check", path, "--timeout", "0.001", *options)
    reading_s = time.process_time() - began_s
    began_s = time.process_time()
    done = qsync("check", path, "--timeout", "2", "--memory", "4000", *options)
    assert time.process_time() - began_s - reading_s < 2.2
    assert done.code == 2
    assert "stopped by the time limit of 2 s (--timeout)" in done.out


def hard(folder: Path) -> Path:
    """A history of one register that takes a search minutes."""
    from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE
    from tests.checkers.linearizable.generated import columns

    calls = columns(1_000, 40, values=30, crashed=100, stale=True)
    moments: list[tuple[int, str, int]] = []
    for place in range(len(calls)):
        moments.append((int(calls.invoke[place]), "invoke", place))
        if calls.complete[place] < NEVER:
            moments.append((int(calls.complete[place]), "ok", place))
    words = {OBSERVE: "read", OVERWRITE: "write"}
    lines = []
    for index, (_, type_, place) in enumerate(sorted(moments)):
        kind = int(calls.kind[place])
        old, new = (int(column[place]) or None for column in (calls.old, calls.new))
        value: object = {OBSERVE: old, OVERWRITE: new, REFUSE: [old, -1]}.get(kind, [old, new])
        fields = {"index": index, "time": index, "process": place, "key": "x", "f": words.get(kind, "cas")}
        if kind == OBSERVE and type_ == "invoke":
            value = None
        refused = {"type": "fail", "error": "mismatch"} if kind == REFUSE and type_ == "ok" else {}
        lines.append(json.dumps({**fields, "type": type_, "value": value, **refused}))
    path = folder / "hard.jsonl"
    path.write_text("\n".join(lines))
    return path
