"""After a run: read the record, judge it, keep verdict, columns and page; at once, or later in another process.

`finish` judges the run of a folder. `conclude` does it for a run that is over just now, and gives its exit code. Facts
that no record can hold stand in `Recorded`: whether a person ended the run, and why it could not be done if so. It is
JSON, so that a campaign can keep it and pass it to its judge. `judged_again` is for many stored runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from checkers.check import RunCheck, run_here
from checkers.history import parquet
from checkers.history.errors import HistoryError
from checkers.history.history import History
from checkers.history.jsonl import read
from checkers.limits import Limits, given, why_ended
from checkers.logs.wal import NodeLog
from checkers.logs.wal.effects import FILE as EFFECTS_FILE
from checkers.logs.wal.effects import Effect, of_lines
from checkers.verdict import Verdict
from harness import pages
from harness.doing import doing
from harness.errors import ClusterError, HarnessError, StoreError, WrongUse, broke
from harness.judge.strongest import excused, strongest
from harness.judge.whole_run import files_in, verdict_of
from harness.plan.plan import Plan
from harness.results import RunFolder, hashes
from harness.results.run_folder import COLUMNS, REPORT, VERDICT, Make
from harness.systems import plans, system_of
from harness.systems.system import DrawsRuns, KeepsLogs, NodeFiles
from harness.workloads import WORKLOADS

ANOMALY, UNKNOWN, BROKEN, INTERRUPTED = 1, 2, 70, 130
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


def effects_of(nodes: Path) -> tuple[Effect, ...]:
    """The recorded effects of the disks and links of these nodes, if any are; StoreError if they cannot be read."""
    try:
        return of_lines((nodes / EFFECTS_FILE).read_bytes())
    except FileNotFoundError:
        return ()
    except HistoryError as error:
        raise StoreError(f"{nodes / EFFECTS_FILE}: {error}") from error
    except OSError as error:
        raise StoreError(f"cannot read {nodes / EFFECTS_FILE}: {error.strerror}") from error


def logs_in(nodes: Path, plan: Plan) -> tuple[NodeLog, ...]:
    """The logs of these nodes, as the system of the plan reads them; none if it keeps none."""
    system = system_of(plan.system)
    return system.read_logs(nodes) if isinstance(system, KeepsLogs) else ()


def finish(
    folder: RunFolder,
    plan: Plan,
    *,
    interrupted: bool = False,
    failure: str | None = None,
    run_check: RunCheck = run_here,
    is_new: bool = False,
    key: str | None = None,
    promise: str | None = None,
) -> dict[str, Any]:
    """Judge a run; write verdict.json, history.parquet, hashes.json and report.html; returns the verdict.

    Limits (`harness.judge.time_limit.limited` around it), `key` (judge this one alone where keys are judged one by one)
    and `promise` (a stricter one than the plan's) ask for another verdict than the run's own: nothing is written then,
    and its `asked` says what was asked.

    Raises StoreError if the files cannot be written, and leaves those of an earlier judgement as they are. An anomaly
    is returned all the same, with that as a finding: a full disk must not hide it. StoreError also if the record is not
    the one that was judged before, unless the run `is_new`: then it is over only now. WrongUse for what cannot be
    asked.
    """
    record = hashes.of_record(folder.path)
    if not is_new:
        hashes.must_be_as_judged(folder.path, record)
    history = _read(folder)
    asked = _asked(given(), key, promise)
    files = files_in(folder.nodes, plan)
    verdict = verdict_of(
        plan if promise is None else msgspec.structs.replace(plan, promise=promise),
        history,
        logs_in(folder.nodes, plan),
        interrupted=interrupted,
        failure=failure,
        plan_file=folder.plan_file,
        effects=effects_of(folder.nodes),
        run_check=run_check,
        key=key,
        files=files,
    )
    if not why_ended():
        verdicts = [Verdict.from_json(check) for check in verdict["checks"]]
        found = strongest(WORKLOADS[plan.workload], history, verdicts)
        is_anomaly = verdict["outcome"] == "anomaly"
        verdict["strongest"] = found if found is None or is_anomaly else excused(found, verdicts)
    if asked:
        if promise is not None and promise != plan.promise:
            own = f"--promise {plan.promise}" if plan.promise else verdict["promise"]["configuration"]
            verdict["sentence"] = f"Judged by --promise {promise}, not by {own}: {verdict['sentence']}"
        return {**verdict, "asked": asked}
    if drawings := drawings_of(plan, files, history, verdict):
        verdict["drawings"] = drawings
    try:
        _keep(folder, record, history, verdict)
    except StoreError as error:
        if verdict["outcome"] != "anomaly":
            raise  # a run that could not be kept is inconclusive, whatever its checks said
        verdict["findings"].append({"checker": "store", "summary": error.message})
        with suppress(StoreError):  # an anomaly stands without columns and page
            folder.keep_judgement({VERDICT: _writer(verdict)}, record)
    return verdict


def drawings_of(
    plan: Plan, files: NodeFiles, history: History, verdict: Mapping[str, Any]
) -> Mapping[str, Any]:
    """What the system draws of the run, for the page; "broken" if it cannot."""
    system = system_of(plan.system)
    if not isinstance(system, DrawsRuns):
        return {}
    try:
        return system.drawings_of(plan, files, history, verdict)
    except Exception as error:  # a defect of a picture takes no verdict away
        return {"broken": broke(error)}


def _asked(limits: Limits, key: str | None, promise: str | None) -> dict[str, str | float]:
    """The options that a person gave for this verdict alone."""
    asked: dict[str, str | float | None] = {
        "--timeout": limits.timeout_s,
        "--memory": limits.memory_mib,
        "--budget": limits.steps,
        "--key": key,
        "--promise": promise,
    }
    return {option: value for option, value in asked.items() if value is not None}


def _keep(folder: RunFolder, record: hashes.Files, history: History, verdict: dict[str, Any]) -> None:
    shown = msgspec.json.decode(msgspec.json.encode(verdict))
    doing("writing verdict, columns and page")
    making: dict[str, Make] = {
        VERDICT: _writer(verdict),
        REPORT: lambda path: path.write_text(pages.html(folder.path, shown, history), "utf-8", "replace"),
    }
    if history.events:
        making = {COLUMNS: lambda path: parquet.write(path, history), **making}
    folder.keep_judgement(making, record)


def _writer(verdict: Mapping[str, Any]) -> Make:
    data = msgspec.json.format(msgspec.json.encode(verdict), indent=1)
    return lambda path: path.write_bytes(data + b"\n")


class Failure(msgspec.Struct, frozen=True):
    """A HarnessError: its message, and the class that it is of."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: HarnessError) -> Failure:
        kind = next((each for each in _KINDS if isinstance(error, each)), HarnessError)
        return cls(kind.__name__, error.message)

    def error(self) -> HarnessError:
        kinds = {each.__name__: each for each in _KINDS}
        return kinds.get(self.kind, HarnessError)(self.message)


class Recorded(msgspec.Struct, frozen=True):
    """A run that is over and not judged."""

    folder: str
    interrupted: bool = False
    failure: Failure | None = None


def conclude(
    recorded: Recorded, plan: Plan | None = None, *, run_check: RunCheck = run_here
) -> tuple[dict[str, Any], int]:
    """Judge it, keep verdict and page; gives the verdict and the exit code of the run.

    Raises HarnessError where one line is all that there is to say. `plan`: as the folder has it.
    """
    folder = RunFolder(Path(recorded.folder))
    failure = None if recorded.failure is None else recorded.failure.error()
    why = None if failure is None else failure.message
    try:
        verdict = finish(
            folder,
            plan or plans.read(folder.plan_file),
            interrupted=recorded.interrupted,
            failure=why,
            run_check=run_check,
            is_new=True,
        )
    except StoreError as error:
        raise failure or error from error  # what went wrong first is what is told
    if failure is not None and _says_all(failure, verdict):
        raise failure
    code = int(verdict["exit_code"])
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
