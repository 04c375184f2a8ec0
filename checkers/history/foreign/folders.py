"""Records that are folders: of etcd's robustness tests, and of Cobra (`cobra`).

<report>/client-1/operations.json, watch.json
         client-2/…
         server-…/                               the members' data, which is not read
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from checkers.history.errors import HistoryError
from checkers.history.etcd_records import ALL_CLIENTS
from checkers.history.foreign import cobra, json_values, porcupine_json
from checkers.history.foreign.operation_maps import Maps
from checkers.history.foreign.sessions import Sessions
from checkers.history.history import Header

_CLIENT: Final = re.compile(r"client-\d+")
_FILES: Final = ("operations.json", "watch.json")


def reader_of(folder: Path) -> Callable[[Path], Maps | Sessions] | None:
    """What reads the folder as one history; None if it is no such record."""
    if not folder.is_dir():
        return None
    if _clients(folder):
        return etcd_report
    return cobra.read if cobra.logs_in(folder) else None


def etcd_report(folder: Path) -> Maps:
    """The operations of all clients of a report. Raises HistoryError, OSError."""
    files = []
    for path in _clients(folder):
        name = str(path.relative_to(folder))
        if not path.is_file():
            raise HistoryError(
                expected="a folder of each client, with its operations.json and watch.json",
                came=f"{name}, which is no file or cannot be followed",
                attempt="copy the report again, whole: without this client's operations it would be an anomaly",
            )
        try:
            values = json_values.parse(path.read_bytes(), "operations of etcd's clients")
        except HistoryError as error:
            came, attempt = f"{error.came} in {name}", error.attempt
            raise HistoryError(
                expected=error.expected, came=came, attempt=attempt, line=error.line
            ) from error
        values.name = name
        if not values.values:  # etcd writes no file for a client without operations
            values.torn = "nothing is left"
        files.append(values)
    header = Header(system="etcd", extra={ALL_CLIENTS: True})
    return porcupine_json.maps_of(files, header)


def _clients(folder: Path) -> list[Path]:
    """The clients' files; one of another kind must not be taken for that of a client without operations."""
    clients = sorted(path for path in folder.iterdir() if _CLIENT.fullmatch(path.name) and not path.is_file())
    files = [path / name for path in clients for name in _FILES if os.path.lexists(path / name)]
    return files and sorted([*files, *(path for path in clients if not path.is_dir())])
