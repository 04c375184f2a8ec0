"""`qsync analyze`: the Spark pipeline over results/ → tables, and an overview of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli import spark_group
from harness.cli.exit_codes import ExitCode
from harness.cli.options import refuse_options, results_option, spark_options
from harness.cli.param_types import Folder, OutputFile
from harness.cli.printing import print_json

if TYPE_CHECKING:
    from harness.pipeline.report import Report
    from harness.results.objects import Address

SPOOL = "_spool"


@click.command()
@results_option(takes_address=True)
@click.option(
    "--tables", type=Folder(takes_address=True), help="Folder of the tables. [default: results/_tables]"
)
@spark_options
@click.option("--anew", is_flag=True, help="Read every run again. Rows of runs that are gone stay.")
@click.option("--follow", is_flag=True, help="Keep the tables fresh until Ctrl-C.")
@click.option("--html", type=OutputFile(), help="File of the overview. [default: in the tables]")
@click.option(
    "--spool",
    type=Folder(),
    help="For addresses: a folder to fetch to, which all workers see; it keeps a copy of tables. "
    "[default: a temporary one]",
)
@click.option("--json", "as_json", is_flag=True, help="The overview as JSON, and nothing else.")
def command(
    results: Path,
    tables: Path | None,
    master: str,
    conf: tuple[str, ...],
    anew: bool,
    follow: bool,
    html: Path | None,
    spool: Path | None,
    as_json: bool,
) -> int:
    """Turn the runs under results/ into Parquet tables, only new and changed ones, and show a summary.

    --results and --tables may be addresses in an object store: s3://bucket/prefix (see docs/campaigns.md).
    """
    from harness.pipeline.analyze import analyze, tables_place
    from harness.pipeline.places import place_of
    from harness.pipeline.progress import shown
    from harness.pipeline.session import session
    from harness.pipeline.sources import source_of

    if follow:
        refuse_options("does not go with --follow", "anew", "html", "as_json")
    settings = settings_of(conf)
    runs = place_of(results)
    place = tables_place(runs, tables)
    given = _given_spool(runs, place, spool, master)
    if not follow:
        source_of(runs, given or Path())  # a wrong one is told before anything is installed
    spark_group.ensure("qsync analyze")  # which may begin this command anew: nothing is made before
    with _spool(runs, place, given) as folder:
        kept = place if isinstance(place, Path) else folder
        assert kept is not None
        log = kept / "_spark.log"
        if follow:
            return _follow(runs, place, folder, master, settings, log)
        begin = partial(session, master, conf=settings, log=log)
        with shown(sys.stderr, os.environ) as step:
            report = analyze(runs, place, begin, anew=anew, step=step, spool=folder)
        _print(report, html, as_json, place)
    return ExitCode.VALID


def _given_spool(runs: Path | Address, place: Path | Address, given: Path | None, master: str) -> Path | None:
    """The spool in the folder that --spool or QSYNC_SPOOL names. WrongUse if distant workers lack one.

    A folder of its own: what is in the spool is removed, and a person may have runs and tables in the folder.
    """
    from harness.errors import WrongUse

    given = given or (Path(named) if (named := os.environ.get("QSYNC_SPOOL")) else None)
    if _are_far(runs, place) and given is None and not master.startswith("local"):
        raise WrongUse(
            f"the workers of {master} must see the folder that runs are fetched to; try: --spool FOLDER, one that all "
            "machines see"
        )
    return None if given is None else given / SPOOL


@contextmanager
def _spool(runs: Path | Address, place: Path | Address, given: Path | None) -> Iterator[Path | None]:
    """The folder to fetch to: `given`, else a temporary one; None if runs and tables are on this machine."""
    from harness.cluster.scratch import scratch
    from harness.errors import StoreError

    if not _are_far(runs, place):
        yield None
    elif given is None:
        with scratch("spool") as folder:
            yield folder
    else:
        try:
            given.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"cannot write to {given}: {error.strerror}; try: --spool FOLDER") from error
        yield given.absolute()


def _are_far(runs: Path | Address, place: Path | Address) -> bool:
    return not (isinstance(runs, Path) and isinstance(place, Path))


def settings_of(conf: tuple[str, ...]) -> dict[str, str]:
    """`--conf name=value` as Spark's own scripts take it."""
    for setting in conf:
        if setting.find("=") < 1:
            raise click.UsageError(
                f"--conf takes name=value, got {setting!r}; try: --conf spark.executor.memory=2g"
            )
    return {name: value for name, _, value in (setting.partition("=") for setting in conf)}


def _print(report: Report, html: Path | None, as_json: bool, place: Path | Address) -> None:
    from harness.pipeline.overview import PAGE, overview

    page: Path | str = html or report.tables / PAGE
    content = overview(report.tables, report.place)
    content.write(Path(page), report)
    if html is None and not isinstance(place, Path):
        page = content.publish(place)
    if as_json:
        print_json(content.as_json(report, page), enc_hook=str)
        return
    for line in content.lines(report, page):
        click.echo(line)


def _follow(
    results: Path | Address,
    place: Path | Address,
    spool: Path | None,
    master: str,
    settings: dict[str, str],
    log: Path,
) -> int:
    from harness.pipeline.follow import follow, follow_address

    tell = partial(click.echo, err=True)
    if isinstance(results, Path) and isinstance(place, Path):
        follow(results, place, master, settings, tell)
    else:
        assert spool is not None
        follow_address(results, place, spool, master, settings, tell, log=log)
    return ExitCode.VALID
