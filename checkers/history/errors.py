"""Errors in a record.

    HistoryError            a history that cannot be believed as it stands: no verdict is drawn from it
    ModelError              an operation that the model asked for has no word for: the checker says unknown

Every message says what was expected, what came, and what to try.
"""

from __future__ import annotations

import msgspec

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors that decoding JSON may raise: for other text or another form (a ValidationError is a DecodeError), for bytes
that are no UTF-8, and for brackets nested without end.
"""


class HistoryError(Exception):
    """A history was refused. `line` is the line of its file (1 is the header), None if no single line is at
    fault.
    """

    def __init__(self, *, expected: str, came: str, attempt: str, line: int | None = None) -> None:
        self.line = line
        self.expected = expected
        self.came = came
        self.attempt = attempt
        where = "" if line is None else f"line {line}: "
        super().__init__(f"{where}expected {expected}, got {came}; {attempt}")


class ModelError(Exception):
    """An operation (its invocation's event index is `index`), or the start value (None), means nothing to the model."""

    def __init__(self, *, expected: str, came: str, index: int | None) -> None:
        self.index = index
        place = "" if index is None else f"event {index}: "
        super().__init__(f"{place}expected {expected}, got {came}; give a model that knows it")
