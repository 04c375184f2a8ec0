"""Logs that a verb is given: those of a run, by the rules of its plan, or any folder of logs, by rules from options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.param_types import Whole

if TYPE_CHECKING:
    from checkers.logs.wal import LogRules, NodeLog
    from harness.judge import Case
    from harness.results import RunFolder

Command = Callable[..., Any]


def log_options(command: Command) -> Command:
    """The rules of logs without a plan."""
    for option in (
        click.option("--quorum", type=Whole(1, 31), help="Number of nodes in a quorum."),
        click.option("--votes/--no-votes", "has_votes", default=None, help="Whether an owner needs votes."),
        click.option(
            "--promotes",
            type=click.Choice(["synchronous", "at-once"]),
            help="When a PROMOTE takes effect: with a quorum of its own, or when it is written (as in Tarantool).",
        ),
    ):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A stored run."""

    folder: RunFolder
    case: Case


@dataclass(frozen=True, slots=True)
class LogsGiven:
    """`run` is None for logs without a plan."""

    logs: tuple[NodeLog, ...]
    rules: LogRules
    run: StoredRun | None = None


def read_given(
    verb: str, path: Path, promotes: str | None, has_votes: bool | None, quorum: int | None
) -> LogsGiven:
    """Raises WrongUse if there are no logs, or options contradict a plan."""
    from checkers.logs.wal import LogRules
    from harness.errors import WrongUse

    if not path.is_dir():
        raise WrongUse(
            f"{path}: expected a run's folder or a folder of logs; try: ./qsync {verb} results/latest"
        )
    if (path / "plan.json").exists():
        if (promotes, has_votes, quorum) != (None, None, None):
            raise WrongUse(
                f"{path} is a run, whose plan says how its logs are read: --promotes, --votes and --quorum are for "
                f"other folders; try: ./qsync {verb} {path / 'nodes'}"
            )
        return _of_run(path)
    logs = _logs_of_any(path)
    if not logs:
        raise WrongUse(
            f"{path}: expected *.xlog files in a folder for each node, found none; try: "
            f"./qsync run, and then ./qsync {verb} results/latest"
        )
    # Without a plan: the rules of real Tarantool, and nothing is assumed that was not given.
    rules = LogRules(
        promotes="synchronous" if promotes == "synchronous" else "at once",
        has_votes=bool(has_votes),
        quorum=quorum,
        members=None if quorum is None else len(logs),
    )
    return LogsGiven(logs, rules)


def _logs_of_any(path: Path) -> tuple[NodeLog, ...]:
    """The logs as read by the first system that finds any there; empty if none does."""
    from harness.systems import SYSTEMS

    readings = (system.logs.read(path) for system in SYSTEMS.values())
    return next((logs for logs in readings if logs), ())


def _of_run(path: Path) -> LogsGiven:
    """The logs read as the plan says, and as `run` and `check` read them."""
    from harness.errors import WrongUse
    from harness.results import resolve
    from harness.run.finish import stored
    from harness.systems import plans

    folder = resolve(path)
    case = stored(folder, plans.read(folder.plan_file)).case
    if case.log_rules is None:
        raise WrongUse(f"{path}: the nodes of {case.plan.system} leave no xlogs; try: ./qsync check {path}")
    return LogsGiven(case.logs, case.log_rules, StoredRun(folder, case))
