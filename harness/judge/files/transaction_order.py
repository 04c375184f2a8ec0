"""The order in which a store says that its transactions took effect, from a file: Elle's `:transaction-order`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path

from checkers.history import HistoryError
from checkers.history.foreign import given
from harness.errors import WrongUse

INDEX = re.compile("0|[1-9][0-9]{0,17}")


def read_order(path: Path) -> Mapping[int, float]:
    """Numbers by the index of a transaction's completion (or invocation). Raises WrongUse for no map in JSON or EDN."""
    wanted = "--transaction-order: expected a map of indexes to numbers in JSON or EDN, as {3 0, 5 1}"
    try:
        value = given(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(
            f"--transaction-order: cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    except HistoryError as error:
        raise WrongUse(f"{wanted}, in {path}") from error
    if not isinstance(value, dict) or not value:
        raise WrongUse(f"{wanted}, got {str(value)[:60]!r} in {path}")
    order: dict[int, float] = {}
    for event, place in value.items():
        is_number = type(place) is int or (isinstance(place, float) and math.isfinite(place))
        if not INDEX.fullmatch(str(event)) or not is_number:
            raise WrongUse(f"{wanted}, got {str(event)[:60]}: {place!r:.60} in {path}")
        order[int(str(event))] = place
    return order
