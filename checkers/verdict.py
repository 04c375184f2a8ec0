"""Verdicts: what a checker says of a history.

- valid: nothing that was observed contradicts the promise
- invalid: something does, and the witnesses prove it
- unknown: could not be decided, or evidence that it needs is missing

Merging is three-valued: one invalid makes the whole invalid, even if other verdicts are unknown; an unknown never hides
an anomaly, and nothing turns an unknown into a valid. A valid or an unknown verdict on something that never occurred
says so in its summary and has `details["vacuous"]` set. With `details["opportunities"]` 0 the run gave no
opportunity: it is decided without this check, which otherwise would leave it undecided.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from checkers.cycle_graph import cycle_graph
from checkers.history.errors import HistoryError, ModelError
from checkers.history.operation import Operation
from checkers.limits import until_ended

if TYPE_CHECKING:
    from networkx import DiGraph

Result = Literal["valid", "invalid", "unknown"]

WITNESSES_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """The proof of one violation.

    `rule` is a short name ("stale-read"), `events` the indexes of the history's lines that prove it, in
    order; `start_ns` and `end_ns` the window in which they lie. `explanation` are sentences for a person.
    """

    rule: str
    summary: str
    events: tuple[int, ...]
    key: str | None = None
    node: str | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    explanation: tuple[str, ...] = ()
    records: tuple[tuple[int, int], ...] = ()
    """Rows of logs that prove it, by (origin, lsn): with their times, the window is derived. Not kept in JSON."""
    how: str = ""
    """How this breach differs from others of its rule, without names and numbers: part of fingerprints."""

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON values."""
        told: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        told |= {"events": list(self.events), "explanation": list(self.explanation)}
        return {name: part for name, part in told.items() if name != "records" and (name != "how" or part)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Witness:
        """The witness of such a dict; KeyError if a needed field is missing."""
        return cls(
            rule=fields["rule"],
            summary=fields["summary"],
            events=tuple(fields["events"]),
            key=fields.get("key"),
            node=fields.get("node"),
            start_ns=fields.get("start_ns"),
            end_ns=fields.get("end_ns"),
            explanation=tuple(fields.get("explanation", ())),
            how=fields.get("how", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of one checker. `model` is the model that the history was judged against. `details` holds JSON
    values. `seconds` is the time that the checker took.
    """

    checker: str
    result: Result
    summary: str
    model: str = ""
    witnesses: tuple[Witness, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        assert self.result != "invalid" or self.witnesses, f"{self.checker}: invalid without a witness"
        assert self.result == "invalid" or not self.witnesses, f"{self.checker}: {self.result} with a witness"

    def graph(self, anomaly: str | None = None) -> DiGraph:
        """The circle of transactions of this anomaly, as a graph of networkx; None: of the worst one that has one.

        `checkers.cycle_graph` says what its nodes and edges hold. Raises NoCycleError, a LookupError.
        """
        return cycle_graph(self.checker, self.model, self.details, anomaly)

    def to_json(self) -> dict[str, Any]:
        """A dict of JSON values, as `verdict.json` holds it."""
        return {
            "checker": self.checker,
            "result": self.result,
            "summary": self.summary,
            "model": self.model,
            "witnesses": [witness.to_json() for witness in self.witnesses],
            "details": dict(self.details),
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Verdict:
        """The verdict of such a dict; KeyError if a needed field is missing."""
        return cls(
            checker=fields["checker"],
            result=fields["result"],
            summary=fields["summary"],
            model=fields.get("model", ""),
            witnesses=tuple(Witness.from_json(witness) for witness in fields.get("witnesses", ())),
            details=fields.get("details", {}),
            seconds=fields.get("seconds", 0.0),
        )


@dataclass(frozen=True, slots=True)
class Verified:
    """The number of accepted proofs, the reasons of refused ones, claims without one; whether the verdict follows."""

    accepted: int
    refused: tuple[str, ...]
    without: tuple[str, ...]
    holds: bool


class RefusedError(Exception):
    """A proof does not prove what it claims."""


def need(true: bool, otherwise: str) -> None:
    """Refuse the proof in these words unless this is true."""
    if not true:
        raise RefusedError(otherwise)


def witness(
    rule: str,
    summary: str,
    operations: Iterable[Operation],
    *,
    key: str | None = None,
    node: str | None = None,
    explanation: Iterable[str] = (),
) -> Witness:
    """A witness. Its events are the lines of these operations (operations of the initial state have none), its window
    is theirs."""
    named = list(operations)
    return Witness(
        rule=rule,
        summary=summary,
        events=tuple(sorted({event for operation in named for event in operation.events if event >= 0})),
        key=key,
        node=node,
        start_ns=min(operation.invoke_ns for operation in named),
        end_ns=max(operation.complete_ns or operation.invoke_ns for operation in named),
        explanation=tuple(explanation),
    )


def concluded(
    checker: str,
    witnesses: Sequence[Witness],
    otherwise: str,
    *,
    result: Result = "valid",
    model: str = "",
    details: Mapping[str, Any],
    violations: int | None = None,
) -> Verdict:
    """Invalid in the words of the first witness, and how many more there are; without any, `result` and `otherwise`.

    `violations`: how many there are, if `witnesses` are only some of them.
    """
    if witnesses:
        more = (violations or len(witnesses)) - 1
        result, otherwise = "invalid", witnesses[0].summary + (f" (and {more:,} more)" if more else "")
    return Verdict(
        checker=checker,
        result=result,
        summary=otherwise,
        model=model,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details=details,
    )


class CheckerDefect(Exception):
    """A checker caught itself at something that it must never do: a proof of its own that does not replay.

    Not a verdict, and not an unknown either: `run_safely` lets it through, and the command ends with exit code 70.
    """


def merged(results: Iterable[Result]) -> Result:
    """Invalid if any is; else unknown if any is, or if there is none at all; else valid."""
    kinds = set(results)
    if "invalid" in kinds:
        return "invalid"
    return "valid" if kinds == {"valid"} else "unknown"


def run_safely(
    checker: Callable[..., Verdict],
    *arguments: Any,
    name: str | None = None,
    clock: Callable[[], float] = time.monotonic,
    **options: Any,
) -> Verdict:
    """The verdict of `checker(*arguments, **options)`, with the seconds it took.

    A checker that raises gives unknown, with the error's name and the place where it was raised. So does a checker that
    the time limit (`checkers.limits`) stops. No checker begins after the limit. CheckerDefect goes through.
    """
    started_s = clock()
    title = name or str(getattr(checker, "__name__", type(checker).__name__))
    verdict = until_ended(
        lambda: _verdict_of(checker, arguments, options, title), lambda why: stopped(title, why)
    )
    return replace(verdict, seconds=round(clock() - started_s, 6))


def stopped(checker: str, why: str) -> Verdict:
    """The verdict of a check that a time limit stopped."""
    return Verdict(checker=checker, result="unknown", summary=f"{why}: not decided")


def _verdict_of(
    checker: Callable[..., Verdict], arguments: Iterable[Any], options: Mapping[str, Any], title: str
) -> Verdict:
    try:
        verdict = checker(*arguments, **options)
        if not isinstance(verdict, Verdict):
            raise TypeError(f"expected a Verdict of {title}, got {type(verdict).__name__}")
        return verdict
    except CheckerDefect:
        raise
    except (HistoryError, ModelError) as error:
        return Verdict(checker=title, result="unknown", summary=f"cannot be judged: {error}")
    except Exception as error:  # whatever it is: a broken checker must neither pass nor stop the next one
        return _broken(title, error)


def _broken(name: str, error: Exception) -> Verdict:
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}, line {last.lineno}, in {last.name}" if last else ""
    return Verdict(
        checker=name,
        result="unknown",
        summary=f"the checker broke: {kind}: {error}" if str(error) else f"the checker broke: {kind}",
        details={"error": kind, "message": str(error), "where": where},
    )
