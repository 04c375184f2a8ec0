"""The judge: verdicts of checkers + what was promised + what evidence there is → the outcome and the exit code.

| outcome | exit | when |
|---|---|---|
| anomaly | 1 | a checker's verdict is invalid where something is promised, whatever else is the case |
| not-evidence | 3 | the run shows too little to say anything good of it |
| unknown | 2 | a checker could not decide |
| valid | 0 | none of these |

A *violation* is of the promise. A *finding* is allowed, yet weaker than a reader may think: it is shown just as well
and changes no exit code. Which checks there are is the workload's matter (`harness.workloads`); `evidence` says what
a run must show, `outcome` weighs it all, `words` says it.
"""

from harness.judge.outcome import EXIT_CODES, FORMAT, VERSION, judge
from harness.judge.words import Outcome, repeat_line

__all__ = ["EXIT_CODES", "FORMAT", "VERSION", "Outcome", "judge", "repeat_line"]
