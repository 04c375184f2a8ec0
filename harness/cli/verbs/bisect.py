"""`qsync bisect RUN --good COMMIT`: the commit of a system's nodes from which an anomaly shows."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import ROOT, results_option
from harness.cli.param_types import InputPath, Text, Whole
from harness.cli.printing import print_json


@click.command()
@click.argument("run", type=InputPath())
@click.option("--good", type=Text(), required=True, metavar="COMMIT", help="A commit without the anomaly.")
@click.option("--bad", type=Text(), default="HEAD", show_default=True, metavar="COMMIT", help="One with it.")
@click.option(
    "--repository",
    type=InputPath(),
    default=ROOT,
    show_default="this checkout",
    help="Where the commits are.",
)
@click.option("--fingerprint", type=Text(), help="The anomaly to look for. [default: the leading one of RUN]")
@click.option(
    "--repeat", type=Whole(1), default=3, show_default=True, help="Clean runs until a commit is clean."
)
@click.option("--cluster", type=Text(), help="Run on this cluster in place of the run's.")
@results_option()
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, and nothing else.")
def command(
    run: Path,
    good: str,
    bad: str,
    repository: Path,
    fingerprint: str | None,
    repeat: int,
    cluster: str | None,
    results: Path,
    as_json: bool,
) -> int:
    """Find the commit from which the anomaly of RUN shows: its plan, with the nodes of one commit after the other.

    Binary search over the commits on the first-parent line that change nodes/. A commit is clean after --repeat clean
    runs; in the simulator each has a seed of its own, from that of RUN on. A commit that does not run, or shows a
    different anomaly, is skipped. In the simulator the nodes of the commit run under the harness of this checkout; if
    they are too old for that, --cluster local starts them as processes.

    Exit 0 if the commit is known, 3 if only a range is.
    """
    import msgspec

    from checkers.history.values import many
    from harness.campaigns import bisecting
    from harness.pages.terminal.colour import printable
    from harness.pages.terminal.working import working
    from harness.results import resolve
    from harness.systems import plans

    folder = resolve(run)
    wanted, shape = bisecting.asked_fingerprint(folder, fingerprint, cluster is not None)
    plan = bisecting.prepared(folder, plans.read(folder.plan_file), cluster)
    with working("searching", is_quiet=as_json) as shown:
        search = bisecting.Bisection(
            plan,
            wanted,
            repository,
            results.absolute(),
            repeat,
            lambda line: shown.say(f"qsync: {line}"),
        )
        bisected = search.find(good, bad)
    first, last = bisected.commits[bisected.found.first], bisected.commits[bisected.found.last]
    code = ExitCode.VALID if bisected.found.is_exact else ExitCode.INCONCLUSIVE
    if as_json:
        document = {
            "fingerprint": wanted,
            "shape": shape,
            "first": first.hash,
            "last": last.hash,
            "is_exact": bisected.found.is_exact,
            "confidence": bisected.confidence,
            "judged": {name: msgspec.to_builtins(judged) for name, judged in bisected.judged.items()},
        }
        print_json(document)
        return code
    click.echo(printable(f"{wanted}  {shape}"))
    if bisected.found.is_exact:
        click.echo(printable(f"first shown by {last.hash}  {last.day}  {last.title}"))
    else:
        click.echo("first shown by one of these; those before the last cannot be judged:")
        for commit in bisected.commits[bisected.found.first : bisected.found.last + 1]:
            click.echo(printable(f"  {commit.hash}  {commit.day}  {commit.title}"))
    at_bad = bisected.judged[bisected.commits[-1].hash]
    click.echo(
        f"{many(bisected.commits_run, 'commit')} ran, with at most {many(repeat, 'clean run')} of each; "
        f"confidence {bisected.confidence:.1%}, as {bad} shows it in {at_bad.hits} of {at_bad.hits + at_bad.clean} runs"
    )
    return code
