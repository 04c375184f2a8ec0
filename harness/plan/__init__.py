"""The decisions before a run.

| file | what |
|---|---|
| plan.py | everything that decides a run, as one value |
| schedule.py | its faults, drawn from its seed; capabilities.py: what a system may say to that |
| expectations.py | what code that does not know a system needs to know of its options |
| dice.py | the draws of a hunt that are the same for every system |
"""
