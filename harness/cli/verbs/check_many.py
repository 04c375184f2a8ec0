"""`qsync check` of several paths, or of a folder with histories of other tools: a line each, a table at the end.

A history that cannot be read or judged is a line, too, and the rest goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode, beside, gravest, in_a_line
from harness.cli.printing import print_json
from harness.cli.verbs.check_one import Options, for_a_run, judged_file, run_folder, unpacked_run
from harness.errors import HarnessError, WrongUse
from harness.pages.terminal.colour import printable

if TYPE_CHECKING:
    from harness.results import RunFolder

SUFFIXES = (
    ".edn",
    ".json",
    ".jsonl",
    ".parquet",
    ".txt",
    ".log",
    ".hist",
    ".bincode",
    ".jepsen",
    ".fressian",
    ".zip",
)
"""The ends of names of files that may be histories, or bundles of runs."""
OF_JEPSEN = ("history.edn", "history.txt", "jepsen.log", "test.jepsen", "test.fressian")
"""The record of a test in a folder of Jepsen's store: the first of these that is there."""
OF_A_RUN = ("history.jsonl", "plan.json")
MUCH = 16 << 20
"""So many bytes are worth starting several processes for."""
OF_ONE = ("key", "html", "edn", "shiviz", "graph", "second_opinion")
"""The options that are for one history."""
REFUSED = "refused"
OUTCOMES = ("anomaly", REFUSED, "unknown", "inconclusive", "valid")


def histories_in(paths: Iterable[Path]) -> list[Path]:
    """The files and the folders of runs that are meant by these paths. Raises WrongUse if there are none."""
    histories: dict[Path, None] = {}
    for path in paths:
        found = list(_in_folder(path)) if path.is_dir() else [path]
        if not found:
            raise WrongUse(f"{path} holds no run and no history: expected files like {', '.join(SUFFIXES)}")
        histories |= dict.fromkeys(found)
    return list(histories)


def _in_folder(folder: Path) -> Iterator[Path]:
    """Links are left out: Jepsen's `latest` and our own name what is there already."""
    from checkers.history.foreign import reader_of

    if any((folder / name).exists() for name in OF_A_RUN) or reader_of(folder) is not None:
        yield folder
        return
    for name in OF_JEPSEN:
        if (folder / name).is_file():
            yield folder / name
            return
    yield from may_be_histories(sorted(folder.iterdir()))


def may_be_histories(paths: Iterable[Path]) -> Iterator[Path]:
    """The histories among these entries of a folder, and below them."""
    for path in paths:
        if path.is_symlink() or path.name.startswith("."):
            continue
        if path.is_dir():
            # One that this user may not read becomes a line.
            yield from _in_folder(path) if os.access(path, os.R_OK | os.X_OK) else (path,)
        elif path.suffix in SUFFIXES:
            yield path


def check_many(histories: Sequence[Path], options: Options, jobs: int | None) -> int:
    """Judge each, and print a line as soon as all before it are judged. The exit code is the gravest."""
    for name in OF_ONE:
        if getattr(options, name) is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for one history, and these are {len(histories)}"
            )
    from harness.pages.terminal.file_screen import jepsen_words

    rows: list[Mapping[str, Any]] = []
    codes: list[ExitCode] = []
    with beside(codes):
        for row in _judged(histories, options, jobs):
            rows.append(row)
            codes.append(ExitCode(row["exit_code"]))
            if options.as_json:
                print_json(row)
            else:
                jepsen = f" (Jepsen said {jepsen_words(row)})" if "jepsen" in row else ""
                click.echo(printable(f"{row['outcome']:<12} {row['path']}: {row['sentence']}{jepsen}"))
        for line in () if options.as_json else _table(rows):
            click.echo(line)
    return gravest(codes)


def _judged(histories: Sequence[Path], options: Options, jobs: int | None) -> Iterator[Mapping[str, Any]]:
    judge = partial(_row, replace(options, as_json=True))  # no spinner beside the lines
    if jobs is None:
        size = sum(path.stat().st_size for path in histories if path.is_file())
        jobs = (os.cpu_count() or 1) if size > MUCH else 1
    jobs = min(jobs, len(histories))
    if jobs == 1:
        yield from map(judge, histories)
        return
    # Here: it loads the simulator.
    from harness.campaigns.processes import spread

    rows: dict[int, Mapping[str, Any]] = {}
    place = 0
    try:
        for number, row in spread(partial(_numbered, judge), enumerate(histories), jobs):
            rows[number] = row
            while place in rows:
                yield rows.pop(place)
                place += 1
    except HarnessError as error:
        for number in range(place, len(histories)):
            yield rows.get(number) or _refused(histories[number], error)


def _numbered(
    judge: Callable[[Path], Mapping[str, Any]], item: tuple[int, Path]
) -> tuple[int, Mapping[str, Any]]:
    number, path = item
    return number, judge(path)


def _row(options: Options, path: Path) -> Mapping[str, Any]:
    """The line of one history: what `--json` prints of it."""
    try:
        verdict = _verdict(path, options)
    except HarnessError as error:
        return _refused(path, error)
    except Exception as error:  # a defect of ours: of this history, not of the next ones
        code, sentence = ExitCode.BROKEN, in_a_line(error)
        return {"path": str(path), "outcome": REFUSED, "exit_code": code, "sentence": sentence}
    fields = {name: verdict[name] for name in ("outcome", "exit_code", "sentence", "violations")}
    counts = {name: verdict["evidence"][name] for name in ("ok", "fail", "info")}
    jepsen = {name: verdict[name] for name in ("jepsen", "jepsen_checkers") if name in verdict}
    return {"path": str(path), **fields, "model": verdict["run"]["workload"], **counts, **jepsen}


def _refused(path: Path, error: HarnessError) -> Mapping[str, Any]:
    sentence = str(error).removeprefix(f"{path}: ")
    return {"path": str(path), "outcome": REFUSED, "exit_code": error.exit_code, "sentence": sentence}


def _verdict(path: Path, options: Options) -> Mapping[str, Any]:
    from harness.results.bundle import is_bundle

    if is_bundle(path):
        with unpacked_run(path) as run:
            return _verdict_of_run(run, path, options)
    folder = run_folder(path)
    return judged_file(path, options)[1] if folder is None else _verdict_of_run(folder, path, options)


def _verdict_of_run(folder: RunFolder, path: Path, options: Options) -> Mapping[str, Any]:
    """`path`: the run or the bundle that was given."""
    from harness.judge.time_limit import limited
    from harness.run.finish import finish
    from harness.systems import plans

    for_a_run(folder, options)
    if options.promise is not None or options.verifies:
        option = "--verify" if options.promise is None else "--promise"
        raise WrongUse(f"{option}: {path} is a run among others; try: qsync check {path} {option} …")
    with limited(options.limits):
        return finish(folder, plans.read(folder.plan_file))


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """How many histories came to each outcome, and how many operations they have."""
    yield ""
    yield f"{'':<12} {'histories':>9} {'operations':>12}"
    for outcome in OUTCOMES:
        of_outcome = [row for row in rows if row["outcome"] == outcome]
        if not of_outcome:
            continue
        operations = sum(row.get(name, 0) for row in of_outcome for name in ("ok", "fail", "info"))
        yield f"{outcome:<12} {len(of_outcome):>9,} {operations:>12,}"
