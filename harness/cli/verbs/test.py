"""`qsync test`: the project's own tests, and the checks of its code.

`SUITES` lists the suites. The default one is what a bare machine can run in some minutes, with kernels that are not
compiled. Each other suite is named by a marker of pytest, and runs by this name.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from checkers.compiled import AS_COMPILED, PLAIN_VARIABLE
from harness.cli import spark_group
from harness.cli.verbs import doctor

ROOT = Path(__file__).resolve().parents[3]
DURATIONS = ROOT / ".pytest_cache" / "default-durations.json"
WITH_VALUE = ("-k", "-m", "-n", "-p", "-c", "-o", "-W", "-r", "--tb", "--maxfail", "--durations")
"""Options of pytest with a value behind them, which is no path."""
PYTEST = (sys.executable, "-P", "-m", "pytest", "-q")
SLOW_S = 5.0
"""A default test that takes longer is named by the checks."""
CHECKS = {
    "ruff check": ("-m", "ruff", "check", "."),
    "ruff format": ("-m", "ruff", "format", "--check", "."),
    "mypy --strict": (
        "-m",
        "mypy",
        "--strict",
        "-p",
        "nodes",
        "-p",
        "checkers",
        "-p",
        "harness",
        "-p",
        "bench",
    ),
    # This one has no module to run.
    "import contracts": (
        "-c",
        "from importlinter.cli import lint_imports_command; lint_imports_command()",
        "--no-logo",
    ),
    "speed": ("-m", "bench.regressions"),
}


@dataclass(frozen=True)
class Suite:
    """Tests that run together.

    `minutes`: on two cores that have nothing else to do. `needs`: the findings of `qsync doctor` without which tests of
    the suite are skipped (in CI they fail). `workers`: how many processes share the tests, at most. `waits`: tests wait
    for clusters, so there is one process more than cores. `by_file`: the tests of a file share what is dear to make (a
    cluster, a Spark session) and stay in one process.
    """

    name: str
    minutes: float
    what: str
    needs: tuple[str, ...] = ()
    workers: int = 2
    waits: bool = False
    by_file: bool = True

    @property
    def command(self) -> str:
        """The command line that runs the suite."""
        return {
            DEFAULT: "./qsync test",
            CHECKED: "./qsync test --checks",
        }.get(self.name, f"./qsync test --marked {self.name}")


DEFAULT = "default"
CHECKED = "checks"
LONG = "long"
NIGHTLY = "nightly"
SPREAD: Any = {"workers": 4, "by_file": False}
WAITING: Any = {"workers": 3, "waits": True}
REAL_NEEDS = ("tarantool", "faketime", "sshd", "fuse")
SUITES = (
    Suite(DEFAULT, 4, "every rule once; needs nothing but this checkout; kernels run uncompiled", **SPREAD),
    Suite(CHECKED, 1, "lint, format, types, import contracts, speed"),
    Suite(
        LONG,
        9,
        "whole runs, seeded bugs, clusters; checkers with machine code, more examples",
        waits=True,
        **SPREAD,
    ),
    Suite("browser", 2, "pages in Chromium", ("chromium",), workers=4),
    Suite("real", 4, "Tarantool, ssh, mounted disks, control groups", REAL_NEEDS, **WAITING),
    Suite("docker", 4, "clusters of containers", ("docker", "compose", "nft", "nfqueue"), **WAITING),
    Suite("spark", 6, "tables and campaigns on Spark, which .venv gets then (half a gigabyte)"),
    Suite(NIGHTLY, 95, "what takes minutes, with more examples; .ci/nightly runs it", **SPREAD),
)
MARKED = tuple(suite.name for suite in SUITES if suite.name not in {DEFAULT, CHECKED})
ALL = tuple(suite for suite in SUITES if suite.name != NIGHTLY)


def _listed(suites: tuple[Suite, ...]) -> str:
    return "\n".join(f"{suite.name:<9} {suite.minutes:>4g} min  {suite.what}" for suite in suites)


@click.command(
    context_settings={"ignore_unknown_options": True},
    epilog=f"Suites, and their minutes on two cores:\n\n\b\n{_listed(SUITES)}",
)
@click.option(
    "--checks", is_flag=True, help="Lint, format, types, import contracts and speed instead of tests."
)
@click.option(
    "--marked", type=click.Choice(MARKED), help="The suite with this marker instead of the default one."
)
@click.option("--all", "is_all", is_flag=True, help="What CI runs: the checks, and every suite but nightly.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice([suite.name for suite in ALL]),
    help="With --all: leave this suite out.",
)
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    checks: bool,
    marked: str | None,
    is_all: bool,
    without: tuple[str, ...],
    pytest_arguments: tuple[str, ...],
) -> int:
    """Run the project's own tests, or those in a file of one's own (docs/stateful.md).

    PYTEST_ARGUMENTS go to pytest; paths are relative to the project: `qsync test tests/nodes -k limbo`.
    Tests run in parallel; `-n0` runs them in one process. `--durations-by-file` prints the seconds of each file.
    A failed test comes with the command that repeats it. The exit code is pytest's (5: no test was found).
    """
    if checks + is_all + (marked is not None) > 1 or (pytest_arguments and (checks or is_all)):
        raise click.UsageError("--checks and --all take no other argument")
    if without and not is_all:
        raise click.UsageError("--without is for --all")
    if find_spec("pytest") is None or not (ROOT / "tests").is_dir():
        raise click.ClickException("the tests run from a checkout: ./qsync test")
    os.chdir(ROOT)
    if is_all:
        left = tuple(suite for suite in ALL if suite.name not in without)
        if not left:
            raise click.UsageError("--without leaves no suite to run")
        return run_all(left)
    if checks:
        return run_checks()
    (suite,) = (suite for suite in SUITES if suite.name == (marked or DEFAULT))
    if suite.name == "spark":
        spark_group.ensure("--marked spark")
    return run_tests(suite, pytest_arguments)


def run_all(suites: tuple[Suite, ...]) -> int:
    """Run each of `suites` in a process of its own, and say how each ended; 1 if one failed."""
    click.echo(f"{sum(suite.minutes for suite in suites):g} minutes on two quiet cores:\n{_listed(suites)}")
    missing = {lack.what: lack for look in doctor.LOOKS if not (lack := look()).is_there}
    for suite in suites:
        for finding in [missing[need] for need in suite.needs if need in missing]:
            remedy = f"; try: {finding.remedy}" if finding.remedy else ""
            click.echo(f"{suite.name}: tests are skipped for want of {finding.what}{remedy}")
    codes: dict[Suite, tuple[int, float]] = {}
    for suite in suites:
        click.echo(f"\n== {suite.name}: {suite.command}")
        sys.stdout.flush()
        start_s = time.monotonic()
        words = suite.command.split()[1:]
        code = subprocess.run([sys.executable, "-P", "-m", "harness.cli", *words], check=False).returncode
        codes[suite] = code, time.monotonic() - start_s
    click.echo("\n== all suites")
    for suite, (code, seconds) in codes.items():
        click.echo(f"{suite.name:<9} {seconds:6.0f} s  {'ok' if code == 0 else f'FAILED ({code})'}")
    return int(any(code for code, _ in codes.values()))


def run_tests(suite: Suite, pytest_arguments: tuple[str, ...]) -> int:
    """Become pytest, so that signals and the terminal reach it directly."""
    # Hundreds of processes start in a run. With this variable each would compile every module that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    options = _spread(suite)
    if not _are_elsewhere(pytest_arguments):
        # In one word: pytest takes a value that stands apart for a path, before it knows these options.
        options += [f"--repeat-with={suite.command}"]
    if suite.name == NIGHTLY:
        # A trace of a test that hangs. To write it while the test runs can end its process.
        options += ["-o", "faulthandler_timeout=3600"]
    if suite.name == DEFAULT:
        os.environ[PLAIN_VARIABLE] = AS_COMPILED
        if not pytest_arguments:
            DURATIONS.parent.mkdir(exist_ok=True)
            options += [f"--keep-durations={DURATIONS}"]
    # tests/examples.py has these profiles.
    os.environ.setdefault("HYPOTHESIS_PROFILE", {LONG: "long", NIGHTLY: "night"}.get(suite.name, "default"))
    if not pytest_arguments:
        _compile_tests()
    sys.stdout.flush()
    where = pytest_arguments or _files(suite)
    os.execv(sys.executable, [*PYTEST, *options, "-m", _expression(suite), *where])


def _are_elsewhere(pytest_arguments: tuple[str, ...]) -> bool:
    """Whether tests are not the project's, such as a user's state machine, so that tests/conftest.py does not apply."""
    paths = (
        Path(argument.split("::")[0])
        for before, argument in pairwise(("", *pytest_arguments))
        if before not in WITH_VALUE
    )
    return any(path.exists() and not path.resolve().is_relative_to(ROOT / "tests") for path in paths)


def _compile_tests() -> None:
    """Compile the tests and their imports once, in two processes; else each worker compiles all in a fresh checkout."""
    if (ROOT / "tests" / "__pycache__").exists():
        return
    folders = sorted(path for path in (ROOT / "tests" / "harness").iterdir() if path.is_dir())
    halves = [["tests/checkers", "tests/nodes"], [str(path) for path in folders]]
    compiling = [
        subprocess.Popen([*PYTEST, "--collect-only", *half], stdout=subprocess.DEVNULL) for half in halves
    ]
    for process in compiling:
        process.wait()


def _files(suite: Suite) -> tuple[str, ...]:
    """The files with tests of the suite: each process would take ten seconds to import all others.

    Their text names the marker, as tests/conftest.py demands; a conftest.py marks tests of its folder.
    """
    if suite.name in {DEFAULT, LONG}:
        return ()
    marked = (path for path in Path("tests").rglob("*.py") if f"mark.{suite.name}" in path.read_text())
    return tuple(sorted({str(path.parent if path.name == "conftest.py" else path) for path in marked}))


def _expression(suite: Suite) -> str:
    """Markers for pytest. Tests marked `again` (tests/conftest.py) run in the default suite and in the long one."""
    if suite.name == DEFAULT:
        return " and ".join(f"not {marker}" for marker in MARKED)
    if suite.name == NIGHTLY:
        return NIGHTLY
    if suite.name == LONG:
        return "(long or again) and " + " and ".join(f"not {marker}" for marker in MARKED if marker != LONG)
    return f"{suite.name} and not {NIGHTLY}"


def _spread(suite: Suite) -> list[str]:
    """pytest's options for parallel tests: idle processes take tests from the others, or each takes whole files."""
    workers = min((os.cpu_count() or 1) + suite.waits, suite.workers)
    how = "loadfile" if suite.by_file else "worksteal"
    return ["-n", str(workers if workers > 1 else 0), "--dist", how]


def run_checks() -> int:
    """Run every check, one line each, with the output of those that fail; 1 if any did."""
    outcomes = [passes(name, arguments) for name, arguments in CHECKS.items()]
    for line in slow_tests():
        click.echo(line)
    return 0 if all(outcomes) else 1


def slow_tests() -> Iterator[str]:
    """The slow tests of the last whole default run. They fail no check, because the machine may have been busy."""
    try:
        durations: dict[str, float] = json.loads(DURATIONS.read_bytes())
    except (FileNotFoundError, ValueError):
        yield "slow tests        no whole run of ./qsync test is on record here"
        return
    slow = sorted(((seconds, name) for name, seconds in durations.items() if seconds > SLOW_S), reverse=True)
    yield f"slow tests        {len(slow)} of {len(durations)} default tests took more than {SLOW_S:g} s"
    for seconds, name in slow:
        yield f"{seconds:6.1f} s  {name}"


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
