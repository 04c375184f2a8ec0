"""The guarantees of a system: one row a configuration, one entry a class of operation.

A verdict judges each class of answers against its own promise, by what the *server* said it did. The classes:

| class | operations |
|---|---|
| writes | acknowledged writes, and reads that are promised to fit them |
| submitted writes | answered when they are in the queue: commit wait modes `submit` and `none` |
| owner reads | `read-confirmed` at the owner |
| replica reads | `read-confirmed` elsewhere |
| dirty reads | `dirty`, anywhere |
| linearizable reads | `linearizable`, anywhere |
| final state | what all nodes hold after healing |

| model | means |
|---|---|
| linearizable | one order, within real time |
| monotone-prefix | stale without bound, but a node never goes back and shows confirmed values only |
| read-uncommitted | any value that a client wrote |
| converged | all nodes the same, nothing confirmed lost |
| in-turn | not acknowledged: it happens whole, after it was asked for and before what came behind it, or never |
| stale | an old value, no more is said |
| "" | nothing is promised: what is found is reported, and is not a violation |

Submitted writes do not weaken the promise of complete ones: a write that was only submitted
excuses the loss of nothing else (`checkers.domain.queue_order`). Its refusals are as sure as any: error 289 (mode
`none`, no room) is not done. A row that promises nothing of writes promises nothing of submitted ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.errors import WrongUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A row of the table; `why` says in a sentence what it rests on."""

    configuration: str
    writes: str
    owner_reads: str
    replica_reads: str
    dirty_reads: str
    linearizable_reads: str
    final_state: str
    why: str
    asynchronous: str = "as synchronous"
    """Acknowledged asynchronous transactions: they keep to the order of the log on all nodes, like synchronous ones;
    "where answered": they stay on the node that acknowledged them, and nothing is said of other nodes."""
    has_leader: bool = True
    """One node takes writes at a time, and calls itself "owner"."""
    has_dumps: bool = True
    """Nodes say all that they hold."""
    leaders: str = "one leader a term"
    """"": there may be several, and none that knows it."""
    logs: str = "logs that agree"
    """The model of the nodes' own logs; "": here they may contradict each other, which is then a finding."""
    quorum: str = "acknowledged only with a quorum"
    """"": a write may be acknowledged while its owner reaches no other node."""
    may_end_under: tuple[str, ...] = ()
    """What a fault may do (`checkers.crash.CAUSES`) so that a node may end: "disk-error" for one that stops when its
    disk is full. It must come up again when the fault is over."""
    isolated_owner_rolls_back: bool = False
    """An owner that is cut off for longer than twice the synchro timeout rolls back what waits: a run in which it did
    not has shown nothing of that."""
    documented: Mapping[str, str] = field(default_factory=dict)
    """Checker → what the store's own documentation says of it, quoted, with the page."""

    @property
    def submitted(self) -> str:
        """The promise for writes that were answered when they were queued."""
        return "in-turn" if self.writes == "linearizable" else ""

    @property
    def answers(self) -> str:
        """The promise about the moment in which a complete write is answered."""
        return "answered when it is confirmed" if self.writes == "linearizable" else ""

    @property
    def has_fresh_reads(self) -> bool:
        """Some answer at least must show what was acknowledged before it was asked for."""
        return "linearizable" in (self.owner_reads, self.linearizable_reads)


MODELS = ("linearizable", "monotone-prefix", "read-uncommitted")
"""Strongest first."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "writes": ("linearizable", ""),
    "owner_reads": ("linearizable", "stale", ""),
    "replica_reads": ("linearizable", "monotone-prefix", ""),
    "dirty_reads": ("read-uncommitted", ""),
    "linearizable_reads": ("linearizable", ""),
    "final_state": ("converged", ""),
    "asynchronous": ("as synchronous", "where answered"),
    "leaders": ("one leader a term", ""),
    "logs": ("logs that agree", ""),
    "quorum": ("acknowledged only with a quorum", ""),
}
"""Each field of `Promise` that is a word, and its possible words."""


def must_be_promises(promised: Mapping[str, str]) -> None:
    """WrongUse unless each name and its word stand in `CHOICES`."""
    for name, word in promised.items():
        if name not in CHOICES:
            raise WrongUse(f"promised has no {name!r}; it has: {', '.join(CHOICES)}")
        if word not in CHOICES[name]:
            choices = ", ".join(repr(each) for each in CHOICES[name])
            raise WrongUse(f"promised: {name} is one of {choices}; got {word!r}")
