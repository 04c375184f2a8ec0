"""EDN, the notation of Clojure's values, as far as histories use it: text in, JSON values out, and back.

| EDN | becomes |
|---|---|
| nil, true, false, 12, 12N, 1.5, 1.5M | None, True, False, int, int, float, float |
| "text" | str |
| \\c, :keyword, :its/name, symbol, 1/2, ##Inf | `Spelled`: a str ("c", "keyword", "its/name", "symbol", "1/2", "Inf") |
| a decimal with more digits than a float has | `Spelled`, too |
| [ ], ( ) | list |
| #{ } | `Set`, a list in the order of the text |
| { } | dict; a key that is no text is written as EDN ({0 10} gives {"0": 10}) |
| #tag value | `Spelled`, the value as a text |
| #record{ }, #tag [ ], ^meta value, #_ value | the map, the list, the value, nothing |

A vector equals a list of the same elements, as in Clojure; on purpose 12 equals 12N, and 1.5 equals 1.5M. A `Spelled`
keeps how EDN writes it, so that a keyword can be told from a string of the same letters (`spelling`). Values nested
deeper than any history's are refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from checkers.history.errors import HistoryError
from checkers.history.foreign.edn_shapes import PLAIN, Shapes
from checkers.history.nesting import DEPTH_MAX
from checkers.history.start import Start
from checkers.history.values import Set

_ATOM = r"""[^\s,;"(){}\[\]\\^\#\ufeff][^\s,;"(){}\[\]\\^]*+"""
_GAP = r"[\s,]++"
_ATOMS = rf"{_ATOM}(?:{_GAP}{_ATOM})*+"
_TOKEN = re.compile(
    rf"""
    [\s,\ufeff]*+(?:;[^\n]*+[\s,\ufeff]*+)*+
  (?:
    (?P<open>\#\{{|\{{|\[|\()(?:[\s,]*+(?P<first>{_ATOMS}))?+(?:[\s,]*+(?P<at_once>[\}}\])]))?+
  | (?P<atoms>{_ATOMS})(?:[\s,]*+(?P<after>[\}}\])]))?+
  | (?P<close>[\}}\])])
  | \#?"(?P<text>[^"\\]*(?:\\.[^"\\]*)*)"
  | (?P<discard>\#_)
  | (?P<meta>\^)
  | \#\#(?P<symbolic>-?[A-Za-z]+)
  | (?P<tag>\#(?!\#)[^\s,;"(){{}}\[\]\\\#^]*)
  | \\(?P<character>[A-Za-z0-9]+|.)
  | (?P<odd>\#[^\s,;"(){{}}\[\]\\^]*)
  | (?P<end>\Z)
  )
    """,
    re.VERBOSE | re.DOTALL,
)
"""An atom with those that follow it, and with the bracket before and behind them, is one token: a line of a history has
some ten of these, and thirty atoms."""
_WORD_OF_A_RUN = re.compile(r"[^\s,]+")
_SPACE = re.compile(r"[\s,\ufeff]*(?:;[^\n]*[\s,\ufeff]*)*")
_CLOSES = {"{": "}", "#{": "}", "[": "]", "(": ")"}
_INTEGER = re.compile(r"[+-]?\d{1,4000}N?")
_FLOAT = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d{1,17})?M?")
_CONSTANTS = {"nil": None, "true": True, "false": False}
_CHARACTERS = {
    "newline": "\n",
    "space": " ",
    "tab": "\t",
    "return": "\r",
    "backspace": "\b",
    "formfeed": "\f",
}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class Spelled(str):
    """A text that EDN does not write as a string: `spelling` is how it does.

    `plain`: the text alone, where this one is a spelling itself (names of a map that would be equal).
    """

    __slots__ = ("plain", "spelling")
    spelling: str
    plain: str

    @classmethod
    def of(cls, text: str, spelling: str, plain: str | None = None) -> Spelled:
        made = cls(text)
        made.spelling, made.plain = spelling, text if plain is None else plain
        return made


def tagged(tag: str, value: Any) -> Any:
    """`#tag value`. A record is its map; a value with a tag is not the same value without it."""
    if isinstance(value, dict | list):
        return value
    return Spelled.of(value if isinstance(value, str) else write(value), f"{tag} {spelling(value)}")


def spelling(value: Any) -> str:
    """How EDN writes the value: different for any two that are not equal."""
    return value.spelling if isinstance(value, Spelled) else write(value)


@dataclass(frozen=True, slots=True)
class Forms:
    """The values at the top of a text, the character at which each begins, and the place where the text was cut off.

    If the text is one vector or list, its elements count as the top.
    """

    values: list[Any]
    starts: list[int]
    torn_at: int | None = None


class _Open:
    """A collection that is being read: its values, where each begins, where those of the last one in it begin.

    `skip` values to come are left out. Where values begin is noted at the top, and in a vector, list or set there.
    """

    __slots__ = ("has_starts", "inner_starts", "opener", "skip", "start", "starts", "tag", "values")

    def __init__(self, opener: str, start: int, depth: int) -> None:
        self.opener, self.start = opener, start
        self.values: list[Any] = []
        self.starts: list[int] = []
        self.inner_starts: list[int] = []
        self.has_starts = depth == 0 or (depth == 1 and opener != "{")
        self.skip = 0
        self.tag = ""

    def add(self, value: Any, start: int) -> None:
        if self.skip:
            self.skip -= 1
            return
        if self.tag:
            value, self.tag = tagged(self.tag, value), ""
        self.values.append(value)
        if self.has_starts:
            self.starts.append(start)


def read(text: str) -> Forms:
    """The values of `text`. A text that ends in the middle gives those that were whole. Raises HistoryError."""
    stack = [_Open("", 0, 0)]
    position, end = 0, len(text)
    match = _TOKEN.match
    while position < end:
        if len(stack) <= 2 and stack[-1].has_starts and (plain := _PLAIN_MAP.match(text, position)):
            made = _shapes.values(plain[1])
            if made is not None:
                stack[-1].add(made[0], plain.start(1))
                position = plain.end()
                continue
        token = match(text, position)
        if token is None:
            position = _SPACE.match(text, position).end()  # type: ignore[union-attr]  # it matches nothing, too
            if text[position] == '"' or text[position:] == "\\":  # a text, or a character, without its end
                return _torn(stack, position)
            raise _not_edn(text, position, repr(text[position : position + 20]))
        position = token.end()
        opener, first, at_once, atoms, after = token.group(1, 2, 3, 4, 5)
        if opener is not None:
            start = token.start(1)
            if len(stack) > DEPTH_MAX:
                raise _not_edn(text, start, f"values nested more than {DEPTH_MAX} deep")
            stack.append(_Open(opener, start, len(stack)))
            if first is not None:
                _take_atoms(text, token, 2, first, stack[-1])
            if at_once is not None:
                _close(text, stack, at_once, position - 1)
        elif atoms is not None:
            _take_atoms(text, token, 4, atoms, stack[-1])
            if after is not None:
                _close(text, stack, after, position - 1)
        elif token.lastgroup == "close":
            _close(text, stack, token["close"], position - 1)
        else:
            _take_rare(token, stack[-1])
    if len(stack) > 1 or stack[0].skip or stack[0].tag:
        return _torn(stack, end)
    return _unwrapped(stack[0])


def values_in(line: str) -> list[Any]:
    """The values of a line, or of its beginning if the rest is torn off. Raises HistoryError."""
    if _PLAIN_LINE.fullmatch(line):
        known = _shapes.values(line)
        if known is not None:
            return known
    return read(f"{line}\n(").values  # the open bracket keeps a lone list from being unwrapped


_PLAIN_MAP = re.compile(rf"[\s,]*+(?:#[A-Za-z][\w.]*+)?(\{{{PLAIN}\}})")
"""With the tag of a record or without: `#jepsen.history.Op{}` is the map."""
_PLAIN_LINE = re.compile(PLAIN)
_shapes = Shapes(lambda text: read(f"{text}\n(").values)


def _take_atoms(text: str, token: re.Match[str], group: int, run: str, top: _Open) -> None:
    if top.has_starts or top.skip or top.tag:
        for word in _WORD_OF_A_RUN.finditer(text, token.start(group), token.end(group)):
            top.add(_atoms(word[0]), word.start())
    else:
        top.values += map(_atoms, run.replace(",", " ").split())


def _close(text: str, stack: list[_Open], bracket: str, position: int) -> None:
    collection = stack[-1]
    if len(stack) == 1 or _CLOSES[collection.opener] != bracket:
        raise _not_edn(text, position, f"{bracket!r} that closes nothing")
    stack.pop()
    if not stack[-1].skip:
        stack[-1].inner_starts = collection.starts
    stack[-1].add(_closed(text, collection), collection.start)


def _take_rare(token: re.Match[str], top: _Open) -> None:
    kind = token.lastgroup or "end"
    start = token.start(kind)
    match kind:
        case "text":
            top.add(_unescaped(token[kind]), start)
        case "discard" | "meta":
            top.skip += 1
        case "odd":
            top.add(atom(token[kind]), start)
        case "character":
            character = _character(token[kind])
            top.add(Spelled.of(character, f"\\{character}"), start)
        case "tag" if not top.skip:
            top.tag = f"{top.tag} {token[kind]}".lstrip()
        case "symbolic":
            top.add(Spelled.of(token[kind], f"##{token[kind]}"), start)


def _closed(text: str, collection: _Open) -> Any:
    values = collection.values
    if collection.opener == "{":
        if len(values) % 2:
            raise _not_edn(text, collection.start, "a map with a key that has no value")
        return mapped(values)
    return Set(values) if collection.opener == "#{" else values


def mapped(values: list[Any]) -> dict[str, Any]:
    """The map of these keys and values in turn."""
    keys = values[::2]
    if not _TEXTS.issuperset(map(type, keys)):
        keys = list(map(_key, keys))
    made = dict(zip(keys, values[1::2], strict=True))
    if len(made) < len(values) // 2:  # such as {1 "a", "1" "b"}
        names = [Spelled.of(spelling(key), spelling(key), str(_key(key))) for key in values[::2]]
        made = dict(zip(names, values[1::2], strict=True)) if len(set(names)) > len(made) else made
    return made


_TEXTS = frozenset({str, Spelled})


def _key(value: Any) -> str:
    return value if isinstance(value, str) else Spelled.of(write(value), write(value))


class _Atoms(dict[str, Any]):
    """Atoms by how they are written; long numbers, such as times, are not kept."""

    def __missing__(self, word: str) -> Any:
        if word.isascii() and word.isdigit() and len(word) < _LONG:
            number = int(word)
            if len(word) < _SHORT:
                self[word] = number
            return number
        value = atom(word)
        if len(self) < _KEPT:
            self[word] = value
        return value


_SHORT, _LONG, _KEPT = 6, 19, 1 << 17
_atoms = _Atoms().__getitem__


def atom(word: str) -> Any:
    """The value of a word without brackets and quotes: a number, a keyword, a symbol, nil, true or false."""
    if word[0] == ":" and len(word) > 1:
        return Spelled.of(word[1:].removeprefix(":"), word)
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if _INTEGER.fullmatch(word):
        return int(word.removesuffix("N"))
    if _FLOAT.fullmatch(word):
        written = word.removesuffix("M")
        number = float(written)
        if math.isfinite(number) and Decimal(written) == Decimal(repr(number)):
            return number
    return Spelled.of(word, word)


def _unescaped(text: str) -> str:
    return _whole(_ESCAPE.sub(_escape, text)) if "\\" in text else text


def _whole(text: str) -> str:
    """With two surrogates as the letter that they make, and U+FFFD for a lone one."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escape(escape: re.Match[str]) -> str:
    name = escape[1]
    return chr(int(name[1:], 16)) if len(name) == 5 else _ESCAPES.get(name, name)


def _character(name: str) -> str:
    if re.fullmatch("u[0-9a-fA-F]{4}", name):
        return _whole(chr(int(name[1:], 16)))
    return _CHARACTERS.get(name, name)


def _torn(stack: list[_Open], position: int) -> Forms:
    """The whole values at the top; of one vector that never ended, the whole values in it."""
    top = stack[0]
    if not top.values and len(stack) > 1 and stack[1].opener in ("[", "("):
        top = stack[1]
    starts = [stack[number].start for number in range(1, len(stack)) if stack[number - 1] is top]
    return Forms(top.values, top.starts, torn_at=starts[0] if starts else position)


def _unwrapped(top: _Open) -> Forms:
    if len(top.values) == 1 and isinstance(top.values[0], list):
        return Forms(top.values[0], top.inner_starts)
    return Forms(top.values, top.starts)


def line_of(text: str, position: int) -> int:
    """The line, from 1, of a character."""
    return text.count("\n", 0, position) + 1


def _not_edn(text: str, position: int, came: str) -> HistoryError:
    return HistoryError(
        expected="operations in EDN",
        came=came,
        attempt="give the history.edn of a test as it was stored",
        line=line_of(text, position),
    )


# ---- writing

_WORD = re.compile(r"[A-Za-z*!_?<>=][\w*!?<>=.+-]*(?:/[A-Za-z][\w.-]*)?")
_UNESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def write(value: Any) -> str:
    """A JSON value as EDN on one line. Keys of maps that look like whole numbers become numbers, words keywords."""
    match value:
        case None:
            return "nil"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Spelled():
            return value.spelling
        case str():
            return text(value)
        case Set():
            return f"#{{{' '.join(sorted(map(write, value)))}}}"
        case dict():
            members = (f"{_key_text(key)} {write(member)}" for key, member in value.items())
            return "{" + ", ".join(sorted(members)) + "}"
        case list() | tuple():
            return "[" + " ".join(write(member) for member in value) + "]"
    raise TypeError(f"no JSON value: {value!r}")


def text(string: str) -> str:
    """A string in its quotes."""
    return '"' + "".join(_UNESCAPED.get(letter, letter) for letter in string) + '"'


def start(start: Start) -> str:
    """The objects' state before the history, as `--initial` takes it."""
    return write(start.value) if not start.by_key else _by_key(start.by_key)


def _by_key(values: Mapping[str | None, Any]) -> str:
    return "{" + ", ".join(f"{_key_text(str(key))} {write(value)}" for key, value in values.items()) + "}"


def keyword(name: str) -> str:
    """:name, or a string if no keyword can be spelled so."""
    return f":{name}" if _WORD.fullmatch(name) else text(name)


def _key_text(key: str) -> str:
    if isinstance(key, Spelled):
        return key.spelling
    return key if re.fullmatch(r"0|-?[1-9]\d{0,17}", key) else keyword(key)
