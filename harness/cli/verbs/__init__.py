"""The table of verbs. A new one is a file here, with a click command named `command`, and a line below."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """Where a verb lives, and the sentence that `qsync --help` shows without importing it."""

    module: str
    summary: str


VERBS: dict[str, Verb] = {
    "test": Verb("harness.cli.verbs.test", "the project's own tests"),
}
