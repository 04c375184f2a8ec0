"""The facts that code without knowledge of a system needs about it: its options come to this value.

Faults, workloads, the conductor and the judge read it by the names that a plan gives it (`harness.plan.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.faults.node_options import Decisive, Value

COMPLETE = "complete"
MIXED, MOSTLY_CONFIRMED = "mixed", "mostly-confirmed"
READ_MIXES: Mapping[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    MIXED: (("linearizable", "read-confirmed", "dirty"), (0.7, 0.2, 0.1)),
    MOSTLY_CONFIRMED: (("read-confirmed", "dirty"), (0.9, 0.1)),
}
"""Word → the modes that reads are drawn from, and the share of each."""
NOBODY: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """The defaults are those of a store with one leader for the whole run, which a majority confirms."""

    configuration: str = ""
    """The system's shortest name for these options; "" if it has no such names."""
    quorum: int | str | None = None
    """The nodes that must have a write: a number, or a formula of N (`nodes.kernel.quorum`); None: N/2 + 1."""
    late: int = 0
    """So many of the last nodes run and are no members until the fault `add-node` adds them."""
    without_disk: frozenset[str] = NOBODY
    """The nodes that write nothing: a fault of their disk would have no effect."""
    needs_every_node: bool = False
    """The store serves little while any node is away."""
    heartbeat_ns: int = 250_000_000
    slowest_heartbeat_ns: int | None = None
    """Of the node that has the longest; None: all have the same."""
    rolls_back_after_s: float = 0.6
    """So long a leader waits for a quorum."""
    election_timeout_s: float = 0.5
    """How long an election may take; a new leader is there some of these later."""
    slowest_election_timeout_s: float | None = None
    """Of the node that has the longest; None: all have the same."""
    fencing: str = "off"
    """When a leader without followers resigns, on every node: off, soft or strict."""
    has_elections: bool = False
    fails_over: bool = False
    """The leader may change in the middle of the run, or there is none."""
    needs_operator: bool = False
    """No node leads unless it is asked to, at least while the candidates are not members: the harness asks."""
    voters: frozenset[str] = NOBODY
    """The nodes that never lead: where there are elections, those without a part in them too."""
    without_a_vote: frozenset[str] = NOBODY
    """Nodes that take no part in elections."""
    candidates: frozenset[str] = NOBODY
    """The nodes that stand for election by themselves."""
    read_mode: str = "read-confirmed"
    """The mode of reads, or a word of `READ_MIXES` for several."""
    commit_wait: str = COMPLETE
    """When writes are answered: complete, submit and none are modes of a store; mixed: half of them complete, half at
    once. An answer that comes at once acknowledges nothing."""
    keeps_versions: bool = True
    """Every node can serve linearizable reads."""
    settings: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Node → what it is set to when the run begins, by the names of its options."""
    decisive: Decisive = field(default_factory=Decisive)
    """Those of them on which more than one node hangs."""
