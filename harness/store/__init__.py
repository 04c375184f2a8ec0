"""The only code that knows how `results/` is laid out."""

from harness.store.run_folder import RunFolder, RunSummary, find_runs, resolve
from harness.store.scan import LeftOut, Scan, StoredRun, scan

__all__ = ["LeftOut", "RunFolder", "RunSummary", "Scan", "StoredRun", "find_runs", "resolve", "scan"]
