"""Where nodes run, and what carries faults out there.

| | |
|---|---|
| protocol.py | what a conductor asks of any cluster; place.py: where one node runs |
| sim/ | virtual nodes in virtual time |
| local/, containers/, ssh/ | processes of this machine, Docker containers, processes of other machines |
| real_cluster.py, node_book.py | what these three share, and what they offer to faults (`harness.faults.hands`) |
| relay/ | carries all connections of nodes that are no containers; cuts and slows links |
| limits/, mounted_disk/ | groups of processes with less cores or memory; a disk under any store |
| connections.py, library_clients.py, performing.py | requests of clients |
| all others | one thing each that several clusters need: clocks, files, ports, versions, what is left |
"""
