"""Options that several verbs share, and the plan that they make."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec
from click.core import ParameterSource

from harness.cli.param_types import Folder, InputPath, Number, Text, Whole
from harness.cli.system_options import SETTINGS, fields_of_settings

if TYPE_CHECKING:
    from harness.plan.plan import Options

F = TypeVar("F", bound=Callable[..., Any])

ROOT = Path(__file__).resolve().parents[2]

DRAWN_FROM = (
    "system",
    "seed",
    "faults",
    "nodes",
    "workers",
    "rate",
    "time_limit_s",
    "workload",
    "replica_reads",
    "overlap",
    "calm_s",
    "lasting_s",
    "stray_writes",
    "roaming",
    "failing",
    "write_once",
    "deletes",
)
"""Options that decide the lines of a drawn-out plan, beside those of its system (`Options.decides_operations`)."""


def results_folder() -> Path:
    """The folder of the runs by default."""
    return Path(os.environ.get("QSYNC_RESULTS") or ROOT / "results")


def results_option(*, takes_address: bool = False) -> Callable[[F], F]:
    return click.option(
        "--results",
        type=Folder(takes_address=takes_address),
        default=results_folder,
        show_default="results/",
        help="Folder of the runs.",
    )


def spark_options(function: F) -> F:
    """The Spark master; everything else is plain Spark configuration."""
    master = click.option(
        "--master",
        type=Text(),
        default=lambda: os.environ.get("QSYNC_SPARK_MASTER") or "local[*]",
        show_default="local[*]",
        help="Master of Spark: local[*], spark://host:7077, k8s://…, yarn.",
    )
    more = click.option(
        "--conf", multiple=True, metavar="NAME=VALUE", help="A setting of Spark (may be repeated)."
    )
    return master(more(function))


def refuse_options(why: str, *names: str, but: Collection[str] = ()) -> None:
    """UsageError for an option of the command line that would have no effect: one with such a parameter, or, without
    names, any that is not among `but`. `why`: the end of the message.
    """
    context = click.get_current_context()
    for param in context.command.params:
        name = str(param.name)
        if not isinstance(param, click.Option) or name in but or (names and name not in names):
            continue
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{param.opts[0]} {why}")


def plan_options(function: F) -> F:
    """The options that make a plan on the command line; every other field comes from the file or the default."""
    options = [
        click.option("--plan", "plan_file", type=InputPath(), help="Start from a stored plan."),
        click.option("--name", type=Text(), help="The run's name: its folder under results/."),
        click.option("--system", type=Text(), help="The system under test."),
        click.option(
            "-o",
            SETTINGS,
            type=Text(),
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the system (may be repeated); --system NAME --help shows them.",
        ),
        click.option(
            "--cluster", type=Text(), help="Cluster that runs the nodes: local, docker, ssh or sim."
        ),
        click.option("--workload", type=Text(), help="The workload of the clients."),
        click.option(
            "--faults",
            type=Text(),
            help="Names, separated by commas; or all, or none; all,-NAME leaves one out (default: all, and first a "
            "partition, a crash and a wrong clock).",
        ),
        click.option("--nodes", type=Whole(), help="Number of nodes."),
        click.option("--time-limit", "time_limit_s", type=Number(), help="Seconds of load."),
        click.option("--rate", type=Number(), help="Operations per second, all workers together."),
        click.option("--workers", type=Whole(), help="Concurrent clients."),
        click.option("--request-timeout", "request_timeout_s", type=Number(), help="Seconds a client waits."),
        click.option(
            "--settle-timeout",
            "settle_timeout_s",
            type=Number(),
            help="Seconds until all nodes must be quiet.",
        ),
        click.option(
            "--disk", type=Text(), help="The disk under the nodes: node (their own) or mounted (ours, FUSE)."
        ),
        click.option("--replica-reads", type=Number(), help="Share of reads that go to replicas."),
        click.option("--overlap", type=Whole(), help="How many faults may be active at once (default: 1)."),
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
            "--lasting", "lasting_s", type=Number(), help="Seconds a fault lasts, on average (default: 1.8)."
        ),
        click.option("--least-ok", type=Whole(), help="Operations that must succeed for a conclusive run."),
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
        click.option("--deletes", type=Number(), help="Share of writes that delete their key."),
        click.option("--promise", type=Text(), help="Judge against a stricter model: linearizable."),
        click.option(
            "--bug", "bugs", type=Text(), multiple=True, help="Switch a seeded bug on (may be repeated)."
        ),
        click.option("--base-port", type=Whole(), help="First port to use; 0: any free ones."),
        click.option("--inventory", type=Text(), help="For --cluster ssh: the file that names the hosts."),
        click.option(
            "--accept-new-host-keys",
            is_flag=True,
            default=None,
            help="For --cluster ssh: trust hosts that are not known yet, and remember their keys.",
        ),
        click.option(
            "--node-from",
            type=Text(),
            help="The version nodes start in: a wheel, a checkout, a commit; for tarantool a binary.",
        ),
        click.option(
            "--node-to", type=Text(), help="The version a rolling upgrade brings them to (default: this one)."
        ),
        click.option("--seed", type=Whole(), help="Seed of all random choices."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def plan_of(plan_file: Path | None, **given: Any) -> Any:
    """The plan that a command line asks for; WrongUse in one line if there is no such plan."""
    from harness.errors import WrongUse
    from harness.plan import plan as generic
    from harness.systems import plans
    from harness.systems.long_options import option_name

    base = plans.read(plan_file) if plan_file is not None else None
    asked = {name: value for name, value in given.items() if value is not None and value != ()}
    fields: dict[str, Any] = {}
    try:
        system = str(asked.get("system", plans.DEFAULT_SYSTEM if base is None else base.system))
        kind = plans.options_of_system({"system": system})
        asked.update(fields_of_settings(asked.pop(SETTINGS, ()), kind, system))
        _refuse_others(asked, kind, system)
        drawn = () if base is None or base.drawn is None else (*DRAWN_FROM, *base.options.decides_operations)
        same = {"system"} if base is not None and asked.get("system") == base.system else set()
        if name := next((name for name in drawn if name in asked and name not in same), None):
            raise WrongUse(
                f"{plan_file} is drawn out: {option_name(name)} cannot change it any more; edit the file instead"
            )
        fields = asked if base is None else plans.fields_for(base, kind) | asked
        fields["faults"] = _faults(fields.get("faults", generic.Plan().faults))
        if "seed" not in fields:
            fields["seed"] = random.SystemRandom().randrange(1_000_000)
        plan = plans.planned(**fields)
    except ValueError as error:
        raise WrongUse(
            plans.problem(error, fields, {field: option_name(field) for field in fields})
        ) from error
    if why := plan.options.idle(plan, asked):
        raise WrongUse(why)
    return msgspec.structs.replace(plan, code=code_version())


def seeds_from(plan: Any, count: int, option: str) -> range:
    """`count` seeds, that of the plan first. WrongUse if there are not so many; `option` asks for them."""
    from harness.errors import WrongUse
    from harness.plan.plan import SEEDS_END

    if plan.seed + count > SEEDS_END:
        raise WrongUse(
            f"{option} {count}: from --seed {plan.seed} on there are {SEEDS_END - plan.seed:,} seeds; "
            "try: a lower --seed"
        )
    return range(plan.seed, plan.seed + count)


def refuse_idle(plan: Any, given: Mapping[str, Any]) -> None:
    """WrongUse for an option of the command line, other than 0, that does nothing beside the plan's workload or
    cluster."""
    from harness.errors import WrongUse
    from harness.judge.words import idle_fields
    from harness.systems.long_options import option_name

    for name, why in idle_fields(plan).items():
        if given.get(name):
            raise WrongUse(f"{option_name(name)}: {why}; leave it out")


def _faults(given: Any) -> Any:
    from harness.errors import WrongUse
    from harness.plan.plan import fault_names

    try:
        return fault_names(given)
    except ValueError as error:
        raise WrongUse(f"--faults: {error}") from error


def _refuse_others(asked: dict[str, Any], kind: type[Options], system: str) -> None:
    """WrongUse for an option that only another system has."""
    from harness.errors import WrongUse
    from harness.systems import SYSTEMS
    from harness.systems.long_options import long_options

    own = {option.field for option in long_options(kind)}
    for name, its_system in SYSTEMS.items():
        for option in long_options(its_system.options):
            if option.field in asked and option.field not in own:
                raise WrongUse(
                    f"{option.name} is an option of --system {name}, and not of {system}; leave it out, or see: "
                    f"./qsync run --system {system} --help"
                )


def code_version() -> str:
    """The commit that runs, with a + if there are changes on top; empty outside a checkout."""
    from harness.cluster.versions import git
    from harness.errors import WrongUse

    try:
        return (git(ROOT, "describe", "--always", "--dirty=+", "--abbrev=12") or b"").decode().strip()
    except WrongUse:
        return ""
