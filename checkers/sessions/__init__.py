"""Weaker than linearizable: what each client by itself may expect of one register, key by key.

| model | no version order lets … |
|---|---|
| coherence | … every process keep its order: sequential consistency of each key by itself, not of all together |
| monotonic-reads | … every process's reads go forward |
| monotonic-writes | … a process's writes keep their order for readers that go forward |
| read-your-writes | … every read be as new as all that its process had written |
| writes-follow-reads | … a write come after what its process had read, for readers that go forward |

`steps` is what processes saw and wrote, `version_graph` what must be older than what, `own_writes` what
read-your-writes adds, `checker` the verdicts, `staleness` how far reads lag behind, in milliseconds and versions.
"""

from checkers.sessions.checker import GUARANTEES, THROUGH_READERS, check
from checkers.sessions.staleness import NAME as STALENESS
from checkers.sessions.staleness import check as check_staleness
from checkers.sessions.steps import Reads, all_but_dirty, repeated_keys

__all__ = [
    "GUARANTEES",
    "STALENESS",
    "THROUGH_READERS",
    "Reads",
    "all_but_dirty",
    "check",
    "check_staleness",
    "repeated_keys",
]
