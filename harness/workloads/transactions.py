"""Transactions of several statements over several keys: the common part of `append` and `rw-register`.

An operation's value is a list of micro-operations, `["append", key, value]` or `["w", key, value]`, and `["r", key,
null]` (the null becomes the value read). All of them are one transaction of the store. Values are unique, so that a
read shows which transactions it saw. The set of keys moves on every few seconds, which bounds the lists.

Each class of answers is judged against its own promise:

| transactions | check | model |
|---|---|---|
| that write, and reads that must be fresh | transactional | strict serializability, or the isolation that is promised |
| all but dirty reads | snapshots | one order, in which the reads of each node go forward (its confirmed state) |
| dirty reads | dirty | any value that a client asked to write |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from checkers import transactional
from checkers.domain import durability
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.members import answered_by
from checkers.history.operation import Operation as Recorded
from checkers.proofs.meaning import Terms
from checkers.replicas import dirty
from checkers.sessions import all_but_dirty
from checkers.transactional.chosen import left_out, selected
from checkers.transactional.columns import Workload as Words
from checkers.verdict import Verdict
from harness.clients.operations import Append, Completion, Done, Mismatch, Read, Step, Transaction, Write
from harness.errors import WrongUse
from harness.plan.plan import SECOND_NS, Operation, Plan
from harness.plan.promise import ACKNOWLEDGED, DIRTY_READS, FINAL_STATE, REPLICA_READS, STRICT, Promise
from harness.workloads.checks import (
    Check,
    Reads,
    fresh_reads,
    is_fresh_at_the_end,
    kept_by,
    of_every_run,
)
from harness.workloads.common import HONESTY, mixed, renamed, unique, unread
from harness.workloads.failing import FAILURES, failing
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_read, drawn_write, final_mode
from harness.workloads.workload import USUAL, Workload

KEYS = 6
EPOCH_NS = 2 * SECOND_NS
STATEMENTS_MAX = 4
KEYS_READ_AT_ONCE = 4
SHARE_OF_USEFUL = 1 / 20
"""The share of the transactions that succeeded which must touch several keys, and see something."""
FAILS = "fails by "
"""How the key begins of a transaction that must fail; its other keys stand in its value."""
SNAPSHOTS = "strong-session-serializable"
NEVER_BACK = "serializable, and no node goes back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transactions(Workload):
    """`word` is the writing micro-operation; `model` the form in which `checkers.transactional` knows them."""

    summary: str
    weight: float
    model: Words
    word: str
    can_submit: bool = True
    shares: frozenset[str] = USUAL | {"failing"}
    is_searched: bool = False

    @property
    def spaces(self) -> tuple[str, ...]:
        return (self.model,)

    def generator(self, plan: Plan, worker: int) -> Generator:
        def write(context: Context, count: int) -> Draft:
            micros: list[Value] = []
            for number in range(context.chance.randint(1, STATEMENTS_MAX)):
                if number and context.chance.random() < 0.5:
                    micros.append(("r", _key(context), None))
                else:
                    value = unique(worker, STATEMENTS_MAX * count + number)
                    micros.append((self.word, _key(context), value))
            context.chance.shuffle(micros)
            fails = failing(plan, context)
            return Draft(
                "txn", f"{FAILS}{fails}" if fails else None, tuple(micros), drawn_write(plan, context)
            )

        def read(context: Context, _: int) -> Draft:
            node, mode = drawn_read(plan, context)
            keys = [_key(context) for _ in range(context.chance.randint(1, STATEMENTS_MAX))]
            return Draft("txn", value=_reads(keys), node=node, mode=mode)

        return mixed(plan, (0.55, write), (0.45, read))

    def keys(self, operation: Operation) -> tuple[str, ...]:
        return tuple(key for _, key, _ in micros_of(operation.value))

    def may_submit(self, operation: Operation) -> bool:
        return any(f == self.word for f, _, _ in micros_of(operation.value))

    @property
    def effects(self) -> Mapping[str, Declared]:
        return {"txn": "micro-operations"}

    @property
    def uses(self) -> frozenset[type]:
        return frozenset({Read, Append if self.word == "append" else Write})

    def asked(self, operation: Operation, value: Value) -> Transaction:
        micros = list(micros_of(value))
        known = ("r", self.word)
        if operation.f != "txn" or not micros or any(f not in known or not key for f, key, _ in micros):
            raise WrongUse(f"the workload {self.model} has no {operation.f!r} with value {value!r}")
        steps = [self._step(*micro) for micro in micros]
        if operation.key is not None:
            self._let_fail(operation.key, micros, steps)
        return Transaction(tuple(steps), operation.mode, operation.wait)

    def _let_fail(self, key: str, micros: Sequence[tuple[str, str, Any]], steps: list[Step]) -> None:
        """Behind the first write a step that cannot be done."""
        how = FAILURES.get(key.removeprefix(FAILS))
        written = [place for place, (f, _, _) in enumerate(micros) if f == self.word]
        if how is None or not written:
            raise WrongUse(f"the workload {self.model} has no transaction that fails by {key!r}")
        steps.insert(written[0] + 1, how(self.model, micros[written[0]][1]))

    def _step(self, f: str, key: str, value: object) -> Step:
        if f == "r":
            return Read(self.model, key)
        return Append(self.model, key, value) if f == "append" else Write(self.model, key, value)

    def must_fail(self, operation: Operation, value: Value) -> bool:
        return operation.key is not None

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        if isinstance(found, Mismatch):
            return None
        done: list[Value] = []
        for (f, key, asked), result in zip(micros_of(value), found.results, strict=True):
            match f, result:
                case "r", (list() | tuple()) as shown if self.model == "append":
                    done.append((f, key, tuple(shown)))
                case "r", None:
                    done.append((f, key, None))
                case "r", int() as shown if self.model == "rw-register":
                    done.append((f, key, shown))
                case "r", _:
                    return None
                case _:
                    done.append((f, key, asked))
        return Completion("ok", tuple(done), None, found.role)

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        parts = [keys[at : at + KEYS_READ_AT_ONCE] for at in range(0, len(keys), KEYS_READ_AT_ONCE)]
        mode = final_mode(plan)
        return [
            Operation(at_ns=0, worker=0, f="txn", value=_reads(part), node=owner, mode=mode) for part in parts
        ]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        reads = fresh_reads(promise, stricter)
        are_plain = self.word == "w"
        isolation = promise.isolation(are_plain=are_plain)
        is_whole = promise.has_whole_transactions(are_plain=are_plain)
        stays = promise.model(ACKNOWLEDGED) == "stays" or (is_whole and promise.model(FINAL_STATE))
        judged = isolation or STRICT
        forward = NEVER_BACK if isolation == STRICT and promise.model(REPLICA_READS) else ""
        return (
            Check(
                durability.NAME,
                "what was acknowledged is in the final state of every node",
                durability.MODEL if stays else "",
                durability.check,
            ),
            Check(
                "transactional",
                "transactions that write, and reads that must be fresh, have one order that fits real time"
                if judged == STRICT
                else f"transactions that write, and reads that must be fresh, are {judged}",
                isolation,
                lambda history: self._transactional(history, reads, judged),
                judged=Terms(model=judged, reads=reads),
            ),
            Check(
                "snapshots",
                "every read shows one moment of that order, and no node goes back",
                forward,
                self._snapshots,
                judged=Terms(model=SNAPSHOTS, reads=all_but_dirty, by_node=True),
            ),
            Check(
                "dirty",
                "dirty reads show only values that a client asked to write",
                promise.model(DIRTY_READS),
                dirty.check,
            ),
            HONESTY,
            *of_every_run(promise),
            *kept_by(promise, durability.gone_everywhere),
        )

    def _transactional(self, history: History, reads: Reads, model: str) -> Verdict:
        chosen = selected(history, reads)
        verdict = transactional.check(chosen, workload=self.model, model=model)
        asked = sum(any(f == "r" for f, *_ in micros_of(each.value)) for each in chosen.select(f="txn"))
        allowed = ", ".join(verdict.details.get("findings", ()))
        found = [f"anomalies that {model} allows: {allowed}"] if allowed else []
        told = {"findings": found, "reads_not_judged": left_out(history, chosen), "asked": asked}
        return replace(verdict, details={**verdict.details, **told})

    def _snapshots(self, history: History) -> Verdict:
        """Of all answers but dirty ones, each node's reads in their order. Stale reads are reported, not violations."""
        chosen = selected(history, all_but_dirty)
        verdict = transactional.check(
            chosen,
            workload=self.model,
            model=SNAPSHOTS,
            session=partial(_session, history),
        )
        old = [name for name in verdict.details.get("findings", ()) if name.endswith("-realtime")]
        found = [f"reads were stale, as is allowed: {', '.join(old)}"] if old else []
        told = {
            "findings": found,
            "promised": SNAPSHOTS,
            "sessions": "node",
            "reads_not_judged": left_out(history, chosen),
        }
        return renamed(replace(verdict, details={**verdict.details, **told}), "snapshots", NEVER_BACK)

    def kind(self, operation: Recorded) -> str:
        return "transactions that read" if operation.only_reads else "transactions that write"

    def missing(self, history: History) -> Iterator[str]:
        """Transactions must touch several keys, and reads must see what was written."""
        done = [each for each in history.select(f="txn", outcome="ok", phase="load") if each.mode != "dirty"]
        wanted = max(1, int(len(done) * SHARE_OF_USEFUL))
        several = sum(len({key for _, key, _ in micros_of(each.value)}) > 1 for each in done)
        if several < wanted:
            yield f"too few transactions over several keys: {several} succeeded, {wanted} are needed"
        telling = sum(self._tells(each) for each in done)
        if telling < wanted:
            yield f"too few transactions saw writes of other transactions: {telling} did, {wanted} are needed"
        yield from self.unread(history)

    def unread(self, history: History) -> Iterator[str]:
        final = [each for each in history.select(f="txn", phase="final") if is_fresh_at_the_end(each)]
        load = history.select(f="txn", phase="load")
        written = {key for each in load for f, key, _ in micros_of(each.value) if f != "r"}
        return unread(written, {key for each in final for _, key, _ in micros_of(each.value)})

    def _tells(self, operation: Recorded) -> bool:
        """Whether it read a write of another transaction. A list of one element says nothing of an order."""
        micros = list(micros_of(operation.value))
        own = [value for f, _, value in micros if f != "r"]
        for shown in (value for f, _, value in micros if f == "r"):
            values = shown if isinstance(shown, list | tuple) else (None, shown)
            if len(values) > 1 and any(value is not None and value not in own for value in values):
                return True
        return False


def micros_of(value: object) -> Iterator[tuple[str, str, Any]]:
    """The micro-operations in an operation's value; what is none is one without a key."""
    for micro in value if isinstance(value, list | tuple) else ():
        match micro:
            case [str(f), str(key), each] | (str(f), str(key), each):
                yield f, key, each
            case _:
                yield "", "", None


def _session(history: History, operation: Recorded) -> str | None:
    """Confirmed reads go forward at each node; a new node in its place, on an empty disk, begins anew."""
    is_of_a_node = operation.only_reads and operation.mode in ("read-confirmed", None)
    return answered_by(history, operation) if is_of_a_node and operation.node is not None else None


def _key(context: Context) -> str:
    """A key of the present set."""
    return f"k{context.time_ns // EPOCH_NS}-{context.chance.randrange(KEYS)}"


def _reads(keys: list[str]) -> tuple[Value, ...]:
    return tuple(("r", key, None) for key in keys)
