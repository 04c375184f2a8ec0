"""What a report says of all its cuts."""

from __future__ import annotations

import pytest

from checkers.cuts import Judgement, Report
from checkers.cuts.report import skipped


def report(*judgements: Judgement) -> Report:
    return Report(cuts=tuple(each.cut for each in judgements), judgements={"messages": judgements})


def right(cut: str) -> Judgement:
    return Judgement(level="messages", cut=cut, result="valid", summary="fine")


def test_a_cut_that_nobody_asked_for_is_not_found() -> None:
    """If it failed, a wrong name would end whatever loops over the report, without a word."""
    said = report(right("k1"), right("k2"))
    assert said.of("messages", "k2").cut == "k2"
    with pytest.raises(LookupError, match="got 'k9'; there are: k1, k2"):
        said.of("messages", "k9")


@pytest.mark.parametrize(
    ("judgements", "summary"),
    [
        ([right("k1"), right("k2")], "2 cuts judged, 0 wrong"),
        ([right("k1"), skipped("messages", "k2", "it did not finish", lacks=False)], "1 cut judged, 0 wrong"),
        (
            [skipped("messages", name, "no trace of n2", lacks=True) for name in ("k1", "k2")],
            "0 cuts judged, 0 wrong; k1: not judged: no trace of n2",
        ),
        (
            [right("k1"), skipped("messages", "k2", "no trace of n2", lacks=True)],
            "1 cut judged, 0 wrong; k2: not judged: no trace of n2",
        ),
    ],
)
def test_only_what_was_judged_is_counted_as_judged(judgements: list[Judgement], summary: str) -> None:
    """If it failed, a verdict with nothing behind it would claim that cuts were judged."""
    verdict = report(*judgements).verdict("messages")
    assert verdict.summary == summary
    assert verdict.details.get("vacuous", False) == summary.startswith("0 cuts")
