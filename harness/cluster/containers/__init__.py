"""The cluster `docker`: one container a node, on a private network with fixed addresses.

| file | what |
|---|---|
| base.py | a base image from Debian packages, where no registry can be reached |
| image.py | the node image: the base, the package `nodes`, its wheels; built without a network |
| control.py | the image of the control container of docker-compose.yml |
| nodes.py | the containers of one run: made, killed, paused, removed |
| packet_filter.py | one table of nft rules on the host: which packets pass, with counters |
| packet_faults.py | cut and loss at work, and the evidence that they took effect |
| shaping/ | a process that holds packets back: late, out of order, not faster than a rate |
| shaped_faults.py | slow, jitter, reorder and bandwidth at work, and what was measured |
| cluster.py | `harness.cluster.protocol.Cluster` on top of these |

Everything that a run makes carries its id in the label `qsync-harness.run`; nothing without that label is touched.
"""
