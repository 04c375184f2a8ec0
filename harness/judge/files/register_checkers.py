"""Knossos and Porcupine as second checkers of registers: their input, their commands, their answers.

    ./qsync check history.jsonl --second-opinion knossos:knossos-standalone.jar
    ./qsync check results/latest --second-opinion porcupine:./porcupine-check

Both judge linearizability alone, so their answer stands against our check `linearizable`, not against the outcome.
They get the operations that this check judged:

| | `knossos:JAR` | `porcupine:PROGRAM` |
|---|---|---|
| command | `java -jar JAR --model cas-register FILE…` | `PROGRAM --model cas-register FILE` |
| files | EDN, one for each key: its command judges single objects | JSON lines, one with all keys |
| answer | the file's name, a tab, and `true`, `false` or `:unknown`; one line a file | `true`, `false` or `unknown` |
| a refused cas that saw another value | left out: it has no word for it | a completion of type `fail` |

The program for Porcupine, which is a library, is docs/porcupine/main.go. Registers begin with nothing in both; another
start is written first. Values are only compared there, so all but whole numbers are sent as names ("v1").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from checkers.history.errors import ModelError
from checkers.history.foreign import edn
from checkers.history.history import History
from checkers.history.operation import Operation, both
from checkers.proofs.meaning import Terms, plain

MODEL = "cas-register"
REGISTERS = ("register", "cas-register")
CHECK = "linearizable"
OPERATIONS = frozenset({"read", "write", "cas"})
STARTER = 1 << 30
"""The process that writes the start of a key."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event as Porcupine's program reads it. `index` orders lines, and is not written."""

    index: int
    type: str
    process: int
    f: str
    value: Any
    key: str | None = None

    def json(self) -> str:
        fields = {name: getattr(self, name) for name in ("type", "process", "f", "key", "value")}
        return msgspec.json.encode({k: v for k, v in fields.items() if k != "key" or v is not None}).decode()

    def edn(self) -> str:
        """As Knossos reads it, of one key."""
        return (
            f"{{:process {self.process}, :type :{self.type}, :f :{self.f}, :value {edn.write(self.value)}}}"
        )


@dataclass(frozen=True, slots=True)
class Question:
    """Files by name, and how many refusals the other checker has no word for."""

    files: Mapping[str, str]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Adapter:
    title: str
    begin: Callable[[str], list[str]]
    """The command's first words, of the program that the user named."""
    files_of: Callable[[Mapping[str | None, list[Line]]], dict[str, str]]
    knows_refusals: bool

    def question(self, history: History, judged: Mapping[str, Terms]) -> Question | str:
        """The files that the program gets; or why there are none."""
        asked = judged.get(CHECK)
        unknown = sorted(history.names - OPERATIONS - {"dump"})
        if asked is None or asked.model not in REGISTERS or unknown:
            which = (
                f"this history has {', '.join(unknown[:4])}" if unknown else "they were not judged as such"
            )
            return f"{self.title} is asked about registers (read, write, cas), and {which}"
        try:
            keys, left_out = _lines(history, asked, self.knows_refusals)
        except ModelError as error:  # a cas without its two values
            return f"{self.title} cannot be asked: {error}"
        return Question(self.files_of(keys), left_out) if keys else "there is no operation to judge"

    def command(self, program: str, paths: list[str]) -> list[str]:
        return [*self.begin(program), "--model", MODEL, *paths]


def _one_a_key(keys: Mapping[str | None, list[Line]]) -> dict[str, str]:
    return {
        f"key-{number}.edn": "".join(f"{line.edn()}\n" for line in lines)
        for number, lines in enumerate(keys.values())
    }


def _one_for_all(keys: Mapping[str | None, list[Line]]) -> dict[str, str]:
    lines = sorted(
        (line for lines_of_key in keys.values() for line in lines_of_key), key=lambda line: line.index
    )
    return {"history.jsonl": "".join(f"{line.json()}\n" for line in lines)}


ADAPTERS = {
    "knossos": Adapter("Knossos", lambda jar: ["java", "-jar", jar], _one_a_key, knows_refusals=False),
    "porcupine": Adapter("Porcupine", lambda program: [program], _one_for_all, knows_refusals=True),
}


def adapter_of(command: str) -> tuple[Adapter, str] | None:
    """The adapter and the program, of `knossos:JAR` or `porcupine:PROGRAM`; None for any other command."""
    name, colon, program = command.partition(":")
    return (ADAPTERS[name], program) if colon and name in ADAPTERS else None


@dataclass(slots=True)
class _Names:
    """A name for each different JSON value, compared as our checkers compare values."""

    known: dict[Any, str] = field(default_factory=dict)

    def of(self, value: Any) -> int | str | None:
        if value is None or type(value) is int:
            return value
        return self.known.setdefault(plain(value), f"v{len(self.known) + 1}")


def _lines(history: History, asked: Terms, knows_refusals: bool) -> tuple[dict[str | None, list[Line]], int]:
    """The lines of each key in order, and how many refusals were left out."""
    keys: dict[str | None, list[Line]] = {}
    names, left_out = _Names(), 0
    # An open operation stays so, and the checkers know one open operation of a process.
    renamed: dict[int, int] = {}
    for operation in history.operations:
        meant = _meant(operation, asked)
        if meant is None:
            continue
        f, type_, value = meant
        if type_ == "fail" and not knows_refusals:
            left_out += 1
            continue
        value = [names.of(part) for part in value] if f == "cas" else names.of(value)
        begun = Line(
            index=operation.invoke_index,
            type="invoke",
            process=renamed.get(operation.process, operation.process),
            f=f,
            value=None if f == "read" else value,
            key=operation.key,
        )
        lines = keys.setdefault(operation.key, [])
        lines.append(begun)
        if type_ == "info":
            renamed[operation.process] = 2 * STARTER + operation.invoke_index
        if operation.complete_index is not None:
            lines.append(
                msgspec.structs.replace(begun, index=operation.complete_index, type=type_, value=value)
            )
    for number, (key, lines) in enumerate(keys.items()):
        lines.sort(key=lambda line: line.index)
        if (start := history.start.of(key)) is not None:
            lines[:0] = [
                Line(
                    index=-1, type=type_, process=STARTER + number, f="write", value=names.of(start), key=key
                )
                for type_ in ("invoke", "ok")
            ]
    return keys, left_out


def _meant(operation: Operation, asked: Terms) -> tuple[str, str, Any] | None:
    """(f, type, value) as our check reads the operation; None if it had no effect and observed nothing.

    Raises ModelError for a cas without its two values.
    """
    f, type_ = operation.f, operation.type
    if f not in OPERATIONS:
        return None
    value = both(operation) if f == "cas" else operation.value
    if f == "read":
        is_judged = type_ == "ok" and asked.reads(operation.role, operation.mode)
        return (f, type_, value) if is_judged else None
    if type_ != "fail":
        return f, type_, value
    if not asked.failed_cas_observes:
        return None
    if operation.found_nothing:  # a deletion that saw nothing
        return "read", "ok", None
    return (f, type_, value) if f == "cas" and operation.error == "mismatch" else None


_ANSWER = re.compile(r"(?:^|\s):?(true|false|unknown)\s*$", re.MULTILINE)


def merged_answer(out: str, files: int) -> str:
    """The one word for all files: false if one is, true if all are; else unknown."""
    said = _ANSWER.findall(out)
    if "false" in said:
        return "false"
    return "true" if len(said) == files and set(said) == {"true"} else "unknown"
