"""`qsync run`: one run — cluster, workload, faults → history, verdict, report."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode, beside, gravest
from harness.cli.options import plan_of, plan_options, refuse_idle, refuse_options, results_option, seeds_from
from harness.cli.param_types import OutputFile, Whole
from harness.cli.printing import print_json, print_run
from harness.cli.system_options import PlanCommand

if TYPE_CHECKING:
    from harness.pages.terminal.live import View
    from harness.plan.plan import Plan
    from harness.run.conductor import Conductor
    from harness.run.finish import Recorded


@click.command(cls=PlanCommand)
@plan_options
@results_option()
@click.option("--repeat", type=Whole(1), default=1, help="Run so many times, with seeds that follow.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, and nothing else.")
@click.option(
    "--record-only", is_flag=True, help="Keep the record and judge nothing; exit 3: inconclusive yet."
)
@click.option(
    "--fail-fast",
    is_flag=True,
    help="End the load at the first violation: finished keys and crashes are judged while it goes on.",
)
@click.option("--write-plan", type=OutputFile(), help="Write the plan to a file instead of running.")
@click.option("--drawn", is_flag=True, help="With --write-plan: every fault and operation as a line.")
def command(
    plan_file: Path | None,
    results: Path,
    repeat: int,
    as_json: bool,
    record_only: bool,
    fail_fast: bool,
    write_plan: Path | None,
    drawn: bool,
    **given: Any,
) -> int:
    """One run: clients load a cluster, faults are injected, checkers judge the history, a page shows the verdict."""
    if drawn and write_plan is None:
        raise click.UsageError("--drawn is for a plan that is written: it needs --write-plan FILE")
    if write_plan is not None:
        of_a_run = ("as_json", "results", "repeat", "record_only", "fail_fast")
        refuse_options("does not go with --write-plan, which runs nothing", *of_a_run)
    plan = plan_of(plan_file, **given)
    refuse_idle(plan, given)
    if write_plan is not None:
        return _write_plan(plan, write_plan, drawn)
    import msgspec

    codes: list[ExitCode] = []
    with beside(codes):
        for seed in seeds_from(plan, repeat, "--repeat"):
            seeded = msgspec.structs.replace(plan, seed=seed)
            codes.append(_run_once(seeded, results, as_json, record_only, fail_fast))
            if codes[-1] == ExitCode.INTERRUPTED:
                break
    return gravest(codes)


def _write_plan(plan: Plan, path: Path, drawn: bool) -> int:
    from harness.plan.plan import to_json
    from harness.results import output_file
    from harness.run.assemble import parts_of
    from harness.run.draw import draw

    parts = parts_of(plan)
    data = to_json(draw(parts.plan, parts.system, parts.workload) if drawn else plan)
    output_file.write(path, data, "the plan")
    return ExitCode.VALID


def _run_once(
    plan: Plan, results: Path, as_json: bool, record_only: bool = False, fail_fast: bool = False
) -> ExitCode:
    from harness.pages.terminal.working import working
    from harness.run.assemble import parts_of
    from harness.run.execute import execute
    from harness.run.finish import Failure, Recorded, conclude

    parts = parts_of(plan)
    with ExitStack() as stack:
        show = _shower(stack, parts.plan, as_json)
        executed = execute(parts, results, show, fails_fast=fail_fast, tell=_say)
    failure = None if executed.failure is None else Failure.of(executed.failure)
    recorded = Recorded(str(executed.folder.path), executed.interrupted, failure)
    if record_only:
        return _print_recorded(recorded, as_json)
    with working("judging", is_quiet=as_json):
        verdict, code = conclude(recorded)
    print_run(verdict, executed.folder.path, as_json)
    return ExitCode(code)


def _say(line: str) -> None:
    click.echo(f"qsync: {line}", err=True)


def _print_recorded(recorded: Recorded, as_json: bool) -> ExitCode:
    """Print a run that was recorded and not judged. Without a verdict it is inconclusive."""
    if as_json:
        print_json(recorded)
    else:
        click.echo(f"recorded, not judged: {recorded.folder}; try: qsync check {recorded.folder}")
        if recorded.failure is not None:
            raise recorded.failure.error()
    return ExitCode.INTERRUPTED if recorded.interrupted else ExitCode.INCONCLUSIVE


def _shower(stack: ExitStack, plan: Plan, as_json: bool) -> Callable[[Conductor], None]:
    """A function that shows the run while it goes on; of a simulated run it shows only the virtual time."""
    from harness.doing import doing
    from harness.pages.terminal.live import view
    from harness.pages.terminal.working import working

    if plan.cluster == "sim":
        stack.enter_context(working("simulating", is_quiet=as_json))
        limit_s = plan.time_limit_s
        return lambda conductor: doing(
            f"{conductor.cluster.now_ns() / 1e9:.0f} of {limit_s:.0f} virtual seconds"
        )
    if as_json:
        return lambda conductor: None
    starting = stack.enter_context(ExitStack())
    starting.enter_context(working("starting the nodes"))
    shown: View | None = None
    meter = _Meter()
    is_seen = True

    def show(conductor: Conductor) -> None:
        nonlocal is_seen, shown
        if shown is None:
            starting.close()
            shown = stack.enter_context(view(sys.stderr, os.environ))
        if is_seen:
            try:
                shown.show(snapshot(conductor, meter))
            except OSError:
                is_seen = False  # the reader of our output is gone; the run goes on

    return show


class _Meter:
    """Operations per second over the last moments."""

    def __init__(self) -> None:
        self._last = (0, 0)
        self._rate_per_s = 0.0

    def rate(self, time_ns: int, count: int) -> float:
        before_ns, before = self._last
        if time_ns - before_ns > 500_000_000:
            self._rate_per_s = (count - before) / ((time_ns - before_ns) / 1e9)
            self._last = (time_ns, count)
        return self._rate_per_s


def snapshot(conductor: Conductor, meter: _Meter) -> Any:
    """The present moment of a run, as the live view shows it."""
    from checkers.history.faults import ENDS_PROCESSES
    from harness.pages.terminal.snapshot import NodeCondition, Snapshot

    progress, plan = conductor.progress, conductor.plan
    time_ns = conductor.cluster.now_ns()
    targets = {node: fault.does for fault in progress.active.values() for node in fault.nodes}
    conditions = {**dict.fromkeys(ENDS_PROCESSES, "dead"), "pause": "paused"}
    system = conductor.system
    owner = (system.owner_now(progress.states) if plan.fails_over else system.owner(plan)) or ""
    state = progress.states.get(owner) or {}

    def condition(node: str) -> Any:
        if node in targets and targets[node] in conditions:
            return conditions[targets[node]]
        return "up" if progress.states.get(node) is not None else "unknown"

    return Snapshot(
        time_ns=time_ns,
        end_ns=plan.time_limit_ns,
        ok=progress.ok,
        fail=progress.fail,
        info=progress.info,
        rate_per_s=meter.rate(time_ns, progress.ok),
        faults=tuple(fault.name for fault in progress.active.values()),
        owner=owner or None,
        owner_state=system.reports.headline(state),
        nodes=tuple(NodeCondition(node, condition(node)) for node in plan.node_names),
        message="" if progress.phase == "load" else progress.phase,
    )
