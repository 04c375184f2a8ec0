"""The messages of msgspec about wrong values, in plain words: no Python types, no regular expressions.

    Expected `int` >= 1 - at `$.nodes`     →     nodes: expected a whole number of at least 1, got 0

msgspec names the place, and not the value that stood there; that is looked up in the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "a table of fields",
    "date": "a date",
    "datetime": "a date with a time",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "greater than", "<": "less than"}
_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\\Z": "a name of at most 64 letters, digits, dots, dashes and underscores, which "
    "begins with a letter or a digit"
}
"""Each regular expression of our fields, as msgspec shows it, in words."""
_PLACE = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_SHOWN_MAX = 60
_NO_WORD = "none of the words that are known here"


def in_words(
    error: Exception, document: Any = None, type_: Any = None, names: Mapping[str, str] | None = None
) -> str:
    """One sentence of a ValidationError. `document`: what was to be converted to `type_`, to show the value that stood
    there and the words that are known; `names`: what fields are called where the person wrote them (an option, say)."""
    text = str(error)
    place = _PLACE.search(text)
    path = "" if place is None else place["path"]
    steps = _STEP.findall(path)
    what = _what(text if place is None else text[: place.start()])
    field = path.removeprefix(".")
    if names is not None and steps:
        field = names.get(steps[0][0], steps[0][0]) + field.removeprefix(steps[0][0])
    got = _value(document, steps)
    if got is not None and what.startswith("expected "):
        what = f"{what.partition(', got ')[0]}, got {got}"
    elif what == _NO_WORD and (known := _known(type_, steps)):
        what = f"expected {'one of ' if len(known) > 1 else ''}{', '.join(known)}, got {got}"
    return f"{field}: {what}" if field else what


def _what(text: str) -> str:
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return f"there is no field {found[1]!r}"
    if found := re.fullmatch(r"Object missing required field `(.*)`", text):
        return f"the field {found[1]!r} is missing"
    if text.startswith("Invalid enum value "):
        return _NO_WORD
    if found := re.fullmatch(r"Expected `str` matching regex '(.*)'", text):
        return f"expected {_PATTERNS.get(found[1], 'a text of another form')}"
    if not text.startswith("Expected "):
        return text if text[:2].isupper() else text[:1].lower() + text[1:]
    words = re.sub(r"`([^`]*)`", lambda found: _kinds(found[1]), text.removeprefix("Expected "))
    words = re.sub(
        r" (>=|<=|>|<) (\S+)", lambda found: f" {_BOUNDS[found[1]]} {found[2].removesuffix('.0')}", words
    )
    return f"expected {words.replace('a text of length of at least 1', 'a text that is not empty')}"


def _kinds(types: str) -> str:
    """`int | str | null` → a whole number, a text or nothing."""
    kinds = list(dict.fromkeys(_KINDS.get(each.strip(), each.strip()) for each in types.split("|")))
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"


def _known(type_: Any, steps: list[tuple[str, str]]) -> list[str]:
    """The words of a Literal at this place."""
    found = None if type_ is None else msgspec.inspect.type_info(type_)
    for name, _ in steps:
        if isinstance(found, msgspec.inspect.UnionType):
            structs = [each for each in found.types if isinstance(each, msgspec.inspect.StructType)]
            found = structs[0] if structs else None
        if name and isinstance(found, msgspec.inspect.StructType):
            found = next((each.type for each in found.fields if each.encode_name == name), None)
        else:
            found = getattr(found, "item_type", None)
    found = found.type if isinstance(found, msgspec.inspect.Metadata) else found  # of one with a description
    kinds = found.types if isinstance(found, msgspec.inspect.UnionType) else (found,)
    return [
        str(value) for kind in kinds if isinstance(kind, msgspec.inspect.LiteralType) for value in kind.values
    ]


def _value(document: Any, steps: list[tuple[str, str]]) -> str | None:
    """The value there; None if there is no single one."""
    found = document
    for name, index in steps:
        try:
            found = found[name] if name else found[int(index)]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    if document is None or isinstance(found, dict | list | tuple):
        return None
    text = "nothing" if found is None else str(found).lower() if isinstance(found, bool) else repr(found)
    return text if len(text) <= _SHOWN_MAX else text[: _SHOWN_MAX - 1] + "…"
