"""The bugs of `bench.planted` are texts that are replaced in `nodes/qsync`: each must fit the node of today."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench.planted_bugs import PLANTED, Planted

QSYNC = Path(__file__).parents[1] / "nodes" / "qsync"


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.name)
def test_a_planted_bug_fits_its_file(bug: Planted) -> None:
    """If it failed, a hunt for planted bugs would break off, or plant something else than it says."""
    text = (QSYNC / bug.file).read_text(encoding="utf-8")
    assert text.count(bug.old) == 1
    ast.parse(text.replace(bug.old, bug.new))
