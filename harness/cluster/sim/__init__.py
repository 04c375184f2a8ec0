"""The cluster `sim`: all nodes in one process, in virtual time, on the simulator of `nodes.world`.

| file | what |
|---|---|
| virtual_tasks.py | coroutines that wait for virtual time |
| clients.py | calls of clients over the virtual network |
| moments.py | waits for something that a node does |
| cluster.py | `harness.cluster.protocol.Cluster` on top of these |
"""
