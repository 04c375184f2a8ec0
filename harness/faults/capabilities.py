"""Capabilities of a system that faults draw on: small protocols, each asked for by `isinstance`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from harness.faults.abilities import Ability
from harness.faults.directed import Scenes


class HasAbilities(Protocol):
    """The part of a system that every schedule needs."""

    @property
    def abilities(self) -> frozenset[Ability]: ...


@runtime_checkable
class BringsScenes(Protocol):
    """A system that names the moments of its nodes and the kinds of their messages, and has scenes made of them."""

    @property
    def scenes(self) -> Mapping[str, Scenes]:
        """Name in the table of faults (`holds`, `moments`) → the scenes that it draws."""
        ...
