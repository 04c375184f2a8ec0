"""Seeded bugs of a node: each is a file that changes the answer of one decision of the node.

A file has the name of its bug, with underscores, and the bug as `BUG`. The harness chooses the configuration and the
faults under which a bug shows (`harness.campaigns.hunt`). The correct node's code mentions none of them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

Decisions = TypeVar("Decisions")
"""The class with the decisions of a correct node."""


@dataclass(frozen=True, slots=True)
class Bug(Generic[Decisions]):
    """`does`: what the node does wrong, `seen`: what clients or cuts show; any of `checkers` finds it."""

    decides: type[Decisions]
    does: str
    seen: str
    checkers: tuple[str, ...]
    issue: int | None = None
    """The number of the original's issue, where the original had the bug."""

    def __str__(self) -> str:
        origin = f" (#{self.issue})" if self.issue else ""
        return f"{self.does}{origin}: {self.seen}"


class Bugs(Generic[Decisions]):
    """The bugs whose files are in a package; `correct` is the class of a node without any."""

    def __init__(self, package: str, path: Iterable[str], correct: type[Decisions]) -> None:
        self._package = package
        self._correct = correct
        files = (file.name for file in pkgutil.iter_modules(path) if not file.name.startswith("_"))
        self.names = tuple(sorted(name.replace("_", "-") for name in files))
        self.bug = cache(self._read)
        self._class_of = cache(self._made)

    def _read(self, name: str) -> Bug[Decisions]:
        """The bug of this name; a node imports only the files of its own bugs. Raises ValueError if there is none."""
        if name not in self.names:
            raise ValueError(f"unknown bug {name!r}; known: {', '.join(self.names)}")
        bug = importlib.import_module(f"{self._package}.{name.replace('-', '_')}").BUG
        assert isinstance(bug, Bug), name
        return bug

    def _made(self, names: tuple[str, ...]) -> type[Decisions]:
        return type("Decisions", (*(self._read(name).decides for name in names), self._correct), {})

    def decisions_with(self, names: Sequence[str]) -> Decisions:
        """The decisions of a node with these bugs, each once. Raises ValueError if one is unknown."""
        return self._class_of(tuple(dict.fromkeys(names)))() if names else self._correct()
