"""Every checker that is held to a definition, by name: the rows of the table that `bench.brute_force` prints."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from checkers import by_model, domain, linearizable, sessions, transactional
from checkers.history import History
from checkers.models import is_promised
from checkers.verdict import Verdict
from tests.checkers.brute import (
    domains,
    duplicates,
    guarantees,
    isolation,
    linear,
    objects,
    tiny_domains,
    tiny_objects,
    tiny_transactions,
)
from tests.checkers.brute.compare import Row
from tests.checkers.brute.transactions import nothing, realtime, session

OF_KEYS = {"linearizable_keys": realtime, "sequential_keys": session}
"""The orders that registers by themselves keep with these options."""


def _isolation(workload: str, model: str, **options: bool) -> Row:
    def checker(history: History) -> Verdict:
        return transactional.check(history, workload=workload, model=model, **options)  # type: ignore[arg-type]

    return Row(
        name=" ".join([workload, model, *options]),
        draw=partial(tiny_transactions.drawn, workload=workload),
        definition=partial(
            isolation.allows, model, workload=workload, of_keys=OF_KEYS.get("".join(options), nothing)
        ),
        checker=checker,
    )


ISOLATION = [
    _isolation(workload, model) for workload in ("append", "rw-register") for model in isolation.MODELS
]
ISOLATION += [
    _isolation("rw-register", model, **{option: True})
    for option in OF_KEYS
    for model in (
        "read-committed",
        "causal",
        "prefix",
        "snapshot-isolation",
        "serializable",
        "strict-serializable",
    )
]
ISOLATION.append(_isolation("rw-register", "strong-session-serializable", sequential_keys=True))


def _duplicated(model: str, with_start: bool) -> Row:
    def checker(history: History) -> Verdict:
        first = duplicates.FIRST if with_start else None
        return transactional.check(history, workload="rw-register", model=model, initial=first)

    return Row(
        name=f"rw-register {model} duplicates{' start' if with_start else ''}",
        draw=partial(duplicates.drawn, with_start=with_start),
        definition=partial(duplicates.allows, model, with_start=with_start),
        checker=checker,
    )


ISOLATION += [_duplicated(model, False) for model in isolation.MODELS]
ISOLATION += [
    _duplicated(model, True)
    for model in ("read-committed", "causal", "snapshot-isolation", "strict-serializable")
]


def _linearizable(model: str, unique: bool) -> Row:
    return Row(
        name=f"linearizable {model}{' unique' if unique else ''}",
        draw=partial(tiny_objects.drawn, model=model, unique=unique),
        definition=partial(linear.linearizable, model),
        checker=partial(linearizable.check, model=model),
    )


def judged(history: History, model: str) -> Verdict:
    """The verdict that decides what `by_model.judge` says of the promise linearizable."""
    judgement = by_model.judge(history, model)
    promised = [each for each in judgement.verdicts if is_promised(each, judgement.promise)]
    return next(each for each in promised if each.result == judgement.result)


def _judged(model: str) -> Row:
    return Row(
        name=f"judge {model}",
        draw=partial(tiny_objects.drawn, model=model, unique=True),
        definition=partial(linear.linearizable, model),
        checker=partial(judged, model=model),
    )


def _guarantee(guarantee: str) -> Row:
    return Row(
        name=f"sessions {guarantee}",
        draw=partial(tiny_objects.drawn, model="cas-register", unique=True),
        definition=partial(guarantees.holds, guarantee),
        checker=partial(sessions.check, guarantee=guarantee),
    )


def _refused_dequeues(row: Row) -> Row:
    """The same checker, where a dequeue that finds nothing fails with "empty"."""
    return replace(row, name=f"{row.name} refused", draw=tiny_domains.refused_dequeues)


LINEARIZABLE = [_linearizable(model, unique) for model in objects.STEPS for unique in (False, True)]
LINEARIZABLE.append(_refused_dequeues(_linearizable("queue", True)))
JUDGED = [_judged(model) for model in objects.STEPS]
JUDGED.append(_refused_dequeues(_judged("queue")))
SESSIONS = [_guarantee(guarantee) for guarantee in guarantees.GUARANTEES]

_DRAWN_SET = partial(tiny_domains.with_final_reads, model="set")
_DRAWN_REGISTER = partial(tiny_domains.with_final_reads, model="register")
_DRAWN_COUNTER = partial(tiny_objects.drawn, model="counter")
_DRAWN_CAS = partial(tiny_objects.drawn, model="cas-register", unique=True)

DOMAIN = [
    Row("bank", tiny_domains.bank, domains.bank, partial(domain.bank.check, total=domains.TOTAL)),
    Row("counter", _DRAWN_COUNTER, domains.counter, domain.counter.check),
    Row("set-full", _DRAWN_SET, domains.grow_set, domain.set_full.check),
    Row("queues", tiny_domains.queue, domains.queue, domain.queues.check),
    Row("queues of equals", partial(tiny_domains.queue, unique=False), domains.queue, domain.queues.check),
    Row("long-fork", tiny_domains.long_fork, domains.long_fork, domain.long_fork.check),
    Row("causal-reverse", tiny_domains.causal_reverse, domains.causal_reverse, domain.causal_reverse.check),
    Row("unique-ids", tiny_domains.unique_ids, domains.unique_ids, domain.unique_ids.check),
    Row("monotonic", tiny_domains.monotonic, domains.monotonic, domain.monotonic.check),
    Row("durability", _DRAWN_REGISTER, domains.durability, domain.durability.check),
    Row("rollback-honesty", _DRAWN_CAS, domains.rollback_honesty, domain.rollback_honesty.check),
]

ROWS: dict[str, Row] = {row.name: row for row in (*ISOLATION, *LINEARIZABLE, *JUDGED, *SESSIONS, *DOMAIN)}
