"""The cluster `ssh`: nodes on machines that an inventory file names, reached with paramiko.

    harness ── relay here ──TCP──────────────┐
       │                                     ▼
       └── SSH ── supervisor on host A ── n1, n2      every node dials its peers through
       └── SSH ── supervisor on host B ── n3          the relay of its own host's supervisor

| file | what |
|---|---|
| inventory.py | the inventory: which hosts, how they are logged in to; read and checked |
| session.py | one SSH connection: host keys, logging in, what went wrong in one line |
| bundle.py | what is uploaded: the package `nodes`, its wheels, the supervisor and the relay |
| remote/ | what runs there: bootstrap.py (sent as a script), supervisor.py, children.py; from the bundle alone |
| leftovers.py | what runs of dead harnesses left on hosts |
| machine.py | one host during a run: installed, commanded, logs brought home, everything removed |
| relays.py | the relays of all hosts as one: a link is cut wherever it can be dialed |
| nodes.py | the nodes of all hosts: started, killed, paused, watched |
| limits.py | limits of cores and memory, asked of the supervisors |
| cluster.py | `harness.cluster.protocol.Cluster` on top of these |

No host needs root, a firewall rule or a way back to the harness. Everything of a run lies in one folder of each host,
named after the run. A supervisor lives without the connection, but not without a harness. If no harness speaks for a
while (the lease) it kills its nodes and removes that folder; the next run does so earlier if it finds the old one dead.
"""
