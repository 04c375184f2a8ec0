"""From a run that is over to its verdict and exit code: at once, or later, in another process.

What a record cannot tell stands in `Recorded`: whether a person ended the run, and why it could not be done if so. It
is JSON, so that a campaign keeps it, and hands it to whoever judges.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from checkers.limits import why_ended
from harness.check import RunCheck, run_here
from harness.errors import ClusterError, HarnessError, StoreError, WrongUse
from harness.finish import finish
from harness.plan import Plan
from harness.store import RunFolder

ANOMALY, UNKNOWN, BROKEN, INTERRUPTED = 1, 2, 70, 130
_KINDS: tuple[type[HarnessError], ...] = (WrongUse, ClusterError, StoreError)


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
            plan or folder.read_plan(),
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
        verdict = finish(run, run.read_plan())
    except HarnessError as error:
        return {"outcome": "not-evidence", "exit_code": error.exit_code, "sentence": error.message}
    except Exception as error:  # a defect of the harness breaks this run, not the others
        name = " ".join(f"{type(error).__name__}: {error}".split())
        sentence = f"the harness itself broke: {name}"
        return {"outcome": "broken", "exit_code": BROKEN, "sentence": sentence}
    return {name: verdict[name] for name in ("outcome", "exit_code", "sentence")}


def _says_all(failure: HarnessError, verdict: dict[str, Any]) -> bool:
    """One line is enough: there is no record to speak of, or it could not be kept; but nothing hides an anomaly."""
    evidence = sum(verdict["evidence"][word] for word in ("ok", "fail", "info"))
    return verdict["outcome"] != "anomaly" and (evidence == 0 or isinstance(failure, StoreError))
