"""Operator actions on a working cluster, as faults: rolling restarts, changes of options, changes of members.

| file | what |
|---|---|
| deployed.py | the current members, versions and options; the cluster and system to change them with |
| actions.py | maps a fault to its action |
| restarts.py | rolling restart |
| upgrades.py | a step of a rolling upgrade, or of the way back |
| options.py | options changed while nodes run, and changed back |
| additions.py | a node comes that runs already: every member is asked to count it |
| members.py | a node leaves, a fresh one comes, one loses its disk and a new one takes its place |

They ask nodes as an operator does, by calls and signals, so the same code serves every cluster, the simulated one too.
"""
