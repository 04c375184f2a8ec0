"""The two calls that all workloads use, and what their answers mean. A store that answers them can be put under test.

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

`least` may be left out. A statement sees what those before it did. What the answer must keep to:

- An answer comes when everything that it shows is confirmed. A transaction that only reads sees one moment of the
  confirmed data (modes `read-confirmed` and `linearizable`), or of what is prepared (`dirty`). One that writes decides
  on what is prepared, and answers when it is confirmed itself. One that was to write and changed nothing (a
  mismatch, a `take` of nothing) answers when what it looked at is confirmed, and is an error if that is rolled back.
- A store that cannot wait so says `mode` "dirty", whatever was asked: then nothing is concluded from what it shows.
- If it was to wait for no more (`submit`, `none`), `committed` may be nil: it is whole in the store's queue, behind all
  that was answered before it was asked for. That is no acknowledgement: it may be confirmed at any later time or never;
  but a store that acknowledges a later write, or shows it, has decided this one.
- An error is an error of the call, with the store's code: `harness.clients.errors` says which ones mean "surely not
  done". A transaction is never carried out in part, and never tried a second time by itself.

`qsync.dump()` returns one map: {"spaces": {space: [tuple, …]}}, all that is confirmed on the node that is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from checkers.history.operation import SUBMITTED
from harness.clients.answers import failure_of, refusal_completion
from harness.clients.completion import Completion
from harness.protocols import Replied, Reply
from nodes.iproto.messages import Answer, Call

Statement = list[object]

TRANSACTION = "qsync.transaction"
DUMP = "qsync.dump"
DIRTY = "dirty"


@dataclass(frozen=True, slots=True)
class Committed:
    """It happened: what each statement gave."""

    results: Sequence[object]
    role: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """It surely did not happen, for statement `number` found something else than it wanted."""

    number: int | None
    found: object
    role: str | None
    is_confirmed: bool = True
    """What it found cannot be rolled back any more."""

    @property
    def error(self) -> str:
        """The word of the history: a plain "mismatch" observes what was there."""
        return "mismatch" if self.is_confirmed else "mismatch with what may be rolled back"


def transaction(
    sync: int, statements: Sequence[Statement], mode: str | None = None, wait: str | None = None
) -> Call:
    """The call for these statements; `mode` is the read mode, `wait` the commit wait mode, None for the store's own."""
    options = {**({"read": mode} if mode else {}), **({"wait": wait} if wait else {})}
    return Call(sync, TRANSACTION, (list(statements), options))


def dump(sync: int) -> Call:
    return Call(sync, DUMP, ())


def outcome(reply: Reply, count: int, *, is_read: bool) -> Committed | Refused | Completion:
    """What became of a transaction of `count` statements; `Completion` if there is no answer of the kind told above.

    `is_read`: it could change nothing, so that an error means no more than "no answer".
    """
    match reply:
        case Replied(Answer(_, (dict() as answer,))):
            return _answered(answer, count, is_read=is_read)
        case Replied(Answer() as answer):
            return unexpected(answer.data, is_read=is_read)
        case Replied(refusal):
            return refusal_completion(refusal, is_read=is_read)
        case _:
            return failure_of(reply, is_read=is_read)


def _answered(answer: dict[object, object], count: int, *, is_read: bool) -> Committed | Refused | Completion:
    match answer:
        case {"committed": True, "results": (list() | tuple()) as results} if len(results) == count:
            return Committed(results, role_of(answer))
        case {"committed": None, "results": (list() | tuple()) as results} if len(results) == count:
            return Completion("fail" if is_read else "info", None, SUBMITTED, role_of(answer))
        case {"committed": False, "mismatch": (int() as number, found)}:
            return Refused(number, found, role_of(answer), answer.get("mode") != DIRTY)
        case {"committed": False, "mismatch": _}:
            return Refused(None, None, role_of(answer), answer.get("mode") != DIRTY)
        case _:
            return unexpected(answer, is_read=is_read, role=role_of(answer))


def dump_completion(reply: Reply) -> Completion:
    """What became of a dump."""
    match reply:
        case Replied(Answer(_, ({"spaces": dict() as spaces},))):
            return Completion("ok", {"spaces": spaces})
        case Replied(Answer() as answer):
            return unexpected(answer.data, is_read=True)
        case Replied(refusal):
            return refusal_completion(refusal, is_read=True)
        case _:
            return failure_of(reply, is_read=True)


def unexpected(data: object, *, is_read: bool, role: str | None = None) -> Completion:
    """The store answered something that makes no sense: of a write nobody knows then."""
    return Completion("fail" if is_read else "info", None, f"unexpected answer {data!r}"[:200], role)


def role_of(answer: dict[object, object]) -> str | None:
    role = answer.get("role")
    return role if isinstance(role, str) else None


def mode_of(reply: Reply) -> str | None:
    """How the store says that it read; None if it does not say."""
    match reply:
        case Replied(Answer(_, ({"mode": str() as mode},))):
            return mode
    return None
