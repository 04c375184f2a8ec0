"""The only code that knows the layout of `results/`."""

from harness.store.run_folder import RunFolder, RunSummary, find_runs, resolve
from harness.store.scan import LeftOut, Scan, StoredRun, scan

__all__ = ["LeftOut", "RunFolder", "RunSummary", "Scan", "StoredRun", "find_runs", "resolve", "scan"]
