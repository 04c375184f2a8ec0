"""`qsync report`: write the page of a stored run again."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.param_types import InputPath


@click.command()
@click.argument("path", type=InputPath())
def command(path: Path) -> int:
    """Write report.html of a stored run again: PATH is its folder."""
    from harness import pages
    from harness.errors import StoreError
    from harness.pages.terminal.working import working
    from harness.results import resolve

    folder = resolve(path).path
    try:
        with working("writing the page"):
            page = pages.write(folder)
        click.echo(str(page))
    except OSError as error:
        raise StoreError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return 0
