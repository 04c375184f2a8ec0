"""Objects of JSON that are much alike, in less memory: a run of some hours has a hundred thousand reports of nodes."""

from __future__ import annotations

from sys import intern
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class _Alike:
    """The dicts of its instances share their names, as Python has it for attributes: each keeps its values alone."""


class _Part:
    """The same for an object inside such an object."""


class Alike:
    """Makes such objects. A list or an object in one is that of the one before, if it is written the same; equal
    numbers in one are the same number."""

    def __init__(self) -> None:
        self._last: dict[tuple[str | None, str], tuple[bytes, Any]] = {}

    def of(self, node: str | None, value: dict[str, Any]) -> dict[str, Any]:
        """The same as `value`, which is about the node."""
        made: dict[str, Any] = _Alike().__dict__
        numbers: dict[int, int] = {}
        for name, part in value.items():
            kind = type(part)
            if kind is str:
                made[name] = intern(part)
            elif kind is int:
                made[name] = numbers.setdefault(part, part)
            elif kind is list or kind is dict:
                made[name] = self._known(node, name, part, numbers)
            else:
                made[name] = part
        return made

    def _known(self, node: str | None, name: str, part: Any, numbers: dict[int, int]) -> Any:
        written = _encode(part)  # 1 and true are equal to Python
        last = self._last.get((node, name))
        if last is None or last[0] != written:
            if type(part) is dict:
                part = _shared(part, numbers)
            last = self._last[node, name] = written, part
        return last[1]


def _shared(part: dict[str, Any], numbers: dict[int, int]) -> dict[str, Any]:
    made: dict[str, Any] = _Part().__dict__
    for name, member in part.items():
        made[name] = numbers.setdefault(member, member) if type(member) is int else member
    return made
