"""The messages between the nodes of a run, as a file for ShiViz, which draws them as a space-time diagram."""

from __future__ import annotations

from pathlib import Path

from checkers.cuts import jsonl, neighbourhood
from checkers.history.errors import HistoryError
from harness.cluster.place import TRACE
from harness.errors import StoreError, WrongUse
from harness.results import RunFolder, output_file


def write(path: Path, folder: RunFolder) -> None:
    """A line for each event (`neighbourhood.SHIVIZ_EXPRESSION` reads it). Raises WrongUse if nothing was recorded."""
    files = sorted(folder.nodes.glob(f"*/{TRACE}/*.jsonl"))
    if not files:
        raise WrongUse(
            f"--shiviz: {folder.path} has no record of the messages between nodes; try: a run of --system twophase"
        )
    try:
        trace = jsonl.read(files)
        lines = list(neighbourhood.shiviz(trace, neighbourhood.whole(trace)))
    except (HistoryError, ValueError, OSError) as error:
        raise StoreError(f"{folder.nodes}: the record of messages cannot be read: {error}") from error
    output_file.write(path, "".join(f"{line}\n" for line in lines).encode(), "the file for ShiViz")
