"""What an operator does to a cluster that works, as faults: restarts in turn, options, who is a member.

| file | what |
|---|---|
| deployed.py | what is deployed now: members, versions, options; the cluster and system to change it with |
| actions.py | which action a fault is |
| restarts.py | rolling restart |
| upgrades.py | a step of a rolling upgrade, or of the way back |
| options.py | options changed while nodes run, and changed back |
| members.py | a node leaves, a fresh one comes, one loses its disk and another takes its place |

They ask nodes as an operator does, by calls and signals, so the same code serves every cluster, the simulated one too.
"""
