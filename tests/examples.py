"""How many examples a test draws.

`@examples.up_to(300)` draws 150 in the long suite, 30 by default, and 900 at night: the long suite has to end in ten
minutes. A test without it draws that share of `USUAL`. `examples.times(2_000)` is the same for a loop of a test's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import settings

VARIABLE = "HYPOTHESIS_PROFILE"
DEFAULT, LONG, NIGHT = "default", "long", "night"
SHARES = {DEFAULT: 0.1, LONG: 1 / 2, NIGHT: 3}
"""Profiles of Hypothesis. The first two draw the same examples in every run; the last one draws new ones."""
PROFILE = os.environ.get(VARIABLE, DEFAULT)
USUAL = 100
FEWEST = 25

night = 0
"""The seed of this night, `--hypothesis-seed` (`conftest.py` sets it)."""


def times(number: int) -> int:
    """The profile's share of `number`, but not fewer than 25 if `number` has so many."""
    share = SHARES[PROFILE]
    return int(number * share) if share >= 1 else min(number, max(FEWEST, int(number * share)))


def tonight(number: int, part: int = 0) -> range:
    """`number` seeds that no other night draws, and no other part of this one."""
    first = (night + 1) * 10_000_000 + part * number
    return range(first, first + number)


def up_to(number: int) -> Callable[[Any], Any]:
    """The decorator of a test that Hypothesis calls `times(number)` times."""
    return settings(max_examples=times(number))
