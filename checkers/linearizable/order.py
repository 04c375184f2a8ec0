"""From a search's log to the whole order: where the observations and the unseen writes stand."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.linearizable.models import ILLEGAL, Model, State
from checkers.linearizable.search import Call, events


def placed(model: Model, calls: Sequence[Call], log: Sequence[tuple[int, int]], start: State) -> list[int]:
    """All calls that surely happened, and the crashed ones that the log used, in a legal order within real time.

    An observation stands where it is first legal; an overwrite that the log leaves out right before another one.
    """
    return _Placing(model, calls, log, start).run()


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
