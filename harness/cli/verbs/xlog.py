"""`qsync xlog`: what an xlog or snap file holds, or what is wrong with it and how much of it is good."""

from __future__ import annotations

import json
from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.param_types import InputPath

SUFFIXES = (".xlog", ".snap")


@click.command()
@click.argument("paths", nargs=-1, required=True, type=InputPath())
@click.option("--rows", "with_rows", is_flag=True, help="Print each good row too, one JSON object a line.")
def command(paths: tuple[Path, ...], with_rows: bool) -> int:
    """One line for each xlog or snap file, ours or any Tarantool's.

    PATHS are files, or folders in which all of them are looked at. Exit code 1 if any is damaged. In a folder, which
    holds all that a node wrote, the torn end of a log is not damage if no row behind it is missing (see qsync audit).
    """
    from harness.errors import WrongUse
    from harness.systems.qsync.logs import inspect, read_log, rows_as_json

    files = [file for path in paths for file in _files(path)]
    if not files:
        raise WrongUse(
            f"{paths[0]}: expected *.xlog or *.snap files, found none; try: a file, or a node's folder"
        )
    folders = {file.parent for path in paths if path.is_dir() for file in _files(path)}
    is_sound = True
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise WrongUse(f"{file}: cannot be read: {error.strerror}") from error
        found = inspect(data)
        is_legal = found.is_torn and file.suffix == ".xlog" and file.parent in folders
        is_sound = is_sound and (found.is_sound or is_legal)
        click.echo(f"{file}: {found.sentence}")
        if with_rows:
            for row in rows_as_json(data):
                click.echo(json.dumps(row, ensure_ascii=False, default=str))
    for folder in sorted(folders):
        if damage := read_log(folder).damage:
            is_sound = False
            click.echo(f"{folder}: rows are missing: {damage}")
    return int(ExitCode.VALID if is_sound else ExitCode.ANOMALY)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
    return [path]
