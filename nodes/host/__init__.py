"""The real world for a node: sockets, fsync, clocks, signals. `python -m nodes.host` runs one node as a process.

`host` joins the parts: events come from `links` (TCP), `disk` (group-committed files) and `timers`; each is given
to the node with the clocks' reading, and the effects go through the kernel's outbox back to the same parts.
`process` is the life of the process around it, `lifeline` its death with its parent, `systems` the table of what
can be hosted.
"""
