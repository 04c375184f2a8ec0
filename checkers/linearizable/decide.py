"""Which algorithm looks at which calls.

| calls | decided by |
|---|---|
| a register's reads and writes, every value written once | `zones`: linear |
| few, and numba was not loaded yet | `search`, for a moment: loading takes longer than most such searches |
| all others | `forward`, the compiled search; `search` where there is no compiler |
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from checkers.linearizable import forward, search, zones
from checkers.linearizable.columns import Columns, register_columns
from checkers.linearizable.models import Action, Model, Register, State
from checkers.linearizable.search import Call, Found, Limits
from checkers.linearizable.search_kernels import NEVER, OBSERVE

FEW = 48  # calls on which the plain search is done before arrays are laid out
COLD_CALLS = 5_000
COLD_S = 0.4  # what loading the compiled search takes
COLD_CONFIGURATIONS = 5_000


def decide(
    model: Model, calls: Sequence[Call], limits: Limits, starts: Sequence[State] | None = None
) -> Found:
    """Whether the calls have an order; see `search.search` for the arguments and the answer."""
    if isinstance(model, Register) and (starts is None or len(starts) == 1) and len(calls) > 1:
        found = _by_zones(calls, model.initial if starts is None else starts[0])
        if found is not None:
            return found
    if len(calls) <= FEW:
        return search.search(model, calls, limits, starts)
    if len(calls) <= COLD_CALLS and "numba" not in sys.modules:
        now_s = limits.clock()
        deadline_s = min(limits.deadline_s, now_s + COLD_S)
        moment = replace(
            limits, deadline_s=deadline_s, configurations=min(limits.configurations, COLD_CONFIGURATIONS)
        )
        found = search.search(model, calls, moment, starts)
        if found.result != "unknown" or moment == limits:
            return found
    if forward.can_run():
        return forward.search(model, calls, limits, starts)
    return search.search(model, calls, limits, starts)


def decide_columns(columns: Columns, limits: Limits) -> Found:
    """The same for a register's calls as columns, in order of invocation."""
    if zones.apply_to(columns):
        decided = zones.decide(columns, with_order=False)
        if decided is not None:
            return _found(columns, decided, range(len(columns)))
    return forward.search_columns(columns, limits)


def _by_zones(calls: Sequence[Call], start: State) -> Found | None:
    words = {call.action.word for call in calls}
    if not words <= {"read", "is", "write"}:
        return None
    places = sorted(range(len(calls)), key=lambda place: calls[place].invoke)
    columns, _ = register_columns([calls[place] for place in places], (start,))
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
    """A read or write, of codes."""
    complete = int(columns.complete[place])
    returned = None if complete >= NEVER else complete
    if columns.kind[place] == OBSERVE:
        return Call(
            Action("observe", "read", (int(columns.old[place]),)), int(columns.invoke[place]), returned
        )
    return Call(
        Action("overwrite", "write", (int(columns.new[place]),)), int(columns.invoke[place]), returned
    )
