"""PySpark comes when a verb first needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.cli import spark_group
from harness.cli.environment import LOCK_FILES, Environment
from harness.cli.main import main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """An environment in order but for Spark, in which this process seems to run."""
    environment = Environment(tmp_path)
    environment.python.parent.mkdir(parents=True)
    environment.python.write_text("")
    environment.python.chmod(0o755)
    for group, file in LOCK_FILES.items():
        (tmp_path / file).write_text("pyspark==4\n")
        if group != "spark":
            (environment.folder / f"{group}.stamp").write_text(f"{tmp_path}\npyspark==4\n")
    monkeypatch.setattr(sys, "prefix", str(environment.folder))
    return environment


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would have been run, and started in place of this process."""
    calls: list[Any] = []

    class Done:
        returncode = 0

    monkeypatch.setattr(spark_group.subprocess, "run", lambda words, check: calls.append(words) or Done)
    monkeypatch.setattr(spark_group.os, "execv", lambda path, words: calls.append((path, words)))
    return calls


def test_it_is_installed_by_a_bare_python_and_the_command_begins_anew(
    checkout: Environment,
    done: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If it failed, the first analyze would break off, or go on with packages that were replaced under it."""
    monkeypatch.setattr(sys, "argv", ["qsync", "analyze", "--results", "a b"])
    spark_group.ensure("analyze", checkout.root)
    (installed, again) = done
    assert installed[-3:] == [str(checkout.root / "harness/cli/environment.py"), "install", "spark"]
    assert not installed[0].startswith(str(checkout.folder))
    assert again[1] == [str(checkout.root / "qsync"), "analyze", "--results", "a b"]
    assert "analyze needs PySpark" in capsys.readouterr().err


def test_what_is_there_is_not_installed_again(
    checkout: Environment, done: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, every analyze would set up, or start itself for ever."""
    (checkout.folder / "spark.stamp").write_text(f"{checkout.root}\npyspark==4\n")
    kept: list[str] = []
    monkeypatch.setattr(spark_group, "_keep_classes", lambda: kept.append("looked"))
    spark_group.ensure("analyze", checkout.root)
    assert (done, kept) == ([], ["looked"])


def test_a_run_imports_nothing_of_spark() -> None:
    """If it failed, `qsync run` would wait for Spark's modules, or break where they are not installed."""
    import subprocess

    code = (
        "import sys, harness.cli.verbs.run, harness.run.execute, harness.run.finish, harness.cli.main\n"
        "print([name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j', 'pandas')"
        " or name.startswith('harness.pipeline')])"
    )
    said = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


@pytest.mark.long
def test_doctor_names_the_java_and_pyspark(capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, nobody could tell which Java a verb would take."""
    main(["doctor"])
    words = [line[6:].split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"java", "pyspark"} <= set(words)
