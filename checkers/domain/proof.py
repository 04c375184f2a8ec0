"""The verdicts and witnesses of the domain checkers, and the faults that were active."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from checkers.history.errors import ModelError
from checkers.history.faults import CUTS, FaultSpan
from checkers.history.history import History
from checkers.history.operation import Operation
from checkers.history.values import value_words
from checkers.verdict import Verdict, Witness, concluded


def is_judged(read: Operation) -> bool:
    """Whether a read is judged: dirty reads have no promise, because what they show may be rolled back."""
    return read.mode != "dirty"


def listed(operation: Operation) -> list[Any]:
    """The elements that an answer shows: none if it is null. Raises ModelError for what is no list."""
    if operation.value is None:
        return []
    if isinstance(operation.value, list):
        return operation.value
    came = value_words(operation.value, 60)
    raise ModelError(expected="a list of elements", came=came, index=operation.invoke_index)


def caught_up(history: History) -> Callable[[Operation], bool]:
    """Whether a final state must hold everything: all was quiet before it, or the fixed owner gave it.

    If the record does not say whether all was quiet, the checker assumes that it was.
    """
    if history.settled is not False:
        return lambda final: True
    return lambda final: final.node is not None and final.node == history.header.owner


def verdict(
    name: str,
    promise: str,
    witnesses: Sequence[Witness],
    details: dict[str, Any],
    *,
    judged: int,
    valid: str,
) -> Verdict:
    """Invalid by the first of the witnesses; unknown if nothing was judged; else valid, in the words of `valid`."""
    details = {"violations": len(witnesses), "judged": judged, **details}
    if judged or witnesses:
        return concluded(name, witnesses, valid, model=promise, details=details)
    return Verdict(
        checker=name,
        result="unknown",
        summary="no operation says anything about it: there is nothing to judge",
        model=promise,
        details={**details, "vacuous": True},
    )


def nowhere(*, is_failed: bool) -> str:
    """Why no operation can have made what a read shows: every write of it failed, or there is none by then."""
    return "although every write of it surely failed" if is_failed else "which no client had asked to write"


def shown(value: Any) -> str:
    """A value in a sentence."""
    return value_words(value, 60)


# ---- faults


def active(history: History, operation: Operation) -> Iterator[FaultSpan]:
    """The faults that were, or may have been, in effect while the operation ran."""
    end_ns = operation.complete_ns if operation.complete_ns is not None else operation.invoke_ns
    for fault in history.faults:
        if fault.start_ns <= end_ns and (fault.end_ns is None or fault.end_ns >= operation.invoke_ns):
            yield fault


def while_active(history: History, operation: Operation) -> tuple[str, ...]:
    """A sentence for each active fault: its name, and on which side of it the node that answered (or was asked) was."""
    return tuple(_sentence(fault, operation) for fault in active(history, operation))


def _sentence(fault: FaultSpan, operation: Operation) -> str:
    node = operation.node
    unsure = "" if fault.took_effect else " (not known to have taken effect)"
    sentence = f"Meanwhile fault {fault.id} ({fault.name}) was active{unsure}"
    if node is None:
        return f"{sentence}."
    end_ns = operation.complete_ns if operation.complete_ns is not None else operation.invoke_ns
    links = fault.links_between(operation.invoke_ns, end_ns)
    cut = sorted({other for link in links if node in link for other in link if other != node})
    if fault.does in CUTS and fault.links:
        side = f"{node}, cut off from {', '.join(cut)}" if cut else f"{node}, which it did not touch"
    elif fault.nodes:
        side = f"{node}, which it hit" if node in fault.nodes else f"{node}, which it did not hit"
    else:
        side = node
    is_open = operation.type == "info" and not operation.is_submitted
    return f"{sentence}; {'the question went to' if is_open else 'the answer came from'} {side}."
