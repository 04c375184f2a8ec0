"""`./qsync` and the environment that it makes, without installing anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.environment import LOCK_FILES, Environment, SetupError, first_error, main

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with a space in its name that holds the script, the lock files and the code it starts."""
    folder = tmp_path / "a checkout"
    (folder / "harness" / "cli").mkdir(parents=True)
    for name in ("qsync", *LOCK_FILES.values(), "harness/cli/environment.py"):
        shutil.copy(ROOT / name, folder / name)
    return folder


@pytest.fixture
def ready(checkout: Path) -> Environment:
    """An environment in order, whose Python only says what it was called with."""
    environment = Environment(checkout)
    environment.python.parent.mkdir(parents=True)
    environment.python.write_text('#!/bin/sh\necho "$@"\n')
    environment.python.chmod(0o755)
    for group, lock_file in LOCK_FILES.items():
        stamp = environment.folder / f"{group}.stamp"
        stamp.write_text(f"{checkout}\n{(checkout / lock_file).read_text()}")
    return environment


def qsync(
    script: Path, *arguments: str, path: str | None = None, python: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run the script from another folder."""
    return subprocess.run(
        [script, *arguments],
        cwd="/",
        env=os.environ | {"PATH": path or os.environ["PATH"], "QSYNC_PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_script_hands_over_at_once_when_all_is_in_order(ready: Environment) -> None:
    """If it failed, every call would set something up, or arguments would be torn at their spaces."""
    done = qsync(ready.root / "qsync", "run", "--plan", "a  plan.json")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "-P -m harness.cli run --plan a  plan.json\n",
        "",
    )


def test_a_linked_environment_is_refused_and_its_target_stays(checkout: Path, tmp_path: Path) -> None:
    """If it failed, the environment of another checkout would be deleted through the link."""
    target = tmp_path / "other" / ".venv"
    target.mkdir(parents=True)
    (target / "kept").touch()
    (checkout / ".venv").symlink_to(target)
    done = qsync(checkout / "qsync", "list")
    assert done.returncode == 64
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"qsync: cannot set up .venv: it is a symbolic link to {target}; try: rm ")
    assert [each.name for each in target.iterdir()] == ["kept"]


def test_names_and_stamps_that_are_no_text_are_no_traceback(
    ready: Environment, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a damaged .venv, or a checkout in a folder of another encoding, would end with an anomaly's 1."""
    (ready.folder / "run.stamp").write_bytes(b"\xff")
    assert not ready.in_order("run")
    monkeypatch.setattr(Environment, "install", lambda self, groups: "\udcff".encode())
    assert main(["install", "run"]) == 70
    assert capsys.readouterr().err.startswith(
        "qsync: cannot set up .venv: 'utf-8' codec can't encode character"
    )


def test_the_script_finds_its_folder_through_symlinks(ready: Environment, tmp_path: Path) -> None:
    """If it failed, `qsync` linked into a folder of the PATH would look for its project there."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "relative").symlink_to("../a checkout/qsync")
    (tmp_path / "absolute").symlink_to(tmp_path / "bin" / "relative")
    assert qsync(tmp_path / "absolute", "list").stdout == "-P -m harness.cli list\n"


def test_the_script_and_the_environment_agree_on_what_is_in_order(ready: Environment) -> None:
    """If it failed, the script would set up what is there, or start what is not."""
    assert ready.in_order("run")
    assert ready.in_order("test")


@pytest.mark.parametrize("change", ["lock", "path", "python"])
def test_what_no_longer_fits_is_not_in_order(ready: Environment, change: str) -> None:
    """If it failed, a checkout that was moved or pulled would run with yesterday's packages."""
    match change:
        case "lock":
            (ready.root / LOCK_FILES["run"]).write_text("click==1.0\n")
        case "path":
            ready = Environment(ready.root.rename(ready.root.with_name("moved")))
        case "python":
            ready.python.unlink()
            ready.python.symlink_to("/nowhere/python3")
    assert not ready.in_order("run")


def test_too_old_a_python_is_one_line(checkout: Path, tmp_path: Path) -> None:
    """If it failed, somebody with Python 3.9 would meet a SyntaxError, or the exit code of an anomaly."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "readlink", "cat"):
        (commands / name).symlink_to(shutil.which(name) or "")
    old = commands / "python3"
    old.write_text('#!/bin/sh\n[ "$1" != -V ] || echo Python 3.9.2\n[ "$1" = -V ]\n')
    old.chmod(0o755)
    done = qsync(checkout / "qsync", "run", path=str(commands))
    assert done.returncode == 70
    assert done.stdout == ""
    assert "Python 3.11 or newer is needed, found Python 3.9.2" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_python_that_is_named_is_used_and_no_other(ready: Environment, tmp_path: Path) -> None:
    """If it failed, the tests of a release would run under another Python than the one that was asked for."""
    (ready.root / LOCK_FILES["run"]).write_text("click==1.0\n")
    mine = tmp_path / "my own" / "python"
    mine.parent.mkdir()
    mine.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n')
    mine.chmod(0o755)
    assert "install run\n" in qsync(ready.root / "qsync", "run", python=str(mine)).stdout
    done = qsync(ready.root / "qsync", "run", python="python2.0")
    assert (done.returncode, done.stdout) == (70, "")
    assert "found no python2.0; " in done.stderr
    assert done.stderr.endswith("; or unset QSYNC_PYTHON\n")


def test_tests_after_a_pull_get_their_packages_back(ready: Environment, tmp_path: Path) -> None:
    """If it failed, a new lock file for running takes the packages of the tests away and `./qsync test` refuses."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in ("sh", "readlink", "cat"):
        (commands / name).symlink_to(shutil.which(name) or "")
    bare = commands / "python3"
    bare.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n')
    bare.chmod(0o755)
    (ready.root / LOCK_FILES["run"]).write_text("click==1.0\n")
    assert "install run test\n" in qsync(ready.root / "qsync", "test", path=str(commands)).stdout
    assert "install run\n" in qsync(ready.root / "qsync", "run", path=str(commands)).stdout


def test_an_interrupted_setup_is_begun_again(ready: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a half-installed package would stay for ever."""
    (ready.folder / "test.stamp").unlink()
    (ready.folder / "half").mkdir()
    ready.unfinished.touch()
    commands = record_commands(ready, monkeypatch)
    ready.install(["run", "test"])
    assert [command[1:3] for command in commands] == [["-m", "venv"], ["-m", "pip"]]
    assert not (ready.folder / "half").exists()
    assert ready.in_order("run")
    assert ready.in_order("test")
    assert not ready.unfinished.exists()


def test_the_tests_packages_are_added_to_what_is_there(
    ready: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the first `./qsync test` would install everything twice."""
    (ready.folder / "test.stamp").unlink()
    commands = record_commands(ready, monkeypatch)
    ready.install(["run", "test"])
    (command,) = commands
    assert command[-2:] == ["-r", str(ready.root / LOCK_FILES["test"])]


def test_a_failed_setup_leaves_its_mark(ready: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the call after a failed download would start with packages missing."""
    (ready.root / LOCK_FILES["run"]).write_text("click==1.0\n")

    def fail(*_: object) -> str:
        raise SetupError("no network")

    monkeypatch.setattr("harness.cli.environment.run", fail)
    with pytest.raises(SetupError):
        ready.install(["run"])
    assert ready.unfinished.exists()
    assert not ready.in_order("run")


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("WARNING: old\nERROR: no click==1.0\nERROR: and more\n", "no click==1.0"),
        ("Retrying (Retry(total=4\nERROR: none found\n", "none found; the package index was not reached"),
        ("Traceback …\nOSError: disk full\n", "OSError: disk full"),
        ("", "it said nothing"),
    ],
)
def test_the_cause_is_one_line(output: str, cause: str) -> None:
    """If it failed, a page of pip's output would stand where one line was promised."""
    assert first_error(output) == cause


def record_commands(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Let `environment` believe that its commands succeeded; the list fills with them."""
    commands: list[list[str]] = []

    def succeed(arguments: list[str], _failure: str) -> str:
        commands.append(arguments)
        if "venv" in arguments:
            (environment.folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
            environment.python.parent.mkdir(exist_ok=True)
            environment.python.symlink_to(sys.executable)
        return ""

    monkeypatch.setattr("harness.cli.environment.run", succeed)
    return commands
