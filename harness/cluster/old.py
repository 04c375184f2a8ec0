"""Things kept so that they need not be made again; `doctor --clean` removes those unused for long.

Versions of our nodes (`harness.cluster.versions`) and images of nodes (`containers.image`) go by a digest of their
content, and each edit of the code makes a new one. The newest few stay, whatever their age, and so do those used
in the last two weeks (an image: made, because its use is not noted): no run is as long as that. Only names
that are a digest are ours to remove; an image that a container was made of stays, running or not. A removed one is
made anew when it is needed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final

DAY_S: Final = 86_400.0
UNUSED_FOR_S: Final = 14 * DAY_S
NEWEST: Final = 5
_DIGEST: Final = re.compile(r"[0-9a-f]{16}")
_GONE: Final = "gone-"


def old(used_s: Mapping[str, float], now_s: float) -> list[str]:
    """The names that may go, the oldest first. `used_s`: when each was wanted last, in seconds since 1970."""
    by_age = sorted(used_s, key=lambda name: (used_s[name], name))
    return [name for name in by_age[: max(len(by_age) - NEWEST, 0)] if now_s - used_s[name] > UNUSED_FOR_S]


def remove_old_versions(folder: Path, now_s: float) -> list[str]:
    """Remove old versions from a folder; returns what was removed, in words."""
    for half in folder.glob(f"{_GONE}*"):  # a process that removed it was killed
        shutil.rmtree(half, ignore_errors=True)
    used_s: dict[str, float] = {}
    for path in folder.glob("*"):
        if path.is_dir() and not path.is_symlink() and _DIGEST.fullmatch(path.name):
            with suppress(OSError):  # another process removes it
                used_s[path.name] = path.stat().st_mtime
    removed = []
    for name in old(used_s, now_s):
        aside = folder / f"{_GONE}{name}"
        try:
            (folder / name).rename(aside)  # whole or not there: a run may want it just now
        except OSError:
            continue
        shutil.rmtree(aside, ignore_errors=True)
        removed.append(f"version {name} of the nodes, not wanted for {_days(now_s - used_s[name])} days")
    return removed


def remove_old_images(client: Any, repository: str, now_s: float) -> list[str]:
    """Remove old images of a repository; returns what was removed, in words."""
    import docker  # type: ignore[import-untyped]  # it has no types

    made_s: dict[str, float] = {}
    try:
        images = client.images.list(name=repository)
    except docker.errors.ImageNotFound:  # the client asks for each again: another process removes them
        return []
    for image in images:
        for name in image.tags:
            repo, _, tag = name.rpartition(":")
            if repo == repository and _DIGEST.fullmatch(tag):
                made_s[name] = _seconds(image.attrs)
    removed = []
    for name in old(made_s, now_s):
        # `ignore_removed`: the client asks for each container of the list again, and one may be gone by then.
        if client.containers.list(all=True, filters={"ancestor": name}, ignore_removed=True):
            continue
        with suppress(docker.errors.DockerException):  # it is in use now, or another process was faster
            client.images.remove(name, force=False)
            removed.append(f"image {name}, made {_days(now_s - made_s[name])} days ago")
    return removed


def _seconds(attributes: Mapping[str, Any]) -> float:
    """When the image was made, or got its name last."""
    stamps = (attributes.get("Created"), (attributes.get("Metadata") or {}).get("LastTagTime"))
    # A time that is not known is null, or 0001.
    known = [stamp[:19] for stamp in stamps if stamp and stamp[:4] > "1970"]
    return max(
        (datetime.fromisoformat(f"{stamp}+00:00").timestamp() for stamp in known), default=float("inf")
    )


def _days(span_s: float) -> int:
    return int(span_s // DAY_S)
