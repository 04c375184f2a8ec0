"""`qsync check`: judge a stored run again, or any history file, ours or another tool's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import spark_options
from harness.cli.param_types import InputPath, Number, OutputFile, Text, Whole
from harness.cli.printing import has_colour, print_json, print_run

if TYPE_CHECKING:
    from checkers.history.history import History
    from checkers.limits import Limits
    from checkers.proofs.meaning import Terms
    from harness.results import RunFolder

SECOND_OPINION_S = 600.0


@click.command()
@click.argument("paths", type=InputPath(), nargs=-1, required=True, metavar="PATH…")
@click.option(
    "--model",
    type=Text(),
    help="Model of the operations: cas-register, kv, append, bank, … (any other word lists all).",
)
@click.option("--promise", type=Text(), help="Judge against this model, such as linearizable.")
@click.option("--key", help="Judge this key alone.")
@click.option("--timeout", "timeout_s", type=Number(0, is_open=True), help="Seconds for all checks together.")
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
    "--verify", "verifies", is_flag=True, help="Check the proofs with a program that shares no code."
)
@click.option(
    "--jobs",
    type=Whole(1),
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

    PATH is a run's folder or a file in it, or any history: history.jsonl or .parquet, Jepsen's EDN or log,
    Porcupine's key-value file, elle-cli's JSON. Nothing is written beside a file. A run's address in an object store
    (s3://bucket/results/PLAN/RUN) is fetched to results/_fetched/ and judged there. A bundle (qsync bundle) is judged
    as the run that it holds. Of several paths, and of a folder with histories of other tools (or with folders of
    Jepsen's store), each history gets a line, and the exit code is the gravest.

    A run is judged by its plan. With --timeout, --memory, --budget, --key or --promise its stored verdict stays as it
    is, and a verdict on a part is never VALID. --model, --failed-cas and --initial are for histories of other tools.
    """
    from harness.results.bundle import is_bundle

    path = _here(paths[0])
    if len(paths) == 1 and not is_bundle(path) and (engine == "spark" or _holds_runs(path)):
        from harness.cli.verbs.check_spread import check_spread

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
        return _check_bundle(path, engine, options)
    folder = run_folder(path)
    return _check_file(path, options) if folder is None else _check_run(folder, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line."""

    as_json: bool
    model: str | None
    promise: str | None
    key: str | None
    timeout_s: float | None
    memory_mib: float | None
    budget: int | None
    failed_cas: str | None
    initial: str | None
    verifies: bool
    html: Path | None
    edn: Path | None
    shiviz: Path | None
    graph: Path | None
    second_opinion: str | None

    @property
    def limits(self) -> Limits:
        from checkers.limits import Limits

        return Limits(self.timeout_s, self.memory_mib, self.budget)

    @property
    def asks_others(self) -> bool:
        """Whether another program gets the history."""
        return self.edn is not None or self.second_opinion is not None


def _here(path: Path) -> Path:
    """The path on this machine; a run at an address is fetched first."""
    from harness.cli.options import results_folder
    from harness.pages.terminal.working import working
    from harness.results.objects import address_of
    from harness.results.remote_runs import copy_of_run

    address = address_of(path)
    if address is None:
        return path
    with working(f"fetching {address}"):
        return copy_of_run(address, results_folder() / "_fetched")


def _holds_runs(path: Path) -> bool:
    """Whether runs are below the folder, as in results/ or in the folder of a plan."""
    return (
        path.is_dir()
        and not (path / "history.jsonl").exists()
        and any(True for depth in ("*", "*/*") for _ in path.glob(f"{depth}/plan.json"))
    )


def run_folder(path: Path) -> RunFolder | None:
    """The run that is meant; None if `path` is a file that belongs to no run of ours."""
    from harness.results import resolve

    if path.is_file() and not ((path.parent / "plan.json").exists() and path.name in _OF_A_RUN):
        return None
    return resolve(path)


_OF_A_RUN = ("history.jsonl", "history.parquet", "plan.json", "verdict.json", "report.html")


def _check_bundle(path: Path, engine: str, options: Options) -> int:
    """Judge the run in a bundle as that run. The unpacked files are removed afterwards."""
    from harness.cluster.scratch import scratch
    from harness.errors import WrongUse
    from harness.results import bundle, resolve

    if engine == "spark":
        raise WrongUse(f"--engine spark: {path} is a bundle of one run; try: qsync check {path}")
    with scratch("bundle") as folder:
        kind = bundle.unpack(path, folder).manifest.kind
        if kind != "run":
            raise WrongUse(
                f"{path} is a bundle of a {kind}, not of a run; try: qsync certify --verify {path}"
            )
        return _check_run(resolve(folder), options, bundle=path)


def _check_run(folder: RunFolder, options: Options, bundle: Path | None = None) -> int:
    """`bundle`: the file that the folder was unpacked from."""
    import msgspec

    from checkers.by_model import only_key
    from harness.judge import Asked, repeat_line
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
            from harness.judge.files import verified

            verified.add_to(verdict, run.case.history, verified.verifiers_in_run(run.case))
        if options.asks_others:
            from harness.judge.files import verified

            whole = run.case.history
            history = whole if key is None else only_key(whole, key)
            questions = partial(verified.judged_in_run, run.case)
            _ask_others(options, verdict, history, None, questions)
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


def for_a_run(folder: RunFolder, options: Options) -> None:
    """Raises WrongUse for an option that is for histories of other tools."""
    from harness.errors import WrongUse

    for option, value in (
        ("--model", options.model),
        ("--failed-cas", options.failed_cas),
        ("--initial", options.initial),
    ):
        if value is not None:
            raise WrongUse(
                f"{option} is for histories of other tools, and {folder.path} is a run, which is judged by its plan; "
                "to read its record as such a history, copy history.jsonl to another folder and check that file"
            )


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


def judged_file(path: Path, options: Options) -> tuple[History, dict[str, Any]]:
    """The history in the file, and the verdict on it in the form of verdict.json."""
    from harness.judge.files.judged import Asked, asked_history, judged, judged_in_file, recognized
    from harness.judge.time_limit import limited
    from harness.pages.terminal.working import working

    asked = Asked(
        path=_record(path),
        model=options.model,
        promise=options.promise,
        key=options.key,
        limits=options.limits,
        failed_cas_observes=None if options.failed_cas is None else options.failed_cas == "observes",
        initial=options.initial,
    )
    with working("reading", is_quiet=options.as_json):
        history = asked_history(asked, recognized(asked.path, options.initial))
    with working("judging", is_quiet=options.as_json), limited(options.limits):
        verdict = judged(asked, history)
        questions = partial(judged_in_file, asked, history, verdict)
        if options.verifies:
            from harness.judge.files import verified

            verified.add_to(verdict, history, verified.verifiers(questions()))
        _ask_others(options, verdict, history, asked.path if history.is_foreign else None, questions)
    return history, verdict


def _record(path: Path) -> Path:
    """The file to read; for a run's folder, its record."""
    from harness.results import resolve

    return path if path.is_file() else resolve(path).history


def _ask_others(
    options: Options,
    verdict: dict[str, Any],
    history: History,
    file: Path | None,
    questions: Callable[[], Mapping[str, Terms]],
) -> None:
    """Write the history as a file for other tools, or pass it to a checker and add its result to the verdict.

    That checker gets what is left of the time limit. `questions`: by check, the question that its verdict must answer.
    """
    if not options.asks_others:
        return
    from checkers.history.foreign import jepsen_edn
    from checkers.limits import left_s
    from checkers.linearizable import promised_linearizable
    from harness.judge.files.second_opinion import ask, ask_about_registers
    from harness.pages.file_page import write_file

    text = jepsen_edn.write(history, reads=promised_linearizable)
    if options.edn is not None:
        write_file(options.edn, text.encode(), "the EDN")
    if options.second_opinion is not None:
        left = left_s()
        seconds = SECOND_OPINION_S if left is None else left
        opinion = ask_about_registers(options.second_opinion, history, questions(), seconds)
        opinion = opinion or ask(options.second_opinion, text, file, seconds)
        verdict["second_opinion"] = opinion.beside(verdict)


def _write_graph(graph: Path | None, verdict: dict[str, Any]) -> None:
    if graph is not None:
        from harness.pages import graph as writing

        writing.write(graph, verdict)
