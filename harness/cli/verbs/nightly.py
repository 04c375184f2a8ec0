"""`qsync nightly PLAN`: a campaign, a matrix of runs in a file, resumable, with one exit code."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from harness.cli.exit_codes import ExitCode
from harness.cli.options import refuse_options, results_option, spark_options
from harness.cli.param_types import InputPath, Number, Text, Whole
from harness.cli.printing import has_colour, print_json
from harness.pages.terminal.colour import painted, printable

if TYPE_CHECKING:
    from harness.campaigns.judging import Judge
    from harness.campaigns.summary import Summary
    from harness.results.objects import Address


@click.command()
@click.argument("plan_file", metavar="PLAN", type=InputPath(), required=False)
@results_option()
@click.option(
    "--known",
    "known_file",
    type=InputPath(),
    help="Accepted fingerprints. [default: known.toml beside PLAN]",
)
@click.option("--budget", "budget_s", type=Number(0, is_open=True), help="Seconds, in place of the plan's.")
@click.option(
    "--first-seed",
    type=Whole(0, (1 << 52) - 1),
    help="In place of the plan's; else every campaign has new ones.",
)
@click.option("--anew", is_flag=True, help="Begin a new campaign, even if the last one was not ended.")
@click.option("--list", "lists", is_flag=True, help="Show the cells of the matrix, and run nothing.")
@click.option(
    "--compare",
    "nights",
    type=Text(),
    nargs=2,
    metavar="NIGHT NIGHT",
    help="Run nothing: compare a later night with an earlier one, each a campaign's folder or NAME/UTC.",
)
@click.option(
    "--on-end",
    type=Text(),
    metavar="CMD",
    help="A shell command for the end; $QSYNC_CAMPAIGN, $QSYNC_EXIT_CODE, $QSYNC_SENTENCE.",
)
@click.option(
    "--engine",
    type=click.Choice(["process", "spark"]),
    help="spark: runs are recorded, and judged together on workers. In place of the plan's.",
)
@click.option(
    "--publish",
    type=Text(),
    metavar="ADDRESS",
    help="s3://bucket/prefix: share runs and history with other machines. In place of the plan's.",
)
@spark_options
@click.option("--json", "as_json", is_flag=True, help="The summary as JSON, and nothing else on stdout.")
def command(
    plan_file: Path | None,
    results: Path,
    known_file: Path | None,
    budget_s: float | None,
    first_seed: int | None,
    anew: bool,
    lists: bool,
    nights: tuple[str, str] | None,
    on_end: str | None,
    engine: str | None,
    publish: str | None,
    master: str,
    conf: tuple[str, ...],
    as_json: bool,
) -> int:
    """Run the matrix in PLAN, a TOML file (see plans/).

    A killed campaign continues where it ended. Cells that failed lately run first, then those not run for long.
    Exit 1 only for anomalies that are not in known.toml, or no longer.

    --compare takes no PLAN. It exits with 1 if an anomaly is new or more frequent, with 3 if the later night shows less
    (cells, kinds of faults, decided runs), else with 0.
    """
    if nights is not None:
        if plan_file is not None:
            raise click.UsageError(f"--compare takes two nights and no PLAN, got {plan_file} as well")
        refuse_options("does not go with --compare, which runs nothing", but=("nights", "results", "as_json"))
        return _compare(results, nights, as_json)
    if plan_file is None:
        raise click.UsageError("expected a PLAN, a TOML file (see plans/); or --compare NIGHT NIGHT")
    if lists:
        refuse_options("does not go with --list, which runs nothing", but=("lists",))
    from dataclasses import replace

    from checkers.history.values import many
    from harness.campaigns import known, nightly, plan
    from harness.pages.terminal.working import working

    campaign = plan.read(plan_file)
    campaign = replace(
        campaign,
        budget_s=budget_s or campaign.budget_s,
        first_seed=campaign.first_seed if first_seed is None else first_seed,
    )
    beside = plan_file.with_name("known.toml")
    known_file = known_file or (beside if beside.exists() else None)
    accepted = known.read(known_file, datetime.datetime.now(datetime.UTC).date())
    if lists:
        left_out = {lack.cell: lack.why for lack in nightly.left_out(campaign.cells)}
        for cell in campaign.cells:
            why = left_out.get(cell.name)
            click.echo(printable(f"{cell.name}   (left out here: {why})" if why else cell.name))
        count = f"{many(len(campaign.cells), 'cell')}, {many(campaign.seeds, 'run')} of each"
        counts = f"{count}; {campaign.excluded} excluded"
        click.echo(counts + (f"; {len(left_out)} left out here" if left_out else ""), err=True)
        return ExitCode.VALID
    judge = _judge(engine or campaign.engine, _master(master, campaign.master), conf)
    with working(f"campaign {campaign.name}", is_quiet=as_json) as shown:
        work = nightly.Nightly(
            campaign,
            results.absolute(),
            accepted,
            lambda line: shown.say(f"qsync: {line}"),
            judge=judge,
            publish=_address(publish or campaign.publish),
        )
        summary, folder = work.run(anew=anew)
    if as_json:
        print_json({**summary.to_json(), "folder": str(folder)})
    else:
        for line in _screen(summary, folder):
            click.echo(line)
    if on_end is not None:
        nightly.on_end(on_end, folder, summary, work.tell)
    return ExitCode(summary.exit_code)


def _compare(results: Path, names: tuple[str, str], as_json: bool) -> int:
    from harness.campaigns import compare, compared, journal
    from harness.campaigns.nightly import NIGHTS
    from harness.errors import WrongUse

    books = sorted((journal.night_of(results, name) for name in names), key=lambda book: book.head.begun)
    if books[0].head == books[1].head:
        raise WrongUse(
            f"--compare: both name {books[0].folder}; try: the night before, of ls {books[0].folder.parent}"
        )
    comparison = compare.compare(*books)
    if as_json:
        print_json(comparison.to_json())
        return ExitCode(comparison.exit_code)

    name = comparison.after.name
    own = [book for path in journal.folders(results, name) if (book := journal.load(path))]
    upto = [book for book in own if book.head.begun <= comparison.after.begun]
    on = has_colour()
    for line, colour in compared.lines(comparison, compare.trend(upto, NIGHTS)):
        click.echo(painted(printable(line), *([colour] if colour else []), on=on))
    return ExitCode(comparison.exit_code)


def _judge(engine: str, master: str, conf: tuple[str, ...]) -> Judge | None:
    """The judge of the campaign's runs, once PySpark is installed; None: each run judges itself."""
    if engine == "process":
        refuse_options("is for --engine spark", "master", "conf")
        return None
    from harness.cli import spark_group
    from harness.cli.verbs.analyze import settings_of

    settings = settings_of(conf)  # a wrong --conf is refused before PySpark is installed
    spark_group.ensure("--engine spark")
    from harness.pipeline.campaign import judge_on

    return judge_on(master, settings)


def _address(given: str | None) -> Address | None:
    """Where runs and history are shared. WrongUse if it is no address."""
    if not given:
        return None
    from harness.errors import WrongUse
    from harness.results.objects import address_of

    address = address_of(given)
    if address is None:
        raise WrongUse(f"--publish: expected an address such as s3://bucket/results, got {given}")
    return address


def _master(given: str, of_plan: str | None) -> str:
    """The master from the command line, else from the plan, else from the environment or the default."""
    context = click.get_current_context()
    is_given = context.get_parameter_source("master") is ParameterSource.COMMANDLINE
    return given if is_given or of_plan is None else of_plan


def _screen(summary: Summary, folder: Path) -> list[str]:
    from checkers.history.values import many
    from harness.campaigns.entries import entries

    on = has_colour()
    colours = {"new": "red", "expired": "yellow", "known": "dim"}
    lines = [painted(printable(f"{summary.name}: {summary.sentence}"), "bold", on=on)]
    for group in summary.groups:
        standing = painted(f"{group.standing:<8}", colours[group.standing], on=on)
        lines.append(
            f"  {standing} {group.fingerprint}  {many(len(group.runs), 'run')}  {printable(group.shape)}"
        )
        lines += [f"             {printable(cell)}" for cell in group.cells]
        lines.append(f"             {folder.parents[2] / group.runs[0].run}")
    if text := entries(summary):
        lines += ["", "to accept for a time, in known.toml:", "", *text.splitlines(), ""]
    page = folder / "index.html"
    lines.append(f"page    {page}" if page.exists() else f"folder  {folder}")
    return lines
