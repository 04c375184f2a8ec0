"""`qsync list`: the tables of names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from harness.cli.param_types import Text

if TYPE_CHECKING:
    from checkers.models import Model
    from checkers.verdict import Verdict
    from harness.plan.promise import Promise

TABLES = ("systems", "promises", "clusters", "workloads", "models", "faults", "checkers", "starts", "bugs")


@click.command()
@click.argument("table", required=False, type=click.Choice(TABLES))
@click.option("--cluster", type=Text(), help="The faults that this cluster supports, and why not the rest.")
def command(table: str | None, cluster: str | None) -> int:
    """The tables of names: systems and what they promise, clusters, workloads, models of histories, faults, checkers,
    stored logs, bugs.
    """
    from harness.run.assemble import CLUSTERS

    if cluster is not None and cluster not in CLUSTERS:
        raise click.UsageError(f"unknown cluster {cluster!r}; try one of: {', '.join(CLUSTERS)}")
    if cluster is not None and table not in ("faults", None):
        raise click.UsageError(f"--cluster is of the table faults, got the table {table}; try: list faults")
    for name in (table,) if table else TABLES:
        click.echo(f"{name}:")
        rows = _rows(name, cluster)
        width = max((len(row) for row in rows), default=0)
        for row, summary in rows.items():
            click.echo(f"  {row:<{width}}  {summary}")
    return 0


def _rows(table: str, cluster: str | None) -> Mapping[str, str]:
    from checkers.cuts import report as cuts
    from checkers.domain import written
    from checkers.logs.txlog import report as txlog
    from checkers.logs.wal import NAME as AUDIT
    from checkers.models import ALIASES, MODELS
    from checkers.table import CHECKERS
    from harness.faults.table import FAULTS, TOGETHER
    from harness.judge.evidence import versions
    from harness.run.assemble import CLUSTERS
    from harness.systems import SYSTEMS
    from harness.systems.plans import planned
    from harness.workloads import WORKLOADS, restoring

    match table:
        case "systems":
            return {name: system.summary for name, system in SYSTEMS.items()}
        case "promises":
            return dict(_promises())
        case "clusters":
            return CLUSTERS
        case "workloads":
            return {name: workload.summary for name, workload in WORKLOADS.items()}
        case "models":
            others = {name: f"another name of {model}" for name, model in ALIASES.items()}
            return {name: _model(model) for name, model in MODELS.items()} | others | _isolation()
        case "faults":
            together = {name: ", ".join(several) for name, several in TOGETHER.items()}
            return {name: _fault(name, cluster) for name in FAULTS} | together
        case "checkers":
            of_workloads = {
                check.name: check.summary
                # F promises no equal nodes: then a lost write has a check of its own.
                for letter in ("H", "F")
                for workload in WORKLOADS.values()
                for check in workload.checks(SYSTEMS["qsync"].promise(planned(configuration=letter)), None)
            }
            return {
                **{name: _question(name, check) for name, check in CHECKERS.items()},
                **of_workloads,
                written.NAME: written.MODEL,
                versions.NAME: "each node starts in the version that an upgrade brings",
                AUDIT: "the nodes' own logs agree on what was confirmed, and with what clients were told",
                **{f"cuts-{level}": promise for level, promise in cuts.PROMISES.items()},
                restoring.NAME: restoring.RULE,
                **{f"{txlog.PREFIX}{name}": promise for name, promise in txlog.CHECKS.items()},
            }
        case "starts":
            return {name: text for system in SYSTEMS.values() for name, text in system.starts.items()}
        case _:
            return {name: text for system in SYSTEMS.values() for name, text in system.bugs().items()}


def _question(name: str, check: Callable[..., Verdict]) -> str:
    """The first sentence of what a checker says of itself."""
    said = inspect.getdoc(check.func if isinstance(check, partial) else check) or ""
    sentence = " ".join(said.split("\n\n")[0].split()).split(". ")[0].rstrip(".")
    return sentence.replace("`guarantee`", name).replace("`", "")


def _model(model: Model) -> str:
    """The operations that a history of this model has, and what it can be judged by; the first is the default."""
    promises, many = model.promises, 4
    more = f", and {len(promises) - many} more" if len(promises) > many else ""
    return f"{model.summary}; promises: {', '.join(promises[:many])}{more}"


def _isolation() -> dict[str, str]:
    """The isolation models of transactions, by all their names, and those that are not judged."""
    from checkers.transactional import anomalies

    of = "of append, rw-register"
    rows = {base: f"{of}: {summary}{_ordered(base)}" for base, summary in anomalies.SUMMARIES.items()}
    rows |= {
        name: f"another name of {base}" for name, base in (anomalies.ALIASES | anomalies.OTHER_NAMES).items()
    }
    return rows | {name: f"no isolation that is judged: {why}" for name, why in anomalies.REFUSED.items()}


def _ordered(base: str) -> str:
    """The names of the models that add an order."""
    from checkers.transactional import anomalies

    if base in anomalies.WITHOUT_ORDER:
        return ""
    return f"; of sessions: {anomalies.named(base, 1)}; of real time: {anomalies.named(base, 2)}"


def _promises() -> Iterator[tuple[str, str]]:
    """Rows: each configuration of a system, and what it promises for each class of answers."""
    from harness.errors import WrongUse
    from harness.systems import SYSTEMS
    from harness.systems.plans import planned

    for name, system in SYSTEMS.items():
        for promise, phases in system.promises():
            yield from _rows_of(f"{name}, {promise.configuration}", promise.why, promise)
            for phase, text in phases.items():
                yield f"{name}, {promise.configuration}  {phase}", text
            for source in dict.fromkeys(promise.documented.values()):
                check, *others = [
                    check for check, sentence in promise.documented.items() if sentence == source
                ]
                more = f" (also of {', '.join(others)})" if others else ""
                yield f"{name}, {promise.configuration}  source of {check}", source + more
        for letter in system.configuration_names:
            plan = system.completed(planned(system=name, cluster="docker", configuration=letter))
            if plan.expectations.configuration != letter:
                continue  # it takes another one where this is the default
            try:
                system.validate(plan)
            except WrongUse:
                continue
            promise = system.promise(plan)
            yield from _rows_of(f"{name} {letter}", promise.configuration.partition(": ")[2], promise)


def _rows_of(title: str, about: str, promise: Promise) -> Iterator[tuple[str, str]]:
    yield title, about
    for clause in promise.clauses:
        if not clause.source:
            yield f"{title}  {clause.name}", clause.model or "–"


def _fault(name: str, cluster: str | None) -> str:
    """The fault's action, what a correct system must do about it, and where it can be done or why not."""
    from harness.faults.table import FAULTS, why_not
    from harness.systems import SYSTEMS

    kind = FAULTS[name]
    if cluster is None:
        return f"{kind.summary}; {kind.must} ({', '.join(kind.where.clusters)})"
    if why := why_not(name, cluster):
        return f"not here: {why}"
    is_sim = cluster == "sim"
    able = [system for system, of in SYSTEMS.items() if is_sim or not why_not(name, cluster, of.abilities)]
    ours = "" if len(able) == len(SYSTEMS) else f" (nodes of {', '.join(able)})"
    return f"{kind.summary}; {kind.must}{ours}"
