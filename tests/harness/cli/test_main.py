"""The command line: how each way to end becomes an exit code and at most one line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from harness.cli.exit_codes import ExitCode, gravest
from harness.cli.main import main
from harness.cli.verbs import VERBS, Verb
from harness.errors import ClusterError


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracebacks of these tests go away with the tests."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Puts a function behind the verb `try`."""

    def install(function: Callable[[], object]) -> None:
        module = types.ModuleType("tried_verb")
        vars(module)["command"] = click.command("try")(function)
        monkeypatch.setitem(sys.modules, "tried_verb", module)
        monkeypatch.setitem(VERBS, "try", Verb("tried_verb", "tried"))

    return install


def raises(error: BaseException) -> Callable[[], object]:
    """A verb that ends so."""

    def function() -> object:
        raise error

    return function


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (lambda: None, 0),
        (lambda: 3, 3),
        (raises(click.UsageError("no")), 64),
        (raises(click.ClickException("no")), 64),
        (raises(ClusterError("n2 never came up")), 3),
        (raises(KeyboardInterrupt()), 130),
        (raises(ZeroDivisionError("oh\nno")), 70),
        (raises(EOFError("the worker is gone")), 70),
    ],
)
def test_each_end_has_its_exit_code(
    verb: Callable[[Callable[[], object]], None],
    capsys: pytest.CaptureFixture[str],
    function: Callable[[], object],
    code: int,
) -> None:
    """If it failed, a harness that broke could pass for an anomaly, or for a run without one."""
    verb(function)
    assert main(["try"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip().count("\n") == 0


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (
            PermissionError(errno.EACCES, "Permission denied", "/root/x"),
            "/root/x: Permission denied; try: a path",
        ),
        (
            OSError(errno.ELOOP, "Too many levels of symbolic links", "a"),
            "a: Too many levels of symbolic links",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "cannot write the output: No space left on device",
        ),
    ],
)
def test_what_the_system_refuses_is_no_bug(
    verb: Callable[[Callable[[], object]], None],
    capsys: pytest.CaptureFixture[str],
    error: OSError,
    says: str,
) -> None:
    """If it failed, a folder of another user, or a full disk, would look like a defect, with a traceback."""
    verb(raises(error))
    assert main(["try"]) == ExitCode.INCONCLUSIVE
    assert capsys.readouterr().err.startswith(f"qsync: {says}")


def test_another_error_of_the_system_is_a_bug(
    verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a file that the harness itself lost would be the user's fault."""
    verb(raises(FileNotFoundError(errno.ENOENT, "No such file or directory", "x")))
    assert main(["try"]) == ExitCode.BROKEN
    assert "traceback in " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "out", "err", "unbuffered", "code"),
    [
        (["list", "systems"], "/dev/full", "/dev/null", "", 3),
        (["--help"], "/dev/full", "/dev/null", "1", 3),
        (["list", "systems"], "/dev/full", "/dev/full", "1", 3),
        (["check", "/nowhere"], "/dev/null", "/dev/full", "", 64),
        ([], "/dev/null", "/dev/full", "1", 64),
    ],
)
def test_a_full_disk_under_the_output_is_no_anomaly(
    arguments: list[str], out: str, err: str, unbuffered: str, code: int
) -> None:
    """If it failed, Python itself would end with 1, the code of an anomaly, or with 120."""
    with open(out, "w") as stdout, open(err, "w") as stderr:  # noqa: PTH123  # devices
        done = subprocess.run(
            [sys.executable, "-P", "-m", "harness.cli", *arguments],
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONPATH": str(Path(__file__).parents[3])},
            stdout=stdout,
            stderr=stderr,
            check=False,
        )
    assert done.returncode == code


READ_OF_NOTHING_WRITTEN = """{:process 1 :type :invoke :f :read}
{:process 1 :type :ok :f :read :value "→"}
"""


@pytest.mark.parametrize(
    ("encoding", "closed"),
    [
        ("latin-1", ()),
        ("utf-8:strict", ()),
        ("utf-8:strict", (1,)),
        ("latin-1", (2,)),
        ("latin-1", (0, 1, 2)),
    ],
)
def test_no_output_hides_a_verdict(tmp_path: Path, closed: tuple[int, ...], encoding: str) -> None:
    """If it failed, an anomaly would end with the code of a harness that broke, because a terminal lacks the sign for
    a value, the file's name is not UTF-8, or a service has no output."""
    path = tmp_path / os.fsdecode(b"history \xff.edn")
    path.write_text(READ_OF_NOTHING_WRITTEN)

    def close() -> None:
        for number in closed:
            os.close(number)

    done = subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "check", path],
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        preexec_fn=close,  # no threads
        check=False,
    )
    assert done.returncode == ExitCode.ANOMALY, done.stderr
    shown = "→".encode() if encoding.startswith("utf") else rb"\u2192"
    assert shown in done.stdout or 1 in closed


def test_a_terminal_that_was_closed_is_a_closed_output(tmp_path: Path) -> None:
    """If it failed, a run that ends because its terminal was closed would count as a harness that broke."""
    terminal, ours = os.openpty()
    os.close(terminal)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "list", "systems"],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=ours,
        stderr=ours,
        check=False,
    )
    os.close(ours)
    assert done.returncode == ExitCode.OUTPUT_CLOSED
    assert list(tmp_path.iterdir()) == []


def test_an_output_without_a_reader_is_no_anomaly(tmp_path: Path) -> None:
    """If it failed, `qsync --help | head` would end with 1, the code of an anomaly."""
    reader, ours = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "--help"],
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=ours,
        stderr=ours,
        check=False,
    )
    os.close(ours)
    assert done.returncode == ExitCode.OUTPUT_CLOSED


def test_a_traceback_that_cannot_be_kept_is_no_anomaly(
    verb: Callable[[Callable[[], object]], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, a defect on a machine with a full /tmp would end with 1, the code of an anomaly."""
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    verb(raises(ZeroDivisionError("oh no")))
    assert main(["try"]) == ExitCode.BROKEN
    assert "traceback in no file (No such file or directory)" in capsys.readouterr().err


def test_the_traceback_of_a_broken_harness_is_kept(
    verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, one line would be all that is left of a bug."""
    verb(raises(ZeroDivisionError("oh no")))
    main(["try"])
    line = capsys.readouterr().err
    assert line.startswith("qsync: the harness itself broke: ZeroDivisionError: oh no; traceback in ")
    assert "ZeroDivisionError: oh no" in Path(line.rsplit(" ", 1)[1].strip()).read_text()


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--nonsense"], [], ["test", "--checks", "--marked", "real"]]
)
def test_wrong_use_is_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, a typing mistake would have click's 2, which says that a checker could not decide."""
    assert main(arguments) == ExitCode.WRONG_USE
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("check {} --master local[1]", "--master is for --engine spark"),
        ("check {} --conf a=b", "--conf is for --engine spark"),
        ("check {} --jobs 2", "--jobs is for histories of other tools"),
        ("check {} --timeout 1e10", "of at most 1000000000, got 1e10"),
        ("certify --verify {} --bar trial", "--bar does not go with --verify"),
        ("certify --compare {} {} --key {}", "--key does not go with --compare"),
        ("nightly --compare {} {} --anew", "--anew does not go with --compare"),
        ("nightly plans/smoke.toml --engine process --conf a=b", "--conf is for --engine spark"),
        ("analyze --results {} --follow --json", "--json does not go with --follow"),
        ("run --cluster sim --failing 0.5", "--failing: the workload register draws nothing by it"),
        ("run --cluster sim --base-port 4000", "--base-port: it is for --cluster local, got --cluster sim"),
        ("run --write-plan {}/plan.json --json", "--json does not go with --write-plan"),
        ("simulate --workload queue --roaming 0.5", "--roaming: the workload queue draws nothing by it"),
        ("simulate --base-port 4000", "--base-port: it is for --cluster local, got --cluster sim"),
        ("nightly plans/smoke.toml --list --json", "--json does not go with --list"),
        ("nightly plans/smoke.toml --list --budget 5", "--budget does not go with --list"),
        ("nightly plans/smoke.toml --list --first-seed 5", "--first-seed does not go with --list"),
        ("nightly plans/smoke.toml --list --master local", "--master does not go with --list"),
        ("doctor --clean --fix", "--fix does not go with --clean"),
        ("doctor --fix --json", "--json does not go with --fix"),
        ("doctor --inventory {}", "--inventory is for --clean"),
    ],
)
def test_an_option_without_effect_is_refused(
    arguments: str,
    says: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If it failed, a person would believe that a bar was checked, or that all cores were used."""
    monkeypatch.chdir(Path(__file__).parents[3])
    (tmp_path / "plan" / "20260101T000000Z-1").mkdir(parents=True)
    (tmp_path / "plan" / "20260101T000000Z-1" / "plan.json").write_text("{}")
    assert main(arguments.replace("{}", str(tmp_path)).split()) == ExitCode.WRONG_USE
    assert says in capsys.readouterr().err


def test_help_imports_no_verb() -> None:
    """If it failed, `--help` would take as long as the slowest import of all verbs."""
    script = "import sys; from harness.cli.main import main; main(['--help']); print(*sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    for name, verb in VERBS.items():
        assert f"\n  {name} " in printed
        assert verb.module not in printed.splitlines()[-1].split()
    assert "numpy" not in printed.splitlines()[-1].split()


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, the table would name a verb that cannot be loaded."""
    assert main([name, "--help"]) == ExitCode.VALID
    assert f"Usage: qsync {name}" in capsys.readouterr().out


def test_the_gravest_of_many_runs_is_told() -> None:
    """If it failed, an unknown could hide an anomaly, or no runs at all could pass."""
    assert gravest([ExitCode.VALID, ExitCode.UNKNOWN, ExitCode.BROKEN, ExitCode.ANOMALY]) == ExitCode.ANOMALY
    assert gravest([ExitCode.UNKNOWN, ExitCode.INCONCLUSIVE, ExitCode.BROKEN]) == ExitCode.BROKEN
    assert gravest([ExitCode.VALID, ExitCode.UNKNOWN, ExitCode.INCONCLUSIVE]) == ExitCode.INCONCLUSIVE
    assert gravest([ExitCode.VALID, ExitCode.VALID]) == ExitCode.VALID
    assert gravest([]) == ExitCode.INCONCLUSIVE


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_verb_as_ctrl_c_does(tmp_path: Path, name: str) -> None:
    """If it failed, a verb that a service manager stops, or whose terminal is closed, would leave its temporary
    folders, whatever it was doing."""
    program = f"""
import os, signal, sys, time
import click
from harness.cli import main
from harness.cluster.scratch import scratch

signal.signal(signal.{name}, signal.SIG_DFL)  # whatever the tests were started with, such as nohup

@click.command()
def command():
    with scratch("test") as folder:
        assert folder.is_dir()
        os.kill(os.getpid(), signal.{name})
        time.sleep(60)

main.Verbs.get_command = lambda self, context, name: command
sys.exit(main.main(["test"]))
"""
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (130, "qsync: interrupted")
    assert list(tmp_path.iterdir()) == []


def test_an_error_that_cannot_be_read_is_no_anomaly(
    verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, an error of Spark's whose session has ended would end with 1, the code of an anomaly."""

    class Unreadable(Exception):
        def __str__(self) -> str:
            raise AssertionError

    def broken() -> None:
        raise Unreadable

    verb(broken)
    assert main(["try"]) == ExitCode.BROKEN
    assert "Unreadable" in capsys.readouterr().err


def test_an_error_about_a_name_that_is_no_text_is_no_anomaly(
    verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a bug of ours about a file whose name is no UTF-8 would end with 1, the code of an anomaly."""
    verb(raises(ValueError("no such file: a\udcff")))
    assert main(["try"]) == ExitCode.BROKEN
    kept = capsys.readouterr().err.rsplit(" ", 1)[1].strip()
    assert "ValueError: no such file: a\\udcff" in Path(kept).read_text()


def test_a_line_that_quotes_a_long_value_is_short(
    verb: Callable[[Callable[[], object]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, one long value in a damaged file would push what was expected and what to try off the screen."""
    verb(raises(ClusterError(f"expected a number, got {'y' * 70_000}; try: another")))
    assert main(["try"]) == ExitCode.INCONCLUSIVE
    said = capsys.readouterr().err
    assert len(said) < 4000 and "expected a number, got yy" in said and said.endswith("yy; try: another\n")
