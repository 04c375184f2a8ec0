"""The slow twin of `checkers.history.foreign.edn.read`: one value or bracket after the other."""

from __future__ import annotations

import re
from typing import Any

from checkers.history.foreign import edn
from checkers.history.nesting import DEPTH_MAX
from checkers.history.values import Set

_BLANK = re.compile(r"(?:[\s,\ufeff]+|;[^\n]*)*")
_ATOM = re.compile(r"""[^\s,;"(){}\[\]\\^]+""")
_TEXT = re.compile(r'#?"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_SYMBOLIC = re.compile(r"##(-?[A-Za-z]+)")
_TAG = re.compile(r"""#(?!#)[^\s,;"(){}\[\]\\#^]*""")
_CHARACTER = re.compile(r"\\([A-Za-z0-9]+|.)", re.DOTALL)
_CLOSERS = {"(": ")", "[": "]", "{": "}", "#{": "}"}


class Wrong(Exception):
    """The text is no EDN."""


class _Torn(Exception):
    """The text ends in the middle."""


def read(text: str) -> tuple[list[Any], list[int], bool]:
    """The values at the top, where each begins, and whether the text was cut off. Raises `Wrong`."""
    reader = _Reader(text)
    try:
        values, starts = reader.until("", 0)
    except _Torn:
        top = reader.noted[0]
        inner = reader.noted[1] if len(reader.noted) > 1 else None
        if not top[0] and inner is not None and inner[2] in "[(":
            top = inner
        return top[0], top[1], True
    if len(values) == 1 and isinstance(values[0], list):
        return values[0], reader.inner, False
    return values, starts, False


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.noted: list[tuple[list[Any], list[int], str]] = []
        """The collections that are open."""
        self.inner: list[int] = []
        """Where the values of the collection begin that ended last, of those that are not left out."""

    def until(self, opener: str, start: int) -> tuple[Any, list[int]]:
        values: list[Any] = []
        starts: list[int] = []
        self.noted.append((values, starts, opener))
        skip, tag = 0, ""
        while True:
            self.at = _BLANK.match(self.text, self.at).end()
            if self.at == len(self.text):
                if opener or skip or tag:
                    raise _Torn
                return values, starts
            begin = self.at
            if self.text[begin] in ")]}":
                if _CLOSERS.get(opener) != self.text[begin]:
                    raise Wrong
                self.at += 1
                self.noted.pop()
                made = Set(values) if opener == "#{" else _map(values) if opener == "{" else values
                return made, starts
            if self._take(r"#_") or self._take(r"\^"):
                skip += 1
                continue
            is_tag = not self.text.startswith(("#{", '#"', "##"), begin) and _TAG.match(self.text, begin)
            if is_tag:
                tag, self.at = tag if skip else f"{tag} {is_tag[0]}".lstrip(), is_tag.end()
                continue
            inner = self.inner
            value = self._value()
            if skip:
                skip, self.inner = skip - 1, inner
                continue
            if tag:
                value, tag = edn.tagged(tag, value), ""
            values.append(value)
            starts.append(begin)

    def _take(self, pattern: str) -> bool:
        found = re.compile(pattern).match(self.text, self.at)
        self.at = self.at if found is None else found.end()
        return found is not None

    def _value(self) -> Any:
        begin = self.at
        for opener in ("#{", "{", "[", "("):
            if self.text.startswith(opener, begin):
                if len(self.noted) > DEPTH_MAX:
                    raise Wrong
                self.at += len(opener)
                value, self.inner = self.until(opener, begin)
                return value
        if found := _TEXT.match(self.text, begin):
            self.at = found.end()
            return edn._unescaped(found[1])
        if found := _SYMBOLIC.match(self.text, begin):
            self.at = found.end()
            return edn.Spelled.of(found[1], found[0])
        if found := _CHARACTER.match(self.text, begin):
            self.at = found.end()
            character = edn._character(found[1])
            return edn.Spelled.of(character, f"\\{character}")
        if found := _ATOM.match(self.text, begin):
            self.at = found.end()
            return edn.atom(found[0])
        if self.text[begin] == '"' or self.text[begin:] == "\\":
            raise _Torn
        raise Wrong


def _map(values: list[Any]) -> dict[str, Any]:
    if len(values) % 2:
        raise Wrong
    pairs = [*zip(values[::2], values[1::2], strict=True)]
    texts = [
        key if isinstance(key, str) else edn.Spelled.of(edn.write(key), edn.write(key)) for key, _ in pairs
    ]
    spellings = [edn.Spelled.of(edn.spelling(key), edn.spelling(key)) for key, _ in pairs]
    names = texts if len(set(texts)) == len(set(spellings)) else spellings
    return dict(zip(names, [value for _, value in pairs], strict=True))
