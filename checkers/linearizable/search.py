"""Is there an order of these calls that a model allows and that respects real time? A forward search.

The history is walked event by event. At every position the search holds all *configurations* that could be
true there: a state, and what has become of each pending call. Nothing older is kept, so memory does not grow
with the history, and the first return after which no configuration is left names the call that cannot be
explained. Calls are linearized just in time (Lowe, "Testing for linearizability", 2017): only when a return
forces it.

These steps keep the sets small; none of them loses an order that matters:

- An observation is linearized as soon as it is legal: it changes nothing, so earlier is never worse.
- A pending overwrite is *owed* (it must be linearized before it returns), *optional*, or *used*. Once another
  overwrite is linearized, all pending ones become optional: each could have stood unseen right before it. A
  crashed call (it never returns) is optional from the beginning.
- An overwrite or an optional call is linearized before the returning call only if its state makes something
  legal that was not: an owed observation or a pending update. Unseen, it could as well be left out.
- A configuration is dropped if another of the same state owes no more and has used no more.
- Equal crashed actions are interchangeable: they are used in order of their invocation.

A crashed call that no call reads is *not* dropped: a failed compare-and-set may have observed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from checkers.limits import CONFIGURATION_BYTES, STEPS, look
from checkers.linearizable.models import ILLEGAL, Action, Model, State, weight

Log = tuple[Any, int, int] | None  # (log before, call, event): what was linearized just before which return
Pair = tuple[int, int, Log]  # owed, used: masks of pending calls
PLAIN_STEP = 20
"""The cost of a step of this search, in steps of the compiled one: both then take about the same time."""
LOOK_EVERY = 10_000
"""Steps of this search."""
BYTES_MIN, BYTES_MAX = 64 << 20, 3 << 30


@dataclass(frozen=True, slots=True)
class Call:
    """One operation as the search sees it. `complete` is None if it may take effect at any later time or
    never.
    """

    action: Action
    invoke: int
    complete: int | None


@dataclass(frozen=True, slots=True)
class Limits:
    """When to give up: when more configurations than `configurations` are held, or more bytes than these are worth; or
    after so many steps.
    """

    configurations: int = 200_000
    steps: int = STEPS

    @property
    def bytes_max(self) -> int:
        """Of arrays, and of states: whatever the configurations take."""
        return min(BYTES_MAX, max(BYTES_MIN, CONFIGURATION_BYTES * self.configurations))

    @property
    def too_large(self) -> str:
        """The reason of a search that holds all these bytes."""
        return f"more than {self.bytes_max >> 20} MiB"

    @property
    def gave_up(self) -> str:
        """The reason of a search that has done all its steps."""
        return f"gave up after {self.steps:,} steps (--budget)"


@dataclass(frozen=True, slots=True)
class Decision:
    """The result of a search.

    result: "yes" (an order exists), "no", or "unknown" (`reason` says which limit was met).
    failing: for "no", the position in `calls` of the first call that cannot return.
    configurations: the most that were held at once.
    quiet: event → state, for every event after which no call was pending (but crashed ones) and only one state was
    possible.
    log: for "yes", the mutators of one legal order, each with the return before which it was linearized. Mutators that
    it leaves out take effect unseen, or not at all. `order.placed` makes the whole order of it.
    order: for "yes", the whole order, if the algorithm finds it as such.
    core: for "no", calls that have no order by themselves, if the algorithm names them.
    steps: what the search took, as `Limits` counts.
    """

    result: Literal["yes", "no", "unknown"]
    failing: int | None = None
    configurations: int = 0
    reason: str = ""
    quiet: dict[int, State] = field(default_factory=dict)
    log: Sequence[tuple[int, int]] | None = None
    order: Sequence[int] | None = None
    core: Sequence[int] | None = None
    algorithm: str = "plain search"
    steps: int = 0

    @property
    def is_decided(self) -> bool:
        return self.result != "unknown"


class _GaveUp(Exception):
    """A limit was met; the argument says which."""


def search(
    model: Model, calls: Sequence[Call], limits: Limits, starts: Sequence[State] | None = None
) -> Decision:
    """Look for an order of `calls`, beginning in one of the states `starts` (None: in the model's initial
    one).
    """
    return _Search(model, calls, limits, (model.initial,) if starts is None else starts).run()


class _Configurations:
    """Pairs by state, none dominated by another of its state."""

    __slots__ = ("by_state", "bytes", "count", "work")

    def __init__(self) -> None:
        self.by_state: dict[State, list[Pair]] = {}
        self.count = 0
        self.bytes = 0  # of the states
        self.work = 0  # pairs compared so far: what takes the time

    def add(self, state: State, owed: int, used: int, log: Log) -> bool:
        """Keep the pair unless one that is at least as good is there; drop the pairs that it dominates."""
        pairs = self.by_state.get(state)
        if pairs is None:
            self.by_state[state] = [(owed, used, log)]
            self.bytes += weight(state)
            self.count += 1
            return True
        worse = False
        self.work += len(pairs)
        for other_owed, other_used, _ in pairs:
            # Both, and of the same state: what owes less may stop more often, what has used less can still do more.
            if not other_owed & ~owed and not other_used & ~used:
                return False
            if not owed & ~other_owed and not used & ~other_used:
                worse = True
        if worse:
            kept = [pair for pair in pairs if owed & ~pair[0] or used & ~pair[1]]
            self.count -= len(pairs) - len(kept)
            self.by_state[state] = pairs = kept
        pairs.append((owed, used, log))
        self.count += 1
        return True


class _Pending:
    """The calls between invocation and return, each a bit, and a cache of the calls that are legal in each state."""

    def __init__(self, model: Model, calls: Sequence[Call]) -> None:
        self._model = model
        self._calls = calls
        self._bits: dict[int, int] = {}
        self._calls_by_bit: dict[int, int] = {}
        self._legal: dict[State, list[int]] = {}  # state → masks of legal observations and legal updates
        self._free: list[int] = []
        self._live_next = 0
        self._crashed_next = _most_at_once(calls)
        self.live_overwrites = 0
        self.choices: dict[object, tuple[Action, int]] = {}  # equal crashed calls are one choice

    def bit(self, call: int) -> int:
        return self._bits[call]

    def call(self, bit: int) -> int:
        return self._calls_by_bit[bit]

    def invoke(self, call: int) -> int:
        """Give the call a bit. Bits of crashed calls grow with their invocation, so that equal ones are used in
        order.
        """
        action = self._calls[call].action
        crashed = self._calls[call].complete is None
        bit = self._bits[call] = 1 << self._slot(crashed)
        self._calls_by_bit[bit] = call
        if action.kind == "overwrite" and not crashed:
            self.live_overwrites |= bit
        if action.kind != "observe":
            name: object = action if crashed else call
            self.choices[name] = (action, self.choices.get(name, (action, 0))[1] | bit)
        if action.kind != "overwrite":
            self._note_legal(action, bit)
        return bit

    def forget(self, call: int) -> None:
        """Free the bit of a call that returned."""
        bit = self._bits.pop(call)
        self._free.append(bit.bit_length() - 1)
        self.live_overwrites &= ~bit
        self.choices.pop(call, None)
        for masks in self._legal.values():
            masks[0] &= ~bit
            masks[1] &= ~bit

    def legal(self, state: State) -> list[int]:
        """[observations, updates] among the pending that are legal in the state."""
        # Kept up by `_note_legal` and `forget`: a state that is remembered knows of every pending call.
        masks = self._legal.get(state)
        if masks is None:
            if len(self._legal) > 64 + 4 * len(self._bits):
                self._legal.clear()
            masks = self._legal[state] = [0, 0]
            for call, bit in self._bits.items():
                action = self._calls[call].action
                if action.kind != "overwrite" and self._model.step(state, action) is not ILLEGAL:
                    masks[action.kind == "update"] |= bit
        return masks

    def _slot(self, crashed: bool) -> int:
        if crashed:
            self._crashed_next += 1
            return self._crashed_next - 1
        if self._free:
            return self._free.pop()
        self._live_next += 1
        return self._live_next - 1

    def _note_legal(self, action: Action, bit: int) -> None:
        which = action.kind == "update"
        for state, masks in self._legal.items():
            if self._model.step(state, action) is not ILLEGAL:
                masks[which] |= bit


class _Search:
    """One walk over the events."""

    def __init__(self, model: Model, calls: Sequence[Call], limits: Limits, starts: Sequence[State]) -> None:
        self._model = model
        self._calls = calls
        self._limits = limits
        self._bytes_max = limits.bytes_max
        self._pending = _Pending(model, calls)
        self._now = _Configurations()
        for state in starts:
            self._now.add(state, 0, 0, None)
        self._most = 1
        self._steps = 0
        self._next_look = LOOK_EVERY
        self._live = 0
        self._event = 0
        self._seen: _Configurations = self._now

    def run(self) -> Decision:
        quiet: dict[int, State] = {}
        try:
            for event, call, returns in events(self._calls):
                self._event = event
                self._spend(self._now.count, self._now.bytes, 1 + self._now.count // 16)
                if not returns:
                    self._invoke(call)
                    continue
                self._return(call)
                if not self._now.count:
                    return self._decision("no", quiet, failing=call)
                if not self._live and len(self._now.by_state) == 1:
                    quiet[event] = next(iter(self._now.by_state))
        except _GaveUp as limit:
            return self._decision("unknown", quiet, reason=str(limit))
        return self._decision("yes", quiet, log=self._logged())

    def _decision(
        self,
        result: Literal["yes", "no", "unknown"],
        quiet: dict[int, State],
        failing: int | None = None,
        reason: str = "",
        log: Sequence[tuple[int, int]] | None = None,
    ) -> Decision:
        return Decision(result, failing, self._most, reason, quiet, log, steps=PLAIN_STEP * self._steps)

    def _logged(self) -> list[tuple[int, int]]:
        """The log of a configuration that is left, from its beginning."""
        log: Log = next(iter(self._now.by_state.values()))[0][2]
        entries = []
        while log is not None:
            entries.append(log[1:])
            log = log[0]
        return entries[::-1]

    def _invoke(self, call: int) -> None:
        bit = self._pending.invoke(call)
        if self._calls[call].complete is None:
            return
        self._live += 1
        observes = self._calls[call].action.kind == "observe"
        for state, pairs in self._now.by_state.items():
            if not (observes and self._pending.legal(state)[0] & bit):
                pairs[:] = [(owed | bit, used, log) for owed, used, log in pairs]

    def _return(self, call: int) -> None:
        """Keep the configurations that can have linearized the call by now."""
        self._live -= 1
        bit = self._pending.bit(call)
        observes = self._calls[call].action.kind == "observe"
        after = _Configurations()
        self._seen = _Configurations()
        todo: list[tuple[State, int, int, Log]] = []
        for state, pairs in self._now.by_state.items():
            for owed, used, log in pairs:
                if not owed & bit:
                    after.add(state, owed, used & ~bit, log)
                # An overwrite that is optional goes both ways: it returns unseen, or is linearized now.
                if owed & bit or not (observes or used & bit):
                    self._seen.add(state, owed, used, log)
                    todo.append((state, owed, used, log))
        while todo:
            state, owed, used, log = todo.pop()
            held, size = after.count + self._seen.count, after.bytes + self._seen.bytes
            self._spend(held, size, 32 + after.work + self._seen.work)
            after.work = self._seen.work = 0
            if not observes:
                self._last(after, call, state, owed, used, log)
            for one_further in self._useful(state, owed, used, log, call):
                if observes and not one_further[1] & bit:
                    after.add(*one_further)
                elif self._seen.add(*one_further):
                    todo.append(one_further)
        self._pending.forget(call)  # not sooner: the steps above need the call's bit
        self._now = after
        self._most = max(self._most, after.count)

    def _last(self, after: _Configurations, call: int, state: State, owed: int, used: int, log: Log) -> None:
        """The returning call itself, as the last one linearized before its return."""
        action = self._calls[call].action
        bit = self._pending.bit(call)
        result = self._model.step(state, action)
        if result is not ILLEGAL:
            owed, used = self._apply(action, bit, result, owed, used)
            after.add(result, owed, used & ~bit, (log, call, self._event))

    def _useful(
        self, state: State, owed: int, used: int, log: Log, target: int
    ) -> Iterable[tuple[State, int, int, Log]]:
        """The configurations one linearized call further that may help before the target returns."""
        model, pending = self._model, self._pending
        for action, bits in pending.choices.values():
            unused = bits & ~used
            bit = unused & -unused
            if not bit or bit == pending.bit(target):
                continue
            result = model.step(state, action)
            if result is ILLEGAL:
                continue
            observations, updates = pending.legal(result)
            must = action.kind == "update" and owed & bit
            # Unseen, it could as well be left out. It takes effect before its return.
            if must or observations & owed or updates & ~used & ~bit:
                made = (log, pending.call(bit), self._event)
                yield (result, *self._apply(action, bit, result, owed, used), made)

    def _apply(self, action: Action, bit: int, result: State, owed: int, used: int) -> tuple[int, int]:
        # Observations that are legal now stand right here: they change nothing, so earlier is never worse.
        owed &= ~(bit | self._pending.legal(result)[0])
        if action.kind == "overwrite":
            owed &= ~self._pending.live_overwrites
        return owed, used | bit

    def _spend(self, held: int, size: int, work: int) -> None:
        """Count configurations, bytes and steps; look at the time limit now and then. Raises _GaveUp, OutOfTime."""
        limits = self._limits
        self._most = max(self._most, held)
        if held > limits.configurations:
            raise _GaveUp(f"more than {limits.configurations} configurations")
        if size > self._bytes_max:
            raise _GaveUp(limits.too_large)
        self._steps += work
        if PLAIN_STEP * self._steps > limits.steps:
            raise _GaveUp(limits.gave_up)
        if self._steps > self._next_look:
            self._next_look = self._steps + LOOK_EVERY
            look()


def events(calls: Sequence[Call]) -> list[tuple[int, int, bool]]:
    """(event, call, whether it returns), in event order, of equal ones invocations first.

    Observations that never return are left out.
    """
    events: list[tuple[int, int, bool]] = []
    for position, call in enumerate(calls):
        if call.complete is not None:
            events.append((call.complete, position, True))
        elif call.action.kind == "observe":
            continue
        events.append((call.invoke, position, False))
    # Invocations first, so that calls which share an event overlap: an order that exists is never ruled out.
    return sorted(events, key=lambda event: (event[0], event[2], event[1]))


def _most_at_once(calls: Sequence[Call]) -> int:
    most = now = 0
    for _, call, returns in events(calls):
        if calls[call].complete is not None:
            now += -1 if returns else 1
            most = max(most, now)
    return most
