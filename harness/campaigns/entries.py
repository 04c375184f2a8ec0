"""Entries for known.toml, printed ready to paste: one for each group that is new or whose acceptance has expired.

An entry has all fingerprints of all runs of its group, so that after the paste the same night is known. The day on
which it expires stands in it. The issue is left to the person who accepts the anomaly.
"""

from __future__ import annotations

import datetime
import json

from checkers.history.values import many
from harness.campaigns.summary import Group, Summary

ACCEPTED_FOR = datetime.timedelta(days=30)
ISSUE = "FILL IN: the address of the issue"
NOTE_MAX = 160


def entries(summary: Summary) -> str:
    """TOML; empty if every anomaly is known, or none has a fingerprint by which it could be accepted."""
    groups = [group for group in summary.groups if group.standing != "known" and _fingerprints(group)]
    if not groups:
        return ""
    expires = summary.today + ACCEPTED_FOR
    head = f"# Accepted up to and including {expires}; from the day after these anomalies fail a night again."
    return "\n\n".join([head, *(_entry(group, expires) for group in groups)]) + "\n"


def _entry(group: Group, expires: datetime.date) -> str:
    runs = "1 run" if len(group.runs) == 1 else f"{len(group.runs)} runs"
    listed = ", ".join(_text(fingerprint) for fingerprint in _fingerprints(group))
    cells = (
        f"{group.cells[0]} and {many(len(group.cells) - 1, 'more cell')}"
        if len(group.cells) > 1
        else group.cells[0]
    )
    return "\n".join(
        [
            "[[known]]",
            f"fingerprints = [{listed}]",
            f"issue = {_text(ISSUE)}",
            f"expires = {expires}",
            f"note = {_text(f'{group.shape}; in {runs} of {cells}', NOTE_MAX)}",
        ]
    )


def _fingerprints(group: Group) -> list[str]:
    """The fingerprints of all runs of the group, the leading one first."""
    return list(dict.fromkeys(fingerprint for run in group.runs for fingerprint in run.fingerprints))


def _text(text: str, longest: int | None = None) -> str:
    """A basic string of TOML: JSON's, without the characters that are not printable (TOML refuses most of them)."""
    text = text if longest is None or len(text) <= longest else text[: longest - 1] + "…"
    return json.dumps(
        "".join(letter if letter.isprintable() else "\ufffd" for letter in text), ensure_ascii=False
    )
