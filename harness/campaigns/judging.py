"""Judges a recorded run of a campaign; the result equals that of a run that judges itself.

Independent of Spark: the campaign's own process calls it, or a worker.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from checkers.check import RunCheck, run_here
from checkers.history.errors import HistoryError
from checkers.history.jsonl import read as read_history
from harness.campaigns.fingerprint import causes
from harness.campaigns.journal import Ended, Found, ToJudge, now
from harness.errors import HarnessError, broke
from harness.judge import EXIT_CODES
from harness.judge.checks import NOT_PROMISED
from harness.run.finish import Recorded, conclude

BROKEN, INTERRUPTED = 70, 130
INCONCLUSIVE = EXIT_CODES["inconclusive"]

Judge = Callable[[Path, list[ToJudge]], Iterator[Ended]]
"""results/ and recorded runs → what is noted of each, in whatever order they come to an end."""


def judge_here(results: Path, runs: Iterable[ToJudge]) -> Iterator[Ended]:
    """One after the other, in this process."""
    for run in runs:
        yield judged(results, run)


def judged(results: Path, run: ToJudge, run_check: RunCheck = run_here) -> Ended:
    """Judge a recorded run; its verdict, columns and page are in its folder then. Never raises."""
    began_s = time.monotonic()
    folder = results / run.run
    try:
        verdict, code = conclude(Recorded(str(folder), run.interrupted, run.failure), run_check=run_check)
        told = told_by(verdict, folder, results)
    except HarnessError as error:
        code, told = error.exit_code, told_by_line(error.message, error.exit_code)
    except Exception as error:  # a bug of the harness: it breaks this run, not the night
        code, told = BROKEN, told_by_line(broke(error), BROKEN)
    seconds = round(run.seconds + time.monotonic() - began_s, 3)
    return Ended(
        cell=run.cell, seed=run.seed, at=now(), seconds=seconds, exit_code=code, **believed(told, code)
    )


def told_by(verdict: Mapping[str, Any], folder: Path, results: Path) -> dict[str, Any]:
    """From a verdict: outcome, sentence, folder, and the fingerprints of an anomaly."""
    prints, shapes = fingerprints_of(verdict, folder) if verdict["outcome"] == "anomaly" else ((), ())
    evidence = verdict.get("evidence", {})
    kinds, turns = evidence.get("kinds_in_effect"), evidence.get("rare_turns")
    return {
        "outcome": verdict["outcome"],
        "sentence": verdict["sentence"],
        "run": os.path.relpath(folder, results),
        "fingerprints": prints,
        "shapes": shapes,
        "found": tuple(_found(verdict)),
        "kinds_in_effect": tuple(kinds) if isinstance(kinds, list) else None,
        "observed": tuple(evidence.get("observed", ())),
        "not_observed": tuple(evidence.get("not_observed", ())),
        "rare_turns": tuple(row for row, times in turns.items() if times) if turns is not None else None,
    }


def _found(verdict: Mapping[str, Any]) -> Iterator[Found]:
    """Violations first; of several results of one check the first."""
    documented = verdict.get("documented", {})
    summaries = {check["checker"]: check["summary"] for check in verdict.get("checks", ())}
    violated = {name: summaries.get(name, "") for name in verdict.get("violations", ())}
    told: dict[str, str] = {}
    for finding in verdict.get("findings", ()):
        told.setdefault(finding["checker"], finding["summary"].removeprefix(NOT_PROMISED))
    groups: tuple[tuple[Literal["violation", "finding"], dict[str, str]], ...] = (
        ("violation", violated),
        ("finding", told),
    )
    for standing, summaries_then in groups:
        for name, summary in summaries_then.items():
            sentence = documented.get(name, "")
            yield Found(checker=name, standing=standing, summary=summary, documented=sentence)


def believed(told: dict[str, Any], code: int) -> dict[str, Any]:
    """The same, unless the exit code differs: a run that reports valid and exits with a different code is not valid."""
    if told["outcome"] == "anomaly" or EXIT_CODES.get(told["outcome"]) == code:
        return told
    sentence = f"it ended with {code} though its verdict says {told['outcome']}: {told['sentence']}"
    return {**told, **told_by_line(sentence, INCONCLUSIVE if code in (INCONCLUSIVE, INTERRUPTED) else BROKEN)}


def told_by_line(sentence: str, code: int) -> dict[str, Any]:
    """For a run without a verdict, with only one line."""
    return {"outcome": "inconclusive" if code == INCONCLUSIVE else "broken", "sentence": sentence}


def fingerprints_of(verdict: Mapping[str, Any], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All fingerprints of a run and their words, the leading one first."""
    try:
        found = causes(verdict, read_history(folder / "history.jsonl"))
    except (OSError, HistoryError):
        return (), ()  # then the anomaly is new: nothing says otherwise
    words = {each.fingerprint: each.shape for each in found}
    return tuple(words), tuple(words.values())
