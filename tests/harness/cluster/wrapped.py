"""Stores behind a wrapper: what the harness starts is not the store, and nothing but the harness ends the store."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no types

from harness.cluster.place import Place

STORE = Path(__file__).parents[3] / "docs" / "mystore.py"
WRAPPERS = {
    "a child": "{store} & wait",
    "a session of its own": "setsid {store} & wait",
    "left behind": "(setsid {store} &); while :; do sleep 1; done",
    "without an environment": "env -i PYTHONPATH=$PYTHONPATH {store} & wait",
}


def wrapped(kind: str, place: Place) -> tuple[str, ...]:
    store = f"{sys.executable} {STORE} {place.listen}"
    shell = WRAPPERS[kind].format(store=f"{store} {place.data}")
    return ("sh", "-c", f"export PYTHONPATH={STORE.parents[1]}; {shell}")


def stores(folder: Path) -> list[psutil.Process]:
    """The stores, not their wrappers, that run on data below this folder: by their last word."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        for words in [process.info["cmdline"] or []]
        if str(STORE) in words and words[-1].startswith(str(folder))
    ]
