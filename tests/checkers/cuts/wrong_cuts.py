"""Every way for a cut to be wrong, written by hand: the responsible level, its rule, and the material."""

from __future__ import annotations

from typing import Any

from checkers.cuts import Cut, Given, Restored, total
from tests.checkers.cuts.right_cuts import FAILED, FAILED_LATE, K12, TIMED, TWO, given, operation


def _restored(**more: Any) -> Restored:
    rows = more.pop("rows", {"n1": {0: {"a": 1}}, "n2": {0: {"a": 1}}})
    return Restored(cut="k1", rows=rows, primary={0: "n1"}, **more)


WRONG: dict[str, tuple[str, str, Given]] = {
    "a failed cut, and a client that takes word of it to a server": (
        "messages",
        "message-from-outside",
        given(
            trace={"n1": "*k1 +a>c", "c": "-a +b>n2 *k1", "n2": "-b *k1"},
            logs={"n1": "S:k1 F:k1", "n2": "S:k1 F:k1"},
            cuts=(FAILED_LATE,),
        ),
    ),
    "a message from outside": (
        "messages",
        "message-from-outside",
        given(trace={"n1": "*k1 +a>n2", "n2": "-a *k1"}),
    ),
    "the second of two copies inside": (
        "messages",
        "message-from-outside",
        given(trace={"n1": "+a>n2 *k1 +b>n2", "n2": "-a -b *k1 -b"}),
    ),
    "from outside through a client": (
        "messages",
        "message-from-outside",
        given(trace={"n1": "*k1 +a>c", "c": "-a +b>n2", "n2": "-b *k1"}),
    ),
    "from outside through two clients": (
        "messages",
        "message-from-outside",
        given(trace={"n1": "*k1 +a>c", "c": "-a +b>d", "d": "-b +e>n2", "n2": "-e *k1"}),
    ),
    "taken by a life before the colour change": (
        "messages",
        "message-from-outside",
        given(trace={"n1": "*k1 +a>n2", "n2": "-a | *k1"}),
    ),
    "sent by a life behind the colour change": (
        "messages",
        "message-from-outside",
        given(trace={"n1": "*k1 | +a>n2", "n2": "-a *k1"}),
    ),
    "a second colour change": (
        "form",
        "second-colour-change",
        given(trace={"n1": "*k1 +a>n2 *k1", "n2": "*k1 -a"}),
    ),
    "a second colour change in a later life, behind a message": (
        "form",
        "second-colour-change",
        given(trace={"n1": "*k1 +a>n2 | +b>n2 *k1", "n2": "*k1 -a -b"}),
    ),
    "late and not included": (
        "transactions",
        "torn-transaction",
        given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 t1 F:k1"}),
    ),
    "early and not excluded": (
        "transactions",
        "torn-transaction",
        given(logs={"n1": "S:k1 t1 F:k1", "n2": "t1 S:k1 F:k1"}),
    ),
    "excluded on one of two": (
        "transactions",
        "torn-transaction",
        given(logs={"n1": "t1 S:k1 F:k1", "n2": "t1 S:k1 F:k1-t1"}),
    ),
    "the sets exchanged": (
        "transactions",
        "torn-transaction",
        given(logs={"n1": "t1 S:k1 t2 F:k1", "n2": "t2 S:k1 t1 F:k1+t2-t1"}),
    ),
    "a participant that never committed": (
        "transactions",
        "missing-transaction",
        given(logs={"n1": "t1 S:k1 F:k1", "n2": "p:t1 S:k1 F:k1"}),
    ),
    "a participant without a word of it": (
        "transactions",
        "missing-transaction",
        given(logs={"n1": "t1 S:k1 F:k1", "n2": "S:k1 F:k1"}),
    ),
    "rolled back by one": (
        "transactions",
        "missing-transaction",
        given(logs={"n1": "t1 S:k1 F:k1", "n2": "r:t1 S:k1 F:k1"}),
    ),
    "a copy that came too soon": (
        "transactions",
        "missing-transaction",
        given(logs={"n1": "B:b1 t1 S:k1 F:k1", "n2": "R B:b1 S:k1 F:k1"}),
    ),
    "a base and no copy": (
        "transactions",
        "missing-transaction",
        given(logs={"n1": "t1 B:b1 S:k1 F:k1", "n2": "B:b1 S:k1 F:k1"}),
    ),
    "START twice": ("form", "second-start", given(logs={"n1": "S:k1 S:k1 F:k1", "n2": "S:k1 F:k1"})),
    "FINISH twice": ("form", "second-finish", given(logs={"n1": "S:k1 F:k1 F:k1", "n2": "S:k1 F:k1"})),
    "FINISH without START": (
        "form",
        "finish-without-start",
        given(logs={"n1": "F:k1", "n2": "S:k1"}, cuts=(FAILED,)),
    ),
    "FINISH of another cut": (
        "form",
        "id-mismatch",
        given(
            logs={"n1": "S:k1 S:k2 F:k1", "n2": "S:k1 F:k1 S:k2"}, cuts=(K12[0], Cut(id="k2", causes=("x",)))
        ),
    ),
    "in both sets": (
        "form",
        "in-both-sets",
        given(logs={"n1": "S:k1 t1 F:k1+t1-t1", "n2": "S:k1 t1 F:k1+t1"}),
    ),
    "FINISH that did not wait": (
        "form",
        "named-but-not-committed",
        given(logs={"n1": "S:k1 F:k1+t1 t1", "n2": "S:k1 t1 F:k1+t1"}),
    ),
    "FINISH that names what is rolled back": (
        "form",
        "named-but-not-committed",
        given(logs={"n1": "S:k1 r:t1 F:k1+t1", "n2": "S:k1 r:t1 F:k1"}),
    ),
    "included, committed before START": (
        "form",
        "included-before-start",
        given(logs={"n1": "t1 S:k1 F:k1+t1", "n2": "t1 S:k1 F:k1"}, strict_sets=True),
    ),
    "excluded, committed behind START": (
        "form",
        "excluded-behind-start",
        given(logs={"n1": "S:k1 t1 F:k1-t1", "n2": "S:k1 t1 F:k1"}, strict_sets=True),
    ),
    "a recovered transaction in it": (
        "form",
        "had-to-fail",
        given(logs={"n1": "S:k1 t1! F:k1+t1", "n2": "S:k1 t1! F:k1+t1"}),
    ),
    "finished although a node left": (
        "form",
        "had-to-fail",
        given(logs={"n1": "S:k1 F:k1", "n2": "S:k1 F:k1"}, cuts=(Cut(id="k1", had_to_fail=("n3 left",)),)),
    ),
    "a later cut has less": (
        "form",
        "not-growing",
        given(
            logs={"n1": "t1 S:k1 F:k1 S:k2 F:k2-t1", "n2": "t1 S:k1 F:k1 S:k2 F:k2-t1"},
            cuts=K12,
        ),
    ),
    "a later version alone": (
        "closure",
        "version-gap",
        given(logs={"n1": "t1 t2 S:k1 F:k1-t1", "n2": "t1 t2 S:k1 F:k1-t1"}),
    ),
    "one client's later transaction alone": (
        "external-causality",
        "session-order",
        given(
            logs=TWO,
            operations=[operation("t2", 1, 4), operation("t1", 5, 9)],
        ),
    ),
    "the later of two clients' transactions alone": (
        "external-causality",
        "real-time-order",
        given(
            logs=TWO,
            operations=[operation("t2", 1, 4), operation("t1", 5, 9, process=2)],
        ),
    ),
    "a client's transaction alone, and not the one that it had read": (
        "external-causality",
        "session-order",
        given(
            logs=TWO,
            operations=[
                operation("t2", 1, process=2),
                operation("t9", 2, 4, wrote=False, saw=("t2",)),
                operation("t1", 5, 9),
            ],
        ),
    ),
    "a transaction alone, and not the one that a different client had read": (
        "external-causality",
        "real-time-order",
        given(
            logs=TWO,
            operations=[
                operation("t2", 1, 20, process=2),
                operation("t9", 2, 4, process=3, wrote=False, saw=("t2",)),
                operation("t1", 5, 9),
            ],
        ),
    ),
    "acknowledged in time and not included": (
        "acknowledged",
        "acknowledged-not-included",
        given(logs=TWO, cuts=TIMED, operations=[operation("t2", 1, 99)]),
    ),
    "acknowledged, and in no log": (
        "acknowledged",
        "acknowledged-in-no-log",
        given(logs=TWO, cuts=TIMED, operations=[operation("t9", 1, 99)]),
    ),
    "invoked behind the end and included": (
        "acknowledged",
        "invoked-later-included",
        given(logs=TWO, cuts=TIMED, operations=[operation("t1", 201, 220)]),
    ),
    "reported as finished and as failed": (
        "finish",
        "finished-on-some",
        given(logs=TWO, cuts=(Cut(id="k1", outcomes={"n1": "finished", "n2": "failed"}, causes=("x",)),)),
    ),
    "reported as finished and as failed, and a log is missing": (
        "finish",
        "finished-on-some",
        given(
            logs={"n1": "S:k1 F:k1"},
            cuts=(Cut(id="k1", outcomes={"n1": "finished", "n2": "failed"}, causes=("x",)),),
        ),
    ),
    "reported as finished without FINISH": (
        "finish",
        "finished-without-record",
        given(logs={"n1": "S:k1 F:k1", "n2": "S:k1"}, cuts=(Cut(id="k1", outcomes={"n1": "finished"}),)),
    ),
    "reported as finished without FINISH, and the log of an earlier server is missing": (
        "finish",
        "finished-without-record",
        given(logs={"n2": "S:k1"}, baseline=("n1", "n2"), cuts=(Cut(id="k1", outcomes={"n2": "finished"}),)),
    ),
    "not finished, without a cause": (
        "finish",
        "no-cause",
        given(logs={"n1": "S:k1 F:k1", "n2": "S:k1"}),
    ),
    "not finished, without a cause, and the log of an earlier server is missing": (
        "finish",
        "no-cause",
        given(logs={"n2": "S:k1"}, baseline=("n1", "n2")),
    ),
    "another state than the oracle's": (
        "state",
        "differs-from-oracle",
        given(restored={"k1": _restored(oracle={"a": 1, "b": 1})}),
    ),
    "one and true": (
        "state",
        "differs-from-oracle",
        given(restored={"k1": _restored(oracle={"a": True})}),
    ),
    "a backup that differs": (
        "state",
        "replica-differs",
        given(restored={"k1": _restored(rows={"n1": {0: {"a": 1}}, "n2": {0: {"a": 2}}}, oracle={"a": 1})}),
    ),
    "a primary without its partition": (
        "state",
        "replica-differs",
        given(restored={"k1": _restored(rows={"n2": {0: {}}}, oracle={})}),
    ),
    "a wrong total": (
        "state",
        "invariant",
        given(restored={"k1": _restored()}, invariant=total(2)),
    ),
    "not what changed": (
        "state",
        "differs-from-delta",
        given(
            restored={
                "k0": Restored(cut="k0", rows={"n1": {0: {"a": 1, "b": 1}}}, primary={0: "n1"}),
                "k1": _restored(since="k0", delta={"a": 1}),
            }
        ),
    ),
}
