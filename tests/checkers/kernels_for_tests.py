"""Two kernels, one of which calls the other: what tests of `checkers.compiled` compile."""

from __future__ import annotations

import numpy
from numpy.typing import NDArray

from checkers.compiled import kernel

OFFSET = 3


@kernel
def total(values: NDArray[numpy.int64]) -> int:
    result = OFFSET
    for position in range(len(values)):
        result += doubled(values[position])
    return result


@kernel
def doubled(value: int) -> int:
    return value * 2


@kernel
def beyond_numba(values: NDArray[numpy.int64]) -> int:
    return len(values.tolist())
