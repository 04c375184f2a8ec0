"""The judge: from a run to its verdict.

    judge(Case(plan, history, Left.in_folder(folder.nodes, plan)))    # the content of verdict.json

README.md follows a run through the files. A *violation* is of the promise. A *finding* is allowed, yet weaker than a
reader may think: it is shown just as well and changes no exit code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkers.on_use import on_use

if TYPE_CHECKING:
    from harness.judge.case import Asked, Case, Left
    from harness.judge.outcomes import EXIT_CODES, FORMAT, VERSION, Outcome, outcome_of
    from harness.judge.verdict import judge
    from harness.judge.words import repeat_line

_NAMES = {
    **dict.fromkeys(("Asked", "Case", "Left"), "harness.judge.case"),
    **dict.fromkeys(("EXIT_CODES", "FORMAT", "VERSION", "Outcome", "outcome_of"), "harness.judge.outcomes"),
    "judge": "harness.judge.verdict",
    "repeat_line": "harness.judge.words",
}
__getattr__ = on_use(__name__, _NAMES)

__all__ = [
    "EXIT_CODES",
    "FORMAT",
    "VERSION",
    "Asked",
    "Case",
    "Left",
    "Outcome",
    "judge",
    "outcome_of",
    "repeat_line",
]
