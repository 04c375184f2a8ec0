"""`qsync check`: judge a stored run again, or any history file, ours or another tool's."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import refuse_options, spark_options
from harness.cli.param_types import JOBS, InputPath, Number, OutputFile, Text, Whole
from harness.cli.printing import has_colour, print_json, print_run
from harness.cli.verbs.check_one import Options, ask_others, for_a_run, judged_file, run_folder, unpacked_run

if TYPE_CHECKING:
    from harness.results import RunFolder


@click.command()
@click.argument("paths", type=InputPath(), nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--model",
    type=Text(),
    help="Model of the operations: cas-register, kv, append, bank, … (any other word lists all).",
)
@click.option("--promise", type=Text(), help="Judge against this model, such as linearizable.")
@click.option("--key", help="Judge this key alone.")
@click.option(
    "--timeout",
    "timeout_s",
    type=Number(0, 10**9, is_open=True),
    help="Seconds for all checks of a history together.",
)
@click.option("--memory", "memory_mib", type=Number(0, is_open=True), help="MiB for a search.")
@click.option("--budget", type=Whole(1), help="Steps for each search, as its message counts them.")
@click.option(
    "--failed-cas",
    type=click.Choice(["observes", "says-nothing"]),
    help="Whether a refused cas observed the value; by default only in our own records.",
)
@click.option(
    "--initial",
    type=Text(),
    metavar="VALUE",
    help="What objects held before, in EDN or JSON; a map: by key ({:x 0}).",
)
@click.option(
    "--linearizable-keys",
    is_flag=True,
    help="rw-register: each key by itself is linearizable too, so real time orders its versions.",
)
@click.option(
    "--sequential-keys",
    is_flag=True,
    help="rw-register: each key by itself is sequential too, so each client orders its versions.",
)
@click.option(
    "--wfr-keys",
    is_flag=True,
    help="rw-register: writes follow reads in a transaction; Elle's option, here always so.",
)
@click.option(
    "--transaction-order",
    type=InputPath(),
    metavar="FILE",
    help="rw-register: the store's own order of transactions: {index number} in EDN or JSON.",
)
@click.option(
    "--verify", "verifies", is_flag=True, help="Check the proofs with a program that shares no code."
)
@click.option(
    "--jobs",
    type=JOBS,
    help="Processes for many files; by default all cores where there is much to read.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, and nothing else.")
@click.option("--html", type=OutputFile(), help="Write the report to this file.")
@click.option("--edn", type=OutputFile(), help="Write the history as Jepsen's EDN to this file.")
@click.option("--shiviz", type=OutputFile(), help="Write the messages between a run's nodes for ShiViz.")
@click.option(
    "--graph",
    type=OutputFile(".graphml", ".dot"),
    help="Write the circle of transactions of an anomaly to this .graphml or .dot file.",
)
@click.option(
    "--second-opinion",
    type=Text(),
    metavar="CMD",
    help="Run a second checker too: knossos:JAR, porcupine:PROGRAM, or a command with {file} or {edn}.",
)
@click.option(
    "--engine",
    type=click.Choice(["process", "spark"]),
    default="process",
    show_default=True,
    help="spark: checks, keys and segments of long keys (or many runs) are spread over workers.",
)
@spark_options
def command(
    paths: tuple[Path, ...],
    as_json: bool,
    engine: str,
    master: str,
    conf: tuple[str, ...],
    jobs: int | None,
    **given: Any,
) -> int:
    """Check a stored run again, or a history file, or all runs or histories in a folder.

    PATH is a run's folder or a file in it, or any history: history.jsonl or .parquet, Jepsen's EDN or log, Porcupine's
    key-value file or JSON, elle-cli's JSON, a report of etcd's robustness tests (a folder), a history of Plume, PolySI,
    AWDIT, dbcop or Cobra. Nothing is written beside a
    file. A run's address in an object store (s3://bucket/results/PLAN/RUN) is fetched to results/_fetched/ and judged
    there. A bundle (qsync bundle) is judged as the run that it holds. Of several paths, and of a folder with histories
    of other tools (or with folders of Jepsen's store), each history gets a line, and the exit code is the gravest.

    A run is judged by its plan. With --timeout, --memory, --budget, --key or --promise its stored verdict stays as it
    is, and a verdict on a part is never VALID. --model, --failed-cas, --initial and the options for
    rw-register are for histories of other tools.
    """
    from harness.results.bundle import is_bundle

    if engine == "process":
        refuse_options("is for --engine spark", "master", "conf")
    _keep_what_is_read(paths, given)
    path = _here(paths[0])
    if len(paths) == 1 and not is_bundle(path) and (engine == "spark" or _holds_runs(path)):
        from harness.cli.verbs.check_spread import check_spread

        refuse_options("is for histories of other tools; many runs at once: --engine spark", "jobs")
        return check_spread(path, as_json, engine, master, conf, given)
    options = Options(as_json=as_json, **given)
    if len(paths) > 1 or (path.is_dir() and not (path / "history.jsonl").exists()):
        from harness.cli.verbs.check_many import check_many, histories_in

        if engine == "spark":
            raise click.UsageError("--engine spark takes one path")
        histories = histories_in([path, *map(_here, paths[1:])])
        if len(histories) > 1 or len(paths) > 1:
            return check_many(histories, options, jobs)
        (path,) = histories
    if is_bundle(path):
        if engine == "spark":
            raise click.UsageError(f"--engine spark: {path} is a bundle of one run; try: qsync check {path}")
        with unpacked_run(path) as run:
            return _check_run(run, options, bundle=path)
    folder = run_folder(path)
    return _check_file(path, options) if folder is None else _check_run(folder, options)


def _keep_what_is_read(paths: Iterable[Path], given: Mapping[str, Any]) -> None:
    """UsageError for a file to write that is to be read, or that another option writes. A device may be named twice."""
    taken = {os.path.realpath(file) for file in (*paths, given["transaction_order"]) if file}
    for name in ("html", "edn", "shiviz", "graph"):
        target = given[name]
        if target is None or (target.exists() and not target.is_file()):
            continue
        place = os.path.realpath(target)
        if place in taken or (target.exists() and any(_is_read(place, path) for path in paths)):
            raise click.UsageError(f"--{name}: {target} is read, or is written already; try: another file")
        taken.add(place)


def _is_read(place: str, path: Path) -> bool:
    """Whether a file, of this resolved name, is of the run that `path` names, or may be a history in its folder."""
    from harness.cli.verbs.check_many import SUFFIXES
    from harness.results.run_folder import PLAN, is_read

    folder = path if path.is_dir() else path.parent
    name = os.path.relpath(place, os.path.realpath(folder))
    if (folder / PLAN).exists():
        return is_read(name)
    return path.is_dir() and not name.startswith("..") and Path(name).suffix in SUFFIXES


def _here(path: Path) -> Path:
    """The path on this machine; a run at an address is fetched first."""
    from harness.results.objects import address_of

    address = address_of(path)
    if address is None:
        return path
    from harness.cli.options import results_folder
    from harness.pages.terminal.working import working
    from harness.results.remote_runs import copy_of_run

    with working(f"fetching {address}"):
        return copy_of_run(address, results_folder() / "_fetched")


def _holds_runs(path: Path) -> bool:
    """Whether runs are below the folder, as in results/ or in the folder of a plan."""
    return (
        path.is_dir()
        and not (path / "history.jsonl").exists()
        and any(True for depth in ("*", "*/*") for _ in path.glob(f"{depth}/plan.json"))
    )


def _check_run(folder: RunFolder, options: Options, bundle: Path | None = None) -> int:
    """`bundle`: the file that the folder was unpacked from."""
    import msgspec

    from harness.judge import Asked, repeat_line
    from harness.judge.files import verified
    from harness.judge.time_limit import limited
    from harness.pages.terminal.file_screen import asked_lines
    from harness.pages.terminal.working import working
    from harness.run import finish
    from harness.run.assemble import parts_of
    from harness.systems import plans

    for_a_run(folder, options)
    plan = plans.read(folder.plan_file)
    key, promise = options.key, options.promise
    parts_of(plan if promise is None else msgspec.structs.replace(plan, promise=promise))
    with working("judging", is_quiet=options.as_json), limited(options.limits):
        run = finish.stored(folder, plan, asked=Asked(key=key, promise=promise))
        verdict = finish.judged(run)
        if bundle is not None:  # plan.json as unpacked is gone then
            verdict["repeat"]["command"] = repeat_line(plan)
        if options.verifies:
            case = run.case
            verified.add_to(
                verdict, case.history, verified.verifiers_in_run(case), partial(verified.settled_in_run, case)
            )
        if options.asks_others:
            whole = run.case.history
            history = whole if key is None else whole.only({key})
            questions = partial(verified.judged_in_run, run.case)
            ask_others(options, verdict, history, None, questions)
    if options.shiviz is not None:
        from harness.pages import shiviz

        shiviz.write(options.shiviz, folder)
    _write_graph(options.graph, verdict)
    if options.html is not None:
        from harness.pages import file_page

        file_page.write_of_run(options.html, folder, verdict)
    print_run(verdict, bundle or folder.path, options.as_json)
    if not options.as_json:
        for line in asked_lines(verdict, colour=has_colour()):
            click.echo(line)
    return ExitCode(verdict["exit_code"])


def _check_file(path: Path, options: Options) -> int:
    from harness.errors import WrongUse
    from harness.pages.terminal import file_screen

    if options.shiviz is not None:
        raise WrongUse(
            f"--shiviz: {path} is a history, and has no messages between nodes; try: a run's folder"
        )
    history, verdict = judged_file(path, options)
    _write_graph(options.graph, verdict)
    if options.html is not None:
        from harness.pages import file_page

        file_page.write(options.html, Path(verdict["file"]), history, verdict)
    if options.as_json:
        print_json(verdict)
    else:
        click.echo(file_screen.screen(verdict, colour=has_colour()))
    return ExitCode(verdict["exit_code"])


def _write_graph(graph: Path | None, verdict: dict[str, Any]) -> None:
    if graph is not None:
        from harness.pages import graph as writing

        writing.write(graph, verdict)
