"""`qsync audit`: rules over the nodes' own logs, of a run or of any folder of xlogs."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from checkers.verdict import merged
from harness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from checkers.history.history import History
    from checkers.wal import LogRules
    from harness.judge.audit import Audit
    from harness.workloads.checks import Check

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

    found = _audit(path, promotes, has_votes, quorum)
    audit = _to_json(found)
    text = msgspec.json.encode(audit).decode() if as_json else _screen(found, audit, path)
    click.echo(text)
    return ExitCode(audit["exit_code"])


def _audit(path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None) -> Audit:
    from checkers.wal import LogRules
    from harness.errors import WrongUse
    from harness.finish import logs_of_members, rules_of
    from harness.judge.audit import audit
    from harness.systems.xlogs import read_logs

    if not path.is_dir():
        raise WrongUse(
            f"{path}: expected a run's folder or a folder of logs; try: ./qsync audit results/latest"
        )
    is_run = (path / "plan.json").exists()
    logs = read_logs(path / "nodes" if is_run else path)
    if not logs:
        raise WrongUse(f"{path}: expected *.xlog files in a folder for each node, found none; try: {_TRY}")
    # Without a plan: as real Tarantool is, and nothing that nobody said is counted on.
    rules, history, checks = (
        _of_run(path) if is_run else (LogRules(promotes="at once", has_votes=False), None, ())
    )
    if history is not None:  # as `check` does: who has left says nothing of the others
        logs, rules = logs_of_members(logs, history), rules_of(rules, history) or rules
    if promotes is not None:
        rules = replace(rules, promotes="synchronous" if promotes == "synchronous" else "at once")
    if has_votes is not None:
        rules = replace(rules, has_votes=has_votes)
    if quorum is not None:
        rules = replace(rules, quorum=quorum, members=rules.members or len(logs))
    return audit(logs, rules, history, checks)


_TRY = "./qsync run, and then ./qsync audit results/latest"


def _of_run(path: Path) -> tuple[LogRules, History, tuple[Check, ...]]:
    """How the logs of a run are to be read, what its clients saw, and how that is judged."""
    from harness.errors import WrongUse
    from harness.finish import read_history
    from harness.judge.outcome import checks_of
    from harness.judge.promised import promise_of
    from harness.store import resolve
    from harness.systems import system_of

    folder = resolve(path)
    plan = folder.read_plan()
    system = system_of(plan.system)
    rules = system.log_rules(plan)
    if rules is None:
        raise WrongUse(f"{path}: the nodes of {plan.system} leave no xlogs; try: ./qsync check {path}")
    history = read_history(folder)
    return rules, history, checks_of(plan, promise_of(plan, history))


OUTCOMES = {"valid": ("valid", 0), "invalid": ("anomaly", 1), "unknown": ("unknown", 2)}


def _to_json(found: Audit) -> dict[str, Any]:
    outcome, code = OUTCOMES[merged([found.logs.result, *(verdict.result for verdict in found.settled)])]
    return {
        "format": "qsync-audit",
        "version": 1,
        "outcome": outcome,
        "exit_code": code,
        "sentence": _sentence(found),
        "checks": [found.logs.to_json()],
        "settled": found.settled_json(),
    }


def _sentence(found: Audit) -> str:
    text = (
        found.logs.witnesses[0].summary if found.logs.witnesses else (*found.findings, found.logs.summary)[0]
    )
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _screen(found: Audit, audit: dict[str, Any], path: Path) -> str:
    from harness.terminal.colour import painted, printable, wants_colour
    from harness.terminal.last_screen import BADGES

    colour = wants_colour(sys.stdout, os.environ)
    badge, tone = BADGES[audit["outcome"]]
    lines = textwrap.wrap(f"{badge}  {printable(audit['sentence'])}", WIDTH)
    lines[0] = painted(badge, "bold", tone, on=colour) + lines[0].removeprefix(badge)
    told = (*_node_lines(found), *_settled_lines(found), *_witness_lines(found))
    return "\n".join([*lines, "", *map(printable, told), "", f"again   ./qsync audit {printable(str(path))}"])


def _node_lines(found: Audit) -> Iterator[str]:
    for node, counts in found.logs.details.get("nodes", {}).items():
        said = "  ".join(f"{count:,} {word.replace('_', ' ')}" for word, count in counts.items())
        yield f"  {node}  {said}"
    for text in found.logs.details.get("findings", ()):
        yield f"  finding    {text}"
    for text in found.logs.details.get("notes", ()):
        yield f"  note       {text}"


def _settled_lines(found: Audit) -> Iterator[str]:
    if found.settling is None:
        return
    happened, did_not, still = map(
        len, (found.settling.happened, found.settling.did_not, found.settling.open)
    )
    yield (
        f"  settled    {happened + did_not + still} writes without an outcome: {happened} happened, {did_not} did not, "
        f"{still} stay open"
    )
    for verdict in found.settled:
        yield f"             with that {verdict.checker} is {verdict.result}"


def _witness_lines(found: Audit) -> Iterator[str]:
    witnesses = [witness for verdict in (found.logs, *found.settled) for witness in verdict.witnesses]
    for witness in witnesses[:TOLD_MAX]:
        yield f"  violation  {witness.rule}: {witness.summary}"
        yield from (f"             {text}" for text in witness.explanation)
    if len(witnesses) > TOLD_MAX:
        yield f"  … and {len(witnesses) - TOLD_MAX} more (--json shows all)"
