"""Generators of load: pure values that say what comes next, and combine.

A generator is asked `next(context)` and answers with what comes and the generator to ask afterwards; it changes
nothing. What comes is a `Draft` (an operation without a worker), `Later` (nothing before that time), or None (never
again).
"""

from harness.generators.combinators import (
    Each,
    Limit,
    Mix,
    Phases,
    Reserve,
    Stagger,
    Until,
    per_worker,
)
from harness.generators.generator import Context, Draft, Generator, Later, Next

__all__ = [
    "Context",
    "Draft",
    "Each",
    "Generator",
    "Later",
    "Limit",
    "Mix",
    "Next",
    "Phases",
    "Reserve",
    "Stagger",
    "Until",
    "per_worker",
]
