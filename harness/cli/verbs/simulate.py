"""`qsync simulate`: many seeds in the simulator."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import click

from harness.cli.exit_codes import ExitCode, gravest
from harness.cli.options import plan_of, plan_options, results_option


@click.command()
@plan_options
@results_option
@click.option(
    "--seeds", type=click.IntRange(1), default=100, show_default=True, help="How many, from --seed on."
)
@click.option("--jobs", type=click.IntRange(1), default=None, help="Processes at once; default: all cores.")
@click.option("--keep-going", is_flag=True, help="Do not stop at the first anomaly.")
@click.option("--json", "as_json", is_flag=True, help="One JSON line a seed, and nothing else.")
def command(
    plan_file: Path | None,
    results: Path,
    seeds: int,
    jobs: int | None,
    keep_going: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Many seeds in the simulator; stops at the first anomaly and prints the line that repeats it."""
    import msgspec

    from harness.assemble import parts_of
    from harness.hunt import Tried, hunt

    given["cluster"] = given.get("cluster") or "sim"
    if given.get("seed") is None and plan_file is None:
        given["seed"] = 0
    plan = plan_of(plan_file, **given)
    if plan.cluster != "sim":
        raise click.UsageError(f"simulate runs on --cluster sim, not {plan.cluster}; try: qsync run")
    if plan.drawn is not None:
        raise click.UsageError(
            f"{plan_file} is drawn out: it is one run, not many; try: qsync run --plan {plan_file}"
        )
    parts_of(plan)
    tried: list[Tried] = []
    range_ = range(plan.seed, plan.seed + seeds)
    codes: list[ExitCode] = []
    try:
        for one in hunt(plan, range_, min(jobs or os.cpu_count() or 1, seeds)):
            tried.append(one)
            codes.append(ExitCode(one.exit_code))
            if as_json:
                click.echo(msgspec.json.encode(one).decode())
            else:
                _show(one, len(tried), seeds)
            if one.outcome == "anomaly" and not keep_going:
                break
    except KeyboardInterrupt:
        codes.append(ExitCode.INTERRUPTED)
        click.echo("qsync: interrupted", err=True)
    except Exception as error:
        if ExitCode.ANOMALY not in codes:
            raise
        click.echo(f"qsync: the hunt broke off: {type(error).__name__}: {error}", err=True)
    if not as_json:
        _summary(tried, plan)
        _keep_first_anomaly(tried, plan, results)
    return gravest(codes)


def _keep_first_anomaly(tried: list[Any], plan: Any, results: Path) -> None:
    """Run it again, this time into a folder, so that there is a page to look at."""
    import msgspec

    from harness.assemble import parts_of
    from harness.execute import execute
    from harness.finish import finish

    worst = next((one for one in tried if one.outcome == "anomaly"), None)
    if worst is not None:
        again = msgspec.structs.replace(plan, seed=worst.seed)
        executed = execute(parts_of(again), results)
        finish(executed.folder, again)
        click.echo(f"report  {executed.folder.path / 'report.html'}")


def _show(one: Any, done: int, seeds: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{done}/{seeds} seeds", err=True, nl=False)
    if one.outcome != "valid":
        if sys.stderr.isatty():
            click.echo("\r", err=True, nl=False)
        click.echo(f"seed {one.seed}: {one.outcome}: {one.sentence}")


def _summary(tried: list[Any], plan: Any) -> None:
    import msgspec

    from harness.judge import repeat_line

    if sys.stderr.isatty():
        click.echo("\r", err=True, nl=False)
    counts = Counter(one.outcome for one in tried)
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    click.echo(f"{len(tried)} seeds: {words}; {sum(one.ok for one in tried):,} operations succeeded")
    worst = next((one for one in tried if one.outcome == "anomaly"), None)
    if worst is not None:
        found_by = Counter(name for one in tried for name in one.violated)
        click.echo("found by: " + ", ".join(f"{name} ({count})" for name, count in found_by.most_common()))
        click.echo("again   " + repeat_line(msgspec.structs.replace(plan, seed=worst.seed)))
