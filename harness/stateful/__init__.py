"""Hypothesis drives a cluster of the simulator: a run is a sequence of steps that Hypothesis draws and shrinks.

| file | what |
|---|---|
| stepped.py | a run in steps: operations, faults, time; its verdict at the end |
| machine.py | `ClusterMachine`: rules over such a run, and the checkers as its invariants |

    from harness.stateful import ClusterMachine

    class Registers(ClusterMachine):
        plan = {"system": "qsync", "workload": "register", "nodes": 3}

    TestRegisters = Registers.TestCase

`Stepped.ask`, `begin`, `end` and `run_for` are one step each: the conductor's workers wait for operations that they are
given, and virtual time goes on until an answer comes, or the time is over. `finish` ends all faults, settles, reads
everything, and judges as every run is judged.

docs/stateful.md has the rules, and how to add some. Hypothesis is in the group of the tests, which `./qsync test FILE`
installs.
"""

from __future__ import annotations

from harness.errors import WrongUse
from harness.stateful.stepped import Stepped

try:
    from harness.stateful.machine import ClusterMachine
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise WrongUse(
        "harness.stateful needs Hypothesis, which only the tests' group has; try: ./qsync test FILE, or "
        "pip install 'qsync-harness[stateful]'"
    ) from error

__all__ = ["ClusterMachine", "Stepped"]
