"""What the harness is doing at the moment, in a few words, for a line that shows it (`harness.pages.terminal.working`).

    doing("the check linearizable")

Whoever works says it here and passes nothing on. Nothing depends on it: it is only read to be shown.
"""

from __future__ import annotations

_NOW = [""]


def doing(what: str) -> None:
    """From now on; "": nothing worth telling."""
    _NOW[0] = what


def now() -> str:
    return _NOW[0]
