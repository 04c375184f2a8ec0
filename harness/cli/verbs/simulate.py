"""`qsync simulate`: many seeds in the simulator."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click

from checkers.history.values import many
from harness.cli.exit_codes import GRAVEST_FIRST, ExitCode, beside, gravest, in_a_line
from harness.cli.options import plan_of, plan_options, refuse_idle, results_option, seeds_from
from harness.cli.param_types import JOBS, Whole
from harness.cli.printing import print_json
from harness.cli.system_options import SETTINGS, PlanCommand, fields_of_settings
from harness.pages.terminal.colour import can_redraw, on_one_line
from harness.pages.terminal.working import ERASE


@click.command(cls=PlanCommand)
@plan_options
@results_option()
@click.option("--seeds", type=Whole(1), default=100, show_default=True, help="How many, from --seed on.")
@click.option("--jobs", type=JOBS, default=None, help="Processes at once; default: all cores.")
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
    from harness.workloads.workload import SHARES

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
    draws_workloads = plan_file is None and not given.get("workload")
    refuse_idle(
        plan, {name: value for name, value in given.items() if not draws_workloads or name not in SHARES}
    )
    asked = frozenset(name for name, value in given.items() if value not in (None, ()))
    all_seeds = seeds_from(plan, seeds, "--seeds")
    asked |= {*fields_of_settings(given.get(SETTINGS) or (), type(plan.options), plan.system)}
    parts_of(hunted(plan, asked) if plan_file is None else plan)
    drawing = asked if plan_file is None else None
    tried: list[Tried] = []
    bar = ProgressBar(seeds, sys.stderr)
    codes: list[ExitCode] = []
    with beside(codes):
        for trial in hunt(plan, all_seeds, min(jobs or os.cpu_count() or 1, seeds), drawing):
            tried.append(trial)
            codes.append(ExitCode(trial.exit_code))
            if as_json:
                print_json(trial)
            else:
                bar.show(trial)
            if trial.outcome in ("anomaly", "broken") and not keep_going:
                break
    if as_json:
        return gravest(codes)
    worst = min(tried, key=lambda trial: GRAVEST_FIRST.index(ExitCode(trial.exit_code)))
    with beside(codes):
        bar.clear()
        _summary(tried, system_of(plan.system))
        if worst.outcome != "valid":
            click.echo("again   " + worst.again)
    if worst.outcome == "anomaly":
        again = msgspec.structs.replace(plan, seed=worst.seed)
        with beside(codes):
            _keep(again if drawing is None else hunted(again, drawing), results)
    return gravest(codes)


def _keep(plan: Any, results: Path) -> None:
    """Run the plan again, this time into a folder, for its page. The anomaly stands without the folder, too."""
    from harness.pages.terminal.working import working
    from harness.run.assemble import parts_of
    from harness.run.execute import execute
    from harness.run.finish import finish

    try:
        with working("keeping the run"):
            executed = execute(parts_of(plan), results)
            finish(executed.folder, plan)
    except (Exception, KeyboardInterrupt) as error:
        click.echo(f"qsync: the run was not kept: {in_a_line(error)}", err=True)
        return
    click.echo(f"report  {executed.folder.path / 'report.html'}")


class ProgressBar:
    """One redrawn line on a terminal; elsewhere a line now and then. A seed that is not valid gets its own line."""

    WIDTH = 30
    BETWEEN_LINES_S = 10.0

    def __init__(self, seeds: int, stream: Any) -> None:
        self._seeds = seeds
        self._stream = stream
        self._is_seen = can_redraw(stream, os.environ)
        self._began_s = time.monotonic()
        self._line_s = self._began_s
        self._done = 0
        self._anomalies = 0

    def show(self, trial: Any) -> None:
        """Count a finished seed."""
        self._done += 1
        self._anomalies += trial.outcome == "anomaly"
        if trial.outcome != "valid":
            self.clear()
            click.echo(f"seed {trial.seed}: {trial.outcome}: {trial.sentence}")
        now_s = time.monotonic()
        per_s = self._done / max(now_s - self._began_s, 1e-3)
        left_s = (self._seeds - self._done) / per_s
        anomalies = ""
        if self._anomalies:
            anomalies = f"  {self._anomalies} {'anomaly' if self._anomalies == 1 else 'anomalies'}"
        progress = f"{self._done}/{self._seeds} seeds  {per_s:.1f}/s  {left_s:.0f} s left{anomalies}"
        if self._is_seen:
            full = self.WIDTH * self._done // self._seeds
            bar = "#" * full + "." * (self.WIDTH - full)
            click.echo(ERASE + on_one_line(f"[{bar}] {progress}", self._stream), file=self._stream, nl=False)
        elif now_s - self._line_s >= self.BETWEEN_LINES_S:
            self._line_s = now_s
            click.echo(f"qsync: {progress}", file=self._stream)

    def clear(self) -> None:
        if self._is_seen:
            click.echo(ERASE, file=self._stream, nl=False)


def _summary(tried: list[Any], system: Any) -> None:
    counts = Counter(trial.outcome for trial in tried)
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    succeeded = f"{sum(trial.ok for trial in tried):,} operations succeeded"
    least = min(trial.ok for trial in tried)
    click.echo(f"{many(len(tried), 'seed')}: {words}; {succeeded}, in each at least {least:,}")
    if system.variety.rare_turns:
        letters = Counter(trial.configuration for trial in tried)
        by_letter = ", ".join(f"{letter} ({letters[letter]})" for letter in sorted(letters))
        click.echo(f"configurations: {by_letter}")
    workloads = Counter(trial.workload for trial in tried)
    click.echo("workloads: " + ", ".join(f"{name} ({count})" for name, count in sorted(workloads.items())))
    cuts = [trial.cuts for trial in tried if trial.cuts]
    click.echo(f"consistent cuts judged: {sum(cuts):,}, in {many(len(cuts), 'seed')}")
    _sometimes(tried, system)
    found_by = Counter(name for trial in tried for name in trial.violated)
    if found_by:
        click.echo("found by: " + ", ".join(f"{name} ({count})" for name, count in found_by.most_common()))


def _sometimes(tried: list[Any], system: Any) -> None:
    """Print how often each rare turn came about; a hunt in which none did proves nothing."""
    from harness.judge.evidence.rare_turns import rows_of

    click.echo("sometimes")
    for row in rows_of(system):
        times = sum(trial.sometimes.get(row, 0) for trial in tried)
        seeds = sum(trial.sometimes.get(row, 0) > 0 for trial in tried)
        click.echo(
            f"  {row:<46} {times:>9,}  in {many(seeds, 'seed')}" if times else f"  {row:<46}     never"
        )
