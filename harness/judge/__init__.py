"""The judge: verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code.

A *violation* is of the promise. A *finding* is allowed, yet weaker than a reader may think: it is shown just as well
and changes no exit code. Which checks there are is the workload's matter (`harness.workloads`); `evidence` says what
a run must show, `outcome` puts verdict.json together, `weighed` makes the outcome (anomaly, inconclusive, unknown or
valid) and knows its exit code, `words` says it. `whole_run` goes from a record and logs to the verdict.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkers.on_use import on_use

if TYPE_CHECKING:
    from harness.judge.outcome import judge
    from harness.judge.weighed import EXIT_CODES, FORMAT, VERSION, Outcome, outcome_of
    from harness.judge.words import repeat_line

_NAMES = {
    "judge": "harness.judge.outcome",
    **dict.fromkeys(("EXIT_CODES", "FORMAT", "VERSION", "Outcome", "outcome_of"), "harness.judge.weighed"),
    "repeat_line": "harness.judge.words",
}
__getattr__ = on_use(__name__, _NAMES)

__all__ = ["EXIT_CODES", "FORMAT", "VERSION", "Outcome", "judge", "outcome_of", "repeat_line"]
