"""Accepted anomalies."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from harness.campaigns.known import read
from harness.errors import WrongUse

DAY = datetime.date(2026, 11, 21)


def test_a_run_is_known_only_if_all_of_it_is(tmp_path: Path) -> None:
    """If it failed, a new anomaly would hide behind one that was accepted."""
    path = tmp_path / "known.toml"
    path.write_text(
        '[[known]]\nfingerprints = ["a", "b"]\nissue = "#1"\nexpires = 2026-11-21\n'
        '[[known]]\nfingerprints = ["old", "b"]\nissue = "#2"\nexpires = 2026-11-20\nnote = "n"\n'
    )
    known = read(path, DAY)
    assert known.standing(["a", "b"]) == "known"
    assert known.standing(["b"]) == "known"
    assert known.standing(["a", "old"]) == "expired"
    assert known.standing(["a", "c"]) == "new"
    assert known.standing(["c", "old"]) == "new"
    assert known.standing([]) == "new"
    found = known.of("b")
    assert found is not None and found.issue == "#1"


@pytest.mark.parametrize(
    "text",
    [
        '[[known]]\nfingerprints = ["a"]\nexpires = 2026-11-21',
        '[[known]]\nfingerprints = ["a"]\nissue = "#1"',
        '[[known]]\nfingerprints = []\nissue = "#1"\nexpires = 2026-11-21',
        '[[known]]\nfingerprints = ["a"]\nissue = ""\nexpires = 2026-11-21',
        '[[know]]\nfingerprints = ["a"]\nissue = "#1"\nexpires = 2026-11-21',
        '[[known]]\nfingerprints = ["a"]\nissue = "#1"\nexpires = "soon"',
        "[[known",
    ],
)
def test_an_entry_without_issue_or_end_is_refused(tmp_path: Path, text: str) -> None:
    """If it failed, anomalies would be accepted for ever, for reasons that nobody wrote down."""
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(WrongUse):
        read(path, DAY)
