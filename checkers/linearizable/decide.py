"""Which algorithm looks at which calls.

| calls | decided by |
|---|---|
| a register's reads and writes, every value written once | `zones`: linear |
| a set's or a queue's, every element put in once | `monitors`: n log n |
| few, and the compiled search was not loaded yet | `search`, for a moment: loading takes longer than most such ones |
| any, and compiling would take until the deadline | `search` |
| all others | `forward`, the compiled search; `search` where there is no compiler |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from checkers.compiled import waiting_for
from checkers.linearizable import forward, monitors, search, search_kernels, zones
from checkers.linearizable.columns import NOTHING, Columns, register_columns, tied
from checkers.linearizable.models import Action, Kind, Model, Register, State
from checkers.linearizable.search import Call, Found, Limits
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE, UPDATE

FEW = 48  # calls on which the plain search is done before arrays are laid out
COLD_CALLS = 5_000
WAIT_S = {"loading": 0.4, "compiling": 15.0}  # what it takes to have the compiled search ready
COLD_S = {"loading": 0.4, "compiling": 4.0}  # how long the plain one is tried before
COLD_CONFIGURATIONS = 5_000
ACTIONS: dict[int, tuple[Kind, str]] = {
    OBSERVE: ("observe", "read"),
    REFUSE: ("observe", "is-not"),
    OVERWRITE: ("overwrite", "write"),
    UPDATE: ("update", "cas"),
}
"""What the kinds of columns are to a register."""


def decide(
    model: Model, calls: Sequence[Call], limits: Limits, starts: Sequence[State] | None = None
) -> Found:
    """Whether the calls have an order; see `search.search` for the arguments and the answer."""
    if isinstance(model, Register) and (starts is None or len(starts) == 1) and len(calls) > 1:
        found = _by_zones(calls, model.initial if starts is None else starts[0])
        if found is not None:
            return found
    if starts is None or tuple(starts) == (model.initial,):
        watched = monitors.decide(model, calls)
        if watched is not None:
            return watched
    if len(calls) <= FEW:
        return search.search(model, calls, limits, starts)
    found = _without_waiting(model, calls, limits, starts)
    if found is not None:
        return found
    if forward.can_run():
        return forward.search(model, calls, limits, starts)
    return search.search(model, calls, limits, starts)


def _without_waiting(
    model: Model, calls: Sequence[Call], limits: Limits, starts: Sequence[State] | None
) -> Found | None:
    """The plain search's answer where the compiled one would keep us waiting; None if it is worth the wait."""
    waiting = waiting_for(search_kernels, "advance")
    if waiting == "nothing":
        return None
    now_s = limits.clock()
    if now_s + WAIT_S[waiting] > limits.deadline_s:
        return search.search(model, calls, limits, starts)
    if len(calls) > COLD_CALLS:
        return None
    moment = replace(
        limits,
        deadline_s=min(limits.deadline_s, now_s + COLD_S[waiting]),
        configurations=min(limits.configurations, COLD_CONFIGURATIONS),
    )
    found = search.search(model, calls, moment, starts)
    return None if found.result == "unknown" else found


def decide_columns(columns: Columns, limits: Limits) -> Found:
    """The same for a register's calls as columns, in order of invocation."""
    if zones.apply_to(columns):
        decided = zones.decide(columns, with_order=False)
        if decided is not None:
            return _found(columns, decided, range(len(columns)))
    waiting = waiting_for(search_kernels, "advance")
    if waiting == "compiling" and limits.clock() + WAIT_S[waiting] > limits.deadline_s:
        calls = [_call(columns, place) for place in range(len(columns))]
        return search.search(Register(initial=0), calls, limits)
    return forward.search_columns(columns, limits)


def _by_zones(calls: Sequence[Call], start: State) -> Found | None:
    words = {call.action.word for call in calls}
    if not words <= {"read", "is", "write"}:
        return None
    places = sorted(range(len(calls)), key=lambda place: calls[place].invoke)
    columns, _ = register_columns([calls[place] for place in places], (start,))
    if tied(columns):
        return None
    decided = zones.decide(columns)
    return None if decided is None else _found(columns, decided, places)


def _found(columns: Columns, decided: zones.Zones, places: Sequence[int]) -> Found:
    """What zones say, of calls that stand at `places`. A no names the few calls that contradict each other."""
    if not decided.values:
        order = None if decided.order is None else [places[each] for each in decided.order.tolist()]
        return Found("yes", configurations=1, order=order, algorithm="zones")
    core = sorted({each for value in decided.values for each in zones.members(columns, value)})
    few = search.search(Register(initial=0), [_call(columns, each) for each in core], Limits())
    assert few.result == "no" and few.failing is not None
    return Found("no", places[core[few.failing]], 1, core=[places[each] for each in core], algorithm="zones")


def _call(columns: Columns, place: int) -> Call:
    """One of codes."""
    complete = int(columns.complete[place])
    kind, word = ACTIONS[int(columns.kind[place])]
    values = tuple(int(value) for value in (columns.old[place], columns.new[place]) if value != NOTHING)
    return Call(
        Action(kind, word, values), int(columns.invoke[place]), None if complete >= NEVER else complete
    )
