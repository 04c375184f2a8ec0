"""The two calls of our nodes, and of Tarantool with our Lua: how operations are said in them, and what answers mean.

`qsync.transaction(statements, options)` runs a list of statements as one transaction and returns one map:

| field | value |
|---|---|
| `committed` | true, or false if a statement refused to go on: then nothing of all of it happened; nil: see below |
| `results` | if committed: the statements' results, in order |
| `mismatch` | if not: [the number of the statement that refused, from 0; the value that it found] |
| `role` | "owner" if the node that answered takes writes, else "replica" |
| `mode` | the read mode that served it |

`options` is a map with the keys `read` (the read mode) and `wait` (the commit wait mode: `complete`, `submit`, `none`),
both of which may be left out. Statements are lists, `space` is a name, keys are scalars:

| statement | does | result |
|---|---|---|
| `["get", space, key]` | | the tuple [key, value], or nil |
| `["scan", space, from, below]` | tuples with from ≤ key < below (nil: no bound) | the tuples, in key order |
| `["insert", space, [key, value]]` | error 3 if the key is there | the tuple |
| `["replace", space, [key, value]]` | | the tuple |
| `["delete", space, key]` | | the tuple that was there, or nil |
| `["cas", space, key, old, new]` | value := new if it is old (nil: no tuple), else a mismatch | true |
| `["append", space, key, element]` | puts it at the end of the list in value ([] if there is no tuple) | true |
| `["take", space, key]` | takes the first element off that list; changes nothing if there is none | it, or nil |
| `["add", space, key, amount, least]` | value := value (no tuple: 0) + amount; a mismatch if < least | the sum |

`least` is optional. A statement observes the effects of those before it. Rules for the answer:

- An answer comes when everything that it shows is confirmed. A transaction that only reads sees one moment of the
  confirmed data (modes `read-confirmed` and `linearizable`), or of what is prepared (`dirty`). One that writes decides
  on what is prepared, and answers when it is confirmed itself. One that was to write and changed nothing (a
  mismatch, a `take` or a `delete` of nothing) answers when what it looked at is confirmed, and is an error if that is
  rolled back.
- A store that cannot wait so says `mode` "dirty", whatever was asked: then nothing is concluded from what it shows.
- If it was to wait for no more (`submit`, `none`), `committed` may be nil: it is whole in the store's queue, behind all
  that was answered before it was asked for. That is no acknowledgement: it may be confirmed at any later time or never;
  but a store that acknowledges a later write, or shows it, has decided this one.
- An error is an error of the call, with the store's code: `harness.systems.qsync.errors` says which ones mean
  "surely not done". A transaction is never carried out in part, and never tried a second time by itself.

`qsync.dump()` returns one map: {"spaces": {space: [tuple, …]}}, all that is confirmed on the node that is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from checkers.history.operation import SUBMITTED
from harness.clients.client import Conversation, Send
from harness.clients.operations import (
    STEPS,
    Add,
    AddMember,
    Append,
    Asked,
    Cas,
    Completion,
    Delete,
    Done,
    Dump,
    Insert,
    Mismatch,
    Outcome,
    Read,
    RemoveMember,
    Scan,
    Step,
    Take,
    Transaction,
    Write,
    failed,
    unexpected,
)
from harness.clients.reply import Lost, NotSent, Replied, Reply
from harness.systems.qsync.errors import meaning_of
from nodes.iproto.messages import Answer, Call, Refusal

Statement = list[Any]

TRANSACTION = "qsync.transaction"
DUMP = "qsync.dump"
DIRTY = "dirty"
SEQUENCES = (list, tuple)


@dataclass(frozen=True, slots=True)
class CallClient:
    """Implements `harness.clients.client.MessageClient`: an operation is one call."""

    speaks: frozenset[type] = frozenset({*STEPS, Dump})

    def converse(self, asked: Asked, node: str, next_id: Callable[[], int]) -> Conversation:
        return outcome_of(asked, (yield Send(node, call_of(asked, next_id()))))


CALLS = CallClient()


def call_of(asked: Asked, sync: int) -> Call:
    """The call that asks for it."""
    match asked:
        case Transaction(steps, mode, wait):
            options = {"read": mode} if mode else {}
            if wait:
                options["wait"] = wait
            return Call(sync, TRANSACTION, ([statement_of(step) for step in steps], options))
        case Dump():
            return Call(sync, DUMP, ())
        case AddMember() | RemoveMember():
            raise AssertionError(f"no call of this client asks for {asked}")


def statement_of(step: Step) -> Statement:
    match step:
        case Read(space, key):
            return ["get", space, key]
        case Scan(space, first, below):
            return ["scan", space, first, below]
        case Insert(space, key, value):
            return ["insert", space, [key, value]]
        case Write(space, key, value):
            return ["replace", space, [key, value]]
        case Delete(space, key):
            return ["delete", space, key]
        case Cas(space, key, old, new):
            return ["cas", space, key, old, new]
        case Append(space, key, element):
            return ["append", space, key, element]
        case Take(space, key):
            return ["take", space, key]
        case Add(space, key, amount, None):
            return ["add", space, key, amount]
        case Add(space, key, amount, least):
            return ["add", space, key, amount, least]


def outcome_of(asked: Asked, reply: Reply) -> Outcome:
    """The outcome of the call, from its answer or the lack of one."""
    match reply:
        case Replied(Answer(data=(dict() as answer,))) if isinstance(asked, Transaction):
            return _answered(answer, asked)
        case Replied(Answer(_, ({"spaces": dict() as spaces},))) if isinstance(asked, Dump):
            return Done(({"spaces": spaces},))
        case Replied(Answer(data=data)):
            return unexpected(data, is_read=asked.is_read)
        case Replied(Refusal(code=code)):
            meaning, name = meaning_of(code)
            return Completion("fail" if asked.is_read else meaning, None, f"{name} ({code})")
        case NotSent(reason):
            return Completion("fail", None, reason)
        case Lost(reason):
            return failed(reason, is_read=asked.is_read)
        case Replied(other):
            return unexpected(other, is_read=asked.is_read)


def why_refused(message: object) -> str:
    """A refusal, or an unexpected answer, in words."""
    match message:
        case Refusal(code=code, message=text):
            return f"{text} (error {code})"[:200]
    return f"unexpected answer {message}"[:200]


def _answered(answer: dict[object, object], asked: Transaction) -> Outcome:
    role, mode = answer.get("role"), answer.get("mode")
    role = role if isinstance(role, str) else None
    mode = mode if isinstance(mode, str) else None
    committed, results = answer.get("committed", "not told"), answer.get("results")
    if isinstance(results, SEQUENCES) and len(results) == len(asked.steps):
        if committed is True:
            return _done(results, asked, role, mode)
        if committed is None:
            return failed(SUBMITTED, is_read=asked.is_read, role=role)
    match answer:
        case {"committed": False, "mismatch": (int() as number, found)}:
            return Mismatch(number, found, role, mode != DIRTY)
        case {"committed": False, "mismatch": _}:
            return Mismatch(None, None, role, mode != DIRTY)
        case _:
            return unexpected(answer, is_read=asked.is_read, role=role)


def _done(results: Sequence[object], asked: Transaction, role: str | None, mode: str | None) -> Outcome:
    """Tuples of [key, value] become values where a step asks for them."""
    shown: list[object] = []
    for step, result in zip(asked.steps, results, strict=True):
        # Most answers: a match would take as long as all else here.
        if isinstance(step, Read) and result is None:
            shown.append(None)
            continue
        match step, result:
            case Read(), [_, value]:
                shown.append(value)
            case Scan(), list() | tuple() if all(_is_pair(row) for row in result):
                shown.append([(key, value) for key, value in result])
            case Delete(), None:
                shown.append(False)
            case Delete(), list() | tuple() if _is_pair(result):
                shown.append(True)
            case ((Read() | Scan() | Delete()), _):
                return unexpected(results, is_read=asked.is_read, role=role)
            case _:
                shown.append(result)
    return Done(shown, role, mode)


def _is_pair(row: object) -> bool:
    return isinstance(row, SEQUENCES) and len(row) == 2
