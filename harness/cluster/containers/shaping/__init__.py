"""Packets between containers that come late, out of order, or not faster than a rate: held in a process of its own.

The kernel hands each packet that arrives at a container over a shaped link to this process (NFQUEUE), which says "go
on" when its time has come. So no kernel module that delays packets is needed, every single delay is known rather than
assumed, and what is drawn comes from the fault's seed.

| file | what |
|---|---|
| queue_messages.py | the kernel's language for that (nfnetlink_queue): encode and decode, pure |
| holding.py | which packet may go when, and how it was delayed: pure, time is an argument |
| namespace.py | the sockets and rules in one container's network namespace |
| echo.py | round trips, measured by ICMP from one container to another |
| shaper.py | all of that together |
| `__main__`.py | the process: commands as JSON lines, as the relay's |
| presence.py | whether this machine can do it |

It fails open. Rules carry `--queue-bypass` and queues the fail-open flag: when no process listens, or it listens too
slowly, packets pass. Rules stand in the containers' own namespaces, so they are gone with the containers. Packets that
the process held when it died are lost, as packets get lost, and TCP sends them again.
"""
