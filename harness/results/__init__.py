"""The only code that knows the layout of `results/`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkers.on_use import on_use

if TYPE_CHECKING:
    from harness.results.run_folder import RunFolder, resolve
    from harness.results.scan import LeftOut, Scan, StoredRun

_NAMES = {
    **dict.fromkeys(("RunFolder", "resolve"), "harness.results.run_folder"),
    **dict.fromkeys(("LeftOut", "Scan", "StoredRun"), "harness.results.scan"),
}
__getattr__ = on_use(__name__, _NAMES)

__all__ = ["LeftOut", "RunFolder", "Scan", "StoredRun", "resolve"]
