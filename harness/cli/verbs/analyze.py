"""`qsync analyze`: the Spark pipeline over results/ → tables, and an overview of them."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import spark_group
from harness.cli.exit_codes import ExitCode
from harness.cli.options import results_option, spark_options

if TYPE_CHECKING:
    from harness.pipeline.analyze import Report


@click.command()
@results_option
@click.option(
    "--tables", type=click.Path(path_type=Path), help="Where the tables are kept. [default: results/_tables]"
)
@spark_options
@click.option("--anew", is_flag=True, help="Forget the tables and make them from every run.")
@click.option("--follow", is_flag=True, help="Keep the tables fresh until Ctrl-C.")
@click.option(
    "--html", type=click.Path(path_type=Path), help="Where the overview goes. [default: in the tables]"
)
@click.option("--json", "as_json", is_flag=True, help="What was done, as JSON, and nothing else.")
def command(
    results: Path,
    tables: Path | None,
    master: str,
    conf: tuple[str, ...],
    anew: bool,
    follow: bool,
    html: Path | None,
    as_json: bool,
) -> int:
    """Turn all runs under results/ into Parquet tables, only what is new or changed, and show what they say."""
    from harness.pipeline import places
    from harness.pipeline.analyze import analyze, tables_folder
    from harness.pipeline.progress import shown

    settings = settings_of(conf)
    results = places.folder(results)
    folder = places.folder(tables_folder(results, tables))
    spark_group.ensure("qsync analyze")
    if follow:
        return _follow(results, folder, master, settings)

    def session() -> AbstractContextManager[Any]:
        from harness.pipeline.session import session

        return session(master, conf=settings, log=folder / "_spark.log")

    with shown(sys.stderr, os.environ) as step:
        report = analyze(results, folder, session, anew=anew, step=step)
    _tell(report, html, as_json)
    return ExitCode.VALID


def settings_of(conf: tuple[str, ...]) -> dict[str, str]:
    """`--conf name=value` as Spark's own scripts take it."""
    for each in conf:
        if "=" not in each:
            raise click.UsageError(
                f"--conf takes name=value, got {each!r}; try: --conf spark.executor.memory=2g"
            )
    return {name: value for name, _, value in (each.partition("=") for each in conf)}


def _tell(report: Report, html: Path | None, as_json: bool) -> None:
    from harness.pipeline.overview import overview

    page = html or report.tables / "overview.html"
    content = overview(report.tables)
    content.write(page, report)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(content.as_json(report, page), enc_hook=str).decode())
        return
    for line in content.lines(report, page):
        click.echo(line)


def _follow(results: Path, folder: Path, master: str, settings: dict[str, str]) -> int:
    from harness.pipeline.follow import follow

    def tell(line: str) -> None:
        click.echo(line, err=True)

    follow(results, folder, master, settings, tell)
    return ExitCode.VALID
