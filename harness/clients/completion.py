"""How an operation ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Completion:
    """`fail`: surely not done; `info`: nobody knows. `value` and `error` go into the history as they are.

    `role` is what the server said it was when it served the operation: "owner" or "replica".
    """

    type: Literal["ok", "fail", "info"]
    value: object = None
    error: str | None = None
    role: str | None = None
