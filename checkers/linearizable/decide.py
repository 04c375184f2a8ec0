"""Which algorithm looks at which calls.

| calls | decided by |
|---|---|
| a register's reads and writes, every value written once | `zones`: linear |
| a set's; a queue's or a stack's, every element put in once | `monitors`: n log n |
| a counter's, if a read or a step between two fits no sum, or one order is met | `counters` |
| a text's or a list's, reads show in which state each append took place | `appends`, and those of a register |
| any of a queue or a stack, if an order is met soon | `depth_first` |
| few, or the compiled search is not loaded yet | `search`, for as many steps as loading would take |
| any, and compiling would take until a time limit | `search` |
| any other | `forward`, the compiled search, however long loading takes; `search` where there is no compiler |

Whether the compiled search is loaded decides only which of the two comes first: a short plain search also decides
where the compiled one gave up. So the same calls are decided in a fresh process and in a warm one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from checkers.compiled import is_loaded, stays_plain, waiting_for
from checkers.limits import left_s, look
from checkers.linearizable import appends, depth_first, forward, monitors, search, search_kernels, zones
from checkers.linearizable.columns import NOTHING, Columns, register_columns, tied
from checkers.linearizable.containers import Container
from checkers.linearizable.models import Action, Kind, Model, Register, State
from checkers.linearizable.search import Call, Decision, Limits
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, REFUSE, UPDATE

FEW = 48  # calls on which the plain search is done before arrays are laid out
COLD_CALLS = 20_000  # calls that are searched plainly before machine code is loaded
# Of the plain search beside the compiled one; some second.
SHORT = Limits(configurations=5_000, steps=200_000_000)
Way = Literal["plain", "either", "compiled"]
"""Which search comes first: the plain one alone, unless the compiled one is loaded; as the number of calls has it; the
compiled one."""
COMPILING_S = 15.0  # what compiling takes; with less time than that it is not begun
ROUNDS = (2_000, 20)  # in a round each key gets this part of the steps of all (less if keys are more)
FIRST_MEMORY = 0.1  # the part of the memory that each key is given before any is given more
ACTIONS: dict[int, tuple[Kind, str]] = {
    OBSERVE: ("observe", "read"),
    REFUSE: ("observe", "is-not"),
    OVERWRITE: ("overwrite", "write"),
    UPDATE: ("update", "cas"),
}
"""The meaning of the kinds of columns for a register."""


def decide(
    model: Model,
    calls: Sequence[Call],
    limits: Limits,
    starts: Sequence[State] | None = None,
    *,
    way: Way = "either",
) -> Decision:
    """Whether the calls have an order; see `search.search` for the arguments and the answer. Raises OutOfTime."""
    look()
    # Zones know one value from before the first write.
    if isinstance(model, Register) and (starts is None or len(starts) == 1) and len(calls) > 1:
        decision = _by_zones(calls, model.initial if starts is None else starts[0])
        if decision is not None:
            return decision
    # Monitors, appends and depth first begin in the model's initial state alone.
    if starts is None or tuple(starts) == (model.initial,):
        watched = monitors.decide(model, calls) or appends.decide(model, calls, limits, decide)
        if watched is not None:
            return watched
        if isinstance(model, Container) and (order := depth_first.find(model, calls, limits)) is not None:
            return Decision("yes", configurations=1, order=order, algorithm="depth first")
    return _searched(
        len(calls),
        way,
        limits,
        lambda most: search.search(model, calls, most, starts),
        lambda: forward.search(model, calls, limits, starts),
    )


def _searched(
    calls: int,
    way: Way,
    limits: Limits,
    plainly: Callable[[Limits], Decision],
    compiled: Callable[[], Decision],
) -> Decision:
    """The result of the two searches, whichever comes first."""
    can_be_short, is_cold = calls <= COLD_CALLS, not is_loaded(search_kernels)
    if way == "plain" and is_cold:
        return plainly(limits)
    is_short_first = calls <= FEW or (can_be_short and is_cold and way != "compiled")
    short = Limits(min(limits.configurations, SHORT.configurations), min(limits.steps, SHORT.steps))
    decision = plainly(short) if is_short_first else None
    if decision is not None and decision.is_decided:
        return decision
    if must_not_wait() or not forward.can_run():
        return plainly(limits)
    whole = compiled()
    if not whole.is_decided and can_be_short and not is_short_first:
        decision = plainly(short)
    if decision is None:
        return whole
    return replace(decision if decision.is_decided else whole, steps=decision.steps + whole.steps)


def must_not_wait() -> bool:
    """Whether compiling would take until the time limit: nothing interrupts it."""
    seconds = left_s()
    return (
        seconds is not None
        and seconds < COMPILING_S
        and waiting_for(search_kernels, "advance") == "compiling"
    )


def in_rounds(keys: int, calls: int, limits: Limits, decided: Callable[[int, Limits, Way], bool]) -> None:
    """Look at every key with a small share of the limits, then at those that are undecided with more, and with all.

    `decided` looks at a key with a share, and says whether that was enough. The share depends on nothing but how many
    keys there are: steps that another key did not use are not handed on. `calls`: of all keys. If these are few,
    machine code is loaded only for keys that the rounds leave undecided.
    """
    is_plain = stays_plain(search_kernels, calls, COLD_CALLS)
    first: Way = "plain" if is_plain else "compiled"
    last: Way = "either" if is_plain else "compiled"
    undecided = list(range(keys))
    memory = max(1, int(limits.configurations * FIRST_MEMORY))
    for part in ROUNDS:
        share = Limits(memory, limits.steps // max(part, keys))
        undecided = [key for key in undecided if not decided(key, share, first)]
    share = Limits(limits.configurations, limits.steps // max(1, len(undecided)))
    for key in undecided:
        decided(key, share, last)


def decide_columns(
    columns: Columns, limits: Limits, *, with_order: bool = False, way: Way = "either"
) -> Decision:
    """The same for a register's calls as columns, in order of invocation with ranks that are all different.

    `with_order`: an order is wanted where `zones` find one without a search.
    """
    look()
    if len(columns) > 1 and zones.apply_to(columns):
        decided = zones.decide(columns, with_order=with_order)
        if decided is not None:
            return _decision(columns, decided, range(len(columns)))

    def plainly(most: Limits) -> Decision:
        calls = [_call(columns, place) for place in range(len(columns))]
        return search.search(Register(initial=0), calls, most)

    return _searched(len(columns), way, limits, plainly, lambda: forward.search_columns(columns, limits))


def _by_zones(calls: Sequence[Call], start: State) -> Decision | None:
    words = {call.action.word for call in calls}
    if not words <= {"read", "is", "write"}:
        return None
    places = sorted(range(len(calls)), key=lambda place: calls[place].invoke)
    columns, _ = register_columns([calls[place] for place in places], (start,))
    if tied(columns):
        return None
    decided = zones.decide(columns)
    return None if decided is None else _decision(columns, decided, places)


def _decision(columns: Columns, decided: zones.Zones, places: Sequence[int]) -> Decision:
    """The result of zones, for calls that stand at `places`. A no names the few calls that contradict each other."""
    if not decided.values:
        order = None if decided.order is None else decided.order.tolist()
        if order is not None and not isinstance(places, range):
            order = [places[place] for place in order]
        return Decision("yes", configurations=1, order=order, algorithm="zones")
    core = sorted({place for value in decided.values for place in zones.members(columns, value)})
    # An independent search says which call fails, and that the core has no order.
    few = search.search(Register(initial=0), [_call(columns, place) for place in core], Limits())
    assert few.result == "no" and few.failing is not None
    return Decision(
        "no", places[core[few.failing]], 1, core=[places[place] for place in core], algorithm="zones"
    )


def _call(columns: Columns, place: int) -> Call:
    """One of codes."""
    complete = int(columns.complete[place])
    kind, word = ACTIONS[int(columns.kind[place])]
    values = tuple(int(value) for value in (columns.old[place], columns.new[place]) if value != NOTHING)
    return Call(
        Action(kind, word, values), int(columns.invoke[place]), None if complete >= NEVER else complete
    )
