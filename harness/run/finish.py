"""After a run: read the record, judge it, keep verdict, columns and page; at once, or later in another process.

`finish` reads and judges the run of a folder. `conclude` does it for a run that is over just now, and gives its exit
code. Facts that no record can hold stand in `Recorded`: whether a person ended the run, and why it could not be done if
so. It is JSON, so that a campaign can keep it and pass it to its judge. `judged_again` is for many stored runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from checkers.check import RunCheck, run_here
from checkers.history import parquet
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.history.jsonl import read
from checkers.limits import Limits, given, why_ended
from checkers.verdict import Verdict
from harness.doing import doing
from harness.errors import ClusterError, HarnessError, StoreError, WrongUse, broke
from harness.judge import Asked, Case, Left, judge
from harness.judge.strongest import excused, strongest
from harness.pages import page
from harness.plan.plan import Plan
from harness.results import RunFolder, hashes
from harness.results.run_folder import COLUMNS, REPORT, VERDICT, Make
from harness.systems import plans

ANOMALY, UNKNOWN, BROKEN, INTERRUPTED = 1, 2, 70, 130
NOTHING_ASKED = Asked()
_KINDS: tuple[type[HarnessError], ...] = (WrongUse, ClusterError, StoreError)


def read_history(folder: RunFolder) -> History:
    """The history of a run; StoreError in one line if it cannot be read, or the record is not the one judged before."""
    hashes.must_be_as_judged(folder.path, hashes.of_record(folder.path))
    return _read(folder)


def _read(folder: RunFolder) -> History:
    doing("reading the history")
    try:
        return read(folder.history)
    except HistoryError as error:
        raise StoreError(f"{folder.history}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {folder.history}: {error.strerror}") from error


class Failure(msgspec.Struct, frozen=True):
    """A HarnessError: its message, and the class that it is of."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: HarnessError) -> Failure:
        kind = next((known for known in _KINDS if isinstance(error, known)), HarnessError)
        return cls(kind.__name__, error.message)

    def error(self) -> HarnessError:
        kinds = {known.__name__: known for known in _KINDS}
        return kinds.get(self.kind, HarnessError)(self.message)


class Recorded(msgspec.Struct, frozen=True):
    """A run that is over and not judged."""

    folder: str
    interrupted: bool = False
    failure: Failure | None = None


@dataclass(frozen=True)
class Stored:
    """A run in its folder, read to be judged. `plan`: its own; `record`: the hashes of the record as it was read."""

    folder: RunFolder
    plan: Plan
    case: Case
    record: hashes.Files
    asked: Asked


def stored(
    folder: RunFolder,
    plan: Plan,
    recorded: Recorded | None = None,
    *,
    asked: Asked = NOTHING_ASKED,
    run_check: RunCheck = run_here,
) -> Stored:
    """Read a run. `recorded`: it is over only now; without, its record must be the one that was judged before.

    Raises StoreError in one line if it is not, or cannot be read.
    """
    # Before it is read: a record that changes meanwhile then differs from its hashes, and its verdict shows that.
    record = hashes.of_record(folder.path)
    if recorded is None:
        hashes.must_be_as_judged(folder.path, record)
    case = Case(
        plan if asked.promise is None else msgspec.structs.replace(plan, promise=asked.promise),
        _read(folder),
        Left.in_folder(folder.nodes, plan),
        interrupted=recorded is not None and recorded.interrupted,
        failure=None if recorded is None or recorded.failure is None else recorded.failure.message,
        key=asked.key,
        plan_file=folder.plan_file,
        run_check=run_check,
    )
    return Stored(folder, plan, case, record, asked)


def finish(
    folder: RunFolder,
    plan: Plan,
    recorded: Recorded | None = None,
    *,
    asked: Asked = NOTHING_ASKED,
    run_check: RunCheck = run_here,
) -> dict[str, Any]:
    """Read a run as `stored` does, and judge it as `judged` does."""
    return judged(stored(folder, plan, recorded, asked=asked, run_check=run_check))


def judged(run: Stored) -> dict[str, Any]:
    """Judge a run; write verdict.json, history.parquet, hashes.json and report.html; returns the verdict.

    Limits (`harness.judge.time_limit.limited` around it) and `asked` ask for another verdict than the run's own:
    nothing is written then, and its `asked` says what was asked.

    Raises StoreError if the files cannot be written, and leaves those of an earlier judgement as they are. An anomaly
    is returned all the same, with that as a finding: a full disk must not hide it. WrongUse for what cannot be asked.
    """
    asked = _asked(given(), run.asked)
    verdict = judge(run.case)
    if not why_ended():
        verdict["strongest"] = _strongest(run.case, verdict)
    if asked:
        promise = run.asked.promise
        if promise is not None and promise != run.plan.promise:
            own = f"--promise {run.plan.promise}" if run.plan.promise else verdict["promise"]["configuration"]
            verdict["sentence"] = f"Judged by --promise {promise}, not by {own}: {verdict['sentence']}"
        return {**verdict, "asked": asked}  # not kept: it would replace the run's own verdict
    if drawings := drawings_of(run.case, verdict):
        verdict["drawings"] = drawings
    try:
        _keep(run, verdict)
    except StoreError as error:
        if verdict["outcome"] != "anomaly":
            raise  # a run that could not be kept is inconclusive, whatever its checks said
        verdict["findings"].append({"checker": "store", "summary": error.message})
        with suppress(StoreError):  # an anomaly stands without columns and page
            run.folder.keep_judgement({VERDICT: _writer(verdict)}, run.record)
    return verdict


def _strongest(case: Case, verdict: Mapping[str, Any]) -> str | None:
    doing("the strongest model that held")
    verdicts = [Verdict.from_json(check) for check in verdict["checks"]]
    model = strongest(case.workload, case.history, verdicts)
    return model if model is None or verdict["outcome"] == "anomaly" else excused(model, verdicts)


def drawings_of(case: Case, verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """The system's pictures of the run, for the page; "broken" if it fails."""
    try:
        return case.system.pictures.of(case.plan, case.left.files or {}, case.history, verdict)
    except Exception as error:  # a defect of a picture takes no verdict away
        return {"broken": broke(error)}


def _asked(limits: Limits, asked: Asked) -> dict[str, str | float]:
    """The options that a person gave for this verdict alone."""
    options: dict[str, str | float | None] = {
        "--timeout": limits.timeout_s,
        "--memory": limits.memory_mib,
        "--budget": limits.steps,
        "--key": asked.key,
        "--promise": asked.promise,
    }
    return {option: value for option, value in options.items() if value is not None}


def _keep(run: Stored, verdict: dict[str, Any]) -> None:
    folder, history = run.folder, run.case.history
    shown = msgspec.json.decode(msgspec.json.encode(verdict))
    doing("writing verdict, columns and page")
    making: dict[str, Make] = {
        VERDICT: _writer(verdict),
        REPORT: lambda path: path.write_text(page.html(folder.path, shown, history), "utf-8", "replace"),
    }
    if history.events:
        making = {COLUMNS: lambda path: parquet.write(path, history), **making}
    folder.keep_judgement(making, run.record)


def _writer(verdict: Mapping[str, Any]) -> Make:
    data = msgspec.json.format(msgspec.json.encode(verdict), indent=1)
    return lambda path: path.write_bytes(data + b"\n")


def conclude(
    recorded: Recorded, plan: Plan | None = None, *, run_check: RunCheck = run_here
) -> tuple[dict[str, Any], int]:
    """Judge it, keep verdict and page; gives the verdict and the exit code of the run.

    Raises HarnessError where one line is all that there is to say. `plan`: as the folder has it.
    """
    folder = RunFolder(Path(recorded.folder))
    failure = None if recorded.failure is None else recorded.failure.error()
    try:
        verdict = finish(folder, plan or plans.read(folder.plan_file), recorded, run_check=run_check)
    except StoreError as error:
        raise failure or error from error  # the first error is the one to report
    if failure is not None and _says_all(failure, verdict):
        raise failure
    code = int(verdict["exit_code"])  # an anomaly is one, whoever ended the run
    return verdict, INTERRUPTED if recorded.interrupted and code != ANOMALY else code


def judged_again(folder: Path) -> dict[str, Any]:
    """Judge a stored run again: its outcome, exit code and sentence. Never raises.

    Of a run that cannot be judged, or that the time limit leaves no time for, it says why; an earlier verdict stays in
    the folder then.
    """
    why = why_ended()
    if why:
        return {"outcome": "unknown", "exit_code": UNKNOWN, "sentence": f"Not judged: {why}."}
    run = RunFolder(folder)
    try:
        verdict = finish(run, plans.read(run.plan_file))
    except HarnessError as error:
        return {"outcome": "inconclusive", "exit_code": error.exit_code, "sentence": error.message}
    except Exception as error:  # a defect of the harness breaks this run, not the next ones
        return {"outcome": "broken", "exit_code": BROKEN, "sentence": broke(error)}
    return {name: verdict[name] for name in ("outcome", "exit_code", "sentence")}


def _says_all(failure: HarnessError, verdict: dict[str, Any]) -> bool:
    """One line is enough: there is no record to speak of, or it could not be kept; but nothing hides an anomaly."""
    evidence = sum(verdict["evidence"][word] for word in ("ok", "fail", "info"))
    return verdict["outcome"] != "anomaly" and (evidence == 0 or isinstance(failure, StoreError))
