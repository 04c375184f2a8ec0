"""Crashes: a node that ended, or logged an assertion, although no fault ended it.

The monitor writes such an end as a line of its own. An end by the kernel's out-of-memory killer has a class of its
own, with the kernel's message. An assertion stands in a node's state under "assertion". If the monitor wrote no line
about a node, the node was not watched, and the verdict is unknown.

A fault may make a node end indirectly (`MAY_END_NODES`): a store may stop because its disk is full. The promise decides
whether that is allowed. The summary names the fault either way.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from checkers.history.faults import MAY_END_NODES, FaultSpan
from checkers.history.history import Crash, History, State
from checkers.verdict import Result, Verdict, Witness, concluded

NAME = "crash"
MODEL = "no node ends unexpectedly"
ASSERTION: Final = "AssertionError"
"""The first word of an end that an assertion of the node caused."""
BROKEN: Final = ("signal 4", "signal 7", "signal 8", "signal 11")
"""Ends that no fault excuses (SIGILL, SIGBUS, SIGFPE, SIGSEGV): a store that gives up does so in order, or aborts."""


def check(history: History, *, may_end_under: Collection[str] = (), promised: str = "") -> Verdict:
    """Whether all nodes lived until a fault or the harness ended them.

    `may_end_under`: actions in `MAY_END_NODES` under which the store may end; `promised`: the promise that allows it.
    """
    crashes = [(crash, _cause(crash, history.faults)) for crash in history.crashes]
    allowed = [entry for entry in crashes if _is_allowed(*entry, may_end_under)]
    witnesses = [_crashed(*entry, promised) for entry in crashes if entry not in allowed]
    witnesses += [_asserted(state) for state in _first_assertions(history)]
    watched = {state.node for state in history.states} | {crash.node for crash in history.crashes}
    unwatched = [node for node in history.header.nodes if node not in watched]
    details: dict[str, Any] = {
        "crashes": len(history.crashes),
        "violations": len(witnesses),
        "states": len(history.states),
        "unwatched": unwatched,
    }
    if allowed:
        details["findings"] = [_in_words(*entry, f"{_of(promised)} allows that") for entry in allowed]
    result: Result = "valid"
    summary = "no node ended unexpectedly"
    if unwatched or not watched:
        result, summary = "unknown", f"not watched: {', '.join(unwatched) or 'the nodes'}"
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)


def _cause(crash: Crash, faults: Collection[FaultSpan]) -> FaultSpan | None:
    """The fault that was active on the node when it ended, and may be the cause; of several the one that began last.

    A fault that had no effect is no cause. A fault without an end line may have had one.
    """
    at_work = [
        fault
        for fault in faults
        if fault.does in MAY_END_NODES
        and (fault.took_effect or fault.end_ns is None)
        and crash.node in fault.nodes
        and fault.start_ns <= crash.time_ns
        and (fault.end_ns is None or crash.time_ns <= fault.end_ns)
    ]
    return max(at_work, key=lambda fault: fault.start_ns, default=None)


def _is_allowed(crash: Crash, cause: FaultSpan | None, may_end_under: Collection[str]) -> bool:
    return cause is not None and cause.does in may_end_under and crash.how not in BROKEN


def _in_words(crash: Crash, cause: FaultSpan | None, judgement: str) -> str:
    assert cause is not None, "only an end with a cause is in question"
    since_ns = crash.time_ns - (cause.first_effect_ns or cause.start_ns)
    did = MAY_END_NODES[cause.does](cause)
    return (
        f"{crash.node} ended {max(0, since_ns) / 1e9:.1f} s after fault {cause.id} ({cause.name}) {did}: {crash.how}; "
        f"{judgement}"
    )


def _of(promised: str) -> str:
    return f"the promise of {promised}" if promised else "its promise"


def _crashed(crash: Crash, cause: FaultSpan | None, promised: str) -> Witness:
    rule, summary = "crash", f"{crash.node} ended although no fault ended it: {crash.how}"
    if crash.how.startswith(ASSERTION):
        summary = f"{crash.node} stopped with an assertion{crash.how.removeprefix(ASSERTION)}"
    if crash.out_of_memory:
        rule = "out-of-memory"
        summary = f"{crash.node} was ended by the kernel, which no fault asked to: {crash.out_of_memory}"
    elif cause is not None:
        summary = _in_words(crash, cause, f"{_of(promised)} does not allow that")
    return Witness(
        rule=rule,
        summary=summary,
        events=(crash.index,) if cause is None else (cause.start_index, crash.index),
        node=crash.node,
        start_ns=crash.time_ns,
        end_ns=crash.time_ns,
        explanation=crash.last_words,
    )


def _first_assertions(history: History) -> list[State]:
    """The first state line of each node and assertion: a node may repeat it for as long as it is asked."""
    first: dict[tuple[str, str], State] = {}
    for state in history.states:
        text = state.status.get("assertion")
        if text:
            first.setdefault((state.node, str(text)), state)
    return list(first.values())


def _asserted(state: State) -> Witness:
    return Witness(
        rule="assertion",
        summary=f"{state.node} logged an assertion: {state.status['assertion']}",
        events=(state.index,),
        node=state.node,
        start_ns=state.time_ns,
        end_ns=state.time_ns,
    )
