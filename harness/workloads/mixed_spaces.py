"""Mixed spaces: transactions over a synchronous and an asynchronous space, whose rows are written once.

A third of the inserts is synchronous, a third asynchronous, and a third both. So asynchronous rows wait in the queue
behind synchronous ones, and come alone when it is empty. Reads scan both spaces at one moment, on every node. No row is
overwritten or deleted, so what is lost once is missing in the end (`checkers.domain.write_once`). The range of keys
moves on every few seconds, which bounds what a read shows.

Of a plan's share of `failing` transactions one statement in the middle or at the end must fail: nothing of them stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from checkers.domain import write_once
from checkers.history.history import History
from checkers.history.operation import SUBMITTED
from harness.clients.completion import Completion
from harness.clients.transaction import (
    Refused,
    Statement,
    dump,
    dump_completion,
    outcome,
    transaction,
    unexpected,
)
from harness.errors import WrongUse
from harness.generators import Context, Draft, Generator
from harness.generators.generator import Value
from harness.plan import SECOND_NS, Operation, Plan
from harness.protocols import Reply
from harness.systems.promises import Promise
from harness.workloads.checks import Check, fresh_reads, kept_by, of_every_run
from harness.workloads.failing import FAILURES, failed, failing
from harness.workloads.keyed import Keyed, mixed, unique
from harness.workloads.reads import drawn_read, drawn_write, final_mode
from nodes.iproto.messages import Request

SYNCHRONOUS, ASYNCHRONOUS = "once", "notes"
BOTH = (SYNCHRONOUS, ASYNCHRONOUS)
KINDS = ((SYNCHRONOUS,), (ASYNCHRONOUS,), BOTH)
ROWS_MAX = 3
EPOCH_NS = 2 * SECOND_NS
ROOM = 10**10
"""So many keys belong to each epoch."""


@dataclass(frozen=True, slots=True)
class MixedSpaces(Keyed):
    summary: str = (
        "rows written once, in a synchronous and an asynchronous space; reads of both at one moment"
    )
    spaces: tuple[str, ...] = (SYNCHRONOUS,)
    asynchronous: tuple[str, ...] = (ASYNCHRONOUS,)
    model: str = "write-once"

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

    def request(self, operation: Operation, value: Value, sync: int) -> Request:
        match operation.f, value:
            case "dump", _:
                return dump(sync)
            case "read", {"from": int(first), "below": int(below)}:
                statements: list[Statement] = [["scan", space, first, below] for space in BOTH]
            case "insert", {"spaces": dict() as spaces, "fails": str(fails)} if _can_be_written(
                spaces, fails
            ):
                rows = [(space, key) for space, keys in spaces.items() for key in keys]
                statements = [["insert", space, [key, key]] for space, key in rows]
                if fails:
                    place = 1 + rows[0][1] % len(rows)  # behind the first, at the latest behind the last
                    statements.insert(place, FAILURES[fails](*rows[0]))
            case f, _:
                raise WrongUse(f"the workload mixed-spaces has no {f!r} with value {value!r}")
        return transaction(sync, statements, operation.mode, operation.wait)

    def completion(self, operation: Operation, value: Value, reply: Reply) -> Completion:
        match operation.f, value:
            case "dump", _:
                return dump_completion(reply)
            case "read", {"from": first, "below": below}:
                return _scanned(reply, {"from": first, "below": below})
        assert isinstance(value, Mapping), "it was asked for"
        fails = bool(value["fails"])
        spaces = value["spaces"]
        assert isinstance(spaces, Mapping), "it was asked for"
        found = outcome(reply, len(list(_keys(spaces))) + fails, is_read=False)
        if fails:
            return failed(found, value)
        match found:
            case Completion() as done:
                return done
            case Refused() as refused:
                return unexpected(refused, is_read=False, role=refused.role)
            case committed:
                return Completion("ok", value, None, committed.role)

    def final_operations(self, plan: Plan, keys: list[str], owner: str) -> list[Operation]:
        mode = final_mode(plan)
        ranges = [{"from": int(key), "below": int(key) + ROOM} for key in keys]
        return [Operation(at_ns=0, worker=0, f="read", value=each, node=owner, mode=mode) for each in ranges]

    def checks(self, promise: Promise, stricter: str | None) -> tuple[Check, ...]:
        is_promised = promise.writes == "linearizable"
        return (
            Check(
                write_once.NAME,
                "acknowledged rows stay, whole and in the order of the log",
                write_once.MODEL if is_promised else "",
                partial(
                    write_once.check,
                    reads=fresh_reads(promise, stricter),
                    is_fixed=promise.asynchronous == "as synchronous",
                    is_equal=bool(promise.final_state),
                    is_ordered=bool(promise.replica_reads),
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


def _scanned(reply: Reply, asked: dict[str, Value]) -> Completion:
    match outcome(reply, len(BOTH), is_read=True):
        case Completion() as done:
            return done
        case Refused() as refused:
            return unexpected(refused, is_read=True, role=refused.role)
        case committed:
            spaces: dict[str, Value] = {}
            for space, rows in zip(BOTH, committed.results, strict=True):
                keys = _keys_of(rows)
                if keys is None:
                    return unexpected(committed.results, is_read=True, role=committed.role)
                spaces[space] = keys
            return Completion("ok", {**asked, "spaces": spaces}, None, committed.role)


def _keys_of(rows: object) -> tuple[int, ...] | None:
    """The keys of the tuples that a scan gave; None if it gave something else, or a tuple that was never written."""
    if not isinstance(rows, list | tuple):
        return None
    keys: list[int] = []
    for row in rows:
        match row:
            case [int() as key, value] | (int() as key, value) if key == value:
                keys.append(key)
            case _:
                return None
    return tuple(keys)
