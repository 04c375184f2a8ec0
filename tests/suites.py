"""In which suite the members of a family of tests run."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def mostly_long(values: Iterable[Any], *, quick: Collection[Any]) -> list[Any]:
    """Parameters of which those in `quick` run by default, and all others in the long suite."""
    family = list(values)
    assert all(value in family for value in quick), "each quick one is one of them"
    return [pytest.param(value, marks=() if value in quick else pytest.mark.long) for value in family]
