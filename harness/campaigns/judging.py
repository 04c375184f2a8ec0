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
from harness.campaigns.journal import CheckResult, Ended, ToJudge, now
from harness.errors import HarnessError, broke
from harness.judge import EXIT_CODES
from harness.judge.checks import NOT_PROMISED
from harness.run.finish import BROKEN, INTERRUPTED, Recorded, conclude

INCONCLUSIVE = EXIT_CODES["inconclusive"]

Judge = Callable[[Path, list[ToJudge]], Iterator[Ended]]
"""results/ and recorded runs → the line of the journal for each run, in the order in which they are judged."""


def judge_here(results: Path, runs: Iterable[ToJudge]) -> Iterator[Ended]:
    """Judge the runs one after the other, in this process."""
    for run in runs:
        yield judged(results, run)


def judged(results: Path, run: ToJudge, run_check: RunCheck = run_here) -> Ended:
    """Judge a recorded run, and write its verdict, columns and page to its folder. Never raises."""
    began_s = time.monotonic()
    folder = results / run.run
    try:
        verdict, code = conclude(Recorded(str(folder), run.interrupted, run.failure), run_check=run_check)
        fields = consistent(fields_of_verdict(verdict, folder, results), code)
    except HarnessError as error:
        code, fields = error.exit_code, fields_of_line(error.message, error.exit_code)
    except Exception as error:  # a bug of the harness: it breaks this run, not the night
        code, fields = BROKEN, fields_of_line(broke(error), BROKEN)
    seconds = round(run.seconds + time.monotonic() - began_s, 3)
    return Ended(cell=run.cell, seed=run.seed, at=now(), seconds=seconds, exit_code=code, **fields)


def fields_of_verdict(verdict: Mapping[str, Any], folder: Path, results: Path) -> dict[str, Any]:
    """The fields of `Ended` that follow from a verdict, by name."""
    prints, shapes = fingerprints_of(verdict, folder) if verdict["outcome"] == "anomaly" else ((), ())
    evidence = verdict.get("evidence", {})
    kinds, turns = evidence.get("kinds_in_effect"), evidence.get("rare_turns")
    return {
        "outcome": verdict["outcome"],
        "sentence": verdict["sentence"],
        "run": os.path.relpath(folder, results),
        "fingerprints": prints,
        "shapes": shapes,
        "found": tuple(_results(verdict)),
        "kinds_in_effect": tuple(kinds) if isinstance(kinds, list) else None,
        "observed": tuple(evidence.get("observed", ())),
        "not_observed": tuple(evidence.get("not_observed", ())),
        "rare_turns": tuple(row for row, times in turns.items() if times) if turns is not None else None,
    }


def _results(verdict: Mapping[str, Any]) -> Iterator[CheckResult]:
    """The first violation and the first finding of each check, violations first."""
    documented = verdict.get("documented", {})
    summaries = {check["checker"]: check["summary"] for check in verdict.get("checks", ())}
    violated = {name: summaries.get(name, "") for name in verdict.get("violations", ())}
    findings: dict[str, str] = {}
    for finding in verdict.get("findings", ()):
        findings.setdefault(finding["checker"], finding["summary"].removeprefix(NOT_PROMISED))
    groups: tuple[tuple[Literal["violation", "finding"], dict[str, str]], ...] = (
        ("violation", violated),
        ("finding", findings),
    )
    for standing, summaries_then in groups:
        for name, summary in summaries_then.items():
            sentence = documented.get(name, "")
            yield CheckResult(checker=name, standing=standing, summary=summary, documented=sentence)


def consistent(fields: dict[str, Any], code: int) -> dict[str, Any]:
    """The fields, unless the exit code contradicts them: a run that says valid must also exit so."""
    if fields["outcome"] == "anomaly" or EXIT_CODES.get(fields["outcome"]) == code:
        return fields
    sentence = f"it ended with {code} though its verdict says {fields['outcome']}: {fields['sentence']}"
    return {
        **fields,
        **fields_of_line(sentence, INCONCLUSIVE if code in (INCONCLUSIVE, INTERRUPTED) else BROKEN),
    }


def fields_of_line(sentence: str, code: int) -> dict[str, Any]:
    """The fields of a run without a verdict: of its last line and its exit code."""
    return {"outcome": "inconclusive" if code == INCONCLUSIVE else "broken", "sentence": sentence}


def fingerprints_of(verdict: Mapping[str, Any], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """All fingerprints of a run and their words, the leading one first."""
    try:
        sightings = causes(verdict, read_history(folder / "history.jsonl"))
    except (OSError, HistoryError):
        return (), ()  # then the anomaly is new: nothing says otherwise
    words = {sighting.fingerprint: sighting.shape for sighting in sightings}
    return tuple(words), tuple(words.values())
