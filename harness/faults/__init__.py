"""Faults: what is done to a cluster. An action is one class in a file of its own.

| file | what |
|---|---|
| fault.py | a fault as plans and histories have it, and the evidence of what it did |
| table.py | all actions, and their names |
| action.py | what all actions have in common |
| hands.py, real.py | what clusters of real nodes offer; what faults of real nodes have in common |
| virtual.py | the same for the simulator |
| overlap.py | which faults exclude each other |
| membership.py, rollout.py, directed.py | members, versions and scenes in the course of a schedule |
| abilities.py, where.py | what a fault needs of a system, and of a cluster |
| node_options.py | options of nodes, for code that does not know their names |
| all others | actions |

README.md follows one fault, and says how to add one.
"""
