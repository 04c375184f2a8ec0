"""The cluster `local`: one process a node on this machine, and a relay between all of them.

| file | what |
|---|---|
| processes.py | one node as a process: spawned, ready, killed, stopped, ended |
| nodes.py | the nodes of one run: started, killed, paused, watched |
| cluster.py | `harness.cluster.protocol.Cluster` on top of these |
"""
