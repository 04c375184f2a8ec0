"""Logs of a real store with published verdicts: tests/checkers/histories/porcupine."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers import linearizable
from checkers.history import HistoryError
from checkers.history.foreign import jepsen_text

FOLDER = Path(__file__).parents[1] / "histories" / "porcupine"
PUBLISHED = dict(
    line.split(maxsplit=1)
    for line in (FOLDER / "VERDICTS.txt").read_text().splitlines()
    if not line.startswith("#")
)
EMPTY = "etcd_095.log"


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_verdict(name: str) -> None:
    """We would contradict the reference checker on a real history."""
    history = jepsen_text.parse((FOLDER / name).read_text()).history()
    verdict = linearizable.check(history)
    assert verdict.result == ("valid" if PUBLISHED[name].strip() == "linearizable" else "invalid")


def test_every_log_has_a_verdict() -> None:
    """A log would lie there unused."""
    assert {*PUBLISHED, EMPTY} == {path.name for path in FOLDER.glob("*.log")}
    assert len(PUBLISHED) == 82


def test_an_empty_log_is_refused() -> None:
    """Nothing at all would be called linearizable."""
    with pytest.raises(HistoryError, match="no operations"):
        jepsen_text.parse((FOLDER / EMPTY).read_text())
