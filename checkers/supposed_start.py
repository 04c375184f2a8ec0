"""A foreign history that does not say how its objects began, although its first reads show it.

The checkers then judge it as if they had begun so (`checkers.history.start`). An anomaly remains one with any start. A
valid verdict becomes unknown, because it rests on something that nobody said.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from checkers.history.history import History
from checkers.history.start import PLAIN_START, Start, supposed
from checkers.verdict import Verdict


def supposing(history: History) -> History:
    """The history with the start that its first reads suggest, if it is foreign and nobody gave one."""
    if not history.is_foreign or history.start is not PLAIN_START:
        return history
    return history.starting_at(supposed(history.operations))


def qualified(verdict: Verdict, history: History) -> Verdict:
    """The same verdict, if it does not rest on a supposition."""
    if verdict.result != "valid" or not history.start.is_supposed:
        return verdict
    return replace(verdict, result="unknown", summary=f"valid only if {words(history.start)}")


def words(start: Start) -> str:
    """The supposition, and the option that confirms it."""
    return f"the store began with {start}, as the first reads show: {option(start)} says so"


def option(start: Start) -> str:
    """`--initial 0`: how a user says it."""
    value = start.by_key or start.value
    return f"--initial {msgspec.json.encode(value).decode()}"
