"""Crashes: a node that ended, or logged an assertion, although no fault told it to.

The monitor writes such an end as a line of its own: one that the kernel ended for want of memory is of a class of its
own, with what the kernel said. An assertion stands in a node's state under "assertion".
Without any line of the monitor for a node nobody watched it, and the verdict is unknown.
"""

from __future__ import annotations

from checkers.history.history import Crash, History, State
from checkers.verdict import WITNESSES_MAX, Verdict, Witness

NAME = "crash"
MODEL = "no node ends untold"


def check(history: History) -> Verdict:
    """Whether all nodes lived for as long as they were let."""
    witnesses = [_crashed(crash) for crash in history.crashes]
    witnesses += [_asserted(state) for state in _first_assertions(history)]
    seen = {state.node for state in history.states} | {crash.node for crash in history.crashes}
    unwatched = [node for node in history.header.nodes if node not in seen]
    details = {
        "crashes": len(history.crashes),
        "violations": len(witnesses),
        "states": len(history.states),
        "unwatched": unwatched,
    }
    if witnesses:
        more = "" if len(witnesses) == 1 else f" (and {len(witnesses) - 1} more)"
        return Verdict(
            checker=NAME,
            result="invalid",
            summary=witnesses[0].summary + more,
            model=MODEL,
            witnesses=tuple(witnesses[:WITNESSES_MAX]),
            details=details,
        )
    if unwatched or not seen:
        who = ", ".join(unwatched) or "the nodes"
        return Verdict(
            checker=NAME, result="unknown", summary=f"nobody watched {who}", model=MODEL, details=details
        )
    return Verdict(checker=NAME, result="valid", summary="no node ended untold", model=MODEL, details=details)


def _crashed(crash: Crash) -> Witness:
    rule, why = "crash", f"although no fault told it to: {crash.how}"
    if crash.out_of_memory:
        rule, why = "out-of-memory", f"by the kernel, which no fault asked to: {crash.out_of_memory}"
    return Witness(
        rule=rule,
        summary=f"{crash.node} was ended {why}" if crash.out_of_memory else f"{crash.node} ended {why}",
        events=(crash.index,),
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
