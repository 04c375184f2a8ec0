"""The kinds of values that options take. Each refuses a wrong value before anything runs.

Text         not empty
Whole        a whole number within bounds
Number       a finite number within bounds: no NaN, no infinity
YesNo        true or false
InputPath    something to read, which need not be there yet
OutputFile   a file to write: its folder is there, and it is no folder itself
Folder       a folder to write to, made where it is not there: nothing on the way to it is a file
"""

from __future__ import annotations

import math
from abc import abstractmethod
from pathlib import Path
from typing import Any

import click


class Kind(click.ParamType[Any]):
    """The common part of all kinds, which refuse an empty value."""

    wanted = "a word"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and not value.strip():
            self.fail(f"expected {self.wanted}, got nothing", param, ctx)
        try:
            return self.taken(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)

    @abstractmethod
    def taken(self, value: Any) -> Any:
        """The value as it is used; ValueError says what is wrong with it."""


class Text(Kind):
    name = "text"

    def taken(self, value: Any) -> str:
        return str(value)


class Whole(Kind):
    name = "integer"

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self._least, self._most = least, most
        self.wanted = f"a whole number{_bounds(least, most, is_open=False)}"

    def taken(self, value: Any) -> int:
        try:
            number = int(value)
        except (TypeError, ValueError):
            raise ValueError(f"expected {self.wanted}, got {value!r}") from None
        if not _is_within(number, self._least, self._most):
            raise ValueError(f"expected {self.wanted}, got {number}")
        return number


class Number(Kind):
    name = "number"

    def __init__(
        self, least: float | None = None, most: float | None = None, *, is_open: bool = False
    ) -> None:
        """`is_open`: `least` itself is too little."""
        self._least, self._most, self._is_open = least, most, is_open
        self.wanted = f"a number{_bounds(least, most, is_open=is_open)}"

    def taken(self, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = math.nan
        is_within = _is_within(number, self._least, self._most) and not (
            self._is_open and number == self._least
        )
        if not math.isfinite(number) or not is_within:
            raise ValueError(f"expected {self.wanted}, got {value}")
        return number


def _is_within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _bounds(least: float | None, most: float | None, *, is_open: bool) -> str:
    bounds = []
    if least is not None:
        bounds.append(f" greater than {least:g}" if is_open else f" of at least {least:g}")
    if most is not None:
        bounds.append(f" of at most {most}")
    return " and".join(bounds)


JOBS = Whole(1, 4_096)
"""So many processes at once; more than any machine has cores."""


class YesNo(Kind):
    name = "boolean"
    wanted = "true or false"

    def taken(self, value: Any) -> bool:
        try:
            return _YES_NO[str(value).lower()]
        except KeyError:
            raise ValueError(f"expected {self.wanted}, got {value!r}") from None


_YES_NO = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class InputPath(Kind):
    name = "path"
    wanted = "a path"

    def taken(self, value: Any) -> Path:
        return Path(value)


class OutputFile(Kind):
    name = "path"
    wanted = "a file to write"

    def __init__(self, *suffixes: str) -> None:
        """`suffixes`: one of them says the format."""
        self._suffixes = suffixes

    def taken(self, value: Any) -> Path:
        path = Path(value)
        if self._suffixes and path.suffix.lower() not in self._suffixes:
            known = " or ".join(self._suffixes)
            raise ValueError(f"expected a file that ends in {known}, got {str(value)!r}")
        if path.is_dir():
            raise ValueError(f"expected {self.wanted}, and {path} is a folder")
        if not path.parent.is_dir():
            raise ValueError(
                f"cannot write {path}: {path.parent} is {'no folder' if path.parent.exists() else 'not there'}"
            )
        return path


class Folder(Kind):
    name = "path"
    wanted = "a folder"

    def __init__(self, *, takes_address: bool = False) -> None:
        """`takes_address`: an address in an object store is accepted, too."""
        self._takes_address = takes_address

    def taken(self, value: Any) -> Path:
        path = Path(value)
        if ":/" in str(value) and not path.exists():
            if self._takes_address:
                return path
            raise ValueError(f"expected {self.wanted} of this machine, got {value}")
        nearest = next((ancestor for ancestor in (path, *path.parents) if ancestor.exists()), path)
        if nearest.exists() and not nearest.is_dir():
            raise ValueError(f"expected {self.wanted}, and {nearest} is a file")
        return path
