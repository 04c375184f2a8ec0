"""The record of a run: its words (`operation`), the whole (`history`), its files (`jsonl`, `parquet`).

`jsonl.read(path)` gives a `History` or raises `HistoryError`; `history.select(f="write", outcome="ok")` picks.
"""

from checkers.history.errors import HistoryError, ModelError
from checkers.history.faults import FaultSpan
from checkers.history.history import Crash, Header, History, Stall, State, by_key
from checkers.history.operation import Event, Operation

__all__ = [
    "Crash",
    "Event",
    "FaultSpan",
    "Header",
    "History",
    "HistoryError",
    "ModelError",
    "Operation",
    "Stall",
    "State",
    "by_key",
]
