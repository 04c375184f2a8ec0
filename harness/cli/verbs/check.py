"""`qsync check`: judge a stored run again, or any history file, ours or another tool's."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.exit_codes import ExitCode
from harness.cli.options import spark_options
from harness.cli.param_types import InputPath, Number, OutputFile, Text, Whole

if TYPE_CHECKING:
    from checkers.history.history import History
    from checkers.proofs.meaning import Judged
    from harness.results import RunFolder

SECOND_OPINION_S = 600.0


@click.command()
@click.argument("path", type=InputPath())
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
def command(path: Path, as_json: bool, engine: str, master: str, conf: tuple[str, ...], **given: Any) -> int:
    """Check a stored run again, or a history file, or all runs in a folder.

    PATH is a run's folder or a file in it, or any history: history.jsonl or .parquet, Jepsen's EDN or log,
    Porcupine's key-value file, elle-cli's JSON. Nothing is written beside a file. A run's address in an object store
    (s3://bucket/results/PLAN/RUN) is fetched to results/_fetched/ and judged there. A bundle (qsync bundle) is judged
    as the run that it holds.

    A run is judged by its plan. With --timeout, --memory, --budget, --key or --promise its stored verdict stays as it
    is, and a verdict on a part is never VALID. --model, --failed-cas and --initial are for histories of other tools.
    """
    from harness.results.bundle import is_bundle

    path = _here(path)
    if is_bundle(path):
        return _check_bundle(path, as_json, engine, **given)
    if engine == "spark" or _holds_runs(path):
        from harness.cli.verbs.check_spread import check_spread

        return check_spread(path, as_json, engine, master, conf, given)
    folder = _run_folder(path)
    if folder is not None:
        return _check_run(folder, as_json, **given)
    return _check_file(path, as_json, **given)


def _here(path: Path) -> Path:
    """A run at an address is fetched; a path is itself."""
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
    """A folder with runs below it: results/, or that of a plan."""
    return (
        path.is_dir()
        and not (path / "history.jsonl").exists()
        and any(True for depth in ("*", "*/*") for _ in path.glob(f"{depth}/plan.json"))
    )


def _run_folder(path: Path) -> RunFolder | None:
    """The run that is meant; None if `path` is a file that belongs to no run of ours."""
    from harness.results import resolve

    if path.is_file() and not ((path.parent / "plan.json").exists() and path.name in _OF_A_RUN):
        return None
    return resolve(path)


_OF_A_RUN = ("history.jsonl", "history.parquet", "plan.json", "verdict.json", "report.html")


def _check_bundle(path: Path, as_json: bool, engine: str, **given: Any) -> int:
    """Judge the run in a bundle as that run; its files are gone then."""
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
        return _check_run(resolve(folder), as_json, shown=path, **given)


def _check_run(
    folder: RunFolder,
    as_json: bool,
    *,
    shown: Path | None = None,
    model: str | None,
    promise: str | None,
    key: str | None,
    timeout_s: float | None,
    memory_mib: float | None,
    budget: int | None,
    failed_cas: str | None,
    initial: str | None,
    verifies: bool,
    html: Path | None,
    edn: Path | None,
    shiviz: Path | None,
    graph: Path | None,
    second_opinion: str | None,
) -> int:
    import msgspec

    from checkers.by_model import only_key
    from checkers.limits import Limits
    from harness.errors import WrongUse
    from harness.judge import Asked, repeat_line
    from harness.judge.time_limit import limited
    from harness.pages.terminal.working import working
    from harness.run import finish
    from harness.run.assemble import parts_of
    from harness.systems import plans

    for option, value in (("--model", model), ("--failed-cas", failed_cas), ("--initial", initial)):
        if value is not None:
            raise WrongUse(
                f"{option} is for histories of other tools, and {folder.path} is a run, which is judged by its plan; "
                "to read its record as such a history, copy history.jsonl to another folder and check that file"
            )
    plan = plans.read(folder.plan_file)
    parts_of(plan if promise is None else msgspec.structs.replace(plan, promise=promise))
    with working("judging", is_quiet=as_json), limited(Limits(timeout_s, memory_mib, budget)):
        run = finish.stored(folder, plan, asked=Asked(key=key, promise=promise))
        verdict = finish.judged(run)
        if shown is not None:  # plan.json as unpacked is gone then
            verdict["repeat"]["command"] = repeat_line(plan)
        if verifies:
            from harness.judge.files import verified

            verified.add_to(verdict, run.case.history, verified.verifiers_in_run(run.case))
        if edn is not None or second_opinion is not None:
            from harness.judge.files import verified

            whole = run.case.history
            history = whole if key is None else only_key(whole, key)
            questions = partial(verified.judged_in_run, run.case)
            _other_tools(history, None, verdict, edn, second_opinion, questions)
    if shiviz is not None:
        from harness.pages import shiviz as space_time

        space_time.write(shiviz, folder)
    _write_graph(graph, verdict)
    if html is not None:
        from harness.pages import file_page

        file_page.write_of_run(html, folder, verdict)
    _print_run(verdict, shown or folder.path, as_json)
    return ExitCode(verdict["exit_code"])


def _print_run(verdict: dict[str, Any], folder: Path, as_json: bool) -> None:
    from harness.cli.verbs.run import _print
    from harness.pages.terminal.file_screen import asked_lines

    _print(verdict, folder, as_json)
    if not as_json:
        for line in asked_lines(verdict, colour=_colour()):
            click.echo(line)


def _check_file(
    path: Path,
    as_json: bool,
    *,
    model: str | None,
    promise: str | None,
    key: str | None,
    timeout_s: float | None,
    memory_mib: float | None,
    budget: int | None,
    failed_cas: str | None,
    initial: str | None,
    verifies: bool,
    html: Path | None,
    edn: Path | None,
    shiviz: Path | None,
    graph: Path | None,
    second_opinion: str | None,
) -> int:
    import msgspec

    from checkers.limits import Limits
    from harness.errors import WrongUse
    from harness.judge.files.judged import Asked, asked_history, judged, judged_in_file, recognized
    from harness.judge.time_limit import limited
    from harness.pages.terminal import file_screen
    from harness.pages.terminal.working import working

    if shiviz is not None:
        raise WrongUse(
            f"--shiviz: {path} is a history, and has no messages between nodes; try: a run's folder"
        )
    limits = Limits(timeout_s, memory_mib, budget)
    observes = None if failed_cas is None else failed_cas == "observes"
    asked = Asked(
        path=_record(path),
        model=model,
        promise=promise,
        key=key,
        limits=limits,
        failed_cas_observes=observes,
        initial=initial,
    )
    with working("reading", is_quiet=as_json):
        history = asked_history(asked, recognized(asked.path, initial))
    with working("judging", is_quiet=as_json), limited(limits):
        verdict = judged(asked, history)
        if verifies:
            from harness.judge.files import verified

            verified.add_to(verdict, history, verified.verifiers(judged_in_file(asked, history, verdict)))
        file = asked.path if history.is_foreign else None
        questions = partial(judged_in_file, asked, history, verdict)
        _other_tools(history, file, verdict, edn, second_opinion, questions)
    _write_graph(graph, verdict)
    if html is not None:
        from harness.pages import file_page

        file_page.write(html, asked.path, history, verdict)
    text = msgspec.json.encode(verdict).decode() if as_json else file_screen.screen(verdict, colour=_colour())
    click.echo(text)
    return ExitCode(verdict["exit_code"])


def _record(path: Path) -> Path:
    """The file to read: of a run's folder its record."""
    from harness.results import resolve

    return path if path.is_file() else resolve(path).history


def _other_tools(
    history: History,
    file: Path | None,
    verdict: dict[str, Any],
    edn: Path | None,
    second_opinion: str | None,
    questions: Callable[[], Mapping[str, Judged]],
) -> None:
    """Write the history as a file for other tools, or pass it to a checker and add its result to the verdict.

    That checker gets what is left of the time limit. `questions`: what our checks were asked.
    """
    if edn is None and second_opinion is None:
        return
    from checkers.history.foreign import jepsen_edn
    from checkers.limits import left_s
    from checkers.linearizable import promised_linearizable
    from harness.judge.files.second_opinion import ask, ask_about_registers
    from harness.pages.file_page import write_file

    text = jepsen_edn.write(history, reads=promised_linearizable)
    if edn is not None:
        write_file(edn, text.encode(), "the EDN")
    if second_opinion is not None:
        left = left_s()
        seconds = SECOND_OPINION_S if left is None else left
        opinion = ask_about_registers(second_opinion, history, questions(), seconds)
        opinion = opinion or ask(second_opinion, text, file, seconds)
        verdict["second_opinion"] = opinion.beside(verdict)


def _write_graph(graph: Path | None, verdict: dict[str, Any]) -> None:
    if graph is not None:
        from harness.pages import graph as writing

        writing.write(graph, verdict)


def _colour() -> bool:
    from harness.pages.terminal.colour import wants_colour

    return wants_colour(sys.stdout, os.environ)
