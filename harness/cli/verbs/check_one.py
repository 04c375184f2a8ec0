"""`qsync check` of one history: its options, the file or the run that is meant, and the verdict on a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checkers.by_model import OfKeys
    from checkers.history.history import History
    from checkers.limits import Limits
    from checkers.proofs.meaning import Terms
    from harness.results import RunFolder

SECOND_OPINION_S = 600.0


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
    linearizable_keys: bool
    sequential_keys: bool
    wfr_keys: bool
    transaction_order: Path | None
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


def run_folder(path: Path) -> RunFolder | None:
    """The run that is meant; None if `path` is a file that belongs to no run of ours."""
    from harness.results.run_folder import FILES, PLAN, resolve

    if path.is_file() and not ((path.parent / PLAN).exists() and path.name in FILES):
        return None
    from checkers.history.foreign import reader_of

    return None if reader_of(path) is not None else resolve(path)


@contextmanager
def unpacked_run(path: Path) -> Iterator[RunFolder]:
    """The run in a bundle, whose unpacked files are removed afterwards. WrongUse if it holds something else."""
    from harness.cluster.scratch import scratch
    from harness.errors import WrongUse
    from harness.results import bundle, resolve

    with scratch("bundle") as folder:
        kind = bundle.unpack(path, folder).manifest.kind
        if kind != "run":
            raise WrongUse(
                f"{path} is a bundle of a {kind}, not of a run; try: qsync certify --verify {path}"
            )
        yield resolve(folder)


def for_a_run(folder: RunFolder, options: Options) -> None:
    """Raises WrongUse for an option that is for histories of other tools."""
    from harness.errors import WrongUse

    for option, value in (
        ("--model", options.model),
        ("--failed-cas", options.failed_cas),
        ("--initial", options.initial),
        ("--linearizable-keys", options.linearizable_keys or None),
        ("--sequential-keys", options.sequential_keys or None),
        ("--wfr-keys", options.wfr_keys or None),
        ("--transaction-order", options.transaction_order),
    ):
        if value is not None:
            raise WrongUse(
                f"{option} is for histories of other tools, and {folder.path} is a run, which is judged by its plan; "
                "to read its record as such a history, copy history.jsonl to another folder and check that file"
            )


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
        of_keys=_of_keys(options),
        order_file=options.transaction_order,
    )
    with working("reading", is_quiet=options.as_json):
        history = asked_history(asked, recognized(asked.path, options.initial))
    with working("judging", is_quiet=options.as_json), limited(options.limits):
        verdict = judged(asked, history)
        questions = partial(judged_in_file, asked, history, verdict)
        if options.verifies:
            from harness.judge.files import verified

            verified.add_to(verdict, history, verified.verifiers(questions()))
        is_just_this = history.is_foreign and asked.key is None
        ask_others(options, verdict, history, asked.path if is_just_this else None, questions)
    return history, verdict


def _of_keys(options: Options) -> OfKeys:
    """What is promised of single keys. Raises WrongUse for a file that is no order."""
    from checkers.by_model import OfKeys
    from harness.judge.files.transaction_order import read_order

    order = options.transaction_order
    return OfKeys(
        linearizable_keys=options.linearizable_keys,
        sequential_keys=options.sequential_keys,
        wfr_keys=options.wfr_keys,
        transaction_order={} if order is None else read_order(order),
    )


def _record(path: Path) -> Path:
    """The file to read; for a run's folder, its record."""
    from checkers.history.foreign import reader_of

    if path.is_file() or reader_of(path) is not None:
        return path
    from harness.results import resolve

    return resolve(path).history


def ask_others(
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
    from harness.results import output_file

    text = jepsen_edn.write(history, reads=promised_linearizable)
    if options.edn is not None:
        output_file.write(options.edn, text.encode(), "the EDN")
    if options.second_opinion is not None:
        left = left_s()
        seconds = SECOND_OPINION_S if left is None else left
        opinion = ask_about_registers(options.second_opinion, history, questions(), seconds)
        opinion = opinion or ask(options.second_opinion, text, file, seconds)
        verdict["second_opinion"] = opinion.beside(verdict)
