"""Generators of load: pure values that return the next operation, and combine.

`next(context)` of a generator returns an item and the generator for the next call; it changes nothing. The item is a
`Draft` (an operation without a worker), `Later` (no operation before that time), or None (no operation any more).
"""

from harness.workloads.generators.combinators import Each, Mix, Stagger, Until
from harness.workloads.generators.generator import Context, Draft, Generator, Later, Next

__all__ = [
    "Context",
    "Draft",
    "Each",
    "Generator",
    "Later",
    "Mix",
    "Next",
    "Stagger",
    "Until",
]
