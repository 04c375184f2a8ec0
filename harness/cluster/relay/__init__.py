"""A TCP relay in a process of its own, through which every connection of a local cluster passes.

So partitions, one-way cuts and delay need no root, and a busy harness delays no messages.

- A *route* is a pair (source, target): a loopback port on which `source` ("client" or a node) dials `target`.
- A *link* is one direction, also a pair: bytes from `source` on a connection of the route (source, target)
  belong to link (source, target), the answers to link (target, source), whichever dialed. (`link.py`)
- A *connection* is a dialed socket, an onward socket, and a *pipe* for each direction. (`connection.py`)
- The *switchboard* listens, cuts, heals and slows. (`switchboard.py`)
- Commands come as JSON lines on stdin, answers leave on stdout. (`control.py`; `remote.py` is the other end)
- The *guard* knows the pids that must not outlive the harness. (`guard.py`)

A cut link is silent. The relay stops reading, so the sender sees back-pressure, as from a full kernel buffer;
no FIN or RST passes; a connection dialed meanwhile is accepted by the kernel and hangs without a greeting.
Nothing inside a live connection is ever dropped: bytes are held until the link is healed, or the connection
dies with them. This cuts the *bytes*, not the packets: unlike with a firewall, a one-way cut leaves
TCP's own acknowledgements alone, so the other direction works on.
"""
