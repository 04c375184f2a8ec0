"""Sets, and queues and stacks on which every element is put in once, are decided in polynomial time, without a search.

**Sets**: see `sets`. **Stacks** and **priority queues**: see `stacks`. **Counters** are decided sometimes: `counters`.

**Queues** (enqueue, dequeue, "empty"). A history has no order if, and only if, it shows one of four patterns
(Bouajjani, Emmi, Enea, Hamza: *On Reducing Linearizability to State Reachability*, ICALP 2015): an element that came
out was never put in, or only later; it came out twice; one that surely went in first surely came out later, or never;
a dequeue said "empty" while at every moment some element surely was in it. Each is looked for by sorting. A yes is
given with an order that was replayed; if none was found, which the theorem excludes, the search decides.

A drain is dequeues and an "empty" (`drains`) in a sequence. Its elements were enqueued in that sequence too. So an
enqueue took effect no sooner than the enqueues before it in the sequence began, and no later than the enqueues behind
it returned. With times narrowed so, the patterns and the order are those of single dequeues.

**Unordered queues** have the same patterns but for the third. Each element goes in as late, and out as early, as its
calls allow: it is inside at no moment at which it need not be, and each "empty" has its moment between the elements.

A dequeue without an answer took one of the elements that never came out, or none. The earlier it was asked, the more it
may have done, and elements leave in the order in which they came. So the first of the missing elements goes to the
first of these dequeues, and so on; where their order is open, each order is tried (`TRIED_MAX`).

The answer is None (ask the search) if an element was put in twice, or stood there before, unless it came out more often
than it was put in; if the object did not begin empty; if a take from anything but a queue got no answer; or if no order
was found of those that were tried, and there are more. A crashed enqueue of an element that no call returned is
skipped: it can only be in the way.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, islice
from typing import Any

from checkers.linearizable import counters, sets, stacks
from checkers.linearizable.containers import Container, UnorderedQueue
from checkers.linearizable.drains import Drained, are_in_sequence
from checkers.linearizable.models import ILLEGAL, Model
from checkers.linearizable.search import Call, Decision

EVER = float("inf")
NAME = "monitor"
TOOK = ("dequeue", "drained")
FOUND_EMPTY = ("empty", "emptied")
TRIED_MAX = 50

Times = tuple[float, float]  # of a call: begun, returned


def decide(model: Model, calls: Sequence[Call]) -> Decision | None:
    """Whether the calls have an order from the model's initial state; None if no monitor can decide."""
    first: Any = model.first_elements if isinstance(model, Drained) else model.initial
    if model.name == "set":
        order = sets.ordered(calls, first)
        if order is not None:
            return _yes(order)
        return _no(_first_return(calls, lambda until: sets.ordered(calls, first, until) is None))
    if model.name == "counter":
        order, failing = counters.decide(calls, first)
        return _yes(order) if order is not None else None if failing is None else _no(failing)
    if not isinstance(model, Container | Drained) or first not in ((), UnorderedQueue().initial):
        return None
    calls = [replace(call, action=replace(call.action, word=_word(call.action.word))) for call in calls]
    watched = {"queue": _queue, "unordered-queue": _unordered}.get(model.name, partial(_stack, model))(calls)
    if watched is None and (failing := _came_out_too_often(calls)) is not None:
        return _no_with_core(calls, failing)
    return watched


def _word(word: str) -> str:
    """The words of all containers as those of a queue."""
    return "enqueue" if word in ("push", "insert") else "dequeue" if word in ("pop", "poll") else word


def _first_return(calls: Sequence[Call], is_refuted: Callable[[float], bool]) -> int:
    """The call whose return left no order, of calls that have none."""
    returns = sorted((call.complete, place) for place, call in enumerate(calls) if call.complete is not None)
    # Calls that have no order at one event have none later: so bisection finds the first such return.
    first = bisect_left(returns, True, key=lambda completion: is_refuted(completion[0]))
    return returns[min(first, len(returns) - 1)][1]


def _yes(order: Sequence[int]) -> Decision:
    return Decision("yes", configurations=1, order=list(order), algorithm=NAME)


def _no(failing: int) -> Decision:
    return Decision("no", failing, 1, algorithm=NAME)


def _no_with_core(calls: Sequence[Call], failing: int) -> Decision:
    """No, with the calls on the failing one's element if that came out too often, or too soon."""
    names = calls[failing].action.values[:1]
    core = [place for place, call in enumerate(calls) if names and call.action.values[:1] == names]
    is_enough = _came_out_too_often([calls[place] for place in core]) is not None
    return replace(_no(failing), core=core) if is_enough else _no(failing)


def _came_out_too_often(calls: Sequence[Call]) -> int | None:
    """The first call by which an element was out before it had gone in as often; None if there is none."""
    events = [
        (call.invoke, False, place) for place, call in enumerate(calls) if call.action.word == "enqueue"
    ]
    events += [
        (call.complete, True, place)
        for place, call in enumerate(calls)
        if call.action.word in TOOK and call.complete is not None
    ]
    inside: Counter[Any] = Counter()
    for _, comes_out, place in sorted(events):
        inside[calls[place].action.values[0]] += -1 if comes_out else 1
        if inside[calls[place].action.values[0]] < 0:
            return place
    return None


def _times(call: Call, until: float = EVER) -> Times:
    """The call's times as they were known at event `until`."""
    return call.invoke, EVER if call.complete is None or call.complete > until else call.complete


@dataclass(slots=True)
class _Element:
    """When an element went in and came out, and by which calls."""

    put: Times
    put_by: int
    took: Times = (EVER, EVER)
    took_by: int | None = None
    drain: Any = None
    """Which drain took it, if one did."""
    place: int = 0
    """How many elements the same drain took before it."""


@dataclass(slots=True)
class _Queue:
    """A queue's calls, and the returns that leave no order."""

    elements: dict[Any, _Element] = field(default_factory=dict)
    empty: list[tuple[Times, int, Any]] = field(default_factory=list)
    """The answers "empty": times, call, and the drain that it ends (None: no drain)."""
    wrong: list[tuple[float, int]] = field(default_factory=list)
    optional: bool = False
    """Whether some dequeue may not have happened."""


def _queue(calls: Sequence[Call]) -> Decision | None:
    takes = [place for place, call in enumerate(calls) if call.action.word == "take"]
    if not takes and not any(call.action.word == "drained" for call in calls):
        queue = _known_queue(calls, EVER)
        if queue is None:
            return None
        if wrong := [*queue.wrong, *_overtaken(queue), *_not_empty(queue)]:
            return _no_with_core(calls, min(wrong)[1])
        order = None if queue.optional else _scheduled(queue)
        return _yes(order) if order is not None and _replays(calls, order) else None
    order = _order_with_takes(calls, takes)
    if order is not None:
        return _yes(order)
    returns = sorted((call.complete, place) for place, call in enumerate(calls) if call.complete is not None)
    if not returns or not _is_refuted(calls, takes, EVER):
        return None
    first = bisect_left(returns, True, key=lambda completion: _is_refuted(calls, takes, completion[0]))
    return _no(_named(calls, *returns[first]))


def _unordered(calls: Sequence[Call]) -> Decision | None:
    # Their sequence says nothing of when it went in.
    has_drains = any(call.action.word == "drained" for call in calls)
    queue = None if has_drains else _known_queue(calls, EVER)
    if queue is None:
        return None
    # A dequeue without an answer may have taken any element: only what is wrong with it is sure.
    has_takes = any(call.action.word == "take" for call in calls)
    if wrong := [*queue.wrong, *(() if has_takes else _not_empty(queue))]:
        return _no_with_core(calls, min(wrong)[1])
    if queue.optional or has_takes:
        return None
    steps: list[tuple[float, int]] = []
    for element in queue.elements.values():
        out = element.took[0] + 0.5
        if element.took_by is not None:
            steps.append((out, element.took_by))
        if element.took_by is not None or element.put[1] < EVER:
            steps.append((min(element.put[1] - 0.5, out - 0.25), element.put_by))
    steps += zip(_moments(queue), (place for _, place, _ in queue.empty), strict=True)
    order = [place for _, place in sorted(steps)]
    return _yes(order) if _replays(calls, order, in_order=False) else None


def _stack(model: Model, calls: Sequence[Call]) -> Decision | None:
    """Of a stack or a priority queue."""
    calls = _by_rank(calls)
    queue = _known_queue(calls, EVER)
    if queue is None:
        return None
    if any(call.action.word == "take" for call in calls):
        return _no_with_core(calls, min(queue.wrong)[1]) if queue.wrong else None
    order = None if queue.wrong else _in_order_of(model, queue, len(calls))
    if order is not None:
        return _yes(order) if _is_replayed(model, calls, order) else None
    return _no_with_core(calls, _first_return(calls, partial(_no_stack, model, calls)))


def _no_stack(model: Model, calls: Sequence[Call], until: float) -> bool:
    queue = _known_queue(calls, until)
    return queue is not None and (bool(queue.wrong) or _in_order_of(model, queue, len(calls)) is None)


def _by_rank(calls: Sequence[Call]) -> list[Call]:
    """The calls with events that count from 0, of equal ones invocations first."""
    events = [(call.invoke, False, place) for place, call in enumerate(calls)]
    events += [(call.complete, True, place) for place, call in enumerate(calls) if call.complete is not None]
    begun, over = [0] * len(calls), [None] * len(calls)  # type: list[int], list[int | None]
    for rank, (_, returns, place) in enumerate(sorted(events)):
        (over if returns else begun)[place] = rank
    return [replace(call, invoke=begun[at], complete=over[at]) for at, call in enumerate(calls)]


def _in_order_of(model: Model, queue: _Queue, calls: int) -> list[int] | None:
    """The order of a stack's or a priority queue's calls, which have distinct ranks as events."""
    elements = [
        stacks.Element(
            value=value,
            put_begun=int(each.put[0]),
            put_over=_event(each.put[1], stacks.LATER),
            took_begun=_event(each.took[0], stacks.LATER),
            took_over=_event(each.took[1], stacks.LATER + 1),
            put_by=each.put_by,
            took_by=each.took_by,
        )
        for value, each in queue.elements.items()
        if each.put[1] < EVER or each.took[1] < EVER
    ]
    empties = [(int(begun), int(over), place) for (begun, over), place, _ in queue.empty]
    if model.name == "stack":
        return stacks.last_in_first_out(elements, empties)
    return stacks.greatest_first(elements, empties, 2 * calls)


def _event(time: float, never: int) -> int:
    return never if time == EVER else int(time)


def _is_replayed(model: Model, calls: Sequence[Call], order: Sequence[int]) -> bool:
    """Whether the model gives these answers in this order, and the order keeps real time and leaves nothing out."""
    state, latest = model.initial, -1
    for place in order:
        begun, returned = _times(calls[place])
        word = {"enqueue": model.puts, "dequeue": model.takes}.get(calls[place].action.word, "empty")  # type: ignore[attr-defined]
        after = model.step(state, replace(calls[place].action, word=word))
        if after is ILLEGAL or returned < latest:
            return False
        state, latest = after, max(latest, int(begun))
    named = set(order)
    return len(named) == len(order) and all(
        call.complete is None or place in named for place, call in enumerate(calls)
    )


def _moments(queue: _Queue) -> Iterator[float]:
    """For each "empty" the last moment of its call at which nothing need be inside."""
    filled = _filled(queue)
    for (_, returned), _, _ in queue.empty:
        at = bisect_left(filled, returned, key=lambda stretch: stretch[0]) - 1
        yield filled[at][0] - 0.5 if at >= 0 and returned - 0.5 < filled[at][1] else returned - 0.5


def _named(calls: Sequence[Call], until: int, place: int) -> int:
    """The call that a pattern names, of the calls that returned at that event (a drain has several); else `place`."""
    queue = _known_queue(calls, until)
    if queue is None:
        return place
    wrong = (*queue.wrong, *_overtaken(queue), *_not_empty(queue))
    return min((failing for at, failing in wrong if at == until), default=place)


def _known_queue(calls: Sequence[Call], until: float) -> _Queue | None:
    """The calls as they were known at event `until`, without unanswered dequeues. None: elements are not distinct."""
    queue = _Queue()
    known = [(call, _times(call, until)) for call in calls]
    for place, (call, times) in enumerate(known):
        if call.action.word == "enqueue" and times[0] <= until:
            if call.action.values[0] in queue.elements:
                return None
            queue.elements[call.action.values[0]] = _Element(times, place)
        elif call.action.word in FOUND_EMPTY and times[1] < EVER:
            drain = call.action.values[0] if call.action.word == "emptied" else None
            queue.empty.append((times, place, drain))
    optional = _take(queue, known, until)
    if optional is None:
        return None
    queue.optional = optional
    _narrow(queue)
    return queue


def _narrow(queue: _Queue) -> None:
    """Narrow the times to those that the sequence of each drain leaves open, and put each element in before it is out.

    Without the second the line of elements may leave calls no time, where many of them run at once.
    """
    for taken in _drains(queue.elements.values()).values():
        begun = accumulate((element.put[0] for element in taken), max)
        returned = [*accumulate((element.put[1] for element in reversed(taken)), min)]
        for element, *times in zip(taken, begun, reversed(returned), strict=True):
            element.put = times[0], times[1]
            if element.put[0] > element.put[1] and element.took_by is not None:
                queue.wrong.append((element.took[1], element.took_by))
    for element in queue.elements.values():
        (put, was_put), (took, was_taken) = element.put, element.took
        element.put, element.took = (put, min(was_put, was_taken)), (max(put, took), was_taken)


def _drains(elements: Iterable[_Element]) -> dict[Any, list[_Element]]:
    """The elements that each returned drain took, in its sequence."""
    drains: dict[Any, list[_Element]] = {}
    for element in sorted(elements, key=lambda element: element.place):
        if element.drain is not None and element.took[1] < EVER:
            drains.setdefault(element.drain, []).append(element)
    return drains


def _order_with_takes(calls: Sequence[Call], takes: Sequence[int]) -> list[int] | None:
    """An order in which dequeues without an answer took what never came out; None if none was found."""
    queue = _known_queue(calls, EVER)
    if queue is None or queue.optional or queue.wrong:
        return None
    for assigned in islice(_assigned(queue, calls, takes, EVER), TRIED_MAX):
        order = _scheduled(assigned) if _is_possible(assigned) else None
        if order is not None and _replays(calls, order):
            return order
    return None


def _is_refuted(calls: Sequence[Call], takes: Sequence[int], until: float) -> bool:
    """Whether no order was left at event `until`, whatever the dequeues without an answer took."""
    queue = _known_queue(calls, until)
    if queue is None or queue.wrong:
        return queue is not None
    for tried, assigned in enumerate(_assigned(queue, calls, takes, until)):
        if tried == TRIED_MAX or _is_possible(assigned):
            return False
    return True


def _is_possible(queue: _Queue) -> bool:
    return not any(True for _ in _overtaken(queue)) and not any(True for _ in _not_empty(queue))


def _assigned(queue: _Queue, calls: Sequence[Call], takes: Sequence[int], until: float) -> Iterator[_Queue]:
    """The queue with each dequeue without an answer as that of a missing element, for every order of these.

    An unanswered dequeue may also have taken the element that a dequeue in progress returns later. That dequeue is
    wrong only once it returns: until then its element may be out since the first unanswered dequeue.
    """
    begun = sorted((calls[place].invoke, place) for place in takes if calls[place].invoke <= until)
    out = {
        value: replace(element, took=(min(element.took[0], begun[0][0]), EVER)) if begun else element
        for value, element in queue.elements.items()
        if element.took_by is not None and element.took[1] == EVER
    }
    missing = {
        value: element
        for value, element in queue.elements.items()
        if element.took_by is None and element.put[1] < EVER
    }
    for values in _lines(dict(sorted(missing.items(), key=lambda item: item[1].put)), len(begun)):
        taken = {
            value: replace(missing[value], took=(max(missing[value].put[0], invoke), EVER), took_by=place)
            for value, (invoke, place) in zip(values, begun, strict=False)
        }
        yield _Queue({**queue.elements, **out, **taken}, queue.empty)


def _lines(left: Mapping[Any, _Element], count: int) -> Iterator[tuple[Any, ...]]:
    """The first `count` elements (all, if they are fewer), in every order in which they may have gone in.

    `left` is sorted by when they began to go in.
    """
    line: dict[Any, None] = {}
    turns: list[list[Any]] = []  # by place in the line: what else may stand there
    while True:
        while len(line) < min(count, len(left)):
            turns.append(_foremost(left, line))
            line[turns[-1].pop()] = None
        yield tuple(line)
        while turns and not turns[-1]:
            turns.pop()
            line.popitem()
        if not turns:
            return
        line.popitem()
        line[turns[-1].pop()] = None


def _foremost(left: Mapping[Any, _Element], gone: Collection[Any]) -> list[Any]:
    """The elements that may have gone in first of those that are left, the last one first."""
    soonest, may = EVER, []
    for value, element in left.items():
        if element.put[0] > soonest:
            break
        if value not in gone:
            may.append(value)
            soonest = min(soonest, element.put[1])
    return may[::-1]


def _take(queue: _Queue, calls: Sequence[tuple[Call, Times]], until: float) -> bool | None:
    """Note which dequeue took which element. True if some dequeue may not have happened: then only a no is possible.
    None: not even a no is possible, because two dequeues may have taken the same element.
    """
    optional = False
    # Of two calls that took one element, the later to return is wrong. Calls in progress come last.
    by_return = sorted(
        (times[1], place)
        for place, (call, times) in enumerate(calls)
        if call.action.word in TOOK and times[0] <= until
    )
    for returned, place in by_return:
        call, times = calls[place]
        element = queue.elements.get(call.action.values[0])
        optional = optional or returned == EVER
        if element is not None and element.took_by is not None and returned == EVER:
            return None
        if element is None or element.put[0] > returned or element.took_by is not None:
            if returned < EVER:
                queue.wrong.append((returned, place))
            if element is not None and element.took_by is not None:  # until then it may have been either
                element.took = min(element.took[0], times[0]), EVER
        else:
            element.took, element.took_by = times, place
            if call.action.word == "drained":
                element.drain = call.action.values[1]
                element.place = int(str(call.action.values[2]))
    return optional


def _overtaken(queue: _Queue) -> Iterator[tuple[float, int]]:
    """Elements that came out although one that surely went in before surely was still inside."""
    by_return = sorted((element.put[1], element.took[0]) for element in queue.elements.values())
    latest, at = -1.0, 0
    for element in sorted(queue.elements.values(), key=lambda element: element.put[0]):
        # Only elements that were in before this one began: the others may have gone in behind it.
        while at < len(by_return) and by_return[at][0] < element.put[0]:
            latest = max(latest, by_return[at][1])
            at += 1
        # `latest`: when the last of the elements in front was asked for. Until then it surely was inside.
        if element.took_by is not None and element.took[1] < latest:
            yield element.took[1], element.took_by


def _not_empty(queue: _Queue) -> Iterator[tuple[float, int]]:
    """Answers "empty" that came while at every moment some element surely was in the queue."""
    filled = _filled(queue)
    at = 0
    for (begun, returned), place, _ in sorted(queue.empty, key=lambda answer: answer[0]):
        while at < len(filled) and filled[at][1] < begun:
            at += 1
        # One stretch has to cover the whole call: between two stretches there is a moment with nothing inside.
        if at < len(filled) and filled[at][0] < begun and returned < filled[at][1]:
            yield returned, place


def _filled(queue: _Queue) -> list[Times]:
    """The stretches in which some element surely was in the queue."""
    filled: list[Times] = []
    for begins, ends in sorted((element.put[1], element.took[0]) for element in queue.elements.values()):
        # It may have gone in and out at one moment.
        if begins >= ends:
            continue
        if filled and begins < filled[-1][1]:
            filled[-1] = (filled[-1][0], max(filled[-1][1], ends))
        else:
            filled.append((begins, ends))
    return filled


def _scheduled(queue: _Queue) -> list[int] | None:
    """An order of calls: elements in a line, dequeued as early and enqueued as late as possible, "empty" in between."""
    elements = _in_line(
        [
            element
            for element in queue.elements.values()
            if element.took_by is not None or element.put[1] < EVER
        ]
    )
    if elements is None:
        return None
    begun = out = -1.0
    outs: list[float] = []
    for element in elements:
        begun = max(begun, element.put[0])
        out = max(out, begun, element.took[0])
        outs.append(out + 0.5)
    ins: list[float] = []
    latest = EVER
    for element, out in zip(reversed(elements), reversed(outs), strict=True):
        latest = min(latest, element.put[1] - 0.5, out)
        ins.append(latest)
    ins.reverse()
    steps: list[tuple[float, int]] = []
    windows: list[tuple[int, float, float]] = []  # after so many steps the queue is empty, from when to when
    last, put, taken = -1.0, 0, 0
    while put < len(elements) or (taken < put and outs[taken] < EVER):
        if taken < put and (put == len(elements) or outs[taken] <= ins[put]):
            by = elements[taken].took_by
            if by is None:
                return None
            steps.append((last := outs[taken], by))
            taken += 1
            continue
        if taken == put:
            windows.append((len(steps), last, ins[put]))
        steps.append((last := ins[put], elements[put].put_by))
        put += 1
    if taken == put:
        windows.append((len(steps), last, EVER))
    lasts = {
        element.drain: out for element, out in zip(elements, outs, strict=True) if element.drain is not None
    }
    empty = [
        ((max(begun, lasts.get(drain, begun)), returned), place)
        for (begun, returned), place, drain in queue.empty
    ]
    return _with_empties(empty, steps, windows)


def _in_line(elements: list[_Element]) -> list[_Element] | None:
    """The elements in an order that neither their ways in nor their ways out contradict."""
    waiting = sorted(range(len(elements)), key=lambda place: elements[place].put[0])
    put_returns = sorted((elements[place].put[1], place) for place in waiting)
    took_returns = sorted((elements[place].took[1], place) for place in waiting)
    gone = [False] * len(elements)
    may: list[tuple[float, int, int]] = []
    line: list[_Element] = []
    at = put_at = took_at = 0
    while len(line) < len(elements):
        while gone[put_returns[put_at][1]]:
            put_at += 1
        while gone[took_returns[took_at][1]]:
            took_at += 1
        # May go next: elements that began to go in before any other one surely was in. The first to come out goes.
        while at < len(waiting) and elements[waiting[at]].put[0] < put_returns[put_at][0]:
            next_ = elements[waiting[at]]
            heapq.heappush(may, (next_.took[0], next_.place, waiting[at]))
            at += 1
        # It would come out only after another one, which would stand behind it, was surely out.
        if not may or may[0][0] > took_returns[took_at][0]:
            return None
        *_, chosen = heapq.heappop(may)
        gone[chosen] = True
        line.append(elements[chosen])
    return line


def _with_empties(
    empty: list[tuple[Times, int]], steps: list[tuple[float, int]], windows: list[tuple[int, float, float]]
) -> list[int] | None:
    """The steps with every "empty" in a window in which it ran."""
    placed: dict[int, list[tuple[float, int]]] = {}
    at, waiting = 0, sorted(empty)
    running: list[tuple[float, float, int]] = []  # returned, begun, call
    for after, opens, closes in windows:
        while at < len(waiting) and waiting[at][0][0] < closes:
            (begun, returned), place = waiting[at]
            heapq.heappush(running, (returned, begun, place))
            at += 1
        if running and running[0][0] - 0.5 < opens:
            return None
        placed[after] = sorted((max(opens, begun + 0.5), place) for _, begun, place in running)
        running = []
    if running or at < len(waiting):
        return None
    order: list[int] = []
    for count in range(len(steps) + 1):
        order += (place for _, place in placed.get(count, ()))
        if count < len(steps):
            order.append(steps[count][1])
    return order


def _replays(calls: Sequence[Call], order: Sequence[int], *, in_order: bool = True) -> bool:
    """Whether a queue gives these answers in this order, and the order keeps real time and each drain's sequence, and
    leaves nothing out. `in_order`: elements come out as they went in."""
    inside: OrderedDict[Any, None] = OrderedDict()
    latest = -1.0
    for place in order:
        call = calls[place]
        begun, returned = _times(call)
        if returned < latest:
            return False
        latest = max(latest, begun)
        if call.action.word == "enqueue":
            inside[call.action.values[0]] = None
        elif call.action.word == "take":
            inside.popitem(last=False)
        elif call.action.word in FOUND_EMPTY:
            if inside:
                return False
        else:
            element = call.action.values[0]
            if element not in inside or (in_order and element != next(iter(inside))):
                return False
            del inside[element]
    # A yes rests on this replay alone, not on how the order was found.
    named = set(order)
    return (
        len(named) == len(order)
        and all(call.complete is None or place in named for place, call in enumerate(calls))
        and are_in_sequence(calls[place].action for place in order)
    )
