"""The rows of the checks on a page."""

from __future__ import annotations

from harness.pages.tables import _check_row

FINDINGS = {"linearizable": ("two keys were left out", "the summary again: it holds")}


def test_findings_are_shown_beside_a_summary_and_not_twice() -> None:
    """If it failed, a check without a summary would lose all of its findings, or one would stand there twice."""
    for summary, shown in (("", FINDINGS["linearizable"]), ("it holds", ("two keys were left out",))):
        check = {"checker": "linearizable", "result": "valid", "summary": summary}
        assert _check_row(check, set(), FINDINGS, "").findings == shown
