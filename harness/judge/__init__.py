"""The judge: verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code.

A *violation* is of the promise. A *finding* is allowed, yet weaker than a reader may think: it is shown just as well
and changes no exit code. Which checks there are is the workload's matter (`harness.workloads`); `evidence` says what
a run must show, `outcome` puts verdict.json together, `weighed` makes the outcome (anomaly, inconclusive, unknown or
valid) and knows its exit code, `words` says it. `whole_run` goes from a record and logs to the verdict.
"""

from harness.judge.outcome import FORMAT, VERSION, judge
from harness.judge.weighed import EXIT_CODES, Outcome, outcome_of
from harness.judge.words import repeat_line

__all__ = ["EXIT_CODES", "FORMAT", "VERSION", "Outcome", "judge", "outcome_of", "repeat_line"]
