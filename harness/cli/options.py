"""Options that several verbs share, and the plan that they make."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from harness.cli.param_types import Folder, InputPath, Kind, Number, Text, Whole, YesNo

F = TypeVar("F", bound=Callable[..., Any])

ROOT = Path(__file__).resolve().parents[2]

DRAWN_FROM = (
    "seed",
    "faults",
    "nodes",
    "workers",
    "rate",
    "time_limit_s",
    "workload",
    "read",
    "replica_reads",
    "overlap",
    "calm_s",
    "stray_writes",
    "roaming",
    "failing",
    "write_once",
    "commit_wait",
)
"""Options that decide the lines of a drawn-out plan."""
OF_ELECTIONS = ("election_fencing", "synchronous_promote")
"""Options without a meaning if there are no elections."""


def results_folder() -> Path:
    """Where runs are kept if nothing else is said."""
    return Path(os.environ.get("QSYNC_RESULTS", ROOT / "results"))


def results_option(*, takes_address: bool = False) -> Callable[[F], F]:
    return click.option(
        "--results",
        type=Folder(takes_address=takes_address),
        default=results_folder,
        show_default="results/",
        help="Where runs are kept.",
    )


def spark_options(function: F) -> F:
    """Where Spark runs; everything else is plain Spark configuration."""
    options = [
        click.option(
            "--master",
            type=Text(),
            default=lambda: os.environ.get("QSYNC_SPARK_MASTER", "local[*]"),
            show_default="local[*]",
            help="Where Spark runs: local[*], spark://host:7077, k8s://…, yarn.",
        ),
        click.option(
            "--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark (may be repeated)."
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


class QuorumWords(Kind):
    """A number, or what is to be read as a formula."""

    name = "number or formula"

    def taken(self, value: Any) -> Any:
        try:
            return int(value)
        except ValueError:
            return value


def plan_options(function: F) -> F:
    """What a plan can be made of on the command line; everything not said comes from the file or the default."""
    options = [
        click.option("--plan", "plan_file", type=InputPath(), help="Start from a stored plan."),
        click.option("--name", type=Text(), help="What the run is called: its folder under results/."),
        click.option("--system", type=Text(), help="What is under test."),
        click.option("--cluster", type=Text(), help="Where it runs: local, docker, ssh or sim."),
        click.option("--workload", type=Text(), help="What clients do."),
        click.option("--faults", type=Text(), help="Names, separated by commas; or all, or none."),
        click.option("--nodes", type=Whole(), help="How many nodes."),
        click.option("--time-limit", "time_limit_s", type=Number(), help="Seconds of load."),
        click.option("--rate", type=Number(), help="Operations per second, all workers together."),
        click.option("--workers", type=Whole(), help="Clients at work at once."),
        click.option(
            "--quorum",
            type=QuorumWords(),
            help="Nodes that must have a write, the owner included: a number, or a formula of N: math.max(2*N/3, 1).",
        ),
        click.option(
            "--synchro-timeout", "synchro_timeout_s", type=Number(), help="Seconds until a rollback."
        ),
        click.option(
            "--replication-timeout", "replication_timeout_s", type=Number(), help="Seconds of a heartbeat."
        ),
        click.option("--request-timeout", "request_timeout_s", type=Number(), help="Seconds a client waits."),
        click.option(
            "--settle-timeout", "settle_timeout_s", type=Number(), help="Seconds until all must be quiet."
        ),
        click.option(
            "--configuration",
            type=Text(),
            help="A to I, or its name: what is set, and what is promised for it.",
        ),
        click.option(
            "--protocol", type=Text(), help="3.2 or 2.6: as which Tarantool the nodes write and speak."
        ),
        click.option(
            "--election-mode",
            type=Text(),
            help="off, voter, manual or candidate; or one for each node: candidate,voter,….",
        ),
        click.option(
            "--election-fencing",
            type=Text(),
            help="off, soft or strict: when a leader without followers resigns.",
        ),
        click.option(
            "--election-timeout", "election_timeout_s", type=Number(), help="Seconds of an election."
        ),
        click.option(
            "--rollback-on-timeout",
            type=YesNo(),
            help="Whether waiting too long rolls back (default: as the configuration).",
        ),
        click.option(
            "--synchronous-promote",
            type=YesNo(),
            help="Whether a PROMOTE waits for a quorum (default: it does).",
        ),
        click.option(
            "--queue-max-size",
            type=Text(),
            help="Bytes in the queue until writes must wait; or one for each node: 900,300,….",
        ),
        click.option(
            "--commit-wait",
            type=click.Choice(("complete", "submit", "none", "mixed")),
            help="When writes are answered: confirmed, or already when they are queued.",
        ),
        click.option(
            "--checkpoint-interval", "checkpoint_interval_s", type=Number(), help="Seconds between snapshots."
        ),
        click.option("--wal-mode", type=Text(), help="Of real Tarantool: write (as shipped) or fsync."),
        click.option(
            "--disk", type=Text(), help="What lies under the nodes: node (their own) or mounted (ours, FUSE)."
        ),
        click.option(
            "--start",
            type=Text(),
            help="Stored logs that the nodes begin with: NAME or NAME@CUT (list starts).",
        ),
        click.option(
            "--mvcc", type=YesNo(), help="Whether reads are kept from what is prepared (default: yes)."
        ),
        click.option("--read", type=Text(), help="Read mode: linearizable, read-confirmed, dirty or mixed."),
        click.option("--replica-reads", type=Number(), help="Share of reads that go to replicas."),
        click.option("--overlap", type=Whole(), help="How many faults may be at work at once (default: 1)."),
        click.option(
            "--node-cpus",
            type=Number(),
            help="Cores each node may use all the time (docker, local): 0.5 is half.",
        ),
        click.option(
            "--node-memory", "node_memory_mib", type=Whole(), help="MiB each node may use (docker, local)."
        ),
        click.option(
            "--calm", "calm_s", type=Number(), help="Seconds between two faults, on average (default: 1)."
        ),
        click.option(
            "--least-ok", type=Whole(), help="Operations that must succeed for the run to be evidence."
        ),
        click.option(
            "--stray-writes", type=Number(), help="Share of writes that go to replicas, which refuse them."
        ),
        click.option(
            "--roaming", type=Number(), help="Share of clients that read at one node after the other."
        ),
        click.option(
            "--failing", type=Number(), help="Share of transactions with a statement that must fail."
        ),
        click.option(
            "--write-once", type=Number(), help="Share of writes to a key that nothing else writes."
        ),
        click.option("--promise", type=Text(), help="Judge against a stricter model: linearizable."),
        click.option(
            "--bug", "bugs", type=Text(), multiple=True, help="Switch a seeded bug on (may be repeated)."
        ),
        click.option(
            "--node-option",
            "node_options",
            type=Text(),
            multiple=True,
            metavar="NODE:OPTION=VALUE",
            help="One node set apart from the others: n2:election_timeout=0.8 (may be repeated).",
        ),
        click.option("--base-port", type=Whole(), help="First port to use; 0: any free ones."),
        click.option("--inventory", type=Text(), help="For --cluster ssh: the file that names the hosts."),
        click.option(
            "--accept-new-host-keys",
            is_flag=True,
            default=None,
            help="For --cluster ssh: believe hosts that are not known yet, and remember their keys.",
        ),
        click.option(
            "--node-from",
            type=Text(),
            help="The version nodes start in: a wheel, a checkout, a commit; for tarantool a binary.",
        ),
        click.option(
            "--node-to", type=Text(), help="The version a rolling upgrade brings them to (default: this one)."
        ),
        click.option("--seed", type=Whole(), help="Decides everything that is left to chance."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def plan_of(plan_file: Path | None, **given: Any) -> Any:
    """The plan that a command line asks for; WrongUse in one line if there is no such plan."""
    from harness.errors import WrongUse
    from harness.run import plan as plans
    from harness.wrong_values import in_words

    base = plans.read(plan_file) if plan_file is not None else None
    if base is not None and base.drawn is not None:
        for name in DRAWN_FROM:
            if given.get(name) is not None:
                option = _option(name)
                raise WrongUse(
                    f"{plan_file} is drawn out: {option} cannot change it any more; edit the file instead"
                )
    fields: dict[str, Any] = {} if base is None else msgspec.to_builtins(base)
    for name, value in given.items():
        if value is not None and value != ():
            fields[name] = value
    try:
        fields["faults"] = plans.fault_names(fields.get("faults", plans.Plan().faults))
    except ValueError as error:
        raise WrongUse(f"--faults: {error}") from error
    if "seed" not in fields:
        fields["seed"] = random.SystemRandom().randrange(1_000_000)
    try:
        plan = msgspec.convert(fields, plans.Plan)
    except ValueError as error:
        options = {field: _option(field) for field in plans.Plan.__struct_fields__}
        raise WrongUse(in_words(error, fields, plans.Plan, options)) from error
    if not plan.has_elections:
        for name in OF_ELECTIONS:
            if given.get(name) not in (None, False):
                raise WrongUse(
                    f"{_option(name)} has no effect without elections, in configuration {plan.letter}; "
                    "leave it out, or try: --election-mode candidate"
                )
    return msgspec.structs.replace(plan, code=code_version())


def _option(field: str) -> str:
    return "--" + field.removesuffix("_s").replace("_", "-")


def code_version() -> str:
    """The commit that runs, with a + if there are changes on top; empty outside a checkout."""
    try:
        found = subprocess.run(
            ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip()
