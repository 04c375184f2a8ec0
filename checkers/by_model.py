"""Any history by the name of what it is about: which checkers judge it, and what their verdicts weigh.

    from checkers import by_model
    judged = by_model.judge(history, "cas-register", promise="linearizable")
    judged.result, judged.violations, judged.strongest

A model says what the operations mean (`MODELS`); a promise says how much order was promised. A check of no more than
the promise that fails is a *violation*; one of more than the promise is a *finding*, which is allowed yet weaker than
a reader may think. No promise allows the violations of a domain checker (a lost element, a wrong total).

Promises to single operations are linearizable, coherence, the four session guarantees, and eventual (nothing but the
domain's own rules, and that what is read was written: `checkers.domain.written`); to transactions the isolation models
of `checkers.transactional`. There is no promise "none": such a verdict would be valid whatever the history shows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy

from checkers import domain, linearizable, sessions
from checkers.domain import written
from checkers.history import etcd_records
from checkers.history.columns import Columns
from checkers.history.errors import ModelError
from checkers.history.foreign.frames import history_in
from checkers.history.history import History
from checkers.history.line_kernels import OK
from checkers.history.start import PLAIN_START, Start, supposed
from checkers.history.value_order import odd_keys
from checkers.limits import NO_LIMITS, Limits, given, within
from checkers.linearizable.table import MODELS as SEQUENTIAL
from checkers.proofs.meaning import Terms
from checkers.verdict import Result, Verdict, merged, run_safely

MEMORY_MIB = 1024.0  # for a search, by default
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
        "transactions over lists: txn [[append k v] [r k [v …]]]", "txn", transactional="append"
    ),
    "rw-register": _model(
        "transactions over registers: txn [[w k v] [r k v]]", "txn", transactional="rw-register"
    ),
    "bank": _model("accounts: transfer, read", "open transfer read", domain=("bank",)),
    "unique-ids": _model("identifiers: generate", "generate", domain=("unique-ids",)),
    "write-once": _model("rows written once: insert, read", "insert read", domain=("write-once",)),
    "monotonic": _model("rows with timestamps: add, read", "add read", domain=("monotonic",)),
    "long-fork": _model("reads of several keys: write, read", "read write txn", domain=("long-fork",)),
    "log": _model(
        "logs with offsets: send, poll, txn [[send k v] [poll]], assign, subscribe",
        "send poll txn assign subscribe crash debug-topic-partitions",
        domain=("offsets",),
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

DOMAIN: dict[str, Callable[[History, bool, bool], Verdict]] = {
    "bank": lambda history, strict, observes: domain.bank.check(history),
    "set-full": lambda history, strict, observes: domain.set_full.check(history),
    "queues": lambda history, strict, observes: domain.queues.check(
        history, fifo=strict, failed_cas_observes=observes
    ),
    "unordered-queues": lambda history, strict, observes: domain.queues.check(
        history, fifo=False, failed_cas_observes=observes
    ),
    "counter": lambda history, strict, observes: domain.counter.check(history, final_only=not strict),
    "unique-ids": lambda history, strict, observes: domain.unique_ids.check(history),
    "write-once": lambda history, strict, observes: domain.write_once.check(history),
    "monotonic": lambda history, strict, observes: domain.monotonic.check(history),
    "long-fork": lambda history, strict, observes: domain.long_fork.check(history),
    "offsets": lambda history, strict, observes: domain.offsets.check(history),
    "causal-reverse": lambda history, strict, observes: domain.causal_reverse.check(history),
    "etcd-kv": lambda history, strict, observes: domain.etcd_kv.check(history),
    "etcd-watch": lambda history, strict, observes: domain.etcd_watch.check(history),
}
"""Domain checkers, given the history, whether linearizable was promised, and whether refusals observe something."""


OF_ETCD = {
    "etcd-kv": etcd_records.NAMES - {etcd_records.WATCH},
    "etcd-watch": frozenset({etcd_records.WATCH}),
}
"""A file may hold requests alone, or watches alone: the other check then has nothing to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfKeys:
    """What is promised of each register by itself, beside an isolation model; see `transactional.check`.

    `wfr_keys`: a transaction's writes follow its reads. It is there for users of Elle: every model promises it.
    """

    linearizable_keys: bool = False
    sequential_keys: bool = False
    wfr_keys: bool = False
    transaction_order: Mapping[int, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.linearizable_keys or self.sequential_keys or self.wfr_keys or bool(self.transaction_order)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """All verdicts on one history, the violations of the promise, and the strongest model that was satisfied."""

    model: str
    promise: str
    verdicts: tuple[Verdict, ...]
    violations: tuple[str, ...]
    strongest: str | None
    torn: str | None = None
    """The loss of a torn file: then the result is never valid."""
    supposed: Start = PLAIN_START
    """Of an invalid foreign history that does not say how it began: the start that its first reads suggest."""

    @property
    def result(self) -> Result:
        """Invalid if the promise is broken; unknown if what was promised could not be decided, or the file is torn."""
        weighed = [verdict for verdict in self.verdicts if is_promised(verdict, self.promise)]
        result = merged(verdict.result for verdict in weighed)
        return "unknown" if result == "valid" and self.torn is not None else result


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


def judge(
    history: History,
    model: str,
    *,
    promise: str | None = None,
    limits: Limits = NO_LIMITS,
    failed_cas_observes: bool | None = None,
    initial: Any = None,
    of_keys: OfKeys = OfKeys(),
) -> Judgement:
    """Every check of `model` over `history`. Raises KeyError for an unknown model or promise (see `promise_of`).

    `promise`: None is the strictest that is usual, linearizable or strict-serializable. `failed_cas_observes`: whether
    a refused cas surely saw a value other than the one it expected, and a dequeue refused with "empty" no element;
    None: only in our own records. `initial`: what each object held before, or a `Start`; None: what the history says.
    `limits` are for all checks together. `of_keys`: for transactions over registers. Raises ModelError for
    a start value that the model cannot have, or for `of_keys` of a different model.
    A file or a data frame may stand in the place of the history.
    """
    history, model = history_in(history), ALIASES.get(model, model)
    if initial is not None:
        history = history.starting_at(initial)
    check_keys(of_keys, model, history)
    with _within(limits):
        return _judgement(
            _begun(history, model),
            model,
            promise_of(model, promise, history),
            _observes(history, failed_cas_observes),
            of_keys,
        )


def check_keys(of_keys: OfKeys, model: str, history: History) -> None:
    """Raises ModelError for a promise of single keys that the model cannot have, or an order of what is not there."""
    if of_keys and MODELS[model].transactional != "rw-register":
        raise ModelError(expected="rw-register for an order of single keys", came=model, index=None)
    there = {event for each in history.operations for event in (each.invoke_index, each.complete_index)}
    for event in of_keys.transaction_order:
        if event not in there:
            raise ModelError(
                expected="the index of an operation in the transaction order", came=str(event), index=None
            )


def _begun(history: History, model: str) -> History:
    """The history with a start that the model can have. Raises ModelError."""
    asked, start = MODELS[model], history.start
    if not start.is_plain and not _has_start(asked):
        raise ModelError(expected=f"no start value for {model}", came=str(start), index=None)
    for value in (start.value, *start.by_key.values()):
        if asked.linearizable is not None:
            SEQUENTIAL[asked.linearizable]().beginning({None: value})
        elif asked.transactional == "append":
            SEQUENTIAL["list"]().beginning({None: value})
    return history


def _has_start(model: Model) -> bool:
    return model.linearizable is not None or model.transactional is not None


def _observes(history: History, asked: bool | None) -> bool:
    return history.failed_cas_observes if asked is None else asked


def _within(limits: Limits) -> AbstractContextManager[None]:
    is_open = limits.memory_mib is None and given().memory_mib is None
    return within(replace(limits, memory_mib=MEMORY_MIB) if is_open else limits)


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
        why = (
            f"is not known for {model}"
            if history.has_real_time
            else "cannot be judged without real time"
        )
        raise KeyError(f"{promise!r} {why}: expected one of {', '.join(known)}")
    return promise


def _judgement(
    history: History, model: str, promised: str, failed_cas_observes: bool, of_keys: OfKeys
) -> Judgement:
    asked = MODELS[model]
    verdicts = (
        *_of_transactions(asked, history, promised, of_keys),
        *_of_operations(asked, history, promised, failed_cas_observes),
        *_of_domain(asked, history, promised, failed_cas_observes),
    )
    violations = tuple(
        verdict.checker
        for verdict in verdicts
        if verdict.result == "invalid" and is_promised(verdict, promised)
    )
    is_told = history.start is not PLAIN_START or not history.has_real_time  # without time nothing is first
    is_open = bool(violations) and history.is_foreign and not is_told and _has_start(asked)
    return Judgement(
        model=model,
        promise=promised,
        verdicts=verdicts,
        violations=violations,
        torn=history.torn,
        strongest=_strongest(history, model, verdicts, failed_cas_observes),
        supposed=supposed(history.operations) if is_open else PLAIN_START,
    )


def _of_transactions(model: Model, history: History, promise: str, of_keys: OfKeys) -> Iterable[Verdict]:
    if model.transactional is not None:
        from checkers import transactional

        yield run_safely(
            transactional.check,
            history,
            name="transactional",
            workload=model.transactional,
            model=promise,
            linearizable_keys=of_keys.linearizable_keys,
            sequential_keys=of_keys.sequential_keys,
            transaction_order=of_keys.transaction_order or None,
        )


def _of_operations(
    model: Model, history: History, promise: str, failed_cas_observes: bool
) -> Iterable[Verdict]:
    if model.linearizable is None:
        return
    reads = linearizable.promised_linearizable
    verdict = _linearizable(model, history, failed_cas_observes, reads)
    yield verdict
    if model.weaker and verdict.result != "valid":
        yield from _weaker(history, reads)
    is_implied = promise == "linearizable"
    if model.linearizable in written.MODELS and not (is_implied and verdict.result == "invalid"):
        # Of every read: also of those that linearizability does not judge.
        least = _written(model, history)
        if not is_implied or least.result == "invalid":
            yield least


def _of_domain(model: Model, history: History, promise: str, failed_cas_observes: bool) -> Iterable[Verdict]:
    strict = promise == "linearizable"
    for name in model.domain:
        if name in OF_ETCD and not history.names & OF_ETCD[name]:
            continue
        yield run_safely(DOMAIN[name], history, strict, failed_cas_observes, name=name)
    if history.outcomes["fail"]:
        honest = run_safely(domain.rollback_honesty.check, history, name=domain.rollback_honesty.NAME)
        if honest.details.get("failed"):
            yield honest
    if model.transactional is None and history.has_finals:
        durable = run_safely(domain.durability.check, history, name=domain.durability.NAME)
        if durable.details.get("judged"):
            yield durable


def _linearizable(
    model: Model, history: History, failed_cas_observes: bool, reads: sessions.Reads
) -> Verdict:
    return run_safely(
        linearizable.check,
        history,
        name="linearizable",
        model=model.linearizable,
        failed_cas_observes=failed_cas_observes,
        reads=reads,
        longest_prefixes=True,
    )


def _weaker(history: History, reads: sessions.Reads) -> list[Verdict]:
    """One verdict for each session guarantee, and how stale reads were; coherence implies the rest."""

    def kept(guarantee: str) -> Verdict:
        return run_safely(
            sessions.check,
            history,
            name=guarantee,
            guarantee=guarantee,
            reads=reads,
        )

    first, *others = sessions.GUARANTEES
    verdicts = [kept(first)]
    if verdicts[0].result != "valid":
        verdicts += [kept(other) for other in others]
    return [*verdicts, run_safely(sessions.check_staleness, history, name=sessions.STALENESS, reads=reads)]


def strongest(
    history: History,
    model: str = "register",
    verdicts: Iterable[Verdict] = (),
    limits: Limits = NO_LIMITS,
    failed_cas_observes: bool | None = None,
) -> str | None:
    """The strongest model that the history satisfied; "none" if it satisfied none. None if nothing can be said of it.

    Of registers: that all reads but dirty ones satisfied, wherever they were served. `verdicts` are taken where they
    already say it.
    """
    with _within(limits):
        return _strongest(history, model, verdicts, _observes(history, failed_cas_observes))


def _strongest(
    history: History, model: str, verdicts: Iterable[Verdict], failed_cas_observes: bool
) -> str | None:
    asked = MODELS[model]
    known = {verdict.checker: verdict for verdict in verdicts}
    if asked.transactional is not None and "transactional" in known:
        return strongest_isolation(known["transactional"])
    if asked.linearizable is None:
        return None
    left_out = known["linearizable"].details.get("reads_not_judged", {}) if "linearizable" in known else None
    is_open = left_out is None or any(not words.startswith("dirty") for words in left_out)
    if not asked.weaker:
        held = not is_open and known["linearizable"].result == "valid"
        return "linearizable" if held else None
    if is_open:
        satisfied = strongest_of(_results_everywhere(asked, history, failed_cas_observes))
    else:
        satisfied = strongest_of({name: verdict.result for name, verdict in known.items()})
    if satisfied in ("linearizable", "none"):
        return satisfied
    least = known.get(written.NAME) or _written(asked, history)
    return "none" if least.result == "invalid" else satisfied


def _written(model: Model, history: History) -> Verdict:
    """Whether what was read was written, which every model promises."""
    assert model.linearizable is not None
    return run_safely(written.check, history, name=written.NAME, model=model.linearizable)


def strongest_isolation(verdict: Verdict) -> str | None:
    """The strongest isolation models that are proved, and those that are not, but nothing refutes; None: not judged."""
    if "held" not in verdict.details or verdict.details["vacuous"]:
        return None
    held, left = (" and ".join(verdict.details[name]) for name in ("held", "not_refuted"))
    if not left:
        return held or "none"
    return f"{held or 'none proved'} ({left} not refuted)"


def judged_by(
    model: str, promise: str, *, failed_cas_observes: bool, of_keys: OfKeys = OfKeys()
) -> Mapping[str, Terms]:
    """The questions that `judge` answers, by the names of its verdicts: input for the verifiers of the proofs."""
    asked, questions = MODELS[model], {}
    if asked.transactional is not None:
        questions["transactional"] = Terms(
            model=promise,
            key_order=2 if of_keys.linearizable_keys else int(of_keys.sequential_keys),
            ranks=of_keys.transaction_order,
        )
    if asked.linearizable is not None:
        questions["linearizable"] = Terms(
            model=asked.linearizable,
            reads=linearizable.promised_linearizable,
            failed_cas_observes=failed_cas_observes,
        )
    return questions


def _results_everywhere(model: Model, history: History, failed_cas_observes: bool) -> dict[str, Result]:
    """Results by model, over all reads but dirty ones. A read that surely is stale spares the search."""
    reads, in_doubt = sessions.all_but_dirty, history
    first = None
    if history.start.is_plain:
        # An order of all spares the rest, which needs objects; that of a key spares the key.
        first = _linearizable(model, history, failed_cas_observes, reads)
        if first.result == "valid":
            return {first.checker: first.result}
        in_doubt = _only_in_doubt(history, history.columns, first)
    weaker = {verdict.checker: verdict for verdict in _weaker(in_doubt, reads)}
    results = {name: verdict.result for name, verdict in weaker.items()}
    if results["coherence"] == "invalid" or weaker[sessions.STALENESS].details.get("stale_reads"):
        return {"linearizable": "invalid", **results}
    first = first or _linearizable(model, history, failed_cas_observes, reads)
    return {first.checker: first.result, **({} if first.result == "valid" else results)}


def _only_in_doubt(history: History, columns: Columns, verdict: Verdict) -> History:
    """The operations on keys that are not known to be linearizable: the other keys satisfy all weaker models, too.

    Also those on one key with a value that was written twice, if there is one: no weaker model judges such a key.
    """
    reads = numpy.flatnonzero((columns.f == columns.code("read")) & (columns.type == OK))
    if "keys_invalid" not in verdict.details or odd_keys(columns, reads).any():
        return history
    names = {*verdict.details["keys_invalid"], *verdict.details["keys_undecided"]}
    names |= {str(columns.words[code]) for code in sessions.repeated_keys(columns)[:1].tolist()}
    return _only_keys(history, {key for key in columns.words if str(key) in names})


def strongest_of(results: Mapping[str, Result]) -> str:
    """The strongest name in a table of results by model; several, joined by "and", if none implies another."""
    undecided = [name for name in PROMISES if results.get(name) == "unknown"]
    if results.get("monotonic-reads") == "invalid":  # the rest is judged through readers that go forward
        undecided = [name for name in undecided if name not in sessions.THROUGH_READERS]
    satisfied = [name for name in PROMISES if results.get(name) == "valid"]
    implied = {weaker for name in satisfied for weaker in PROMISES[name][1:]}
    names = " and ".join(name for name in satisfied if name not in implied)
    if not names:
        return "not decided" if undecided else "none"
    return f"{names} ({', '.join(undecided)} not decided)" if undecided else names


def only_key(history: History, key: str) -> History:
    """The history with the operations of one key alone. Its lines keep their numbers."""
    return _only_keys(history, {key})


def _only_keys(history: History, keys: Container[str | None]) -> History:
    return replace(history, operations=history.select(keys=keys))


def names_of(table: Iterable[str]) -> str:
    """The names of a table in a sentence."""
    return ", ".join(table)
