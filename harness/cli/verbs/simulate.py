"""`qsync simulate`: many seeds in the simulator."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from harness.cli.exit_codes import ExitCode, gravest
from harness.cli.options import plan_of, plan_options, results_option
from harness.cli.param_types import Whole
from harness.cli.printing import print_json
from harness.cli.system_options import SETTINGS, PlanCommand, fields_of_settings


@click.command(cls=PlanCommand)
@plan_options
@results_option()
@click.option("--seeds", type=Whole(1), default=100, show_default=True, help="How many, from --seed on.")
@click.option("--jobs", type=Whole(1), default=None, help="Processes at once; default: all cores.")
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
    """Many seeds in the simulator; stops at the first anomaly and prints the line that repeats it.

    Each seed draws the options that are not given: nodes, election modes, fencing, workload, faults and their strength.
    With --bug it draws options under which that bug shows.
    """
    import msgspec

    from harness.campaigns.hunt import Tried, hunt, hunted
    from harness.run.assemble import parts_of
    from harness.systems import system_of

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
    said = frozenset(name for name, value in given.items() if value not in (None, ()))
    said |= {*fields_of_settings(given.get(SETTINGS) or (), type(plan.options), plan.system)}
    parts_of(hunted(plan, said) if plan_file is None else plan)
    drawing = said if plan_file is None else None
    tried: list[Tried] = []
    bar = ProgressBar(seeds, sys.stderr)
    range_ = range(plan.seed, plan.seed + seeds)
    codes: list[ExitCode] = []
    try:
        for one in hunt(plan, range_, min(jobs or os.cpu_count() or 1, seeds), drawing):
            tried.append(one)
            codes.append(ExitCode(one.exit_code))
            if as_json:
                print_json(one)
            else:
                bar.show(one)
            if one.outcome in ("anomaly", "broken") and not keep_going:
                break
    except KeyboardInterrupt:
        codes.append(ExitCode.INTERRUPTED)
        click.echo("qsync: interrupted", err=True)
    except Exception as error:
        if ExitCode.ANOMALY not in codes:
            raise
        click.echo(f"qsync: the hunt broke off: {type(error).__name__}: {error}", err=True)
    if not as_json:
        bar.clear()
        _summary(tried, system_of(plan.system))
        worst = next((one for one in tried if one.outcome == "anomaly"), None)
        if worst is not None:
            again = msgspec.structs.replace(plan, seed=worst.seed)
            _keep(again if drawing is None else hunted(again, drawing), results)
    return gravest(codes)


def _keep(plan: Any, results: Path) -> None:
    """Run it again, this time into a folder, so that there is a page to look at."""
    from harness.pages.terminal.working import working
    from harness.run.assemble import parts_of
    from harness.run.execute import execute
    from harness.run.finish import finish

    with working("keeping the run"):
        executed = execute(parts_of(plan), results)
        finish(executed.folder, plan)
    click.echo(f"report  {executed.folder.path / 'report.html'}")


class ProgressBar:
    """One line on a terminal; elsewhere a line now and then, and all that is worth a line of its own."""

    WIDTH = 30
    BETWEEN_LINES_S = 10.0

    def __init__(self, seeds: int, stream: Any) -> None:
        self._seeds = seeds
        self._stream = stream
        self._is_seen = stream.isatty()
        self._began_s = time.monotonic()
        self._line_s = self._began_s
        self._done = 0
        self._found = 0

    def show(self, one: Any) -> None:
        """One more seed is done."""
        self._done += 1
        self._found += one.outcome == "anomaly"
        if one.outcome != "valid":
            self.clear()
            click.echo(f"seed {one.seed}: {one.outcome}: {one.sentence}")
        now_s = time.monotonic()
        per_s = self._done / max(now_s - self._began_s, 1e-3)
        left_s = (self._seeds - self._done) / per_s
        found = f"  {self._found} anomalies" if self._found else ""
        told = f"{self._done}/{self._seeds} seeds  {per_s:.1f}/s  {left_s:.0f} s left{found}"
        if self._is_seen:
            full = self.WIDTH * self._done // self._seeds
            bar = "#" * full + "." * (self.WIDTH - full)
            click.echo(f"\r[{bar}] {told} ", file=self._stream, nl=False)
        elif now_s - self._line_s >= self.BETWEEN_LINES_S:
            self._line_s = now_s
            click.echo(f"qsync: {told}", file=self._stream)

    def clear(self) -> None:
        if self._is_seen:
            click.echo("\r\x1b[K", file=self._stream, nl=False)


def _summary(tried: list[Any], system: Any) -> None:
    counts = Counter(one.outcome for one in tried)
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    succeeded = f"{sum(one.ok for one in tried):,} operations succeeded"
    least = min((one.ok for one in tried), default=0)
    click.echo(f"{len(tried)} seeds: {words}; {succeeded}, in each at least {least:,}")
    if system.variety.rare_turns:
        letters = Counter(one.configuration for one in tried)
        told = ", ".join(f"{letter} ({letters[letter]})" for letter in sorted(letters))
        click.echo(f"configurations: {told}")
    workloads = Counter(one.workload for one in tried)
    click.echo("workloads: " + ", ".join(f"{name} ({count})" for name, count in sorted(workloads.items())))
    cuts = [one.cuts for one in tried if one.cuts]
    click.echo(f"consistent cuts judged: {sum(cuts):,}, in {len(cuts):,} seeds")
    _sometimes(tried, system)
    found_by = Counter(name for one in tried for name in one.violated)
    if found_by:
        click.echo("found by: " + ", ".join(f"{name} ({count})" for name, count in found_by.most_common()))
    by_gravity = sorted(tried, key=lambda one: ("anomaly", "broken", one.outcome).index(one.outcome))
    worst = next((one for one in by_gravity if one.outcome != "valid"), None)
    if worst is not None:
        click.echo("again   " + worst.again)


def _sometimes(tried: list[Any], system: Any) -> None:
    """The rare turns that came about: a hunt without them has hunted nothing."""
    from harness.judge.evidence.rare_turns import rows_of

    if not tried:
        return
    click.echo("sometimes")
    for row in rows_of(system):
        times = sum(one.sometimes.get(row, 0) for one in tried)
        seeds = sum(one.sometimes.get(row, 0) > 0 for one in tried)
        click.echo(f"  {row:<46} {times:>9,}  in {seeds:,} seeds" if times else f"  {row:<46}     never")
