"""Right cuts, written by hand, close to those of `wrong_cuts`; and how both are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from checkers.cuts import DELETED, Cut, Given, Operation, Restored, total
from tests.checkers.cuts import scripts


def given(
    *,
    trace: Mapping[str, str] | None = None,
    logs: Mapping[str, str] | None = None,
    cuts: tuple[Cut, ...] = (Cut(id="k1"),),
    operations: list[Operation] | None = None,
    **more: Any,
) -> Given:
    """What there is to judge by, of scripts; the baseline is all nodes with a log."""
    baseline = tuple(logs or ())
    return Given(
        cuts=cuts,
        baseline=more.pop("baseline", baseline),
        trace=None if trace is None else scripts.trace(trace),
        logs=None if logs is None else scripts.logs(logs),
        operations=operations,
        **more,
    )


def operation(xid: str, invoked: int, completed: int = -1, process: int = 1, **more: Any) -> Operation:
    """A transaction of a client; `completed` -1: without an answer."""
    return Operation(
        xid=xid, process=process, invoked_ns=invoked, completed_ns=completed, ok=completed >= 0, **more
    )


TWO = {"n1": "t1 S:k1 F:k1 t2", "n2": "t1 S:k1 F:k1 t2"}
K12 = (Cut(id="k1"), Cut(id="k2"))
FAILED = Cut(id="k1", causes=("n2 was killed",))
FAILED_LATE = Cut(id="k1", outcomes={"n1": "failed"}, causes=("n2 was away",))
"""All servers have finished it, and one has left meanwhile."""
TIMED = (Cut(id="k1", asked_ns=100, ended_ns=200),)

RIGHT: dict[str, Given] = {
    "a message on its way": given(trace={"n1": "+a>n2 *k1", "n2": "*k1 -a"}),
    "a message behind the cut": given(trace={"n1": "*k1 +a>n2", "n2": "*k1 -a"}),
    "a colour told again to a life that begins": given(
        trace={"n1": "*k1 +a>n2 | *k1 +b>n2", "n2": "*k1 -a -b"}
    ),
    "a message before the cut, doubled": given(trace={"n1": "+a>n2 *k1", "n2": "-a -a *k1"}),
    "a lost message": given(trace={"n1": "+b>n2 *k1 +a>n2", "n2": "-b *k1"}),
    "a client that took a message before it sent": given(
        trace={"n1": "+a>c *k1", "c": "-a +b>n2", "n2": "-b *k1"}
    ),
    "a client that sent before it took one": given(trace={"n1": "*k1 +a>c", "c": "+b>n2 -a", "n2": "-b *k1"}),
    "a client with a new life in between": given(trace={"n1": "*k1 +a>c", "c": "-a | +b>n2", "n2": "-b *k1"}),
    "a colour change in the next life": given(trace={"n1": "+a>n2 *k1", "n2": "-a | *k1"}),
    "a life without rows in between": given(
        trace={"n1": "*k1 -c", "n2": "+b>n3 *k1", "n3": "-b *k1 | | -d +c>n1", "n4": "+d>n3 *k1"}
    ),
    "a node that came later": given(trace={"n1": "*k1 +a>n3", "n2": "*k1", "n3": "-a +b>n1"}),
    "the same side everywhere": given(logs=TWO),
    "included where it is late": given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 t1 F:k1+t1"}),
    "excluded where it is early": given(logs={"n1": "S:k1 t1 F:k1", "n2": "t1 S:k1 F:k1-t1"}),
    "late everywhere and included nowhere": given(logs={"n1": "S:k1 t1 F:k1", "n2": "S:k1 t1 F:k1"}),
    "a participant without a log": given(logs={"n1": "t1@n1,client S:k1 F:k1", "n2": "S:k1 F:k1"}),
    "a participant outside of the baseline": given(
        logs={"n1": "t1 S:k1 F:k1", "n2": "t1 S:k1 F:k1", "n3": "t1"}, baseline=("n1", "n2")
    ),
    "a transaction of one node": given(logs={"n1": "t1@n1 S:k1 F:k1", "n2": "S:k1 F:k1"}),
    "rolled back everywhere": given(logs={"n1": "r:t1 S:k1 F:k1", "n2": "p:t1 r:t1 S:k1 F:k1"}),
    "what a copy brought": given(logs={"n1": "t1 B:b1 S:k1 F:k1", "n2": "R B:b1 S:k1 F:k1"}),
    "what was before the log began": given(logs={"n1": "t1 B:b1 S:k1 F:k1", "n2": "… B:b1 S:k1 F:k1"}),
    "a failed cut before it": given(
        logs={"n1": "S:k1 t1 S:k2 F:k2", "n2": "S:k1 t1 S:k2 F:k2"}, cuts=(FAILED, Cut(id="k2"))
    ),
    "two cuts": given(logs={"n1": "S:k1 t1 F:k1 S:k2 F:k2", "n2": "S:k1 F:k1 t1 S:k2 F:k2"}, cuts=K12),
    "torn by a cut that did not finish": given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 t1"}, cuts=(FAILED,)),
    "a message from outside a cut that did not finish": given(
        trace={"n1": "*k1 +a>n2", "n2": "-a *k1"},
        logs={"n1": "S:k1", "n2": "S:k1"},
        cuts=(FAILED,),
    ),
    "a failed cut of which a client learns late": given(
        trace={"n1": "*k1 +a>c", "c": "-a *k1 +b>n2", "n2": "*k1 -b"},
        logs={"n1": "S:k1 F:k1", "n2": "S:k1 F:k1"},
        cuts=(FAILED_LATE,),
    ),
    "recovered behind the cut": given(logs={"n1": "S:k1 F:k1 t1!", "n2": "S:k1 F:k1 t1!"}),
    "had to fail, and did": given(
        logs={"n1": "S:k1 F:k1", "n2": "S:k1"},
        cuts=(Cut(id="k1", had_to_fail=("n3 left",), causes=("n3 was killed",)),),
    ),
    "sets that name what was right by position": given(
        logs={"n1": "t1 S:k1 t2 F:k1+t1-t2", "n2": "t1 S:k1 t2 F:k1+t1-t2"}
    ),
    "a prefix of the versions": given(logs={"n1": "t1 S:k1 t2 F:k1+t2 t3", "n2": "t1 S:k1 t2 F:k1+t2 t3"}),
    "the later version left out": given(logs={"n1": "t1 t2 S:k1 F:k1-t2", "n2": "t1 t2 S:k1 F:k1-t2"}),
    "clients that ran beside each other": given(
        logs=TWO,
        operations=[operation("t2", 1, 8), operation("t1", 5, 9)],
    ),
    "an unanswered one before it": given(
        logs=TWO,
        operations=[operation("t2", 1), operation("t1", 5, 9)],
    ),
    "one before it that ended without an acknowledgement": given(
        logs=TWO,
        operations=[replace(operation("t2", 1, 3), ok=False), operation("t1", 5, 9, process=2)],
    ),
    "read while the other transaction ran": given(
        logs=TWO,
        operations=[
            operation("t2", 1, process=2),
            operation("t9", 2, 6, process=3, wrote=False, saw=("t2",)),
            operation("t1", 5, 9),
        ],
    ),
    "read before it, and included": given(
        logs=TWO,
        operations=[
            operation("t1", 1, process=2),
            operation("t9", 2, 4, wrote=False, saw=("t1",)),
            operation("t2", 5, 9),
        ],
    ),
    "acknowledged in time, and included": given(logs=TWO, cuts=TIMED, operations=[operation("t1", 1, 99)]),
    "acknowledged while the cut ran": given(logs=TWO, cuts=TIMED, operations=[operation("t2", 1, 101)]),
    "invoked while the cut ran": given(logs=TWO, cuts=TIMED, operations=[operation("t1", 199, 220)]),
    "acknowledged at the time of the question": given(
        logs=TWO, cuts=TIMED, operations=[operation("t2", 1, 100)]
    ),
    "invoked at the time of the end": given(logs=TWO, cuts=TIMED, operations=[operation("t1", 200, 220)]),
    "the later of two that share a time": given(
        logs=TWO, operations=[operation("t2", 1, 5), operation("t1", 5, 9, process=2)]
    ),
    "a read that no log has": given(logs=TWO, cuts=TIMED, operations=[operation("t9", 1, 9, wrote=False)]),
    "finished, as all report": given(
        logs=TWO, cuts=(Cut(id="k1", outcomes={"n1": "finished", "n2": "finished"}),)
    ),
    "failed, with a cause": given(
        logs={"n1": "S:k1 F:k1", "n2": "S:k1"},
        cuts=(Cut(id="k1", outcomes={"n1": "failed", "n2": "failed"}, causes=("n2 was killed",)),),
    ),
    "the state of the oracle": given(
        logs=TWO,
        cuts=K12[:1],
        restored={
            "k1": Restored(
                cut="k1",
                rows={"n1": {0: {"a": 1}, 1: {"b": 2}}, "n2": {0: {"a": 1}}},
                primary={0: "n1", 1: "n1"},
                oracle={"a": 1, "b": 2},
            )
        },
        invariant=total(3),
    ),
    "the state before, and what changed": given(
        restored={
            "k0": Restored(cut="k0", rows={"n1": {0: {"a": 1, "b": 1}}}, primary={0: "n1"}),
            "k1": Restored(
                cut="k1",
                rows={"n1": {0: {"a": 2, "c": 1}}},
                primary={0: "n1"},
                since="k0",
                delta={"a": 2, "b": DELETED, "c": 1},
            ),
        }
    ),
}
