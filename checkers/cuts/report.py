"""The judgements of all levels, cut by cut; and each level as one verdict. Levels are never merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from checkers.verdict import WITNESSES_MAX, Result, Verdict, Witness, merged

Level = Literal[
    "messages",
    "transactions",
    "form",
    "closure",
    "external-causality",
    "acknowledged",
    "state",
    "finish",
    "quorum",
    "marker",
]
PROMISES: Mapping[Level, str] = {
    "messages": "no message received before a cut was sent behind it",
    "transactions": "a transaction is on the same side of a cut at all its participants",
    "form": "the records of a cut are of the form that its protocol says",
    "closure": "what is before a cut has all earlier versions of each key",
    "external-causality": "what is before a cut has all that its clients knew",
    "acknowledged": "a cut has what was acknowledged before it was asked for, and nothing invoked after its end",
    "state": "a restored cut is the state that its transactions lead to",
    "quorum": "the places of a cut keep what a quorum decided",
    "marker": "a place of a cut is right behind its marker, and at one vclock all nodes agree",
    "finish": "a cut finishes on all its nodes, or has a cause not to",
}
LEVELS: tuple[Level, ...] = tuple(level for level in PROMISES if level not in ("quorum", "marker"))
"""The levels of coloured messages."""
OF_REPLICA_SETS: tuple[Level, ...] = ("quorum", "marker", "finish")
"""The levels of a replica set with a quorum, which has no messages with colours."""
FINDINGS: frozenset[Level] = frozenset({"external-causality"})
"""Levels that a protocol of coloured messages does not promise: what they find is no violation."""

Standing = Literal["judged", "nothing to judge", "lacks material", "consequence"]
NOTHING: Standing = "nothing to judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The judgement of one level on one cut.

    A level that is not judged is unknown, and `standing` says why: there was nothing to judge (the cut did not
    finish), material is missing, or all that it finds follows from what a different level says of this cut
    (`checkers.cuts.consequences`). `count`: how many violations, of which `witnesses` shows one. `proof`: JSON for the
    verifiers (`checkers.cuts.verify`, `checkers.cuts.verify_logs`), None if the level has none.
    """

    level: Level
    cut: str
    result: Result
    summary: str
    standing: Standing = "judged"
    count: int = 0
    witnesses: tuple[Witness, ...] = ()
    proof: Mapping[str, Any] | None = None
    picture: Mapping[str, Any] | None = None
    """Of the first witness (`checkers.cuts.picture`)."""

    def __post_init__(self) -> None:
        assert (self.result == "invalid") == bool(self.witnesses), f"{self.level} of {self.cut}"
        assert self.standing == "judged" or self.result == "unknown", f"{self.level} of {self.cut}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All judgements, by level in the order of the cuts; `notes` are about the whole material."""

    cuts: tuple[str, ...]
    judgements: Mapping[Level, tuple[Judgement, ...]]
    notes: tuple[str, ...] = ()
    pictures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By cut, of some: what the messages level draws of the whole cut (`checkers.cuts.picture`)."""
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By cut when it was asked for and when it ended, in ns: the window of witnesses that have none."""

    def of(self, level: Level, cut: str) -> Judgement:
        """The judgement of a level on a cut; LookupError if there is no such cut."""
        found = next((judgement for judgement in self.judgements[level] if judgement.cut == cut), None)
        if found is None:
            raise LookupError(
                f"expected a cut that was asked for, got {cut!r}; there are: {', '.join(self.cuts)}"
            )
        return found

    def had_nothing(self, level: Level) -> bool:
        """Whether the level had nothing to judge of any cut. Missing material is not nothing."""
        return all(judgement.standing == NOTHING for judgement in self.judgements[level])

    def verdict(self, level: Level) -> Verdict:
        """One level over all cuts. Cuts with nothing to judge do not count; all others must be valid."""
        judgements = self.judgements[level]
        counted = [judgement for judgement in judgements if judgement.standing != NOTHING]
        wrong = [judgement for judgement in counted if judgement.result == "invalid"]
        result = merged(judgement.result for judgement in counted)
        open_ones = [judgement for judgement in counted if judgement.result == "unknown"]
        judged = sum(judgement.standing == "judged" for judgement in judgements)
        summary = f"{judged} {'cut' if judged == 1 else 'cuts'} judged, {len(wrong)} wrong"
        if not counted:
            summary = judgements[0].summary if judgements else "no cut was asked for"
        elif open_ones:
            summary += f"; {open_ones[0].cut}: {open_ones[0].summary}"
        details: dict[str, Any] = {
            "cuts": [
                {
                    "cut": judgement.cut,
                    "result": judgement.result,
                    "standing": judgement.standing,
                    "summary": judgement.summary,
                }
                for judgement in judgements
            ],
            "violations": sum(judgement.count for judgement in wrong),
            "notes": list(self.notes),
        }
        if level == "messages" and self.pictures:
            details["pictures"] = dict(self.pictures)
        pictures = [
            (judgement.witnesses[0].rule, judgement.picture)
            for judgement in wrong
            if judgement.picture is not None
        ]
        if pictures:
            details["anomalies"] = dict(reversed(pictures))  # of pictures of one rule the first one stays
        if not judged:
            details["vacuous"] = True
        witnesses = [
            self._timed(witness, judgement.cut) for judgement in wrong for witness in judgement.witnesses
        ]
        return Verdict(
            checker=f"cuts-{level}",
            result=result,
            summary=summary,
            model="" if level in FINDINGS else PROMISES[level],
            witnesses=tuple(witnesses[:WITNESSES_MAX]),
            details=details,
        )

    def _timed(self, witness: Witness, cut: str) -> Witness:
        if witness.start_ns is not None or cut not in self.times:
            return witness
        start_ns, end_ns = self.times[cut]
        return replace(witness, start_ns=start_ns, end_ns=end_ns)


def skipped(level: Level, cut: str, why: str, *, lacks: bool) -> Judgement:
    """A level that is not judged; `lacks`: because material is missing."""
    return Judgement(
        level=level,
        cut=cut,
        result="unknown",
        summary=f"not judged: {why}",
        standing="lacks material" if lacks else NOTHING,
    )
