"""The compiled search: calls in, Decision out, as `search` gives it. The kernels are in `search_kernels`.

Registers are searched as they are. Any other model is compiled as it goes along: states and actions are numbered, the
kernel looks steps up in a table and stops where one is missing, and the model is asked for it. So there is one
meaning of every model, written in Python, and one search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy

from checkers.compiled import load, why_plain
from checkers.limits import look
from checkers.linearizable import layout_kernels, search_kernels
from checkers.linearizable.columns import NOTHING, Columns, dense, is_dense, register_columns, tied, top
from checkers.linearizable.models import ILLEGAL, Action, Model, Register, State, weight
from checkers.linearizable.search import Call, Decision, Limits
from checkers.linearizable.search_kernels import NEVER, OBSERVE, OVERWRITE, UPDATE

Array = Any  # numpy's
KIND_OF = {"observe": OBSERVE, "overwrite": OVERWRITE, "update": UPDATE}
SLICE = 20_000_000  # steps of the kernel, some 0.1 s, before the time limit is looked at
LEARNT = 1_000  # steps that asking a model for one step is worth
WALKED = 400  # events from which on the quick way is tried first
STACK = 2048  # entries to which the quick way can go back
KNOWN = 1 << 13
HEAD_BYTES = 128  # what finding a row again takes at most
STATE_BYTES = 100  # what finding a state takes by its number, and its number


def can_run() -> bool:
    """Whether there is a compiler: without one `search` is the faster of the two."""
    return not why_plain()


def prepare() -> None:
    """Compile the search, so that its machine code is kept when a history needs it."""
    if can_run():
        writes = [
            Call(Action("overwrite", "write", (number,)), 2 * number, 2 * number + 1) for number in range(2)
        ]
        search(Register(), writes, Limits())


def search(
    model: Model, calls: Sequence[Call], limits: Limits, starts: Sequence[State] | None = None
) -> Decision:
    """Look for an order of `calls`, as `checkers.linearizable.search.search` does."""
    beginning = (model.initial,) if starts is None else tuple(starts)
    if isinstance(model, Register):
        columns, codes = register_columns(calls, beginning)
        return _Search(columns, limits, [codes[state] for state in beginning], None, ties=tied(columns)).run()
    steps = _Steps(model, beginning)
    columns = steps.columns(calls)
    return _Search(columns, limits, list(range(len(steps.states))), steps, ties=tied(columns)).run()


def search_columns(columns: Columns, limits: Limits) -> Decision:
    """The same for a register's calls as columns with ranks that are all different."""
    return _Search(columns, limits, [0], None).run()


class _Steps:
    """A model's steps by number; the model computes each once."""

    def __init__(self, model: Model, beginning: Sequence[State]) -> None:
        self._model = model
        self.states: list[State]
        self._numbers: dict[State, int]
        self._actions: list[Action] = []
        self._begin(beginning)

    def _begin(self, states: Sequence[State]) -> None:
        """Know these states alone, by their places, and no steps."""
        self.bytes = 0
        self.states = []
        self._numbers = {}
        self._known = 0
        self.table = _table(1 << 12)
        for state in states:
            self._number(state)

    def _number(self, state: State) -> int:
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self.bytes += STATE_BYTES + weight(state)
        return number

    def keep(self, numbers: Sequence[int]) -> None:
        """Forget all steps and all states but these, which get their places as numbers."""
        self._begin([self.states[number] for number in numbers])

    def columns(self, calls: Sequence[Call]) -> Columns:
        """`old` holds the action's number."""
        numbers: dict[Action, int] = {}
        rows = numpy.empty((len(calls), 4), dtype=numpy.int64)
        for place, call in enumerate(calls):
            number = numbers.setdefault(call.action, len(numbers))
            complete = NEVER if call.complete is None else call.complete
            rows[place] = (call.invoke, complete, KIND_OF[call.action.kind], number)
        self._actions = list(numbers)
        invoke, completes, kind, action = (numpy.ascontiguousarray(column) for column in rows.T)
        nothing = numpy.full(len(calls), NOTHING, dtype=numpy.int64)
        return Columns(
            invoke=invoke, complete=completes, kind=kind, old=action, new=nothing, values=max(1, len(numbers))
        )

    def learn(self, asked: Array, kernels: Any, bytes_max: int) -> int:
        """Note the steps that the kernel asked for, (state, action) each, while states fit. Gives how many it noted."""
        triples = numpy.empty((len(asked), 3), dtype=numpy.int64)
        count = 0
        for state, action in asked.tolist():
            if self.bytes > bytes_max:
                break
            result = self._model.step(self.states[state], self._actions[action])
            triples[count] = (state, action, -1 if result is ILLEGAL else self._number(result))
            count += 1
        triples = triples[:count]
        self._known += len(triples)
        # At most half full: `look_up` ends at a free place alone.
        if 2 * self._known > len(self.table):
            before = self.table[self.table[:, 0] >= 0]
            self.table = _table(4 * len(self.table))
            kernels.note_steps(self.table, before)
        kernels.note_steps(self.table, triples)
        return count


def _table(size: int) -> Array:
    return numpy.full((size, 3), -1, dtype=numpy.int64)


class _Search:
    """One walk over the events of one object's calls: the kernel's arrays, and the work that the kernel asks for."""

    def __init__(
        self, columns: Columns, limits: Limits, starts: list[int], steps: _Steps | None, *, ties: bool = False
    ) -> None:
        self._limits = limits
        self._steps = steps
        self._kernels = load(search_kernels)
        self._returns = columns.complete
        # Of equal ranks only one event would be kept: `lay_out` has one place for a rank.
        self._columns = columns if is_dense(columns) and not ties else dense(columns)
        self._misses = numpy.empty((search_kernels.MISSES_MAX if steps else 1, 2), dtype=numpy.int64)
        self._no_table = _table(1)
        self._starts = starts
        self._spent = 0  # steps beside those in regs
        self._forgot_at = -1  # the event at which states were forgotten last
        self._lay_out()
        self._allocate()

    def run(self) -> Decision:
        # LOST is no answer: the walk leaves alternatives out. YES is one, because an order was found.
        if self._steps is None and len(self._events) > WALKED and len(self._starts) == 1:
            answer = self._walk()
            if answer == self._kernels.YES:
                return self._decision("yes")
            if answer != self._kernels.LOST:
                return self._decision("unknown", reason=self._limits.gave_up)
            self._spent = self._done
            self._allocate()
        return self._all()

    def _walk(self) -> int:
        """Try the quick way to a yes: YES, LOST, or PAUSED if all steps are done."""
        kernels = self._kernels
        self._nodes = numpy.empty((len(self._columns) + 64 + 2 * self._widest, 3), dtype=numpy.int64)
        width = self._rows.shape[2] + kernels.ENTRY
        stack = numpy.empty((STACK, width), dtype=numpy.int64)
        known = numpy.zeros(KNOWN, dtype=numpy.int64)
        while True:
            answer = int(kernels.walk(self._search(), self._slice(), stack, known))
            if answer != kernels.PAUSED or self._done >= self._limits.steps:
                return answer

    def _all(self) -> Decision:
        """Look at all possible configurations, event by event."""
        self._nodes = numpy.empty((1 << 14, 3), dtype=numpy.int64)
        regs, kernels, limit = self._regs, self._kernels, self._limits.configurations
        while self._done < self._limits.steps:
            answer = kernels.advance(self._search(), self._slice(), limit, len(self._events))
            if answer == kernels.YES:
                return self._decision("yes")
            if answer == kernels.NO:
                failing = int(self._events[regs[kernels.EVENT]]) >> 2
                return self._decision("no", failing=failing)
            if regs[kernels.BUSY] and regs[kernels.N_AFTER] + regs[kernels.N_SEEN] > limit:
                return self._decision("unknown", reason=f"more than {limit} configurations")
            if not self._served(answer):
                return self._decision("unknown", reason=self._limits.too_large)
        return self._decision("unknown", reason=self._limits.gave_up)

    @property
    def _done(self) -> int:
        """The steps so far."""
        return self._spent + int(self._regs[self._kernels.STEPS])

    def _slice(self) -> int:
        """How many steps the kernel may do now. No clock says how many, because a pause changes their count a little.

        Raises OutOfTime.
        """
        look()
        return min(SLICE, self._limits.steps - self._done)

    def _served(self, answer: int) -> bool:
        """Do the work that the kernel asks for. False if the kernel cannot go on."""
        regs, kernels = self._regs, self._kernels
        if answer == kernels.ROWS_FULL:
            return self._grow_rows()
        if answer == kernels.NODES_FULL:
            return self._forget_nodes()
        if answer == kernels.UNKNOWN_STEPS:
            assert self._steps is not None
            asked = self._misses[: int(regs[kernels.N_MISSES])].copy()
            self._spent += LEARNT * self._steps.learn(asked, kernels, self._limits.bytes_max)
            regs[kernels.N_MISSES] = 0
            if self._steps.bytes > self._limits.bytes_max:
                return self._forget_states(self._steps)
        return True

    def _lay_out(self) -> None:
        """The events, and every call's bit and number."""
        columns = self._columns
        kernels: Any = load(layout_kernels)
        count, values = len(columns), columns.values
        calls = (columns.complete, columns.kind, columns.old, columns.new)
        self._ops = numpy.empty((count, search_kernels.OPS), dtype=numpy.int64)
        last = numpy.full(values + 1, -1, dtype=numpy.int64)
        if self._steps:
            kernels.number_plainly(*calls[:3], self._ops)
            self._actions = values
        else:
            asked = numpy.zeros(values + 1, dtype=numpy.int64)
            kernels.see(*calls, asked, last)
            self._actions = kernels.number(*calls, asked, self._ops, _table(2 * count + 2), values + 1)
        last_rank = top(columns)
        crash = not self._steps and columns.complete.max(initial=0) >= NEVER
        self._klass = numpy.zeros((self._actions, 5), dtype=numpy.int64)
        events = numpy.empty(3 * count, dtype=numpy.int64)
        self._crashed_by_class = numpy.empty(count, dtype=numpy.int64)
        sizes = numpy.zeros(layout_kernels.SIZES, dtype=numpy.int64)
        at = numpy.full(last_rank + 1, -1, dtype=numpy.int64)
        ending = at.copy() if crash else at[:0]
        free = numpy.empty(count + 1, dtype=numpy.int64)
        kernels.lay_out(
            columns.invoke,
            last,
            self._ops,
            self._klass,
            at,
            ending,
            events,
            self._crashed_by_class,
            free,
            sizes,
        )
        self._events = events[: sizes[layout_kernels.N_EVENTS]]
        self._live_bits, self._crashed, _, self._classes = sizes[1:5].tolist()

    def _allocate(self) -> None:
        kernels, starts = self._kernels, self._starts
        bits = self._live_bits + self._crashed
        self._klass[:, [kernels.INVOKED, kernels.TRIED_AT]] = 0
        self._crashed_by_bit = numpy.empty(bits, dtype=numpy.int64)
        # Bits of crashed calls stand behind all that live ones use, and are never given to another call.
        self._crashed_by_bit[self._live_bits :] = self._crashed_by_class[: self._crashed]
        words = max(1, -(-bits // search_kernels.BITS))
        self._widest = max(self._live_bits, self._classes) + 1
        self._pending = numpy.zeros((3, self._widest), dtype=numpy.int64)
        self._masks = numpy.zeros((2, words), dtype=numpy.int64)
        self._regs = numpy.zeros(kernels.REGS, dtype=numpy.int64)
        size = 64 + 4 * (len(starts) + 2 * self._widest)
        self._rows = numpy.zeros((3, size, kernels.MASKS + 2 * words), dtype=numpy.int64)
        self._heads = _heads(size)
        self._rows[0, : len(starts), kernels.STATE] = starts
        self._rows[0, : len(starts), kernels.NODE] = -1
        self._regs[kernels.N_NOW] = self._regs[kernels.MOST] = len(starts)

    def _search(self) -> search_kernels.Search:
        table = self._steps.table if self._steps else self._no_table
        return search_kernels.Search(
            self._regs, self._events, self._ops, self._klass, self._pending, self._masks, self._crashed_by_bit,
            self._rows, self._heads, self._nodes, table, self._misses,
        )  # fmt: skip

    def _grow_rows(self) -> bool:
        """Make room for rows; the current event begins again. False if memory does not suffice."""
        size, width = self._rows.shape[1:]
        larger = min(4 * size + 64, self._left() // (24 * width + HEAD_BYTES))
        if larger < size + size // 4:
            return False
        rows = numpy.zeros((3, larger, width), dtype=numpy.int64)
        now = int(self._regs[self._kernels.NOW])
        rows[now, :size] = self._rows[now]
        self._rows = rows
        self._heads = _heads(larger)
        # Rows after the event and seen ones are not copied: they are made again.
        self._regs[self._kernels.BUSY] = 0
        return True

    def _forget_states(self, steps: _Steps) -> bool:
        """Forget states that stand in no configuration; the current event begins again. False if it needs them all."""
        regs, kernels = self._regs, self._kernels
        event = int(regs[kernels.EVENT])
        if event == self._forgot_at:
            return False
        self._forgot_at = event
        now = self._rows[regs[kernels.NOW], : regs[kernels.N_NOW], kernels.STATE]
        numbers, now[:] = numpy.unique(now, return_inverse=True)
        steps.keep(numbers.tolist())
        # Rows after the event and seen ones are made again: they hold the old numbers.
        regs[kernels.BUSY] = 0
        return True

    def _forget_nodes(self) -> bool:
        """Make room for the log. False if memory does not suffice."""
        kernels, size = self._kernels, len(self._nodes)
        kernels.compact(self._regs, self._rows, self._nodes, numpy.empty(size, dtype=numpy.int64))
        if 2 * self._regs[kernels.N_NODES] > size - 64 - 4 * self._widest:
            larger = min(4 * size + 8 * self._widest, self._left() // 32)
            if larger < size + size // 4 + 8 * self._widest:
                return False
            nodes = numpy.zeros((larger, 3), dtype=numpy.int64)
            nodes[:size] = self._nodes
            self._nodes = nodes
        return True

    def _left(self) -> int:
        """Bytes that may still be allocated, beside the arrays that are about to be copied."""
        return self._limits.bytes_max - int(self._rows.nbytes + self._heads.nbytes + self._nodes.nbytes)

    def _decision(
        self, result: Literal["yes", "no", "unknown"], failing: int | None = None, reason: str = ""
    ) -> Decision:
        log = self._log() if result == "yes" else None
        most = int(self._regs[self._kernels.MOST])
        return Decision(result, failing, most, reason, log=log, algorithm="compiled search", steps=self._done)

    def _log(self) -> Array:
        """The order in the first configuration that is left: rows of call, and rank at which it was linearized."""
        kernels = self._kernels
        node = int(self._rows[self._regs[kernels.NOW], 0, kernels.NODE])
        log = numpy.empty((kernels.depth(self._nodes, node), 2), dtype=numpy.int64)
        kernels.read_log(self._nodes, node, log)
        # Of the caller's ranks, not the dense ones.
        log[:, 1] = self._returns[self._events[log[:, 1]] >> 2]
        return log


def _heads(size: int) -> Array:
    return numpy.full((2, 1 << (2 * size - 1).bit_length(), 2), -1, dtype=numpy.int64)
