"""A disk that was lost: a node's data folder without its data.

The data are moved aside, to a folder of its own beside the rest, so that an investigation of the run finds them; no
node and no audit reads them there. The logs that people read stay.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.cluster.place import TRACE

CONFIG: Final = "config.json"
KEPT: Final = (CONFIG, "log.jsonl", "output.txt", "tarantool.log", "clock", TRACE)
ASIDE: Final = "lost-disk-"


def forget_data(folder: Path) -> None:
    """Empty the folder of a node that does not run."""
    number = 1 + len(list(folder.glob(f"{ASIDE}*")))
    aside = folder / f"{ASIDE}{number}"
    aside.mkdir()
    for path in sorted(folder.iterdir()):
        if path.name not in KEPT and not path.name.startswith(ASIDE):
            path.rename(aside / path.name)
