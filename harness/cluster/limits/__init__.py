"""Limits on a node's use of its machine: the kernel's control groups, and the faults that work by them.

| file | what |
|---|---|
| group.py | one group of processes: its limits, what the kernel counts of it, its share of its machine |
| enclosure.py | groups of our own, one a node, where this machine lets us; why not; what dead runs left of them |
| ballast.py | the process that wants memory in a node's group (a program of its own) |
| machine.py | all of this on this machine, as faults ask for it |
| starved.py | whether the kernel ended a process for want of memory |
| kernel_log.py | what the kernel wrote when it ended a process for want of memory |
"""
