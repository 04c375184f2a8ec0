"""`qsync check`: judge a stored run again."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--promise", help="Judge against a stricter model: linearizable.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, and nothing else.")
def command(path: Path, promise: str | None, as_json: bool) -> int:
    """Check a stored run again: PATH is its folder or its history.jsonl."""
    import msgspec

    from harness.assemble import parts_of
    from harness.cli.verbs.run import _print
    from harness.finish import finish
    from harness.store import resolve

    folder = resolve(path)
    plan = folder.read_plan()
    if promise is not None:
        plan = msgspec.structs.replace(plan, promise=promise)
    parts_of(plan)
    verdict = finish(folder, plan)
    _print(verdict, folder.path, as_json)
    return ExitCode(verdict["exit_code"])
