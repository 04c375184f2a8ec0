"""Checks: a checker with the rule it stands for, and the ones that judge every workload.

Which answers must be fresh, and which may be old, is decided by the promise of the configuration and by what the
*server* said it did (its role, the read's mode): each class of answers is judged against its own promise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from msgspec import structs

from checkers import linearizable
from checkers.check import Check
from checkers.domain import queue_order
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.proofs.meaning import Terms
from checkers.replicas import availability, convergence, crash, kept, leadership, quorum
from checkers.replicas.kept import Gone
from harness.plan.promise import (
    FINAL_STATE,
    LEADERS,
    QUORUM,
    WRITES,
    Promise,
)

__all__ = ["Check", "Reads", "fresh_reads", "is_fresh_at_the_end", "of_every_run"]

Reads = Callable[[str | None, str | None], bool]
"""Of a read's role and mode: whether it belongs to a class."""


def fresh_reads(promise: Promise, stricter: str | None) -> Reads:
    """The reads that must fit real time; `stricter`: all that are not dirty."""
    everywhere = stricter == "linearizable"

    def reads(role: str | None, mode: str | None) -> bool:
        return mode != "dirty" and (everywhere or promise.of_read(role, mode) == "linearizable")

    return reads


def is_fresh_at_the_end(read: Operation) -> bool:
    """A final read that shows what there is: not an old state of a replica."""
    # By the role in the answer, and not by the node that was asked: it may have been deposed meanwhile.
    return read.type == "ok" and (read.role != "replica" or read.mode == "linearizable")


def with_a_known_end(history: History) -> History:
    """At the end the run's fixed owner is the owner, whatever it calls itself: else it could talk itself out of all."""
    owner = history.header.owner
    if owner is None:
        return history
    operations = tuple(
        structs.replace(each, role="owner")
        if each.phase == "final" and each.node == owner and each.f == "read"
        else each
        for each in history.operations
    )
    return replace(history, operations=operations)


def refusals_observe(reads: Reads) -> bool:
    """Whether a refused cas or dequeue surely saw what there was. A leader that does not know yet that it is deposed
    compares with what it has: as stale as its reads."""
    return reads("owner", "read-confirmed")


def of_objects(model: str, promised: str, reads: Reads) -> Check:
    """Whether each key, as an object of the sequential `model`, is linearizable. `promised` "": it need not be.

    `reads`: those that must be fresh.
    """
    observes = refusals_observe(reads)
    return Check(
        linearizable.NAME,
        "every key has one order of its operations that fits real time",
        promised,
        partial(linearizable.check, model=model, reads=reads, failed_cas_observes=observes),
        is_per_key=True,
        judged=Terms(model=model, reads=reads, failed_cas_observes=observes),
    )


LEADERSHIP = Check(
    "leadership",
    "one leader a term, fenced without a quorum, and there again after healing",
    leadership.MODEL,
    leadership.check,
    is_of_nodes=True,
)


def of_every_run(promise: Promise, space: str = "") -> tuple[Check, ...]:
    """The checks of every workload. `space`: the one in which convergence knows what operations wrote ("": none)."""
    final_state = "all nodes the same, nothing confirmed lost" if promise.model(FINAL_STATE) else ""
    return (
        Check(
            "quorum",
            "nothing is acknowledged while the owner cannot reach a quorum",
            promise.model(QUORUM),
            quorum.check,
        ),
        *(
            (
                Check(
                    "convergence",
                    "after healing all nodes hold the same: nothing confirmed is missing, nothing failed is there",
                    final_state,
                    lambda history: convergence.check(history, space=space),
                ),
            )
            if promise.has_dumps
            else ()
        ),
        *(
            (LEADERSHIP if promise.model(LEADERS) else replace(LEADERSHIP, model=""),)
            if promise.has_leader
            else ()
        ),
        Check(
            "crash",
            "no node ends without a fault telling it to",
            "no node ends unexpectedly",
            partial(crash.check, may_end_under=promise.may_end_under, promised=promise.configuration),
            is_of_nodes=True,
        ),
        Check(
            "availability",
            "how long nodes could not serve, and how much load came through",
            "",
            availability.check,
            is_of_nodes=True,
        ),
        *(kept_by(promise, partial(convergence.gone_everywhere, space=space)) if space else ()),
    )


def kept_by(
    promise: Promise, gone: Gone, history_of: Callable[[History], History] = lambda given: given
) -> tuple[Check, ...]:
    """Where nodes need not be equal in the end, or no read is fresh: there no other checker would see a lost write.

    `gone` says what no node holds; `history_of` gives the history with operations and dumps in the form for `gone`.
    """
    is_seen = promise.has_fresh_reads and (promise.model(FINAL_STATE) or not promise.has_dumps)
    if promise.model(WRITES) != "linearizable" or is_seen:
        return ()
    return (
        Check(
            kept.NAME,
            "in the end, no acknowledged write is gone from every node",
            kept.MODEL,
            lambda history: kept.check(history_of(history), gone),
        ),
    )


def of_submitted(promise: Promise, stricter: str | None) -> Check:
    """Where writes are answered before they are confirmed: what that leaves open, and what it does not."""
    reads = fresh_reads(promise, stricter)
    return Check(
        queue_order.NAME,
        "a write that was only submitted is decided before what is asked later, or never",
        queue_order.MODEL if promise.submitted else "",
        lambda history: queue_order.check(history, reads=reads, final_state=bool(promise.model(FINAL_STATE))),
    )
