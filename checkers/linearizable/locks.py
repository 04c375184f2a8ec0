"""Locks: acquire, release. `models` explains models.

| name | a lock |
|---|---|
| mutex | is held once at most; whoever calls may release it |
| owner-aware-mutex | is released by its owner alone |
| reentrant-mutex | and its owner may acquire it again: it is free after as many releases |
| fenced-mutex | is owner-aware, and each acquisition has a greater fence than all before |
| reentrant-fenced-mutex | both; an acquisition of its owner has the fence of the first one |

The owner is the client that the value names, as text, number, or {client, fence}; else it is the process. After an
operation without an answer the process never goes on, but its client may: so a lock that a process may hold can be
released by any client that is named. An acquisition without a fence (none, or 0) proves nothing about fences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from checkers.history.errors import ModelError
from checkers.history.operation import Operation
from checkers.history.values import exact, identity, value_words
from checkers.linearizable.models import ILLEGAL, Action, Illegal, State
from checkers.linearizable.objects import Sequential, strange

ANYBODY: State = ("anybody", None)


class _Held(NamedTuple):
    """The state of a lock: by whom it is held, how often, with which fence, and the greatest fence so far."""

    owner: Any = None
    times: int = 0
    fence: Any = None
    greatest: Any = None


FREE: State = _Held()


@dataclass(frozen=True, slots=True)
class Mutex(Sequential):
    """A lock of any of these kinds."""

    name: str = "mutex"
    initial: State = FREE
    has_owner: bool = False
    is_reentrant: bool = False
    is_fenced: bool = False

    def state(self, value: Any) -> State:
        raise ModelError(
            expected="no start value: a lock is free at first", came=value_words(value, 60), index=None
        )

    def done(self, operation: Operation, answered: bool) -> Action | None:
        if operation.f not in ("acquire", "release"):
            raise strange(operation, "acquire or release")
        owner = _owner(operation) if self.has_owner else ANYBODY
        has_fence = answered and self.is_fenced and operation.f == "acquire"
        fence = _fence(operation) if has_fence else None
        return Action("update", operation.f, (owner, fence))

    def step(self, state: Any, action: Action) -> State | Illegal:
        owner, fence = action.values
        held: _Held = state
        if action.word == "release":
            if not held.times or not _may_be(held.owner, owner):
                return ILLEGAL
            return held._replace(times=held.times - 1) if held.times > 1 else _Held(greatest=held.greatest)
        if not held.times:
            return self._acquired(_Held(owner, 1, fence, held.greatest))
        if not self.is_reentrant or not _may_be(held.owner, owner):
            return ILLEGAL
        again = held._replace(owner=owner, times=held.times + 1)
        if held.fence is None or fence is None:
            return self._acquired(again._replace(fence=fence)) if held.fence is None else again
        return again if fence == held.fence else ILLEGAL

    def shown(self, state: Any) -> str:
        held: _Held = state
        if not held.times:
            return "free"
        kind, name = held.owner
        by = "" if held.owner == ANYBODY else f" by {kind} {name}"
        often = "" if held.times == 1 else f", {held.times} times"
        return f"held{by}{often}" + ("" if held.fence is None else f", fence {held.fence}")

    def _acquired(self, held: _Held) -> State | Illegal:
        """The state with the greatest fence; ILLEGAL if its fence is not greater than those before."""
        if held.fence is None:
            return held
        if held.greatest is not None and held.fence <= held.greatest:
            return ILLEGAL
        return held._replace(greatest=held.fence)


def _may_be(owner: Any, who: Any) -> bool:
    """Whether the owner is the one who calls, or may be: a process that may hold the lock, and a client with a name."""
    return bool(owner == who or (owner[0] == "process" and who[0] == "client"))


def _owner(operation: Operation) -> State:
    value = operation.value
    client = value.get("client") if isinstance(value, dict) else value
    return ("process", operation.process) if client is None else ("client", identity(client))


def _fence(operation: Operation) -> State:
    fence = operation.value.get("fence") if isinstance(operation.value, dict) else None
    number = exact(fence)
    if fence is not None and number is None:
        raise strange(operation, "a number as fence")
    return number or None
