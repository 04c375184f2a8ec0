"""The TxLog: logs of its masters and the history of its clients in, a verdict for each check out.

    given = Given(masters=("n1", "n2", "n3"), logs={"n1": log_of("n1", records), …}, history=history)
    check(given)["order"].result                       # "valid", "invalid" or "unknown"

`records` has the form of the records, `report` the checks, and the modules of the rules say what breaks each. A breach
that the strategy of the run has as its documented price is a finding; every other one is a violation. Between which
masters a split can have happened follows from the record of the harness's own faults (`disturbances`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkers.on_use import on_use

if TYPE_CHECKING:
    from checkers.logs.txlog.checker import check
    from checkers.logs.txlog.given import Given
    from checkers.logs.txlog.records import Log, log_of
    from checkers.logs.txlog.report import CHECKS, PREFIX, Name

_MODULES = {"check": "checker", "Given": "given", "Log": "records", "log_of": "records"}
_NAMES = {name: f"{__name__}.{module}" for name, module in _MODULES.items()}
_NAMES |= dict.fromkeys(("CHECKS", "PREFIX", "Name"), f"{__name__}.report")

__all__ = ["CHECKS", "PREFIX", "Given", "Log", "Name", "check", "log_of"]

__getattr__ = on_use(__name__, _NAMES)
