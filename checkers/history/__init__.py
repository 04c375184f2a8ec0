"""The record of a run: its words (`operation`), the whole (`history`), its files (`jsonl`, `parquet`).

`jsonl.read(path)` gives a `History` or raises `HistoryError`; `history.select(f="write", outcome="ok")` picks.

How a file becomes a history, and a history a verdict (names are of this package or of `checkers`):

| step | where |
|---|---|
| lines → events → operations | `jsonl`; large files by `lines`, as arrays (`line_kernels`, `pairing_kernels`) |
| Parquet → the same | `parquet`; large files by `tables` |
| other tools' files, frames | `foreign`, `foreign.frames` |
| operations, faults, members, reports | `History`; `History.columns` are the operations as arrays (`columns`) |
| arrays → the rows that break a rule | `domain.written`, `replicas.dirty`, `sessions.staleness`; values: `value_rows` |
| the order of each key's values | `value_order`; what goes back in it: `replicas.prefix` |
| rows → operations → words | `History.at(rows)`, then a `Witness` in a `Verdict` (`checkers.verdict`) |
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
