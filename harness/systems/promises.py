"""What is promised to whom: one row a configuration, one entry a class of operation.

A verdict judges each class of answers against its own promise, by what the *server* said it did. The classes:

| class | who is asked and how |
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
| read-uncommitted | anything that somebody wrote |
| converged | all nodes the same, nothing confirmed lost |
| in-turn | no acknowledgement: it happens whole, after it was asked for and before what came behind it, or never |
| stale | an old value, no more is said |
| "" | nothing is promised: what is found is told, and is no violation |

What complete writes are promised holds beside submitted ones as it does without them: one that was only submitted
excuses the loss of nothing else (`checkers.domain.queue_order`). Its refusals are as sure as any: error 289 (mode
`none`, no room) is not done. A row that promises nothing of writes promises nothing of submitted ones.

With MVCC off (`without_versions`) owner and replica reads come to dirty reads, in every row, and linearizable reads are
refused. With elections and a
quorum that is no majority (`without_majority`) nothing is left but them.

Preconditions of every "linearizable": all data in synchronous spaces, N/2 < Q ≤ N, the same everywhere and constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness.errors import WrongUse
from harness.run.configurations import CONFIGURATIONS
from harness.run.plan import Plan


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
    "where answered": they stay on the node that acknowledged them, and nothing is said of others."""
    has_leader: bool = True
    """One node takes writes at a time, and calls itself "owner"."""
    has_dumps: bool = True
    """Nodes say all that they hold."""
    leaders: str = "one leader a term"
    """"": there may be several, and none that knows it."""
    logs: str = "logs that agree"
    """What the nodes' own logs must be; "": here they may contradict each other, which is then a finding."""
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
        """What holds of writes that were answered when they were queued."""
        return "in-turn" if self.writes == "linearizable" else ""

    @property
    def answers(self) -> str:
        """What holds of the moment in which a complete write is answered."""
        return "answered when it is confirmed" if self.writes == "linearizable" else ""

    @property
    def has_fresh_reads(self) -> bool:
        """Some answer at least must show what was acknowledged before it was asked for."""
        return "linearizable" in (self.owner_reads, self.linearizable_reads)


def _title(letter: str) -> str:
    return f"{letter}: {CONFIGURATIONS[letter].summary}"


FIXED_OWNER = Promise(
    configuration="C: one owner for the whole run, no failover",
    writes="linearizable",
    owner_reads="linearizable",
    replica_reads="monotone-prefix",
    dirty_reads="read-uncommitted",
    linearizable_reads="linearizable",
    final_state="converged",
    why="one writer, and CONFIRM is on its disk before anything is visible: even an isolated owner is not stale",
)

ELECTED = Promise(
    configuration="H: elections, synchronous PROMOTE, no rollback on timeout",
    writes="linearizable",
    owner_reads="stale",
    replica_reads="monotone-prefix",
    dirty_reads="read-uncommitted",
    linearizable_reads="linearizable",
    final_state="converged",
    why="a PROMOTE decides only when a quorum has it in its own term; linearizable reads ask N - Q + 1 nodes",
)

PROMISES: dict[str, Promise] = {
    "A": replace(
        FIXED_OWNER,
        configuration=_title("A"),
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        why="one writer keeps what it acknowledged; 2.6.0 has dirty reads alone",
    ),
    "B": replace(
        FIXED_OWNER,
        configuration=_title("B"),
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="whoever clears the queue may lack a CONFIRM, and then discards what was acknowledged",
    ),
    "C": replace(FIXED_OWNER, isolated_owner_rolls_back=True),
    "D": replace(
        FIXED_OWNER,
        configuration=_title("D"),
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="without votes no majority need know the new term: two owners, and acknowledged writes may be lost",
    ),
    "E": replace(
        ELECTED,
        configuration=_title("E"),
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="an acknowledgement without its term may be of rows that the replica has thrown away",
    ),
    "F": replace(
        ELECTED,
        configuration=_title("F"),
        final_state="",
        why="votes and terms in acknowledgements keep acknowledged writes, but for two leader deaths around a PROMOTE "
        "that reached nobody (Tarantool's issue 9376): then one is lost, and that is shown as what it is; a node with "
        "such a PROMOTE, or one that hears of it later, may have to stop on split-brain",
    ),
    "G": replace(
        ELECTED,
        configuration=_title("G"),
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="as F, issue 9376 and all (two leader deaths around a PROMOTE that reached nobody lose an acknowledged "
        "write); after a rollback on timeout that another leader overrules, nodes may differ or stop",
    ),
    "H": ELECTED,
    "I": replace(
        ELECTED,
        configuration=_title("I"),
        final_state="",
        logs="",
        why="as H; after a rollback that another leader overrules, a node may have to stop, and stays stale",
    ),
}
"""By letter."""


def must_serve_reads(plan: Plan) -> None:
    """WrongUse if the plan asks for linearizable reads of nodes that keep no versions, which refuse every such read.

    The plan of a run that has been is left as it was: it can be judged again.
    """
    if plan.drawn is None and not plan.mvcc and plan.read_mode not in ("dirty", "read-confirmed"):
        raise WrongUse(
            f"--read {plan.read_mode} with --mvcc false: without MVCC nodes refuse linearizable reads; try --read dirty"
        )


def without_versions(promise: Promise) -> Promise:
    """The row of the same configuration with MVCC off: writes keep what they were promised, reads see what is prepared.

    A server that is asked for confirmed data then says that it read dirty, and is judged by that. It refuses
    linearizable reads: `must_serve_reads`.
    """
    return replace(
        promise,
        configuration=f"{promise.configuration}; MVCC off",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        why=f"{promise.why}; without a manager of versions every read shows what may still be rolled back",
    )


def without_majority(promise: Promise, quorum: int, nodes: int) -> Promise:
    """The row of a configuration with elections, if two quorums need have no node in common: what is left of it.

    Both elect a leader, in one term even, and each acknowledges what the other discards. With one owner for the whole
    run nobody else decides, and its row stays as it is.
    """
    return replace(
        promise,
        configuration=f"{promise.configuration}; a quorum of {quorum} of {nodes}",
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        leaders="",
        logs="",
        why=f"{quorum} of {nodes} nodes are no majority: two leaders can have a quorum each, and nobody in common",
    )


def with_promotes_at_once(promise: Promise) -> Promise:
    """The row of a configuration with elections, if some node's PROMOTEs take effect at once, without a quorum.

    Two leader deaths around one that reached nobody lose an acknowledged write (Tarantool's issue 9376). F shows that
    as a violation, because it is what somebody who sets F wants to know of; beside nodes that do not need it, it is
    what was asked for.
    """
    return replace(
        promise,
        configuration=f"{promise.configuration}; PROMOTEs at once on some nodes",
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why=f"{promise.why}; a PROMOTE at once that reached nobody may later discard what was acknowledged",
    )


def with_asynchronous(promise: Promise) -> Promise:
    """The row of a configuration with elections, if clients write to asynchronous spaces as well.

    A leader acknowledges such a transaction alone. If another one is elected without it, nodes stop on split-brain, or
    drop it where it waited in the queue of a term that is over: nodes need not be equal in the end.
    """
    return replace(
        promise,
        configuration=f"{promise.configuration}; asynchronous spaces",
        asynchronous="where answered",
        final_state="",
        logs="",
        why=f"{promise.why}; an asynchronous transaction is acknowledged by one node, which may be deposed",
    )


MODELS = ("linearizable", "monotone-prefix", "read-uncommitted")
"""Strongest first."""
