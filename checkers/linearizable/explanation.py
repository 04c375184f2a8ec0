"""A proof in sentences: the observations, and why no order of the operations explains them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from checkers.history.operation import Operation, both
from checkers.history.values import identity, value_words
from checkers.linearizable.models import Model, Register, State
from checkers.linearizable.shrinking import Proof
from checkers.verdict import Witness

LISTED_MAX = 12
WRITERS_MAX = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a proof is one. `short` goes on after "process 4 read 7 at n1, "; `operations` are those it speaks of."""

    rule: str
    short: str
    sentences: tuple[str, ...] = ()
    operations: tuple[Operation, ...] = ()


def witness(model: Model, proof: Proof, key: str | None, history: Sequence[Operation]) -> Witness:
    """The witness of a proof. `history` are all operations on the key, those that failed included; empty: unknown."""
    reason = _reason(proof, history, model.initial) if isinstance(model, Register) and history else _NO_ORDER
    failing = proof.failing.operation
    shown = [subject.operation for subject in proof.subjects]
    named = [*shown, *reason.operations, *_makers(proof)]
    place = "" if key is None else f"key {key}: "
    return Witness(
        rule=reason.rule,
        summary=f"{place}{sentence(failing)}, {reason.short}",
        events=tuple(sorted({event for operation in named for event in operation.events})),
        key=key,
        node=failing.node,
        start_ns=min(operation.invoke_ns for operation in named),
        end_ns=max(failing.complete_ns or 0, failing.invoke_ns),
        explanation=(*reason.sentences, *_listed(proof)),
    )


def sentence(operation: Operation) -> str:
    """A request and its answer: "process 4 read 7 at n1"."""
    place = f" at {operation.node}" if operation.node else ""
    return f"process {operation.process} {_deed(operation)}{place}"


def _deed(operation: Operation) -> str:
    value = operation.value
    match operation.f, operation.type:
        case "read", _:
            return f"read {value_words(value)}"
        case "write", "ok" if operation.is_deletion:
            return f"deleted {_place(operation)}"
        case "write", _ if operation.found_nothing:
            return f"got the answer that {_place(operation)} holds nothing"
        case "write", _ if operation.is_deletion:
            return f"asked to delete {_place(operation)} ({_fate(operation)})"
        case "write", "ok":
            return f"wrote {value_words(value)}"
        case "write", _:
            return f"asked to write {value_words(value)} ({_fate(operation)})"
        case "cas", "ok":
            return f"changed {value_words(value[0])} to {value_words(value[1])}"
        case "cas", "fail" if operation.error == "mismatch":
            return f"got the answer that the value is not {value_words(value[0])}"
        case "cas", _:
            return f"asked to change {value_words(value[0])} to {value_words(value[1])} ({_fate(operation)})"
        case (("dequeue" | "pop" | "poll"), _) if operation.saw_empty:
            return f"got the answer that the {'stack' if operation.f == 'pop' else 'queue'} is empty"
        case (("acquire" | "release"), _):
            named = f" as {value_words(value)}" if value is not None else ""
            did = f"{operation.f}d" if operation.type == "ok" else f"asked to {operation.f}"
            fate = "" if operation.type == "ok" else f" ({_fate(operation)})"
            lock = "the lock" if operation.key is None else f"lock {operation.key}"
            return f"{did} {lock}{named}{fate}"
        case (("get" | "dequeue" | "pop" | "poll"), "ok"):
            return f"was given {value_words(value)} ({operation.f})"
        case "txn", "ok":
            return "; ".join(
                f"{'read' if word[0] == 'r' else 'wrote'} {key}={value_words(shown)}"
                for word, key, shown in value
            )
    if operation.type != "ok":
        return f"asked to {operation.f} {value_words(value)} ({_fate(operation)})"
    return f"did {operation.f} {value_words(value)}"


def _deed_of(operation: Operation) -> str:
    by = f"by process {operation.process}"
    if operation.f == "cas":
        old, new = both(operation)
        return f"the change of {value_words(old)} to {value_words(new)} {by}"
    if operation.is_deletion:
        return f"the deletion {by}{', which found nothing,' if operation.found_nothing else ''}"
    return f"the {operation.f} of {value_words(operation.value)} {by}"


def _place(operation: Operation) -> str:
    return "the value" if operation.key is None else f"key {operation.key}"


def _fate(operation: Operation) -> str:
    return "it failed" if operation.type == "fail" else "its outcome is unknown"


def _gap(between: str, from_: Operation, to: Operation) -> str:
    """From the end of one to the beginning of the other: "1.2 ms later", or without times just "later"."""
    if not to.has_times:
        return between
    return f"{(to.invoke_ns - (from_.complete_ns or 0)) / 1e6:.1f} ms {between}"


def _began(operation: Operation) -> str:
    return f"{operation.invoke_ns / 1e9:.4f} s" if operation.has_times else f"event {operation.invoke_index}"


def _ended(operation: Operation) -> str:
    if operation.complete_ns is None:
        return "?"
    return (
        f"{operation.complete_ns / 1e9:.4f} s" if operation.has_times else f"event {operation.complete_index}"
    )


def _listed(proof: Proof) -> list[str]:
    """The operations of the proof, one a sentence, and the conclusion."""
    lines = []
    if proof.start_event is not None:
        lines.append(
            f"Before them, after event {proof.start_event}, the value surely was {value_words(proof.start)}."
        )
    shown = proof.subjects[-LISTED_MAX:]
    if len(shown) < len(proof.subjects):
        lines.append(f"The first {len(proof.subjects) - len(shown)} operations are not listed here.")
    for subject in shown:
        operation = subject.operation
        until = _ended(operation) if subject.call.complete is not None else "open"
        lines.append(f"{_began(operation)} – {until}: {sentence(operation)}.")
    count = len(proof.subjects)
    if count == 1:
        lines.append("This operation cannot have had its answer.")
    else:
        lines.append(
            f"No order of these {count} operations, within real time, gives all of them their answers."
        )
    return lines


def _makers(proof: Proof) -> list[Operation]:
    """The operation that fixed the value with which the proof begins."""
    return [] if proof.after is None else [proof.after.operation]


def _makes(operation: Operation, value: State) -> bool:
    """Whether the operation, if it happened, left `value` behind."""
    if operation.f == "write":
        return identity(operation.value) == value
    return operation.f == "cas" and identity(operation.value[1]) == value


def _reason(proof: Proof, history: Sequence[Operation], initial: State) -> Reason:
    action = proof.failing.call.action
    match action.word:
        case "read" | "is" | "cas":
            return _cannot_have_seen(proof, action.values[0], history, initial)
        case "is-not":
            return Reason("false-mismatch", f"but it was {value_words(action.values[0])} all that time")
        case "empty":
            return Reason("false-empty", "but something was in it all that time")
    return _NO_ORDER


_NO_ORDER = Reason("not-linearizable", "which fits into no order with the other answers")


def _written_as_another_kind(value: State, history: Sequence[Operation]) -> str:
    """In words, that a text was read for a number, or a number for a text: a client that does not parse answers."""
    if type(value) is int:
        other: State = str(value)
        words = " as a number, only as a text"
    elif isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        other, words = int(value), " as a text, only as a number"
    else:
        return ""
    return words if any(_makes(operation, other) for operation in history) else ""


def _cannot_have_seen(proof: Proof, value: State, history: Sequence[Operation], initial: State) -> Reason:
    """Why the failing operation cannot have seen `value`."""
    failing = proof.failing.operation
    saw = {"read": "read", "write": "deletion"}.get(failing.f, "compare")
    writers = [operation for operation in history if operation is not failing and _makes(operation, value)]
    possible = [writer for writer in writers if writer.type != "fail"]
    if value is None and initial is not None and not writers:
        return Reason("never-written", f"but it began as {value_words(initial)}, and no client deleted it")
    if value != initial and not writers:
        kind = _written_as_another_kind(value, history)
        return Reason("never-written", f"but no client ever asked to write {value_words(value)}{kind}")
    if value != initial and not possible:
        return _failed(saw, value, writers)
    if value != initial and all(failing.precedes(writer) for writer in possible):
        return _future(saw, value, failing, possible)
    overwriter = _overwriter(proof, value, possible)
    if overwriter is not None:
        return _stale(saw, value, failing, possible, overwriter)
    if proof.start_event is not None and len(proof.subjects) == 1:
        was = value_words(proof.start)
        return Reason(
            _NO_ORDER.rule, f"but before that the value surely was {was}, and nothing since left that"
        )
    return _NO_ORDER


def _failed(saw: str, value: State, writers: Sequence[Operation]) -> Reason:
    shown = tuple(writers[:WRITERS_MAX])
    lines = (f"{sentence(writer)}{f': {writer.error}' if writer.error else ''}." for writer in shown)
    sentences = tuple(line[0].upper() + line[1:] for line in lines)
    return Reason(
        f"{saw}-of-failed-write",
        f"but every write of {value_words(value)} had surely failed",
        sentences,
        shown,
    )


def _future(saw: str, value: State, failing: Operation, writers: Sequence[Operation]) -> Reason:
    first = min(writers, key=lambda writer: writer.invoke_index)
    later = _gap("later", failing, first)
    return Reason(
        f"{saw}-from-the-future",
        f"but no client had asked to write {value_words(value)} until {later}",
        (),
        (first,),
    )


def _overwriter(proof: Proof, value: State, writers: Sequence[Operation]) -> Operation | None:
    """An operation that surely came after all `writers` of `value` and was over before the failing one began."""
    changing = [subject.operation for subject in proof.subjects if subject.call.action.kind != "observe"]
    makers = [] if proof.start == value else _makers(proof)
    for operation in [*reversed(changing), *makers]:
        after_all = all(writer.precedes(operation) for writer in writers)
        if operation not in writers and operation.precedes(proof.failing.operation) and after_all:
            return operation
    return None


def _stale(
    saw: str, value: State, failing: Operation, writers: Sequence[Operation], overwriter: Operation
) -> Reason:
    gap = _gap("before", overwriter, failing)
    sentences = [
        (
            f"{sentence(failing)}, asked at {_began(failing)}, although {_deed_of(overwriter)} had completed at "
            f"{_ended(overwriter)}, {gap} it began."
        )
    ]
    for writer in writers[:WRITERS_MAX]:
        early = _gap("before", writer, overwriter)
        sentences.append(
            f"{_deed_of(writer)} had completed at {_ended(writer)}, {early} that one was asked for."
        )
    if not writers:
        change = "deletion" if value is None else f"write of {value_words(value)}"
        sentences.append(
            f"no {change} took effect: {value_words(value)} is the value before the first write."
        )
    return Reason(
        f"stale-{saw}",
        f"although {_deed_of(overwriter)} had completed {gap} that began",
        tuple(line[0].upper() + line[1:] for line in sentences),
        (*writers[:WRITERS_MAX], overwriter),
    )
