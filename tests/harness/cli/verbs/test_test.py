"""`qsync test`: which tests a suite has, what `--all` runs, what is said of slow and of failed tests."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest.mark.expression import Expression

from harness.cli.verbs import doctor
from harness.cli.verbs import test as verb
from harness.cli.verbs.doctor import Finding
from tests.conftest import SMALL_SUITES
from tests.harness.cli.verbs.conftest import Qsync

ROOT = Path(verb.ROOT)


def suites_of(*markers: str) -> set[str]:
    """The suites that run a test with these markers."""
    return {
        suite.name
        for suite in verb.SUITES
        if suite.name != verb.CHECKED
        and Expression.compile(verb._expression(suite)).evaluate(lambda name, **_: name in markers)
    }


def test_each_test_has_a_suite() -> None:
    """If it failed, a test would run nowhere, or a default one would need what a bare machine lacks."""
    assert suites_of() == {"default"}
    assert suites_of("again") == {"default", "long"}
    for marker in ("long", "browser", "real", "docker", "spark", "nightly"):
        assert suites_of(marker) == {marker}
        assert suites_of(marker, "nightly") == {"nightly"}
        assert suites_of(marker, "again") == {marker}
    assert suites_of("long", "docker") == {"docker"}


def test_each_marker_is_a_suite() -> None:
    """If it failed, tests with a new marker would run in the default suite."""
    markers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["markers"]
    assert {marker.partition(":")[0] for marker in markers} == {*verb.MARKED, "again"}
    assert {*SMALL_SUITES, verb.LONG} == {*verb.MARKED}


@pytest.mark.parametrize("suite", [suite for suite in verb.SUITES if suite.name in SMALL_SUITES])
def test_a_small_suite_collects_its_own_files(suite: verb.Suite) -> None:
    """If it failed, each process of a small suite would import all tests, or find none."""
    files = verb._files(suite)
    assert 0 < len(files) < 60
    assert all((ROOT / file).exists() for file in files)


def test_ci_runs_all_of_them() -> None:
    """If it failed, `--all` would promise what CI does not run."""
    script = (ROOT / ".ci" / "run").read_text()
    assert "./qsync test --all --without default" in script
    assert ".ci/bare bookworm newcomer" in script
    assert "timed ./qsync test" in (ROOT / ".ci" / "bare").read_text()


def test_help_lists_the_suites(qsync: Qsync) -> None:
    """If it failed, a person would start a suite without knowing how long it takes."""
    said = qsync("test", "--help")
    for suite in verb.SUITES:
        assert f"{suite.name:<9} {suite.minutes:>4g} min" in said.out


@pytest.mark.parametrize(
    "words",
    [
        ("--checks", "--all"),
        ("--all", "tests/nodes"),
        ("--without", "docker"),
        ("--all", *(f"--without={suite.name}" for suite in verb.ALL)),
    ],
)
def test_what_does_not_fit_together_is_refused(words: tuple[str, ...], qsync: Qsync) -> None:
    """If it failed, an argument would be dropped without a word."""
    assert qsync("test", *words).code == 64


def test_all_says_what_is_missing_and_fails_if_one_suite_does(
    qsync: Qsync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a suite that failed would be forgotten behind one that passed, or skips come unannounced."""
    ran: list[list[str]] = []

    def run(words: list[str], *, check: bool) -> SimpleNamespace:
        ran.append(words[4:])
        return SimpleNamespace(returncode=int("browser" in words))

    def look(what: str) -> Callable[[], Finding]:
        is_there = what == "sshd"
        return lambda: Finding(what, "state", is_there, is_needed=False, remedy=f"apt-get install {what}")

    monkeypatch.setattr(verb.subprocess, "run", run)
    monkeypatch.setattr(doctor, "LOOKS", tuple(map(look, ("chromium", "sshd", "tarantool", "docker"))))
    said = qsync("test", "--all", "--without", "spark", "--without", "docker")
    assert said.code == 1
    assert ran == [
        ["test"],
        ["test", "--checks"],
        *(["test", "--marked", name] for name in ("long", "browser", "real")),
    ]
    assert "browser: tests are skipped for want of chromium; try: apt-get install chromium" in said.out
    assert "real: tests are skipped for want of tarantool; try: apt-get install tarantool" in said.out
    assert "want of sshd" not in said.out and "want of docker" not in said.out
    assert said.out.splitlines()[-3].startswith("long") and said.out.splitlines()[-3].endswith("ok")
    assert said.out.splitlines()[-2].endswith("FAILED (1)")


def test_slow_default_tests_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the default suite would grow old unseen."""
    record = tmp_path / "durations.json"
    monkeypatch.setattr(verb, "DURATIONS", record)
    nothing = ["slow tests        no whole run of ./qsync test is on record here"]
    assert list(verb.slow_tests()) == nothing
    record.write_text('{"tests/a.py::quick": 4')
    assert list(verb.slow_tests()) == nothing
    record.write_text(
        json.dumps({"tests/a.py::quick": 4.9, "tests/a.py::slow": 7.04, "tests/b.py::slower": 9})
    )
    assert list(verb.slow_tests()) == [
        "slow tests        2 of 3 default tests took more than 5 s",
        "   9.0 s  tests/b.py::slower",
        "   7.0 s  tests/a.py::slow",
    ]


def test_a_second_run_begins_as_the_first_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, pytest would take the record of the first run for the tests, and know none of our options."""
    record = tmp_path / "durations.json"
    record.write_text("{}")
    monkeypatch.setattr(verb, "DURATIONS", record)
    monkeypatch.setattr(verb, "_compile_tests", lambda: None)
    for name in ("HYPOTHESIS_PROFILE", verb.PLAIN_VARIABLE, "PYTHONDONTWRITEBYTECODE"):
        monkeypatch.setenv(name, "")
    words: list[str] = []
    monkeypatch.setattr(verb.os, "execv", lambda program, given: words.extend(given))
    verb.run_tests(verb.SUITES[0], ())
    assert f"--keep-durations={record}" in words and "--repeat-with=./qsync test" in words
    assert not [word for word in words[len(verb.PYTEST) :] if (ROOT / word).exists()]


FAILING = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_small(number):
    assert number < 10

def test_well():
    pass
"""


def test_a_failure_says_how_to_repeat_it(tmp_path: Path) -> None:
    """If it failed, a failure of a night could not be looked at in the morning."""
    file = tmp_path / "test_failing.py"
    file.write_text(FAILING)
    durations = tmp_path / "durations.json"
    words = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-q", "--durations-by-file"]
    words += ["--keep-durations", str(durations), "--repeat-with", "./qsync test --marked nightly"]
    words += ["--hypothesis-seed", "20261128", str(file)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", *words],
        cwd=ROOT,
        env={"PATH": "", "HYPOTHESIS_PROFILE": "night", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    repeats = [line for line in done.stdout.splitlines() if line.startswith("HYPOTHESIS_PROFILE=night")]
    (repeat,) = repeats
    assert "./qsync test --marked nightly -n0 --hypothesis-seed=20261128" in repeat
    assert repeat.endswith("test_failing.py::test_small")
    assert "number=10" in done.stdout
    assert len(json.loads(durations.read_text())) == 2
    table = done.stdout.partition("seconds by file")[2]
    _, tests, name = table.splitlines()[2].split()
    assert (tests, name.rpartition("/")[2]) == ("2", file.name)
