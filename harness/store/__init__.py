"""The only code that knows how `results/` is laid out."""

from harness.store.run_folder import RunFolder, RunSummary, find_runs, resolve

__all__ = ["RunFolder", "RunSummary", "find_runs", "resolve"]
