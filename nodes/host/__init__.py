"""The real world for a node: sockets, fsync, clocks, signals. `python -m nodes.host` runs one node as a process.

`host` joins the parts: events come from `links` (TCP), `disk` (group-committed files) and `timers`; the node gets each
with a reading of the clocks, and its effects go through the kernel's outbox back to the same parts. `process` is the
life of the process around it, `lifeline` ends it with its parent, `systems` is the table of systems that can be hosted.
"""
