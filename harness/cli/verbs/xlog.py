"""`qsync xlog`: the contents of an xlog or snap file, or its damage and the length of its good part."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.param_types import InputPath

if TYPE_CHECKING:
    from harness.systems.parts import Logs


@click.command()
@click.argument("paths", nargs=-1, required=True, type=InputPath())
@click.option("--rows", "with_rows", is_flag=True, help="Print each good row too, one JSON object a line.")
def command(paths: tuple[Path, ...], with_rows: bool) -> int:
    """One line for each xlog or snap file, ours or any Tarantool's, and for vinyl's vylog, run and index files.

    PATHS are files, or folders with such files. Exit code 1 if any file is damaged. A folder has all files of a
    node: there the torn end of a log is not damage if no row behind it is missing (see qsync audit).
    """
    from harness.errors import WrongUse

    logs = _logs()
    suffixes = logs.suffixes
    found = {path: _files(path, suffixes) for path in paths}
    for path, files in found.items():
        if not files:
            expected = " or ".join(f"*{suffix}" for suffix in suffixes)
            raise WrongUse(f"{path}: expected {expected} files, found none; try: a file, or a node's folder")
    folders = {file.parent for path, files in found.items() if path.is_dir() for file in files}
    is_sound = True
    for file in itertools.chain.from_iterable(found.values()):
        try:
            data = file.read_bytes()
        except OSError as error:
            raise WrongUse(f"{file}: cannot be read: {error.strerror}") from error
        inspection = logs.inspected(data)
        is_legal = inspection.is_torn and file.suffix == suffixes[0] and file.parent in folders
        is_sound = is_sound and (inspection.is_sound or is_legal)
        click.echo(f"{file}: {inspection.sentence}")
        if with_rows:
            for row in logs.rows_in(data):
                line = json.dumps(row, ensure_ascii=False, default=str)
                # Bytes that are no UTF-8 become escapes of JSON.
                click.echo(line.encode(errors="backslashreplace"))
    for folder in sorted(folders):
        for log in logs.read(folder) or ():
            for title, damage in (
                ("rows are missing", log.damage),
                ("snapshots are damaged", "; ".join(log.unread)),
            ):
                if damage:
                    is_sound = False
                    click.echo(f"{folder}: {title}: {damage}")
    return int(ExitCode.VALID if is_sound else ExitCode.ANOMALY)


def _logs() -> Logs:
    """The logs of the first system that has such files. A second one would need an option that names it."""
    from harness.systems import SYSTEMS

    return next(system.logs for system in SYSTEMS.values() if system.logs.suffixes)


def _files(path: Path, suffixes: tuple[str, ...]) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.rglob("*") if file.suffix in suffixes)
    return [path]
