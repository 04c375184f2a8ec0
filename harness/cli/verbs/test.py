"""`qsync test`: the project's own tests, and the checks of its code.

The default suite is what a bare machine can run: no Docker, Spark, browser, real server or long night.
Each of those is a marked suite of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import click

from harness.cli import spark_group

ROOT = Path(__file__).resolve().parents[3]
NIGHTLY = "nightly"
MARKED = ("docker", "spark", "browser", "real", NIGHTLY)
CHECKS = {
    "ruff check": ("-m", "ruff", "check", "."),
    "ruff format": ("-m", "ruff", "format", "--check", "."),
    "mypy --strict": ("-m", "mypy", "--strict", "-p", "nodes", "-p", "checkers", "-p", "harness"),
    # This one has no module to run.
    "import contracts": (
        "-c",
        "from importlinter.cli import lint_imports_command; lint_imports_command()",
        "--no-logo",
    ),
    "speed": ("-m", "bench.regressions"),
}


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "--checks", is_flag=True, help="Lint, format, types, import contracts and speed instead of tests."
)
@click.option(
    "--marked", type=click.Choice(MARKED), help="The suite with this marker instead of the default one."
)
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def command(checks: bool, marked: str | None, pytest_arguments: tuple[str, ...]) -> int:
    """Run the project's own tests.

    PYTEST_ARGUMENTS go to pytest; paths are relative to the project: `qsync test tests/nodes -k limbo`.
    Tests run in parallel; `-n0` runs them in one process. The exit code is pytest's (5: no test was found).
    """
    if checks and (marked or pytest_arguments):
        raise click.UsageError("--checks takes no other argument")
    if find_spec("pytest") is None or not (ROOT / "tests").is_dir():
        raise click.ClickException("the tests run from a checkout: ./qsync test")
    if marked == "spark":
        spark_group.ensure("--marked spark")
    os.chdir(ROOT)
    return run_checks() if checks else run_tests(marked, pytest_arguments)


def run_tests(marked: str | None, pytest_arguments: tuple[str, ...]) -> int:
    """Become pytest, so that signals and the terminal reach it directly."""
    if marked is None:
        expression = " and ".join(f"not {marker}" for marker in MARKED)
    else:
        expression = marked if marked == NIGHTLY else f"{marked} and not {NIGHTLY}"
    # Hundreds of processes start in a run. With this variable each would compile every module that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.stdout.flush()
    pytest = [sys.executable, "-P", "-m", "pytest", "-q", *_spread(marked)]
    os.execv(sys.executable, [*pytest, "-m", expression, *pytest_arguments])


def _spread(marked: str | None) -> list[str]:
    """Over how many processes. One more than there are cores: many tests wait, for a process or for real time."""
    cores = os.cpu_count() or 1
    if marked == "browser":
        return ["-n", str(min(cores, 4))]
    # Any other marked suite has the machine's one engine or server to itself.
    return ["-n", str(min(cores + 1, 4) if cores > 1 and not marked else 0)]


def run_checks() -> int:
    """Run every check, one line each, with the output of those that fail; 1 if any did."""
    outcomes = [passes(name, arguments) for name, arguments in CHECKS.items()]
    return 0 if all(outcomes) else 1


def passes(name: str, arguments: tuple[str, ...]) -> bool:
    """Run one check and print how it went."""
    start_s = time.monotonic()
    done = subprocess.run(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    outcome = "ok" if done.returncode == 0 else "FAILED"
    click.echo(f"{name:<18}{outcome:<8}{time.monotonic() - start_s:5.1f} s")
    if done.returncode != 0:
        click.echo(done.stdout)
    return done.returncode == 0
