"""From a search's log to the whole order: where the observations and the unseen writes stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from checkers.compiled import load
from checkers.linearizable import order_kernels
from checkers.linearizable.columns import Columns
from checkers.linearizable.models import ILLEGAL, Model, State
from checkers.linearizable.search import Call, events
from checkers.linearizable.search_kernels import NEVER


def placed(model: Model, calls: Sequence[Call], log: Sequence[tuple[int, int]], start: State) -> list[int]:
    """All calls that surely happened, and the crashed ones that the log used, in a legal order within real time.

    An observation stands where it is first legal; an overwrite that the log leaves out right before another one.
    """
    return _Placing(model, calls, log, start).run()


def placed_columns(columns: Columns, log: Any) -> list[int]:
    """The same for a register's calls as columns, from code 0; `log` has rows of a call and a return's rank."""
    calls = numpy.arange(len(columns))
    live = calls[columns.complete < NEVER]
    ranks = numpy.concatenate((columns.invoke, columns.complete[live]))
    events = numpy.concatenate((calls << 1, live << 1 | 1))
    by_rank = numpy.argsort(ranks, kind="stable")
    log = numpy.asarray(log, dtype=numpy.int64).reshape(-1, 2)
    logged = numpy.zeros(len(columns), dtype=numpy.bool_)
    logged[log[:, 0]] = True
    waiting, unseen, order = (numpy.empty(len(columns) + 1, dtype=numpy.int64) for _ in range(3))
    count = load(order_kernels, len(events)).place(
        events[by_rank], ranks[by_rank], columns.complete, columns.kind, columns.old, columns.new,
        numpy.ascontiguousarray(log), logged, waiting, unseen, order,
    )  # fmt: skip
    in_order: list[int] = order[:count].tolist()
    return in_order


class _Placing:
    """One walk over the events along the log."""

    def __init__(
        self, model: Model, calls: Sequence[Call], log: Sequence[tuple[int, int]], start: State
    ) -> None:
        self._model = model
        self._calls = calls
        self._log = [(int(call), int(event)) for call, event in log]
        self._logged = {call for call, _ in self._log}
        self._state = start
        self._order: list[int] = []
        self._waiting: list[int] = []  # observations that were not legal yet
        self._unseen: list[int] = []  # overwrites that are not in the log

    def run(self) -> list[int]:
        position = 0
        for event, call, returns in events(self._calls):
            if not returns:
                self._begin(call)
                continue
            while position < len(self._log) and self._log[position][1] <= event:
                self._make(self._log[position][0])
                position += 1
        return self._order

    def _begin(self, call: int) -> None:
        kind = self._calls[call].action.kind
        if kind == "observe":
            self._waiting.append(call)
            self._observe()
        elif kind == "overwrite" and call not in self._logged and self._calls[call].complete is not None:
            self._unseen.append(call)

    def _make(self, call: int) -> None:
        action = self._calls[call].action
        if action.kind == "overwrite":
            self._order += self._unseen
            self._unseen = []
        self._order.append(call)
        result = self._model.step(self._state, action)
        assert result is not ILLEGAL
        self._state = result
        self._observe()

    def _observe(self) -> None:
        left: list[int] = []
        for call in self._waiting:
            illegal = self._model.step(self._state, self._calls[call].action) is ILLEGAL
            (left if illegal else self._order).append(call)
        self._waiting = left
