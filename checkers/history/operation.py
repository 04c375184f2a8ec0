"""The two words of every history: event and operation.

An *event* is one line of the record: something was asked (`invoke`) or a question ended (`ok`, `fail`,
`info`). An *operation* is an invocation with its completion.

- ok: it happened, and this is the answer
- fail: it surely did not happen
- info: the outcome is unknown; it may take effect at any later time, or never. An invocation without completion is
  info.

Real time is the order of the event indexes, never the clock: one operation precedes another if it completed
at a smaller index than the other was invoked at. Everything else is concurrent.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Any, Literal

import msgspec

from checkers.history.errors import ModelError
from checkers.history.values import Value, identity, value_words

EventType = Literal["invoke", "ok", "fail", "info"]
Outcome = Literal["ok", "fail", "info"]
Phase = Literal["load", "final"]
Process = int | str

FASTEST_NS = 10
"""No record has an event in less time than this, on average. Logs of other tools may have no times: then the order of
their lines stands for it (`checkers.history.foreign`), and seconds would be made up."""
READS = ("r", "read", "rp")
"""The micro-operations that write nothing."""
TAKES = frozenset({"dequeue", "pop", "poll"})
"""The operations that take an element out of a queue or stack, if it has one."""
EMPTY = frozenset({"empty", "exhausted", "queue-empty"})
"""The errors of a dequeue that was refused because the queue held nothing."""
NOTHING_THERE = "nothing-there"
"""The error of a deletion (a write of null) that was refused because nothing was under its key."""
SUBMITTED = "submitted"
"""The error of an info that was answered all the same: the store has the write in its queue, and says no more."""


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One line. `index` counts from 0 without gaps; `time_ns` is monotonic since the run began.

    `process` is an int for a client and a word ("nemesis", "monitor", "harness") for everybody else. `value`
    is any JSON value. `wait` is the commit wait mode that was asked for (complete, submit, none), if one was.
    `transaction` is the store's own name for what it did, if it tells one: nodes' logs name it so, too. Fields that a
    line leaves out are None (`phase`: "load"); unknown fields are ignored.
    """

    index: int
    time_ns: int
    type: EventType
    process: Process
    f: str
    key: str | None = None
    value: Any = None  # JSON's door: what it holds depends on f
    node: str | None = None
    role: str | None = None
    mode: str | None = None
    error: str | None = None
    phase: Phase = "load"
    wait: str | None = None
    transaction: str | None = None


class Operation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One client's request and its outcome.

    `value` is the answer's if it was ok and had one, else the question's. `complete_index` and `complete_ns`
    are None only if no completion was recorded; for an info operation they tell when the client gave up,
    which says nothing about when the operation takes effect: use `returned_index` for real time.
    """

    type: Outcome
    process: int
    f: str
    key: str | None
    value: Any  # JSON's door
    invoke_index: int
    invoke_ns: int
    complete_index: int | None
    complete_ns: int | None
    node: str | None = None
    role: str | None = None
    mode: str | None = None
    error: str | None = None
    phase: Phase = "load"
    wait: str | None = None
    transaction: str | None = None

    @property
    def is_submitted(self) -> bool:
        """Answered when it was in the queue: not an acknowledgement, the outcome is unknown."""
        return self.type == "info" and self.error == SUBMITTED

    @property
    def saw_empty(self) -> bool:
        """A dequeue (pop, poll) that found nothing: answered with nothing, or refused with such an error."""
        if self.f not in TAKES:
            return False
        return self.value is None if self.type == "ok" else self.type == "fail" and self.error in EMPTY

    @property
    def only_reads(self) -> bool:
        """A read, or a transaction of reads alone."""
        if self.f != "txn":
            return self.f == "read"
        micros = self.value if isinstance(self.value, list | tuple) else (None,)
        return all(isinstance(micro, list | tuple) and micro and micro[0] in READS for micro in micros)

    @property
    def is_deletion(self) -> bool:
        """A write of null: afterwards the key holds nothing, as before its first write."""
        return self.f == "write" and self.value is None

    @property
    def found_nothing(self) -> bool:
        """A deletion that changed nothing: its answer says that nothing was there, as a read of null does."""
        return self.is_deletion and self.type == "fail" and self.error == NOTHING_THERE

    @property
    def queued_index(self) -> int | None:
        """The event by which it had its place in the order of writes, if it has one; None if that is not known."""
        return self.complete_index if self.type == "ok" or self.is_submitted else None

    @property
    def returned_index(self) -> int | None:
        """The event by which the operation surely was over; None for info, which may still happen."""
        return None if self.type == "info" else self.complete_index

    @property
    def events(self) -> tuple[int, ...]:
        """The indexes of its lines: what a witness points to."""
        if self.complete_index is None:
            return (self.invoke_index,)
        return (self.invoke_index, self.complete_index)

    @property
    def has_times(self) -> bool:
        """Whether its times are those of a clock, not places in a file (`FASTEST_NS`)."""
        last_ns = self.invoke_ns if self.complete_ns is None else self.complete_ns
        return last_ns > FASTEST_NS * (self.events[-1] + 1)

    def precedes(self, other: Operation) -> bool:
        """Surely over before the other was asked."""
        returned = self.returned_index
        return returned is not None and returned < other.invoke_index


def both(cas: Operation) -> tuple[Any, Any]:
    """The values that a compare-and-set expects and leaves. Behind them may stand the value that was there.

    Raises ModelError if it does not say both.
    """
    if not isinstance(cas.value, list | tuple) or len(cas.value) not in (2, 3):
        came = value_words(cas.value, 60)
        raise ModelError(expected="[old, new] of a cas", came=came, index=cas.invoke_index)
    return cas.value[0], cas.value[1]


def same_both(cas: Operation) -> tuple[Value, Value]:
    """`both` as identities."""
    old, new = both(cas)
    return identity(old), identity(new)


def leaves(writer: Operation) -> Any:
    """The value that a write or a compare-and-set would leave. Raises ModelError as `both`."""
    return both(writer)[1] if writer.f == "cas" else writer.value


def micros(operation: Operation) -> Iterator[tuple[str, str, Any]]:
    """(f, key, value) of the micro-operations of a transaction. Raises ModelError if one is something else."""
    for micro in operation.value if isinstance(operation.value, list | tuple) else (operation.value,):
        if not isinstance(micro, list | tuple) or len(micro) != 3:
            came = value_words(micro, 60)
            raise ModelError(expected="[f, key, value]", came=came, index=operation.invoke_index)
        f, key, value = micro
        yield f, str(key), value


ASKED = frozenset({"write", "put", "append", "add", "enqueue", "cas"})
"""Operations whose value is asked for: an answer has the same one, or none."""


_READS = (["r"], ["read"], ["rp"], ["poll"])


def answers(invoke: Event, completion: Event) -> bool:
    """Whether the completion is about what was asked: the same operation, key and value to be written.

    Of one that failed, or has an unknown outcome, a value of another type than was asked for may be its error.
    """
    asked, answered = invoke.value, completion.value
    if completion.f != invoke.f or (completion.key is not None and completion.key != invoke.key):
        return False
    if invoke.f == "txn" and completion.type == "ok" and answered is None and isinstance(asked, list):
        # The question stands for the answer, and would say that each read found nothing.
        return not any(isinstance(micro, list) and micro[:1] in _READS for micro in asked)
    if asked is None or answered is None:
        return True
    if invoke.f == "txn":
        return completion.type != "ok" or _of_transaction(asked) == _of_transaction(answered, is_answer=True)
    if invoke.f not in ASKED or (completion.type != "ok" and type(asked) is not type(answered)):
        return True
    if invoke.f == "cas" and isinstance(asked, list) and isinstance(answered, list):
        asked, answered = asked[:2], answered[:2]  # behind the two may stand what was there
    is_row = invoke.f == "add" and isinstance(answered, dict | list)  # with what the store added to it
    return is_row or identity(asked) == identity(answered)


def _of_transaction(value: Any, *, is_answer: bool = False) -> Any:
    """The question of each micro-operation. Left out are predicates' reads, to which an answer may add, and polls."""
    if not isinstance(value, list):
        return value
    return [
        [*map(identity, _question(micro, is_answer=is_answer))]
        for micro in value
        if isinstance(micro, list) and len(micro) > 1 and micro[0] not in ("rp", "poll")
    ]


def _question(micro: list[Any], *, is_answer: bool) -> list[Any]:
    if micro[0] in ("r", "read"):
        return micro[:2]
    if micro[0] == "send" and is_answer and isinstance(micro[-1], list):
        return [*micro[:-1], *micro[-1][1:]]  # the answer has the offset, too
    return micro


def _shows_logs(completion: Event) -> bool:
    """Whether an operation that failed, or whose outcome is unknown, shows what it polled from a log, or where in it
    its entries stand: that much it surely saw.
    """
    return isinstance(completion.value, list) and any(
        isinstance(micro, list)
        and len(micro) > 1
        and (micro[0] == "poll" or (micro[0] == "send" and isinstance(micro[-1], list)))
        for micro in completion.value
    )


def _kept_once(word: str | None) -> str | None:
    """Each line brings words of its own; millions of operations share a few keys, nodes and errors."""
    return None if word is None else intern(word)


def paired(invoke: Event, completion: Event | None) -> Operation:
    """The operation of an invocation and what ended it (None: nothing did)."""
    assert isinstance(invoke.process, int), invoke
    outcome: Outcome = "info"
    told = invoke
    if completion is not None:
        assert completion.type != "invoke", completion
        outcome, told = completion.type, completion
    answered = told.value is not None and (outcome == "ok" or _shows_logs(told))
    return Operation(
        type=outcome,
        process=invoke.process,
        f=intern(invoke.f),
        key=_kept_once(invoke.key),
        value=told.value if answered else invoke.value,
        invoke_index=invoke.index,
        invoke_ns=invoke.time_ns,
        complete_index=None if completion is None else completion.index,
        complete_ns=None if completion is None else completion.time_ns,
        node=_kept_once(invoke.node if told.node is None else told.node),
        role=_kept_once(invoke.role if told.role is None else told.role),
        mode=_kept_once(invoke.mode if told.mode is None else told.mode),
        error="no completion was recorded" if completion is None else _kept_once(completion.error),
        phase=invoke.phase,
        wait=_kept_once(invoke.wait),
        transaction=None if completion is None else completion.transaction,
    )
