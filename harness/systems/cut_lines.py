"""The lines that an operator of cuts leaves in a history, of the process "operator", and causes not to finish a cut.

| line | value |
|---|---|
| cut-asked | {"cut"}: before the request leaves |
| cut-ended | {"cut", "state", "why"}, and more by system |

The state is "ok", "failed" or "refused" by a report, "refused" if a two-phase node could not be asked, else "unknown".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.history.history import History

ASKED, ENDED = "cut-asked", "cut-ended"
NOT_OVER = "the run was over before the cut was"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCut:
    """One cut by its lines; `ended_ns` is -1 and `value` empty if the run was over before."""

    cut: str
    node: str
    asked_ns: int
    ended_ns: int = -1
    value: Mapping[str, Any]

    @property
    def state(self) -> str:
        return str(self.value.get("state", "unknown"))

    @property
    def why(self) -> str:
        return str(self.value.get("why", ""))

    def causes(self, history: History, after_ns: int) -> Sequence[str]:
        """The causes that may have kept the cut from finishing. Faults count up to `after_ns` after their end."""
        if self.state == "refused":
            return [f"it was refused: {self.why}"]
        if self.state == "unknown" and self.ended_ns < 0:
            return [NOT_OVER]
        until_ns = self.ended_ns if self.ended_ns >= 0 else self.asked_ns
        return [
            f"fault {fault.id} ({fault.name})"
            for fault in history.faults
            if fault.start_ns <= until_ns
            and (fault.end_ns is None or self.asked_ns <= fault.end_ns + after_ns)
        ]


def times_of(cuts: Sequence[AskedCut]) -> dict[str, tuple[int, int]]:
    """Name in nodes' logs → when the cut was asked for, and when it ended; twice the first if it did not end."""
    return {
        str(cut.value.get("named", cut.cut)): (cut.asked_ns, max(cut.asked_ns, cut.ended_ns)) for cut in cuts
    }


def series_of(cuts: Sequence[AskedCut], variant: str) -> list[dict[str, object]]:
    """For the page (`harness.pages.cut_table`): of every requested cut the time, the node, and the reported state."""
    return [
        {
            "cut": cut.value.get("named", cut.cut),
            "asked_for": cut.cut,
            "begun_ns": cut.asked_ns,
            "ended_ns": cut.ended_ns if cut.ended_ns >= 0 else None,
            "by": cut.node,
            "variant": variant,
            "state": cut.state,
            "why": cut.why or ("" if cut.ended_ns >= 0 else NOT_OVER),
        }
        for cut in cuts
    ]


def unfinished(history: History) -> Sequence[str]:
    """A sentence if cuts were asked for and none of them finished, with the cause that came most often."""
    cuts = asked_cuts(history)
    if not cuts or any(cut.state == "ok" for cut in cuts):
        return ()
    causes = Counter(f"{cut.state}: {cut.why}" if cut.why else cut.state for cut in cuts)
    cause, times = causes.most_common(1)[0]
    return (f"none of {len(cuts)} cuts finished ({times} {cause})",)


def asked_cuts(history: History) -> list[AskedCut]:
    """All requested cuts, in the order of the requests."""
    lines = list(history.told("operator", ASKED, ENDED))
    ended = {event.value["cut"]: event for event in lines if event.f == ENDED}
    return [
        AskedCut(
            cut=event.value["cut"],
            node=event.node or "",
            asked_ns=event.time_ns,
            ended_ns=end.time_ns if (end := ended.get(event.value["cut"])) is not None else -1,
            value={} if end is None else end.value,
        )
        for event in lines
        if event.f == ASKED
    ]
