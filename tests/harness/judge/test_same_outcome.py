"""One stored run has one outcome, whoever asks for it; and none is valid by a check that was not judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from checkers.check import Check, run_here
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.verdict import Verdict
from harness.campaigns.journal import ToJudge
from harness.campaigns.judging import judged
from harness.errors import HarnessError
from harness.judge import EXIT_CODES, Case, Left, judge, outcome_of
from harness.judge.audit import SETTLED
from harness.judge.outcome import CONDITIONAL, OF_READS, result_of
from harness.pages import page
from harness.results import RunFolder
from harness.results.scan import scan
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, conclude, read_history
from harness.systems import system_of
from harness.systems.qsync.logs import read_logs
from harness.workloads import WORKLOADS
from tests.harness.cli.verbs.conftest import Qsync, qsync, results
from tests.harness.runs import small
from tests.harness.stored import (
    BEFALLS,
    Kind,
    a_log_that_contradicts,
    a_log_with_a_hole,
    no_logs,
    nothing,
    record_cut,
    stored,
)
from tests.suites import mostly_long

__all__ = ["qsync", "results"]

SPOKEN = [name for name, each in WORKLOADS.items() if each.uses <= system_of("qsync").client.speaks]
NO_MODEL = ("configuration", "why")
"""What stands in a verdict's promise beside the names of checks."""
SOUND = small(time_limit_s=2.0, rate=60.0, faults=("none",), seed=5)
KINDS = (
    Kind("sound", SOUND, BEFALLS),
    Kind(
        "broken",
        small(time_limit_s=6.0, rate=60.0, faults=("isolate-owner",), bugs=("confirm-early",), seed=1),
        (nothing, BEFALLS[5], BEFALLS[7], a_log_with_a_hole),
    ),
    Kind(
        "unpromised",
        small(time_limit_s=2.0, rate=60.0, faults=("none",), configuration="B", seed=2),
        (nothing, a_log_that_contradicts),
    ),
    Kind("elected", small(time_limit_s=4.0, rate=60.0, configuration="H", faults=("none",), seed=3)),
    Kind("append", small(time_limit_s=2.0, rate=60.0, workload="append", faults=("none",), seed=4)),
)


WITH_OPTIONS = ("sound-5-a_log_with_a_hole", "sound-5-interrupted", "broken-1-nothing", "elected-3-nothing")


@pytest.fixture(autouse=True)
def without_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page says what the verdict says, and takes longer than the rest."""
    monkeypatch.setattr(page, "html", lambda *_: "")
    monkeypatch.setattr("harness.run.finish.strongest", lambda *_: None)


def by_run(run: RunFolder) -> tuple[int, str | None]:
    """As `qsync run` ends, but for Ctrl-C, whose code says that a person ended the run."""
    try:
        verdict, code = conclude(Recorded(str(run.path)))
    except HarnessError as error:
        return error.exit_code, None
    assert code == verdict["exit_code"]
    return code, verdict["outcome"]


def by_check(qsync: Qsync, *words: object) -> tuple[int, str | None]:
    done = qsync("check", *words, "--json")
    return done.code, json.loads(done.out)["outcome"] if done.out else None


def by_check_of_all(qsync: Qsync, run: RunFolder, *words: str) -> tuple[int, str | None]:
    """Of the results folder, which has this run alone."""
    done = qsync("check", run.path.parent.parent, *words, "--json")
    (line,) = done.out.splitlines()
    told = json.loads(line)
    assert told["exit_code"] == done.code
    return done.code, told["outcome"]


def by_nightly(run: RunFolder) -> tuple[int, str | None]:
    name = str(run.path.relative_to(run.path.parent.parent))
    ended = judged(run.path.parent.parent, ToJudge(cell="one", seed=0, at="", seconds=0.0, run=name))
    return ended.exit_code, ended.outcome


def by_tables(run: RunFolder) -> str | None:
    """What `qsync analyze` takes: the stored verdict of runs that have one."""
    root = run.path.parent.parent
    outcome = run.read_verdict_outcome()
    assert [each.path for each in scan(root).runs] == ([run.path] if outcome is not None else [])
    return outcome


def same(qsync: Qsync, run: RunFolder) -> tuple[int, str | None]:
    """The exit code and the outcome, which are the same by all ways."""
    code, outcome = by_run(run)
    assert by_check(qsync, run.path) == (code, outcome)
    told = by_check_of_all(qsync, run)
    assert told == (code, outcome or "inconclusive")
    assert by_nightly(run) == told
    assert by_tables(run) == outcome
    return code, outcome


def same_with_options(qsync: Qsync, run: RunFolder, code: int, outcome: str | None) -> None:
    """No option makes it better, and none changes what is stored."""
    told = (code, outcome or "inconclusive")
    before = (run.path / "verdict.json").read_bytes() if outcome else b""
    assert by_check(qsync, run.path, "--timeout", "600", "--memory", "4096") == (code, outcome)
    assert by_check_of_all(qsync, run, "--timeout", "600") == told
    for limited in (
        by_check(qsync, run.path, "--timeout", "1e-9"),
        by_check_of_all(qsync, run, "--timeout", "1e-9"),
    ):
        assert limited[0] != 0
        assert limited[1] in (None, "unknown", "inconclusive")
    stricter = by_check(qsync, run.path, "--promise", "linearizable")
    assert stricter[0] == code or stricter[0] == EXIT_CODES["anomaly"]
    if outcome is not None:
        assert (run.path / "verdict.json").read_bytes() == before


def audited_alike(qsync: Qsync, run: RunFolder) -> None:
    """As far as the logs alone can tell."""
    verdict = run.read_verdict()
    done = qsync("audit", run.path, "--json")
    if verdict is None:
        assert done.code not in (0, 1)
        return
    audit = json.loads(done.out)
    of_logs = [name for name in violations(verdict) if name == "audit" or name.endswith(SETTLED)]
    assert set(of_logs) <= set(audit["violations"])
    settled = {name.removesuffix(SETTLED) for name in audit["violations"]}
    assert settled <= {*violations(verdict), "audit"}
    assert ("audit" in settled) == ("audit" in of_logs)
    assert done.code != 1 or verdict["outcome"] == "anomaly"
    if done.code == 2 and "audit" in promised(verdict):
        assert verdict["outcome"] != "valid"
    code = qsync("xlog", run.nodes).code
    damaged = bool(audit["checks"][0]["details"].get("findings"))
    assert (code == 1) <= (done.code != 0 or not promised(verdict).get("audit")), (
        "a damaged log is audited as valid"
    )
    assert damaged or code != 1


def violations(verdict: dict[str, Any]) -> list[str]:
    return list(verdict["violations"])


def promised(verdict: dict[str, Any]) -> dict[str, str]:
    return {name: model for name, model in verdict["promise"].items() if name not in NO_MODEL}


def rests_on_what_was_judged(verdict: dict[str, Any]) -> None:
    """Every promised check has a verdict; in a valid run all of them are valid, but those that nothing could show.

    Nobody has to have asked for a dirty read, or for one at a replica.
    """
    checks = {check["checker"]: check for check in verdict["checks"]}
    assert promised(verdict).keys() <= checks.keys()
    if verdict["outcome"] != "valid":
        return
    details = {name: checks[name]["details"] for name in promised(verdict)}
    empty = {name for name in details if details[name].get("vacuous") and name not in CONDITIONAL}
    unjudged = empty | {name for name in details if checks[name]["result"] != "valid"}
    never_asked = {name for name in ("dirty", "prefix") if name in details and details[name]["asked"] == 0}
    assert unjudged <= empty & {*OF_READS, "kept", *never_asked}, unjudged


def judged_alike(qsync: Qsync, name: str, run: RunFolder, *, with_options: bool) -> str | None:
    """The outcome, by all ways the same."""
    try:
        code, outcome = same(qsync, run)
        if with_options:
            same_with_options(qsync, run, code, outcome)
        audited_alike(qsync, run)
        verdict = run.read_verdict()
        if verdict is not None:
            rests_on_what_was_judged(verdict)
    except AssertionError as error:
        error.add_note(f"of the run {name}")
        raise
    return outcome


def test_every_verb_gives_what_befell_a_run_the_same_outcome(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a run would be valid by one verb and an anomaly, unknown or no evidence by another."""
    befalls = {
        nothing: "valid",
        record_cut: "inconclusive",
        no_logs: "unknown",
        a_log_that_contradicts: "anomaly",
    }
    for name, run in stored(tmp_path, (Kind("sound", SOUND, tuple(befalls)),)):
        expected = befalls[next(each for each in befalls if name.endswith(f"-{each.__name__}"))]
        assert judged_alike(qsync, name, run, with_options=expected == "anomaly") == expected


@pytest.mark.long
def test_every_verb_gives_a_stored_run_the_same_outcome(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, a run would be valid by one verb and an anomaly, unknown or no evidence by another."""
    outcomes = {
        name: judged_alike(qsync, name, run, with_options=name in WITH_OPTIONS)
        for name, run in stored(tmp_path, KINDS)
    }
    expected = {
        "sound-5-nothing": "valid",
        "sound-5-a_torn_log": "valid",
        "sound-5-no_logs": "unknown",
        "sound-5-a_log_missing": "unknown",
        "sound-5-a_log_with_a_hole": "unknown",
        "sound-5-a_log_of_garbage": "unknown",
        "sound-5-a_log_that_contradicts": "anomaly",
        "sound-5-interrupted": "inconclusive",
        "sound-5-broken_off": "inconclusive",
        "sound-5-record_torn": "inconclusive",
        "sound-5-record_cut": "inconclusive",
        "sound-5-record_lacks_a_line": None,
        "sound-5-record_empty": None,
        "broken-1-no_logs": "anomaly",
        "unpromised-2-a_log_that_contradicts": "valid",
    }
    assert {name: outcomes[name] for name in expected} == expected


def many() -> Iterator[Kind]:
    """Workloads, configurations, faults and bugs, each with some of what may befall a run."""
    shorter = {"time_limit_s": 6.0, "rate": 80.0}
    plans = [small(workload=name, faults=("kill",), seed=1, **shorter) for name in SPOKEN]
    plans += [
        small(configuration=letter, faults=("isolate-owner",), seed=2, **shorter) for letter in "ABCDEFGHI"
    ]
    bugs = ("confirm-early", "no-term-filter", "duplicate-confirm", "ack-without-term")
    plans += [small(bugs=(bug,), configuration="H", seed=3, **shorter) for bug in bugs]
    faults = ("power-all", "lose-unsynced", "membership", "full-disk")
    plans += [small(faults=(name,), seed=4, **shorter) for name in faults]
    plans += [
        small(commit_wait="mixed", seed=6, **shorter),
        small(mvcc=False, configuration="F", seed=6, **shorter),
        small(promise="linearizable", seed=8, **shorter),
        small(nodes=5, election_mode="candidate", seed=8, **shorter),
    ]
    for number, plan in enumerate(plans):
        yield Kind(f"{number}", plan, (nothing, *BEFALLS[1 + number % 2 :: 2]))


MANY = tuple(many())


def test_there_are_two_hundred_stored_runs() -> None:
    """If it failed, the nightly comparison would have shrunk unnoticed."""
    assert sum(len(kind.befalls) for kind in MANY) >= 200


@pytest.mark.nightly
@pytest.mark.parametrize("kind", MANY, ids=lambda kind: kind.name)
def test_two_hundred_stored_runs(qsync: Qsync, tmp_path: Path, kind: Kind) -> None:
    """If it failed, there would be a workload, a configuration or a fault under which verbs disagree."""
    for name, run in stored(tmp_path, (kind,)):
        judged_alike(qsync, name, run, with_options=True)


@pytest.mark.parametrize("workload", mostly_long(SPOKEN, quick=("bank", "register")))
def test_a_promised_check_that_is_not_judged_is_never_valid(workload: str, tmp_path: Path) -> None:
    """If it failed, a checker that breaks, is skipped, or answers for another one would be a green light."""
    configuration = "I" if workload in ("register", "append") else "C"  # where it rests on `kept` as well
    plan = small(
        workload=workload, configuration=configuration, time_limit_s=3.0, rate=60.0, faults=("none",), seed=7
    )
    run = execute(parts_of(plan), tmp_path).folder
    history, logs = read_history(run), read_logs(run.nodes)
    known: dict[str, Verdict] = {}

    def once(check: Check, of: History) -> Verdict:
        if check.name not in known:
            known[check.name] = run_here(check, of)
        return known[check.name]

    whole = judge(Case(plan, history, Left(logs=logs), run_check=once))
    names = [name for name in promised(whole) if name != "audit"]
    assert len(names) >= 4
    assert "audit" in promised(whole) or configuration == "I"
    assert whole["outcome"] == "valid" or configuration == "C"  # too short for some workloads' evidence
    for skipped in names:

        def skipping(check: Check, of: History, skipped: str = skipped) -> Verdict:
            unknown = Verdict(checker=check.name, result="unknown", summary="it was skipped")
            return unknown if check.name == skipped else once(check, of)

        def breaking(check: Check, of: History, skipped: str = skipped) -> Verdict:
            return run_here(replace(check, run=broken), of) if check.name == skipped else once(check, of)

        for run_check in (skipping, breaking):
            found = judge(Case(plan, history, Left(logs=logs), run_check=run_check))
            assert found["outcome"] != "valid", skipped
            assert skipped in found["promise"]
    assert (
        configuration == "I"
        or judge(Case(plan, history, Left(logs=()), run_check=once))["outcome"] != "valid"
    )


@pytest.mark.parametrize(("name", "asked_in"), [("prefix", "read-confirmed"), ("dirty", "dirty")])
def test_a_class_of_reads_that_was_asked_and_never_answered_is_not_valid(
    name: str, asked_in: str, tmp_path: Path
) -> None:
    """If it failed, replicas that refuse every read, or a store that refuses dirty ones, would pass."""
    plan = small(
        configuration="H",
        read="mixed",
        replica_reads=0.5,
        time_limit_s=3.0,
        rate=100.0,
        faults=("none",),
        seed=7,
    )
    run = execute(parts_of(plan), tmp_path).folder
    history, logs = read_history(run), read_logs(run.nodes)

    def of_class(each: Operation) -> bool:
        return each.f == "read" and each.mode == asked_in and (asked_in == "dirty" or each.role == "replica")

    def outcome_without(replaced: Callable[[Operation], Iterable[Operation]]) -> tuple[str, str]:
        operations = [
            kept for each in history.operations for kept in (replaced(each) if of_class(each) else [each])
        ]
        verdict = judge(Case(plan, replace(history, operations=tuple(operations)), Left(logs=logs)))
        (check,) = (each for each in verdict["checks"] if each["checker"] == name)
        return verdict["outcome"], check["result"]

    assert any(map(of_class, history.operations))
    assert outcome_without(lambda each: [each]) == ("valid", "valid")
    assert outcome_without(lambda each: []) == ("valid", "unknown")  # nobody asked
    refused = partial(structs.replace, type="fail", value=None, role=None, error="refused")
    assert outcome_without(lambda each: [refused(each)]) == ("unknown", "unknown")


@pytest.mark.parametrize(("configuration", "outcome"), [("C", "valid"), ("H", "unknown")])
def test_answers_of_replicas_without_a_role_are_judged_by_the_stronger_promise_or_by_none(
    configuration: str, outcome: str, tmp_path: Path
) -> None:
    """If it failed, a correct store whose followers pass reads on could not be valid, or stale answers that nobody
    judged would pass."""
    plan = small(
        configuration=configuration,
        read="read-confirmed",
        replica_reads=0.3,
        time_limit_s=3.0,
        faults=("none",),
        seed=7,
    )
    run = execute(parts_of(plan), tmp_path).folder
    history, logs = read_history(run), read_logs(run.nodes)
    elsewhere = next(each.node for each in history.operations if each.role == "replica")

    def passed_on(each: Operation, number: int) -> Operation:
        if each.f != "read" or each.phase != "load":
            return each
        if each.role == "replica":
            return structs.replace(each, type="fail", value=None, role=None, error="refused", node=elsewhere)
        return structs.replace(each, role=None, node=elsewhere) if number % 2 else each

    def judged_as(operations: Iterable[Operation]) -> tuple[str, str]:
        verdict = judge(Case(plan, replace(history, operations=tuple(operations)), Left(logs=logs)))
        (check,) = (each for each in verdict["checks"] if each["checker"] == "prefix")
        return verdict["outcome"], check["result"]

    without_roles = [passed_on(each, number) for number, each in enumerate(history.operations)]
    assert judged_as(without_roles) == (outcome, "unknown")
    named = next(number for number, each in enumerate(history.operations) if each.f == "cas")
    without_roles[named] = structs.replace(without_roles[named], role="replica")
    # This store names replicas, so their answers are missed.
    assert judged_as(without_roles) == ("unknown", "unknown")


def test_what_had_nothing_to_judge_is_not_valid() -> None:
    """If it failed, a check would be a green light by having looked at nothing."""
    for name in ("linearizable", "a check of tomorrow"):
        empty = Verdict(checker=name, result="valid", summary="", details={"vacuous": True})
        assert result_of(empty) == "unknown"
    starved = Verdict(checker="quorum", result="valid", summary="", details={"vacuous": True})
    assert result_of(starved) == "valid"


def broken(history: History) -> Verdict:
    raise ZeroDivisionError


def test_no_promised_check_at_all_is_unknown() -> None:
    """If it failed, a run of which nothing is promised would be valid whatever it showed."""
    assert outcome_of([]) == "unknown"
    assert outcome_of(["valid"], left_out=["all keys but one"]) == "unknown"
    assert outcome_of(["invalid", "unknown"], ["no load"], ["a key"]) == "anomaly"
