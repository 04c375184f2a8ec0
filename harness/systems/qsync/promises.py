"""The promises of each configuration of qsync: a row of `harness.plan.promise.Promise` for each letter.

With MVCC off (`without_versions`) owner and replica reads come to dirty reads, in every row, and linearizable reads are
refused. With elections and a quorum that is no majority (`without_majority`) nothing is left but them.

Preconditions of every "linearizable": all data in synchronous spaces, N/2 < Q ≤ N, the same everywhere and constant.
"""

from __future__ import annotations

from harness.errors import WrongUse
from harness.plan.plan import Plan
from harness.plan.promise import Promise, promised
from harness.systems.qsync.configurations import CONFIGURATIONS
from harness.systems.qsync.options import said_of


def _title(letter: str) -> str:
    return f"{letter}: {CONFIGURATIONS[letter].summary}"


FIXED_OWNER = promised(
    configuration="C: one owner for the whole run, no failover",
    writes="linearizable",
    owner_reads="linearizable",
    replica_reads="monotone-prefix",
    dirty_reads="read-uncommitted",
    linearizable_reads="linearizable",
    final_state="converged",
    why="one writer, and CONFIRM is on its disk before anything is visible: even an isolated owner is not stale",
)

ELECTED = promised(
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
    "A": FIXED_OWNER.but(
        configuration=_title("A"),
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        why="one writer keeps what it acknowledged; 2.6.0 has dirty reads alone",
    ),
    "B": FIXED_OWNER.but(
        configuration=_title("B"),
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="the node that clears the queue may lack a CONFIRM, and then discards acknowledged writes",
    ),
    "C": FIXED_OWNER.but(isolated_owner_rolls_back=True),
    "D": FIXED_OWNER.but(
        configuration=_title("D"),
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="without votes no majority need know the new term: two owners, and acknowledged writes may be lost",
    ),
    "E": ELECTED.but(
        configuration=_title("E"),
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="an acknowledgement without its term may be of rows that the replica has thrown away",
    ),
    "F": ELECTED.but(
        configuration=_title("F"),
        final_state="",
        why="votes and terms in acknowledgements keep acknowledged writes, but for two leader deaths around a PROMOTE "
        "that reached no node (Tarantool's issue 9376): then one is lost, and reported as a violation; a node with "
        "such a PROMOTE, or one that hears of it later, may have to stop on split-brain",
    ),
    "G": ELECTED.but(
        configuration=_title("G"),
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why="as F, issue 9376 and all (two leader deaths around a PROMOTE that reached no node lose an acknowledged "
        "write); after a rollback on timeout that another leader overrules, nodes may differ or stop",
    ),
    "H": ELECTED,
    "I": ELECTED.but(
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
    if plan.drawn is None and not said_of(plan).mvcc and plan.read_mode not in ("dirty", "read-confirmed"):
        raise WrongUse(
            f"--read {plan.read_mode} with --mvcc false: without MVCC nodes refuse linearizable reads; try --read dirty"
        )


def without_versions(promise: Promise) -> Promise:
    """The row of the same configuration with MVCC off: writes keep what they were promised, reads see what is prepared.

    A server that is asked for confirmed data then says that it read dirty, and is judged by that. It refuses
    linearizable reads: `must_serve_reads`.
    """
    return promise.but(
        configuration=f"{promise.configuration}; MVCC off",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        why=f"{promise.why}; without a manager of versions every read shows what may still be rolled back",
    )


def without_majority(promise: Promise, quorum: int, nodes: int) -> Promise:
    """The row of a configuration with elections, if two quorums need have no node in common: the rest of it.

    Both elect a leader, even in one term, and each acknowledges what the other discards. With one owner for the whole
    run no other node decides, and its row stays as it is.
    """
    return promise.but(
        configuration=f"{promise.configuration}; a quorum of {quorum} of {nodes}",
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        leaders="",
        logs="",
        why=f"{quorum} of {nodes} nodes are not a majority: two leaders can have a quorum each, without a common node",
    )


def with_promotes_at_once(promise: Promise) -> Promise:
    """The row of a configuration with elections, if some node's PROMOTEs take effect at once, without a quorum.

    Two leader deaths around one that reached no node lose an acknowledged write (Tarantool's issue 9376). F shows that
    as a violation, because a user who sets F wants to know of it. A user who mixes such nodes with nodes that wait for
    a quorum has asked for it.
    """
    return promise.but(
        configuration=f"{promise.configuration}; PROMOTEs at once on some nodes",
        writes="",
        owner_reads="",
        replica_reads="",
        linearizable_reads="",
        final_state="",
        logs="",
        why=f"{promise.why}; a PROMOTE at once that reached no other node may later discard acknowledged writes",
    )


def with_asynchronous(promise: Promise) -> Promise:
    """The row of a configuration with elections, if clients write to asynchronous spaces as well.

    A leader acknowledges such a transaction alone. If another one is elected without it, nodes stop on split-brain, or
    drop it where it waited in the queue of a term that is over: nodes need not be equal in the end.
    """
    return promise.but(
        configuration=f"{promise.configuration}; asynchronous spaces",
        asynchronous="where answered",
        final_state="",
        logs="",
        why=f"{promise.why}; an asynchronous transaction is acknowledged by one node, which may be deposed",
    )
