"""Abilities that a system needs so that a fault can take effect on its nodes.

Each system lists its abilities (`System.abilities`). A fault that needs more is not among its "all". If a user asks for
it by name or writes it into a plan, it is refused before the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

Ability = Literal[
    "torn logs",
    "lost records",
    "disk layer",
    "clock",
    "drift",
    "members",
    "newcomers",
    "options",
    "versions",
    "failover",
    "scenes",
]
"""
| ability | the nodes |
|---|---|
| torn logs | keep logs whose last record may be torn (`harness.systems.parts.Logs`) |
| lost records | refuse such a log, or get along, where records that were safely written are gone or changed |
| disk layer | write through `nodes.host.files`, which takes orders about faults and reports what was synced |
| clock | report their wall clock (`wall_ns` in `qsync.status`) and can be given another |
| drift | the same of the monotonic clock |
| members | can leave |
| newcomers | can join |
| options | change options while they run |
| versions | run in another version on the same data |
| failover | can be made the owner |
| scenes | have moments and kinds of messages that scenes name (`harness.systems.parts.Variety`) |
"""
ALL_ABILITIES: Final[frozenset[Ability]] = frozenset(get_args(Ability))
"""The abilities of our own nodes; in the simulator every node has them."""
LACKS: Final[Mapping[Ability, str]] = {
    "torn logs": "names no logs with ends that could be damaged",
    "lost records": "does not say how its nodes take the loss of records that were safely written",
    "disk layer": "writes through no disk layer of ours, which would say what was synced and let calls fail, "
    "and here no disk is mounted under it",
    "clock": "does not report its wall clock, so a change of it could not be observed",
    "drift": "has the machine's own monotonic clock, which cannot drift",
    "members": "does not tell the harness how its members are changed while it runs",
    "newcomers": "does not tell the harness how a node joins while it runs",
    "options": "does not tell the harness how its options are changed while it runs",
    "versions": "does not tell the harness how another version of it is started",
    "failover": "keeps its owner",
    "scenes": "names no moments of its nodes and no kinds of their messages, of which scenes are made",
}
"""The words about a system without the ability."""
