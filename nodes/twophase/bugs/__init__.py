"""Seeded bugs: each is a file that gives one decision of a node (`nodes.twophase.decisions`) another answer.

A file is called as its bug, with underscores, and has it as `BUG`. In which configuration and under which faults a bug
shows is the harness's business.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from nodes.twophase.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Bug:
    """`does` says what is done wrong, `seen` what a cut or its restore shows.

    `checkers`: the one that reports it; others leave out what follows from this bug.
    """

    decides: type[Decisions]
    does: str
    seen: str
    checkers: tuple[str, ...] = ("cuts-transactions",)

    def __str__(self) -> str:
        return f"{self.does}: {self.seen}"


NAMES = tuple(
    sorted(
        file.name.replace("_", "-")
        for file in pkgutil.iter_modules(__path__)
        if not file.name.startswith("_")
    )
)


@cache
def bug(name: str) -> Bug:
    """The bug of this name; a node reads only the files of those that it has. ValueError if there is none."""
    if name not in NAMES:
        raise ValueError(f"unknown bug {name!r}; known: {', '.join(NAMES)}")
    found = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").BUG
    assert isinstance(found, Bug), name
    return found


@cache
def _class_of(names: tuple[str, ...]) -> type[Decisions]:
    return type("Decisions", (*(bug(name).decides for name in names), Decisions), {})


def decisions_with(names: Sequence[str]) -> Decisions:
    """The decisions of a node with these bugs."""
    return _class_of(tuple(names))() if names else Decisions()
