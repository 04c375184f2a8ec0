"""`qsync audit`: rules over the nodes' own logs, of a run or of any folder of xlogs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from harness.audit import Audit, LogRules

TOLD_MAX = 8
WIDTH = 110


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--promotes",
    type=click.Choice(["synchronous", "at-once"]),
    help="When a PROMOTE takes effect: with a quorum of its own, or when it is written (as in Tarantool).",
)
@click.option("--votes/--no-votes", "has_votes", default=None, help="Whether an owner needs votes.")
@click.option("--quorum", type=click.IntRange(1, 31), help="How many nodes make a quorum.")
@click.option("--json", "as_json", is_flag=True, help="Print the audit as JSON, and nothing else.")
def command(
    path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None, as_json: bool
) -> int:
    """Audit the logs of nodes.

    PATH is a run's folder, or any folder with a folder of *.xlog files for each node, ours or real Tarantool's. Of a
    run the plan says how its logs are to be read, and what its clients saw is settled by them.
    """
    import msgspec

    from harness.audit import to_json

    found = _audit(path, promotes, has_votes, quorum)
    audit = to_json(found)
    text = msgspec.json.encode(audit).decode() if as_json else _screen(found, audit, path)
    click.echo(text)
    return ExitCode(audit["exit_code"])


def _audit(path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None) -> Audit:
    from harness.audit import audit
    from harness.errors import WrongUse
    from harness.systems.xlogs import read_logs

    if not path.is_dir():
        raise WrongUse(f"{path}: expected a run's folder or a folder of logs; try: ./qsync audit results/latest")
    if (path / "plan.json").exists():
        return _audit_run(path, promotes, has_votes, quorum)
    rules = _rules_of_a_folder(promotes, has_votes, quorum)
    return audit(read_logs(path), rules)


def _rules_of_a_folder(promotes: str | None, has_votes: bool | None, quorum: int | None) -> LogRules:
    """Without a plan: as real Tarantool is, and nothing that a person did not say is counted on."""
    from harness.audit import LogRules

    return LogRules(
        promotes="synchronous" if promotes == "synchronous" else "at once",
        has_votes=bool(has_votes),
        quorum=quorum,
        members=None,
    )


def _audit_run(path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None) -> Audit:
    from dataclasses import replace

    from harness.finish import audit_of, log_rules, read_history
    from harness.store import resolve

    folder = resolve(path)
    plan = folder.read_plan()
    rules = log_rules(plan)
    if promotes is not None:
        rules = replace(rules, promotes="synchronous" if promotes == "synchronous" else "at once")
    if has_votes is not None:
        rules = replace(rules, has_votes=has_votes)
    if quorum is not None:
        rules = replace(rules, quorum=quorum)
    return audit_of(folder, plan, read_history(folder), rules)


def _screen(found: Audit, audit: dict[str, Any], path: Path) -> str:
    import textwrap

    from harness.terminal.colour import painted, printable, wants_colour
    from harness.terminal.last_screen import BADGES

    colour = wants_colour(sys.stdout, os.environ)
    badge, tone = BADGES[audit["outcome"]]
    lines = textwrap.wrap(f"{badge}  {printable(audit['sentence'])}", WIDTH)
    lines[0] = painted(badge, "bold", tone, on=colour) + lines[0].removeprefix(badge)
    lines.append("")
    for node, counts in found.logs.details.get("nodes", {}).items():
        said = "  ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in counts.items())
        lines.append(f"  {node}  {printable(said)}")
    lines.extend(f"  finding    {printable(text)}" for text in found.logs.details.get("findings", ()))
    lines.extend(_settled_lines(found))
    for verdict in found.verdicts:
        for witness in verdict.witnesses[:TOLD_MAX]:
            lines.append(f"  violation  {witness.rule}: {printable(witness.summary)}")
            lines.extend(f"             {printable(text)}" for text in witness.explanation)
        if len(verdict.witnesses) > TOLD_MAX:
            lines.append(f"  … and {len(verdict.witnesses) - TOLD_MAX} more (--json shows all)")
    return "\n".join([*lines, "", f"again   ./qsync audit {printable(str(path))}"])


def _settled_lines(found: Audit) -> list[str]:
    if found.settling is None or found.settled is None:
        return []
    happened, did_not, still = (
        len(found.settling.happened),
        len(found.settling.did_not),
        len(found.settling.open),
    )
    return [
        f"  settled    {happened + did_not + still} writes without an outcome: {happened} happened, {did_not} did not, "
        f"{still} stay open; with that the history is {found.settled.result}"
    ]
