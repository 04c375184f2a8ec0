"""What all tests share: how Hypothesis looks for examples, in which order tests come, and what a run says at its end.

Hypothesis has three profiles (`tests.examples`). `default` and `long` draw the same examples in every run, few and
many: a test that passed yesterday fails today only if the code changed. `night` draws new ones; `.ci/nightly` makes
their seed from the date, and `--hypothesis-seed` repeats it.
"""

from __future__ import annotations

import gc
import json
import shlex
import signal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import examples

SMALL_SUITES = ("browser", "real", "docker", "spark", "nightly")

# A run without a debugger does not explain failures: this takes a test a hundred times, and says little.
PHASES = [phase for phase in Phase if phase is not Phase.explain]
for profile in examples.SHARES:
    settings.register_profile(
        profile,
        derandomize=profile != examples.NIGHT,
        print_blob=profile == examples.NIGHT,
        deadline=None,
        database=None,
        max_examples=examples.times(examples.USUAL),
        phases=PHASES,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
settings.load_profile(examples.PROFILE)

# A shell starts what it runs in the background deaf to Ctrl-C, and that is inherited: tests of Ctrl-C would fail there.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("qsync")
    group.addoption(
        "--durations-by-file", action="store_true", help="Print a table: seconds and tests of each file."
    )
    group.addoption(
        "--keep-durations", metavar="FILE", help="Write the seconds of each test to FILE, as a JSON object."
    )
    group.addoption(
        "--repeat-with", metavar="COMMAND", help="The command that runs one of these tests again."
    )


def pytest_configure(config: pytest.Config) -> None:
    with suppress(ValueError):  # "random"
        examples.night = int(config.getoption("--hypothesis-seed", None) or 0)


def pytest_collection_finish() -> None:
    """All that is there now stays. Searching it for garbage again and again would take a tenth of the time."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The checkers first: where kernels are compiled, one process does so, and the others have something else to do.

    The long suite runs all tests of the checkers again, with machine code, and all that draw examples, with more.
    """
    items.sort(key=lambda item: not _is_of_checkers(item))
    for item in items:
        _must_be_found(item)
        if _is_of_checkers(item) or getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.again)


def _must_be_found(item: pytest.Item) -> None:
    """`qsync test --marked` collects the files that name the marker: a test marked in another way would never run."""
    for marker in item.iter_markers():
        if marker.name in SMALL_SUITES and marker.name not in _named_by(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} is marked {marker.name}, but neither its file nor the conftest.py beside it "
                f"has the words mark.{marker.name}"
            )


@cache
def _named_by(path: Path) -> frozenset[str]:
    texts = [file.read_text() for file in (path, path.with_name("conftest.py")) if file.exists()]
    return frozenset(name for name in SMALL_SUITES if any(f"mark.{name}" in text for text in texts))


def _is_of_checkers(item: pytest.Item) -> bool:
    return item.nodeid.startswith("tests/checkers/")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("durations_by_file"):
        terminalreporter.section("seconds by file")
        for line in _by_file(_durations(terminalreporter)):
            terminalreporter.write_line(line)
    if keep := config.getoption("keep_durations"):
        Path(keep).write_text(json.dumps(_durations(terminalreporter), indent=0))
    if failed := list(dict.fromkeys(report.nodeid for report in _failed(terminalreporter))):
        terminalreporter.section("to repeat")
        for name in failed:
            terminalreporter.write_line(_repeats(config, name))


def _failed(reporter: pytest.TerminalReporter) -> Iterator[pytest.TestReport | pytest.CollectReport]:
    for outcome in ("failed", "error"):
        yield from reporter.stats.get(outcome, [])


def _durations(reporter: pytest.TerminalReporter) -> dict[str, float]:
    """Seconds of each test, with the set-up that was made for it."""
    durations: dict[str, float] = defaultdict(float)
    for reports in reporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                durations[report.nodeid] += report.duration
    return {name: round(seconds, 3) for name, seconds in durations.items()}


def _by_file(durations: dict[str, float]) -> Iterator[str]:
    files: dict[str, list[float]] = defaultdict(list)
    for name, seconds in durations.items():
        files[name.partition("::")[0]].append(seconds)
    yield f"{'seconds':>8} {'tests':>6}  file"
    for file, seconds_each in sorted(files.items(), key=lambda item: -sum(item[1])):
        yield f"{sum(seconds_each):8.1f} {len(seconds_each):6}  {file}"
    yield f"{sum(durations.values()):8.1f} {len(durations):6}  in all"


def _repeats(config: pytest.Config, name: str) -> str:
    """The command line that runs this test again, with the same examples."""
    words = [config.getoption("repeat_with") or "./qsync test", "-n0"]
    if examples.PROFILE == examples.NIGHT:
        words.insert(0, f"{examples.VARIABLE}={examples.PROFILE}")
        if (seed := config.getoption("--hypothesis-seed", None)) is not None:
            words.append(f"--hypothesis-seed={seed}")
    return " ".join([*words, shlex.quote(name)])
