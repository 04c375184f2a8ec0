"""`--second-opinion knossos:JAR` and `porcupine:PROGRAM`, asked through stand-ins that speak as those do."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.history import Event, Header, History
from checkers.proofs.meaning import Terms
from harness.judge.files.register_checkers import ADAPTERS, Question, merged_answer
from harness.judge.files.second_opinion import ask_about_registers
from harness.run.assemble import parts_of
from harness.run.execute import execute
from tests import examples
from tests.harness.cli.verbs.conftest import Qsync
from tests.harness.runs import small
from tests.stand_ins import register_checkers as stand_in

STAND_IN = Path(stand_in.__file__)
VALID = """{:process 0, :type :invoke, :f :write, :value [:x 1]}
{:process 1, :type :invoke, :f :write, :value [:y "a b"]}
{:process 0, :type :ok, :f :write, :value [:x 1]}
{:process 1, :type :ok, :f :write, :value [:y "a b"]}
{:process 1, :type :invoke, :f :read, :value [:y nil]}
{:process 1, :type :ok, :f :read, :value [:y "a b"]}
{:process 0, :type :invoke, :f :cas, :value [:x [1 2]]}
{:process 0, :type :info, :f :cas, :value [:x [1 2]]}
{:process 2, :type :invoke, :f :read, :value [:x nil]}
{:process 2, :type :ok, :f :read, :value [:x 2]}
"""
STALE = "{:process 1, :type :invoke, :f :read, :value [:y nil]}\n{:process 1, :type :ok, :f :read, :value [:y nil]}\n"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The options for both; `java` is a stand-in."""
    for name, which in (("java", "knossos"), ("porcupine-check", "porcupine")):
        script = tmp_path / "bin" / name
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} {which} "$@"\n')
        script.chmod(0o755)
    (tmp_path / "knossos.jar").touch()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return {
        "knossos": f"knossos:{tmp_path / 'knossos.jar'}",
        "porcupine": f"porcupine:{tmp_path}/bin/porcupine-check",
    }


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_valid_and_an_invalid_history(
    qsync: Qsync, tmp_path: Path, programs: dict[str, str], name: str
) -> None:
    """If it failed, a newcomer could not have our verdict confirmed by a checker that is known."""
    path = tmp_path / "history.edn"
    for text, word, result in ((VALID, "true", "valid"), (VALID + STALE, "false", "invalid")):
        path.write_text(text)
        done = qsync("check", path, "--second-opinion", programs[name])
        assert f"second opinion  {result} (it said '{word}')" in done.out
        assert "DISAGREEMENT" not in done.out
        assert done.code == (result == "invalid")


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_disagreement_names_the_check(
    qsync: Qsync, tmp_path: Path, programs: dict[str, str], name: str
) -> None:
    """If it failed, one of two checkers could be wrong, and the screen would not say about what they differ."""
    script = tmp_path / "bin" / ("java" if name == "knossos" else "porcupine-check")
    script.write_text("#!/bin/sh\necho 'key-0.edn\tfalse'\n")
    path = tmp_path / "history.edn"
    path.write_text(VALID)
    done = qsync("check", path, "--second-opinion", programs[name])
    assert "DISAGREEMENT  our check linearizable says VALID" in done.out
    assert done.code == 0, "the exit code is ours"


def test_a_run_of_ours(qsync: Qsync, tmp_path: Path, programs: dict[str, str]) -> None:
    """If it failed, only files of other tools could be asked about."""
    plan = small(time_limit_s=0.3, rate=12.0, faults=("none",), seed=5)
    folder = execute(parts_of(plan), tmp_path / "results").folder
    done = qsync("check", folder.path, "--json", "--second-opinion", programs["knossos"])
    told = json.loads(done.out)["second_opinion"]
    assert (told["result"], told["ours"], told["check"]) == ("valid", "valid", "linearizable"), told


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("porcupine:/no/such/program", "it could not be started: No such file or directory"),
        ("knossos:/no/such.jar", "it said no verdict, and ended with exit code 1: Error"),
    ],
)
def test_a_program_that_is_not_there_is_unknown(
    qsync: Qsync, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    """If it failed, a missing checker would look like agreement."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'Error: Unable to access jarfile' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{java.parent}{os.pathsep}{os.environ['PATH']}")
    path = tmp_path / "history.edn"
    path.write_text(VALID)
    done = qsync("check", path, "--second-opinion", command)
    assert f"second opinion  unknown ({why}" in done.out
    assert done.code == 0
    assert (
        "names no program" in qsync("check", path, "--second-opinion", f"{command.partition(':')[0]}:").line
    )


def test_what_is_no_register_is_not_asked(qsync: Qsync, tmp_path: Path, programs: dict[str, str]) -> None:
    """If it failed, Knossos would judge appends as something else."""
    path = tmp_path / "history.json"
    lines = [
        {"type": each, "process": 0, "f": "txn", "value": [["append", "x", 1]]} for each in ("invoke", "ok")
    ]
    path.write_text(json.dumps(lines))
    done = qsync("check", path, "--second-opinion", programs["knossos"])
    assert (
        "second opinion  unknown (Knossos is asked about registers (read, write, cas), and this history has txn)"
        in (done.out)
    )


@pytest.mark.parametrize(
    ("out", "files", "word"),
    [
        ("a.edn\ttrue\nb.edn\ttrue\n", 2, "true"),
        ("a.edn\ttrue\nb.edn\tfalse\n", 2, "false"),
        ("a.edn\ttrue\nb.edn\t:unknown\n", 2, "unknown"),
        ("a.edn\ttrue\nb.edn\t", 2, "unknown"),
        ("untrue\n", 1, "unknown"),
    ],
)
def test_answers_of_several_keys(out: str, files: int, word: str) -> None:
    """If it failed, a key that was not judged would count as valid."""
    assert merged_answer(out, files) == word


def test_a_refusal_that_knossos_is_not_told_is_no_disagreement(
    qsync: Qsync, tmp_path: Path, programs: dict[str, str]
) -> None:
    """If it failed, Knossos would be said to be wrong, although it did not get what proves the anomaly."""
    path = tmp_path / "history.edn"
    path.write_text(
        "{:process 0, :type :invoke, :f :write, :value 1}\n{:process 0, :type :ok, :f :write, :value 1}\n"
        "{:process 0, :type :invoke, :f :cas, :value [1 2]}\n"
        "{:process 0, :type :fail, :f :cas, :value [1 2], :error :mismatch}\n"
    )
    told = {
        name: json.loads(
            qsync("check", path, "--failed-cas", "observes", "--json", "--second-opinion", command).out
        )["second_opinion"]
        for name, command in programs.items()
    }
    assert {name: (each["ours"], each["result"], each["disagrees"]) for name, each in told.items()} == {
        "knossos": ("invalid", "valid", False),
        "porcupine": ("invalid", "invalid", False),
    }
    assert "1 refused cas that saw another value were left out" in told["knossos"]["how"]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A few operations on two keys, some of them refused or without an answer."""
    events: list[Event] = []
    open_: dict[int, Event] = {}
    next_process = 3
    processes = [0, 1, 2]
    value = st.sampled_from((None, 1, 1.5, "1", [1]))
    for _ in range(draw(st.integers(1, 9))):
        slot = draw(st.integers(0, 2))
        process = processes[slot]
        begun = open_.pop(process, None)
        if begun is None:
            f = draw(st.sampled_from(("read", "write", "cas")))
            asked = None if f == "read" else draw(value) if f == "write" else [draw(value), draw(value)]
            key = draw(st.sampled_from(("x", "y")))
            event = Event(
                index=len(events), time_ns=0, type="invoke", process=process, f=f, key=key, value=asked
            )
            open_[process] = event
        else:
            how = draw(st.sampled_from(("ok", "ok", "ok", "fail", "info")))
            shown = draw(value) if begun.f == "read" and how == "ok" else begun.value
            error = "mismatch" if how == "fail" else None
            event = Event(
                index=len(events),
                time_ns=0,
                type=how,
                process=process,
                f=begun.f,
                key=begun.key,
                value=shown,
                error=error,
            )
            if how == "info" and draw(st.booleans()):  # in records of other tools a process may go on
                processes[slot], next_process = next_process, next_process + 1
        events.append(event)
    return History.of(Header(workload="register"), events)


@given(histories(), st.booleans())
@examples.up_to(250)
def test_the_stand_in_says_what_we_say_of_drawn_histories(history: History, observes: bool) -> None:
    """If it failed, the files would tell another story than the history, and disagreements would mean nothing."""
    judged = by_model.judge(history, "cas-register", failed_cas_observes=observes)
    ours = next((each.result for each in judged.verdicts if each.checker == "linearizable"), None)
    asked = {"linearizable": Terms(model="register", failed_cas_observes=observes)}
    question = ADAPTERS["porcupine"].question(history, asked)
    if isinstance(question, str):
        return
    assert isinstance(question, Question)
    lines = [json.loads(line) for text in question.files.values() for line in text.splitlines()]
    keys = {line["key"] for line in lines}
    theirs = all(stand_in.is_linearizable([each for each in lines if each["key"] == key]) for key in keys)
    assert ours in ("unknown", "valid" if theirs else "invalid"), lines  # unknown: it had nothing to judge


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_process_that_goes_on_after_an_unknown_outcome_is_another(name: str) -> None:
    """If it failed, a program that knows one open operation of a process would lose the write that may still come."""
    lines = [("invoke", "write", 1), ("info", "write", 1), ("invoke", "read", None), ("ok", "read", 1)]
    events = [
        Event(index=index, time_ns=0, type=how, process=0, f=f, key="x", value=value)  # type: ignore[arg-type]
        for index, (how, f, value) in enumerate(lines)
    ]
    question = ADAPTERS[name].question(
        History.of(Header(workload="register"), events), {"linearizable": Terms(model="register")}
    )
    assert isinstance(question, Question)
    (text,) = question.files.values()
    first, told, second, answered = re.findall(r'process"?[: ]+(\d+)', text)
    assert first == told != second == answered


def test_other_commands_are_no_adapter() -> None:
    """If it failed, a command with a colon in it would be taken for an adapter."""
    assert ask_about_registers("java:x", History.of(Header(), []), {}, 1.0) is None
