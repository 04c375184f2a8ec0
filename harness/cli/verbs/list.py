"""`qsync list`: the tables of names."""

from __future__ import annotations

from collections.abc import Mapping

import click

TABLES = ("systems", "clusters", "workloads", "faults", "checkers", "bugs")


@click.command()
@click.argument("table", required=False, type=click.Choice(TABLES))
@click.option("--cluster", help="Only the faults that this cluster can do.")
def command(table: str | None, cluster: str | None) -> int:
    """The tables of names: systems, clusters, workloads, faults, checkers, bugs."""
    from harness.assemble import CLUSTERS

    if cluster is not None and cluster not in CLUSTERS:
        raise click.UsageError(f"unknown cluster {cluster!r}; try one of: {', '.join(CLUSTERS)}")
    for name in (table,) if table else TABLES:
        click.echo(f"{name}:")
        rows = _rows(name, cluster)
        width = max((len(row) for row in rows), default=0)
        for row, summary in rows.items():
            click.echo(f"  {row:<{width}}  {summary}")
    return 0


def _rows(table: str, cluster: str | None) -> Mapping[str, str]:
    from checkers.wal import NAME as AUDIT
    from harness.assemble import CLUSTERS
    from harness.faults.table import FAULTS
    from harness.systems import SYSTEMS
    from harness.systems.promises import FIXED_OWNER
    from harness.workloads import WORKLOADS

    match table:
        case "systems":
            return {name: system.summary for name, system in SYSTEMS.items()}
        case "clusters":
            return CLUSTERS
        case "workloads":
            return {name: workload.summary for name, workload in WORKLOADS.items()}
        case "faults":
            return {
                name: f"{kind.summary} ({', '.join(kind.clusters)})"
                for name, kind in FAULTS.items()
                if cluster is None or cluster in kind.clusters
            }
        case "checkers":
            of_workloads = {
                check.name: check.summary
                for workload in WORKLOADS.values()
                for check in workload.checks(FIXED_OWNER, None)
            }
            return {
                **of_workloads,
                AUDIT: "the nodes' own logs agree on what was confirmed, and with what clients were told",
            }
        case _:
            return {name: text for system in SYSTEMS.values() for name, text in system.bugs().items()}
