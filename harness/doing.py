"""The harness's work at the moment, in a few words, for a line that shows it (`harness.pages.terminal.working`).

    doing("the check linearizable")

Working code reports it here, without a callback. The text is only shown: no logic depends on it.
"""

from __future__ import annotations

_NOW = [""]


def doing(what: str) -> None:
    """From now on; "": nothing worth telling."""
    _NOW[0] = what


def now() -> str:
    return _NOW[0]
