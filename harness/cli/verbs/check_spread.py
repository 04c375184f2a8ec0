"""`qsync check` of many runs, and on Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from checkers.history.values import many
from checkers.limits import Limits
from harness.cli import spark_group
from harness.cli.exit_codes import ExitCode, beside, gravest
from harness.cli.printing import print_json, print_run
from harness.errors import StoreError, WrongUse
from harness.judge.time_limit import limited
from harness.pages.terminal.colour import printable
from harness.results.run_folder import LATEST


def check_spread(
    path: Path, as_json: bool, engine: str, master: str, conf: tuple[str, ...], given: Mapping[str, Any]
) -> int:
    """Judge what PATH holds: all runs below it, one run, or a history.parquet."""
    is_columns = path.is_file() and path.suffix == ".parquet" and not (path.parent / "plan.json").exists()
    allowed = LIMITS if engine == "process" else ("timeout_s",) if is_columns else ()
    for name, value in given.items():
        if value not in (None, False) and name not in allowed:
            option = OPTIONS.get(name, "--" + name.replace("_", "-"))
            raise click.UsageError(
                f"{option} does not go with --engine spark or many runs; check one run in process"
            )
    limits = Limits(*(given[name] for name in LIMITS))
    if engine == "process":
        from harness.run.finish import judged_again

        with limited(limits):
            return _print_many(((run, judged_again(run)) for run in _runs(path)), as_json)
    spark_group.ensure("--engine spark")
    if is_columns:
        return _check_parquet(path, as_json, limits, _session(master, conf))
    if path.is_dir() and not (path / "history.jsonl").exists():
        runs = _runs(path)
        with _session(master, conf) as spark:
            from harness.pipeline.checking import check_runs

            return _print_many(check_runs(spark, runs), as_json)
    return _check_run(path, as_json, _session(master, conf))


LIMITS = ("timeout_s", "memory_mib", "budget")
"""The parameters of `Limits`, in its order."""
OPTIONS = {
    "timeout_s": "--timeout",
    "memory_mib": "--memory",
    "verifies": "--verify",
}
"""Options whose names are not those of their parameters, with hyphens."""


def _session(master: str, conf: tuple[str, ...]) -> AbstractContextManager[Any]:
    from harness.cli.verbs.analyze import settings_of
    from harness.pipeline.session import session

    return session(master, conf=settings_of(conf))


def _runs(path: Path) -> list[Path]:
    """All runs below a folder that have a record, oldest first."""
    paths = [plan_file.parent for depth in ("*", "*/*") for plan_file in path.glob(f"{depth}/plan.json")]
    runs = [run for run in paths if (run / "history.jsonl").exists() and run.name != LATEST]
    if not runs:
        raise WrongUse(f"{path} holds no runs; try: qsync run first")
    _tell_others(path, {*runs})
    return sorted(runs, key=lambda run: (run.name, str(run)))


def _tell_others(path: Path, runs: Collection[Path]) -> None:
    """Name what may be a history and is in no run: it is not judged, and the exit code says nothing of it."""
    from harness.cli.verbs.check_many import may_be_histories
    from harness.results.scan import is_own

    found = may_be_histories(entry for entry in sorted(path.iterdir()) if not is_own(entry.name))
    if others := [other for other in found if other not in runs]:
        what = f"{others[0]}" + (f" and {many(len(others) - 1, 'more path')}" if others[1:] else "")
        click.echo(
            printable(f"qsync: not judged, because it is no whole run: {what}; try: qsync check PATH"),
            err=True,
        )


def _print_many(judged: Iterable[tuple[Path, Mapping[str, Any]]], as_json: bool) -> int:
    codes: list[ExitCode] = []
    with beside(codes):
        for run, verdict in judged:
            codes.append(ExitCode(verdict["exit_code"]))
            if as_json:
                fields = {name: verdict[name] for name in ("outcome", "exit_code", "sentence")}
                print_json({"folder": str(run), **fields})
            else:
                click.echo(printable(f"{verdict['outcome']:<12} {run}: {verdict['sentence']}"))
    return gravest(codes)


def _check_run(path: Path, as_json: bool, session: AbstractContextManager[Any]) -> int:
    from harness.results import resolve

    folder = resolve(path)
    with session as spark:
        from harness.pipeline.checking import check_run

        verdict = check_run(spark, folder)
    print_run(verdict, folder.path, as_json)
    return ExitCode(verdict["exit_code"])


def _check_parquet(path: Path, as_json: bool, limits: Limits, session: AbstractContextManager[Any]) -> int:
    """Judge all registers of a large record."""
    from checkers.history.errors import HistoryError
    from harness.judge import EXIT_CODES, outcome_of
    from harness.judge.files.judged import missing_of, nothing_of

    try:
        with session as spark, limited(limits):
            from harness.pipeline.spread import check_parquet

            checked = check_parquet(spark, path)
    except HistoryError as error:
        raise StoreError(f"{path}: {error}") from error
    if checked is None:
        raise StoreError(
            f"{path} cannot be taken as columns (values that are no whole numbers, other operations than read, write "
            f"and cas, or a record that does not add up); try: qsync check {path}"
        )
    missing = missing_of(sum(int(of_f["count"]) for of_f in checked.quantiles_ms.values()), checked.torn)
    outcome = outcome_of([checked.verdict.result], missing)
    sentence = nothing_of(missing) if outcome == "inconclusive" else checked.verdict.summary
    if as_json:
        document = {
            "outcome": outcome,
            "exit_code": EXIT_CODES[outcome],
            "sentence": sentence,
            "latency_ms": checked.quantiles_ms,
            "checks": [checked.verdict.to_json()],
            "file": str(path),
        }
        print_json(document)
    else:
        words = sentence.removesuffix(".")
        click.echo(f"{outcome:<8} {words}; {checked.verdict.seconds:.1f} s in {checked.tasks} tasks")
        for f, quantiles in checked.quantiles_ms.items():
            words = "  ".join(f"{name} {quantiles[name]:.2f} ms" for name in ("p50", "p95", "p99", "max"))
            click.echo(f"  {f:<6} {int(quantiles['count']):>12,} ok  {words}")
    return EXIT_CODES[outcome]
