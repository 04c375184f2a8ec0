"""Transactions of registers in sessions, without times: what testers of isolation record.

Such a file has the order of each session's transactions, and no order between sessions. The history says so
(`History.has_real_time`), and no promise that needs real time is judged.

The testers begin with 0: a read of 0 counts as one of null, the value before the first write, unless a transaction
wrote 0 to that key.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import UNSET

from checkers.history.errors import HistoryError
from checkers.history.foreign.kinds import text
from checkers.history.foreign.operation_maps import no_operations
from checkers.history.history import TIMELESS, Header, History
from checkers.history.operation import Event, Outcome
from checkers.history.start import Start

Micro = tuple[str, Any, Any]
"""(r or w, key, value); value None: read of a key without a value."""


@dataclass(slots=True)
class Transaction:
    micros: list[Micro] = field(default_factory=list)
    ended: Outcome = "ok"


@dataclass(slots=True)
class Sessions:
    """The transactions of each session in their order. `lone`: transactions of no known session."""

    sessions: Sequence[Sequence[Transaction]]
    lone: Sequence[Transaction] = ()
    torn: str | None = None

    def history(self, initial: Any = UNSET) -> History:
        """The history of these sessions. `initial`: the keys' values before it, for files that do not begin with 0.

        Raises HistoryError.
        """
        if self.torn is not None:  # it may have read what a later session wrote
            raise damaged("a whole file, because sessions stand one behind the other", self.torn)
        header = Header(system="foreign", extra={TIMELESS: True})
        events = list(self._events(self._with_zero() if initial is UNSET else None))
        if not events:
            raise no_operations("no transactions")
        history = History.of(header, events, first_line=0)
        return history if initial is UNSET else history.starting_at(_given(initial))

    def _events(self, with_zero: Container[Any] | None) -> Iterator[Event]:
        """Round by round, a transaction of each session, so that the order in the file favours none."""
        running = [*enumerate([*self.sessions, *([one] for one in self.lone)])]
        index = place = 0
        while running := [(number, session) for number, session in running if place < len(session)]:
            for is_end in (False, True):
                for number, session in running:
                    one = session[place]
                    yield Event(
                        index=index,
                        time_ns=index,
                        type=one.ended if is_end else "invoke",
                        process=number,
                        f="txn",
                        value=_value(one, is_end, with_zero),
                    )
                    index += 1
            place += 1

    def _with_zero(self) -> set[Any]:
        """The keys that a transaction wrote 0 to: all others begin with it, and 0 is null here."""
        every = (*self.lone, *(one for session in self.sessions for one in session))
        return {key for one in every for f, key, value in one.micros if f == "w" and value == 0}


def _given(initial: Any) -> Start:
    if not isinstance(initial, Mapping):
        return Start(value=initial)
    return Start(by_key={text(key): value for key, value in initial.items()})


def _value(one: Transaction, is_answer: bool, with_zero: Container[Any] | None) -> list[list[Any]]:
    """`with_zero`: the keys whose reads of 0 are of 0; None: all."""
    shows = is_answer and one.ended == "ok"
    return [
        [
            f,
            key,
            value if f == "w" or (shows and (value != 0 or with_zero is None or key in with_zero)) else None,
        ]
        for f, key, value in one.micros
    ]


def damaged(what: str, came: str, line: int | None = None) -> HistoryError:
    """The refusal of a file in which something else stands. `what`: the format, and what was expected."""
    attempt = "check that the file was copied whole"
    return HistoryError(expected=what, came=came, attempt=attempt, line=line)
