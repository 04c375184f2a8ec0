"""Mixed spaces: transactions over a synchronous and an asynchronous space, with rows that are written once.

A third of the inserts is synchronous, a third asynchronous, and a third both. So asynchronous rows wait in the queue
behind synchronous ones, and come alone when it is empty. Reads scan both spaces at one moment, on every node. Reads of
mode `linearizable` scan the synchronous one alone: no node serves the other one so. No row is overwritten or deleted,
so a row that is lost once is missing in the end (`checkers.domain.write_once`). The range of keys moves on every few
seconds, which bounds what a read shows.

Of a plan's share of `failing` transactions one statement in the middle or at the end must fail: nothing of them stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from checkers.domain import write_once
from checkers.history.declared import Declared
from checkers.history.history import History
from checkers.history.operation import SUBMITTED
from checkers.replicas import kept
from harness.clients.operations import Completion, Done, Insert, Mismatch, Scan, Step, Transaction
from harness.errors import WrongUse
from harness.plan.plan import SECOND_NS, Operation, Plan
from harness.plan.promise import ASYNCHRONOUS_WRITES, FINAL_STATE, REPLICA_READS, WRITES, Promise
from harness.workloads.checks import Check, fresh_reads, is_fresh_at_the_end, kept_by, of_every_run
from harness.workloads.common import mixed, unique, unread
from harness.workloads.failing import FAILURES, failing
from harness.workloads.generators import Context, Draft, Generator
from harness.workloads.generators.generator import Value
from harness.workloads.reads import drawn_read, drawn_write, final_mode
from harness.workloads.workload import USUAL, Workload

SYNCHRONOUS, ASYNCHRONOUS = "once", "notes"
BOTH = (SYNCHRONOUS, ASYNCHRONOUS)
KINDS = ((SYNCHRONOUS,), (ASYNCHRONOUS,), BOTH)
ROWS_MAX = 3
EPOCH_NS = 2 * SECOND_NS
ROOM = 10**10
"""So many keys belong to each epoch."""


@dataclass(frozen=True, slots=True)
class MixedSpaces(Workload):
    summary: str = (
        "rows written once, in a synchronous and an asynchronous space; reads of both at one moment"
    )
    spaces: tuple[str, ...] = (SYNCHRONOUS,)
    weight: float = 1.5
    asynchronous: tuple[str, ...] = (ASYNCHRONOUS,)
    model: str = "write-once"
    can_submit: bool = True
    shares: frozenset[str] = USUAL | {"failing"}
    uses: frozenset[type] = frozenset({Insert, Scan})
    effects: Mapping[str, Declared] = field(
        default_factory=lambda: {"insert": "asynchronous writes", "read": "reads"}
    )

    def generator(self, plan: Plan, worker: int) -> Generator:
        def insert(context: Context, count: int) -> Draft:
            spaces = context.chance.choice(KINDS)
            written: dict[str, list[Value]] = {}
            for number in range(context.chance.randint(len(spaces), ROWS_MAX)):
                space = spaces[number] if number < len(spaces) else context.chance.choice(spaces)
                key = _first(context) + unique(worker, ROWS_MAX * count + number)
                written.setdefault(space, []).append(key)
            rows = {space: tuple(keys) for space, keys in written.items()}
            return Draft(
                "insert",
                value={"spaces": rows, "fails": failing(plan, context)},
                node=drawn_write(plan, context),
            )

        def read(context: Context, _: int) -> Draft:
            node, mode = drawn_read(plan, context)
            first = _first(context)
            return Draft("read", value={"from": first, "below": first + ROOM}, node=node, mode=mode)

        return mixed(plan, (0.6, insert), (0.4, read))

    def keys(self, operation: Operation) -> tuple[str, ...]:
        match operation.value:
            case {"from": int(first)}:
                return (str(first),)
            case {"spaces": dict() as spaces} if operation.f == "insert":
                return tuple(dict.fromkeys(str(key // ROOM * ROOM) for key in _keys(spaces)))
        return ()

    def may_submit(self, operation: Operation) -> bool:
        return operation.f == "insert"

    def asked(self, operation: Operation, value: Value) -> Transaction:
        match operation.f, value:
            case "read", {"from": int(first), "below": int(below)}:
                steps: list[Step] = [Scan(space, first, below) for space in _asked(operation)]
            case "insert", {"spaces": dict() as spaces, "fails": str(fails)} if _can_be_written(
                spaces, fails
            ):
                rows = [(space, key) for space, keys in spaces.items() for key in keys]
                steps = [Insert(space, key, key) for space, key in rows]
                if fails:
                    place = 1 + rows[0][1] % len(rows)  # behind the first, at the latest behind the last
                    steps.insert(place, FAILURES[fails](*rows[0]))
            case f, _:
                raise WrongUse(f"the workload mixed-spaces has no {f!r} with value {value!r}")
        return Transaction(tuple(steps), operation.mode, operation.wait)

    def must_fail(self, operation: Operation, value: Value) -> bool:
        return isinstance(value, Mapping) and bool(value.get("fails"))

    def completion(self, operation: Operation, value: Value, found: Done | Mismatch) -> Completion | None:
        match operation.f, found:
            case "insert", Done(role=role):
                return Completion("ok", value, None, role)
            case "read", Done(results, role) if isinstance(value, dict):
                keys = [_keys_of(rows) if isinstance(rows, list | tuple) else None for rows in results]
                if None not in keys:
                    spaces = dict(zip(_asked(operation), keys, strict=True))
                    return Completion("ok", {**value, "spaces": spaces}, None, role)
        return None

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        mode = final_mode(plan)
        ranges = [{"from": int(key), "below": int(key) + ROOM} for key in keys]
        return [Operation(at_ns=0, worker=0, f="read", value=each, node=owner, mode=mode) for each in ranges]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        is_promised = promise.model(WRITES) == "linearizable"
        return (
            Check(
                write_once.NAME,
                "acknowledged rows stay, whole and in the order of the log",
                write_once.MODEL if is_promised else "",
                partial(
                    write_once.check,
                    reads=fresh_reads(promise, stricter),
                    is_fixed=promise.model(ASYNCHRONOUS_WRITES) == "as synchronous",
                    is_equal=bool(promise.model(FINAL_STATE)),
                    is_ordered=bool(promise.model(REPLICA_READS)),
                ),
            ),
            *of_every_run(promise),
            *kept_by(promise, write_once.gone_everywhere),
        )

    def missing(self, history: History) -> Iterator[str]:
        inserts = history.select(f="insert")
        taken = [each.value["spaces"] for each in inserts if each.type == "ok" or each.error == SUBMITTED]
        for spaces in KINDS:
            if not any(set(each) == set(spaces) for each in taken):
                yield f"no insert into {' and '.join(spaces)} was acknowledged"
        if not history.dumps:
            yield "no node gave a final dump of its rows"
        if (
            kept.check(history, write_once.gone_everywhere).result == "unknown"
        ):  # then the final reads alone can tell
            written = {str(key // ROOM * ROOM) for each in inserts for key in _keys(each.value["spaces"])}
            final = [each for each in history.select(f="read", phase="final") if is_fresh_at_the_end(each)]
            yield from unread(written, {str(each.value["from"]) for each in final}, "range")


def _first(context: Context) -> int:
    """Where the present keys begin."""
    return context.time_ns // EPOCH_NS * ROOM


def _keys(spaces: Mapping[str, Value]) -> Iterator[int]:
    for keys in spaces.values():
        for key in keys if isinstance(keys, list | tuple) else ():
            assert isinstance(key, int), "it was asked for"
            yield key


def _can_be_written(spaces: Mapping[str, Value], fails: str) -> bool:
    lists = [keys for keys in spaces.values() if isinstance(keys, list | tuple)]
    are_keys = all(type(key) is int and key >= 0 for keys in lists for key in keys)
    are_whole = len(lists) == len(spaces) > 0 and all(lists) and are_keys
    return are_whole and set(spaces) <= set(BOTH) and (not fails or fails in FAILURES)


def _asked(operation: Operation) -> tuple[str, ...]:
    """The spaces that a read scans."""
    return (SYNCHRONOUS,) if operation.mode == "linearizable" else BOTH


def _keys_of(rows: Sequence[Any]) -> tuple[int, ...] | None:
    """The keys of the rows that a scan gave; None if one was never written."""
    if not all(isinstance(key, int) and key == value for key, value in rows):
        return None
    return tuple(key for key, _ in rows)
