"""Where runs and tables lie: a folder, which may be named as file://…; an object store is one once it is mounted.

Workers open the files of a run by themselves, and the tables get in place by renaming, which object stores cannot do:
what lies in one is read and written through a mount of it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

from harness.errors import WrongUse


def folder(given: Path) -> Path:
    """The folder that is meant. WrongUse, which says what to do, for s3a://… and the like.

    `given` has lost one of two slashes already, if it was a path on its way here.
    """
    scheme, colon, rest = str(given).partition(":/")
    if not colon or not scheme.replace("+", "").isalnum() or given.exists():
        return given
    if scheme == "file":
        return Path("/" + unquote(rest).lstrip("/"))
    raise WrongUse(
        f"expected a folder or file://…, got {scheme}://{rest.lstrip('/')}: files of an object store are reached "
        "through a mount; try: mount it (s3fs, rclone mount, gcsfuse) and give the folder"
    )
