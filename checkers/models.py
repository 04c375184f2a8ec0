"""The table of models: what operations mean, and the promises by which they can be judged.

Promises to single operations are linearizable, coherence, the four session guarantees, and eventual (nothing but the
domain's own rules, and that what is read was written: `checkers.domain.written`); to transactions the isolation models
of `checkers.transactional`. There is no promise "none": such a verdict would be valid whatever the history shows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from checkers import domain, sessions
from checkers.history import etcd_records
from checkers.history.history import History
from checkers.verdict import Verdict

EVENTUAL = "eventual"
STRICT_SERIALIZABLE = "strict-serializable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The meaning of operations. `f` names them.

    `linearizable`: the sequential model of `checkers.linearizable`; `weaker`: whether `checkers.sessions` can say what
    is left if it does not hold; `transactional`: the workload of `checkers.transactional`; `domain`: names of `DOMAIN`.
    """

    summary: str
    f: frozenset[str]
    linearizable: str | None = None
    weaker: bool = False
    transactional: Any = None  # the name of a workload, which is a Literal over there
    domain: tuple[str, ...] = ()
    is_strict: bool = False
    """Only linearizable can be promised: nothing is judged of such an object without an order."""

    @property
    def promises(self) -> tuple[str, ...]:
        """The consistency models that such operations can be judged by; the first is the default."""
        if self.transactional is not None:
            from checkers.transactional import MODELS as ISOLATION

            return (STRICT_SERIALIZABLE, *(name for name in ISOLATION if name != STRICT_SERIALIZABLE))
        if self.is_strict:
            return ("linearizable",)
        if self.linearizable is None:
            return (EVENTUAL,)
        return tuple(PROMISES) if self.weaker else ("linearizable", EVENTUAL)


def _model(summary: str, f: str, **fields: Any) -> Model:
    return Model(summary=summary, f=frozenset(f.split()), **fields)


def _strict(name: str, summary: str, f: str) -> dict[str, Model]:
    return {name: _model(f"{summary}: {f.replace(' ', ', ')}", f, linearizable=name, is_strict=True)}


MODELS: dict[str, Model] = {
    "register": _model("a value a key: read, write", "read write", linearizable="register", weaker=True),
    "cas-register": _model(
        "a value a key: read, write, cas [old new]",
        "read write cas",
        linearizable="cas-register",
        weaker=True,
    ),
    "multi-register": _model(
        "values of several keys at once: txn [[w k v] [r k v]]",
        "read write txn",
        linearizable="multi-register",
    ),
    "kv": _model("a text a key, empty at first: get, put, append", "get put append", linearizable="kv"),
    "list": _model("a list a key: append, read", "append read", linearizable="list"),
    "set": _model("elements: add, read", "add read", linearizable="set", domain=("set-full",)),
    "queue": _model(
        "first in, first out: enqueue, dequeue, drain",
        "enqueue dequeue drain",
        linearizable="queue",
        domain=("queues",),
    ),
    "unordered-queue": _model(
        "any element may come out: enqueue, dequeue, drain",
        "enqueue dequeue drain",
        linearizable="unordered-queue",
        domain=("unordered-queues",),
    ),
    **_strict("stack", "last in, first out", "push pop"),
    **_strict("priority-queue", "the greatest number first", "insert poll"),
    **_strict("mutex", "a lock a key, held once at most", "acquire release"),
    **_strict("owner-aware-mutex", "a lock that its owner alone releases", "acquire release"),
    **_strict("reentrant-mutex", "a lock that its owner may acquire again", "acquire release"),
    **_strict("fenced-mutex", "a lock with growing fences, {client, fence}", "acquire release"),
    **_strict("reentrant-fenced-mutex", "a reentrant lock with growing fences", "acquire release"),
    "counter": _model("a sum: add, read", "add read", linearizable="counter", domain=("counter",)),
    "append": _model(
        "transactions over lists of distinct values: txn [[append k v] [r k [v …]]]",
        "txn",
        transactional="append",
    ),
    "rw-register": _model(
        "transactions over registers, also of values written more than once: txn [[w k v] [r k v]]",
        "txn",
        transactional="rw-register",
    ),
    "bank": _model("accounts: transfer, read", "open transfer read", domain=("bank",)),
    "unique-ids": _model("identifiers: generate", "generate", domain=("unique-ids",)),
    "write-once": _model("rows written once: insert, read", "insert read", domain=("write-once",)),
    "monotonic": _model("rows with timestamps: add, read", "add read", domain=("monotonic",)),
    "long-fork": _model("reads of several keys: write, read", "read write txn", domain=("long-fork",)),
    "log": _model(
        "logs with offsets: send, poll, txn [[send k v] [poll]], assign, subscribe",
        "send poll txn assign subscribe crash debug-topic-partitions",
        domain=("offsets", "log-cycles"),
    ),
    "causal-reverse": _model("a growing collection: write, read", "read write", domain=("causal-reverse",)),
    "etcd": _model(
        "etcd's keys with revisions, and its watches: range, txn, leases",
        " ".join(sorted(etcd_records.NAMES)),
        domain=("etcd-kv", "etcd-watch"),
        is_strict=True,
    ),
}
"""By the name that `--model` takes."""

ALIASES = {"list-append": "append", "fifo-queue": "queue", "kafka": "log", "lock": "mutex"}
"""Other names of models: those of Elle, Knossos and Jepsen."""

PROMISES: dict[str, tuple[str, ...]] = {
    "linearizable": ("linearizable", *sessions.GUARANTEES),
    sessions.GUARANTEES[0]: sessions.GUARANTEES,
    **{guarantee: (guarantee,) for guarantee in sessions.GUARANTEES[1:]},
    EVENTUAL: (),
}
"""Strongest first: each with all that it implies."""


def _alone(name: str) -> Callable[[History, bool, bool], Verdict]:
    """A checker that needs to know nothing but the history; it is loaded when it is asked."""
    return lambda history, strict, observes: getattr(domain, name).check(history)


def _log_cycles(history: History, strict: bool, observes: bool) -> Verdict:
    from checkers.transactional import log_cycles

    return log_cycles.check(history)


DOMAIN: dict[str, Callable[[History, bool, bool], Verdict]] = {
    **{
        name: _alone(name.replace("-", "_"))
        for name in (
            *("bank", "set-full", "unique-ids", "write-once", "monotonic", "long-fork", "offsets"),
            *("causal-reverse", "etcd-kv", "etcd-watch"),
        )
    },
    "queues": lambda history, strict, observes: domain.queues.check(
        history, fifo=strict, failed_cas_observes=observes
    ),
    "unordered-queues": lambda history, strict, observes: domain.queues.check(
        history, fifo=False, failed_cas_observes=observes
    ),
    "counter": lambda history, strict, observes: domain.counter.check(history, final_only=not strict),
    "log-cycles": _log_cycles,
}
"""Domain checkers, given the history, whether linearizable was promised, and whether refusals observe something."""

SHOW_NO_EFFECT = frozenset({"counter", "monotonic"})
"""Domain checkers of additions that no read shows as they were asked for: a sum, and a row to which the store may have
added something. They judge alone what was lost, or failed and is there."""

OF_ETCD = {
    "etcd-kv": etcd_records.NAMES - {etcd_records.WATCH},
    "etcd-watch": frozenset({etcd_records.WATCH}),
}
"""A file may hold requests alone, or watches alone: the other check then has nothing to judge."""


def promises(model: str, history: History) -> tuple[str, ...]:
    """The consistency models that the history can be judged by; the first is the default.

    A history without real time has none for single operations: an order of operations, and sessions of them, need time.
    """
    asked = MODELS[model]
    if history.has_real_time:
        return asked.promises
    if asked.transactional is None:
        return ()
    from checkers.transactional.anomalies import judged

    known = judged(has_real_time=False)
    strictest = known[-1]
    return (strictest, *(name for name in asked.promises if name in known and name != strictest))


def is_promised(verdict: Verdict, promise: str) -> bool:
    """Whether a history that keeps `promise` passes that check."""
    if verdict.checker == sessions.STALENESS:
        return False  # without a bound it is a finding at most
    return verdict.checker not in PROMISES or verdict.checker in PROMISES.get(promise, ())


def promise_of(model: str, promise: str | None, history: History) -> str:
    """The promise under its own name, the strictest that is usual for None. Raises KeyError for one that is not judged.

    Isolation models may have Elle's names, and those of Adya's thesis.
    """
    known = promises(model, history)
    if not known:
        raise KeyError(
            f"{promise or ''!r}: a history without real time needs append or rw-register as the model"
        )
    if promise is None:
        return known[0]
    if MODELS[model].transactional is not None:
        from checkers.transactional.anomalies import model_of

        promise = model_of(promise)
    if promise not in known:
        why = f"is not known for {model}" if history.has_real_time else "cannot be judged without real time"
        raise KeyError(f"{promise!r} {why}: expected one of {', '.join(known)}")
    return promise
