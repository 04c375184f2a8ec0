"""The rows of the checks on a page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.pages import tables
from harness.pages.tables import ROWS, _check_row

FINDINGS = {"linearizable": ("two keys were left out", "the summary again: it holds")}


def test_findings_are_shown_beside_a_summary_and_not_twice() -> None:
    """If it failed, a check without a summary would lose all of its findings, or one would stand there twice."""
    for summary, shown in (("", FINDINGS["linearizable"]), ("it holds", ("two keys were left out",))):
        check = {"checker": "linearizable", "result": "valid", "summary": summary}
        assert _check_row(check, set(), FINDINGS, "").findings == shown


def test_a_violation_is_shown_whatever_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a verdict with hundreds of checks would lose the one that the page is about."""
    names = [f"check-{number}" for number in range(ROWS + 1)]
    checks = [{"checker": name, "result": "invalid" if name == names[-1] else "valid"} for name in names]
    material: Any = SimpleNamespace(verdict={"violations": [names[-1]], "checks": checks})
    monkeypatch.setattr(tables, "documented", lambda *_: "")
    rows = tables.check_rows(material)
    assert len(rows) == ROWS and rows[0].checker == names[-1]
