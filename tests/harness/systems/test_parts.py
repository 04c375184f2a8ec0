"""What a system offers is there; a part that is missing is named in one line."""

from __future__ import annotations

import pytest

from harness.errors import HarnessError
from harness.systems import SYSTEMS
from harness.systems.parts import Logs, Members, Settings

OFFERED = {
    "members": ("members", Members, ("remove", "tell", "counts")),
    "newcomers": ("members", Members, ("newcomer", "add", "admit")),
    "options": ("settings", Settings, ("of", "change")),
}
"""Ability → the part of a system that it is about, and the methods of which one at least must be the system's own."""


@pytest.mark.parametrize("name", SYSTEMS)
def test_what_a_system_offers_is_there(name: str) -> None:
    """If it failed, a fault that the system offers would break a run in its middle."""
    system = SYSTEMS[name]
    for ability in OFFERED.keys() & system.abilities:
        part, usual, methods = OFFERED[ability]
        own = type(getattr(system, part))
        assert any(getattr(own, each) is not getattr(usual, each) for each in methods), ability
    if system.logs.suffixes:
        assert type(system.logs).inspected is not Logs.inspected
        assert type(system.logs).rows_in is not Logs.rows_in


def test_a_part_that_is_missing_is_named() -> None:
    """If it failed, somebody with a new store would read "NotImplementedError" and nothing more."""
    with pytest.raises(
        HarnessError, match=r"^expected a system that defines logs\.inspected, got one without; try: "
    ):
        Logs().inspected(b"")
