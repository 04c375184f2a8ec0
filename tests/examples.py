"""How many examples a test draws.

`@examples.up_to(300)` draws 300 at night, and a tenth of them in every other run, which repeats the same ones. A test
without it draws `USUAL` at night. `examples.times(2_000)` is the same number for a loop of a test's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hypothesis import settings

VARIABLE = "HYPOTHESIS_PROFILE"
NIGHT = "night"
PROFILE = os.environ.get(VARIABLE, "same")
USUAL = 300
SHARE_BY_DAY = 10
FEWEST = 20


def times(at_night: int) -> int:
    """`at_night`, or the tenth of it by day, but not fewer than twenty."""
    return at_night if PROFILE == NIGHT else min(at_night, max(FEWEST, at_night // SHARE_BY_DAY))


def up_to(at_night: int) -> Callable[[Any], Any]:
    """The decorator of a test that Hypothesis calls so many times at night."""
    return settings(max_examples=times(at_night))
