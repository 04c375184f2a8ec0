"""Jepsen's operation maps, in any notation, as a history of ours.

    {"type": "invoke", "process": 3, "f": "cas", "value": [1, 2], "time": 81000000, "index": 17}

| field | is taken so |
|---|---|
| type | invoke, ok, fail or info; a map without it is refused |
| process | a number is a client, a word an observer (`nemesis`: faults); absent in all maps: the one with that f open |
| f | "txn" if the value is a list of micro-operations, as it is in a map without f or with f txn; broadcast: "add" |
| key | as it stands; absent: from the values, if all are `[key value]` (jepsen.independent), a cas `[key old new]` |
| key of a transaction | it names the store that the transaction's keys are in: `x` in store 1 is the key `[1 x]` |
| time | nanoseconds; where it is absent the place in the file stands for it |
| index | not taken: the place in the file is the order |
| error | as text; of a failed cas that has none, or one that names the precondition: "mismatch" |
| refusal-observed? | in files that we wrote: whether a refusal observed the state |
| node, role, mode, phase | as they stand; `final?` is the phase "final" |

A file without any invocation (Elle takes such) is read as if all operations had been asked at the beginning, each by
a client of its own, because the order of real time is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from checkers.history.errors import HistoryError
from checkers.history.foreign.kinds import Kinds, is_transaction
from checkers.history.history import OBSERVING, Header, History
from checkers.history.nesting import is_deep, too_deep
from checkers.history.operation import Event, Process
from checkers.history.start import PLAIN_START
from checkers.history.values import Set

Map = Mapping[str, Any]
LineOf = Callable[[int], int]

TYPES = ("invoke", "ok", "fail", "info")
NEMESIS = "nemesis"
PRECONDITION = re.compile(r"precondition|mismatch|did-not-succeed|cas-failed|not-equal", re.IGNORECASE)
SYNONYMS = {"broadcast": "add"}  # Maelstrom's broadcast is a set: its reads show what was sent round
REFUSAL_OBSERVED = "refusal-observed?"


@dataclass(frozen=True, slots=True)
class Maps:
    """The operation maps of a file in their order. `line_of` gives the line of the map with that place.

    `are_flat`: their reader has refused what is nested too deeply.
    """

    maps: Sequence[Any]
    line_of: LineOf
    header: Header
    torn: str | None = None
    are_flat: bool = False

    def history(self, initial: Any = UNSET) -> History:
        """The history of these maps. `initial`: the objects' state before them, as read from the same notation.

        Raises HistoryError if there is no operation among them, or if they do not add up.
        """
        checked = [self._checked(entry, place) for place, entry in enumerate(self.maps)]
        return _history(checked, self.line_of, self.header, self.torn, initial)

    def _checked(self, entry: Any, place: int) -> Map:
        if not isinstance(entry, dict) or entry.get("type") not in TYPES:
            came = f"type {entry.get('type')!r}"[:60] if isinstance(entry, dict) else repr(entry)[:60]
            if isinstance(entry, dict) and "valid?" in entry:
                came = "what Jepsen's checkers said of a test (a results.edn)"
            raise HistoryError(
                expected="an operation map with type invoke, ok, fail or info",
                came=came,
                attempt="give the history alone (history.edn), without the test's other data",
                line=self.line_of(place),
            )
        if not self.are_flat and is_deep(entry):
            raise too_deep(self.line_of(place))
        if type(process := entry.get("process")) is not int and not _is_word_or_none(process):
            raise HistoryError(
                expected="a whole number as the process of a client, or a word for an observer",
                came=repr(process)[:60],
                attempt="write each client's :process as a number",
                line=self.line_of(place),
            )
        return entry


def _history(checked: list[Map], line_of: LineOf, header: Header, torn: str | None, initial: Any) -> History:
    clients = [entry for entry in checked if _is_client(entry)]
    if not clients:
        raise no_operations("nothing that a client did")
    keyed = _is_keyed(clients)
    if keyed:
        checked = _with_keys(checked)
    if _are_in_stores([_parts(entry, keyed) for entry in checked if _is_client(entry)]):
        checked, keyed = [_on_keys_of_its_store(entry, keyed) for entry in checked], False
        clients = [entry for entry in checked if _is_client(entry)]
    if any(REFUSAL_OBSERVED in entry for entry in clients):
        header = replace(header, extra={**header.extra, OBSERVING: True})
    has_invocations = any(entry["type"] == "invoke" for entry in clients)
    if not has_invocations:
        checked = _asked_at_once(checked)
    events: list[Event] = []
    processes = _Processes(named=any(entry.get("process") is not None for entry in checked))
    faults = _Faults()
    if any(entry.get("f") in ("txn", None) and is_transaction(entry.get("value")) for entry in clients):
        checked = [_as_transaction(entry) for entry in checked]
    kinds = Kinds()
    questions = [_question(entry, keyed) if _is_client(entry) else None for entry in checked]
    for question in questions:
        if question is not None:
            kinds.note(*question)
    start = PLAIN_START if initial is UNSET else kinds.start(initial)
    time_ns = 0
    for place, (entry, question) in enumerate(zip(checked, questions, strict=True)):
        time_ns = max(time_ns, _time_ns(entry, place))
        if question is not None:
            process = processes.of(entry, place, line_of)
            if not question[0]:
                raise _no_f(entry, line_of(place))
            events.append(_event(place, time_ns, process, entry, question, kinds))
        else:
            plain = {**entry, "value": kinds.value(entry.get("value"))}
            events.append(_other_event(place, time_ns, plain, faults))
    history = paired(header, events, torn, line_of if has_invocations else None)
    return history.starting_at(start)


def no_operations(came: str) -> HistoryError:
    """The refusal of a file without operations."""
    return HistoryError(
        expected="operations of clients (maps with type, process and f)",
        came=f"no operations: {came}",
        attempt="check that the file was copied whole",
    )


def paired(
    header: Header, events: Sequence[Event], torn: str | None = None, line_of: LineOf | None = None
) -> History:
    """Pairs the events. Lines of a foreign file and our events need not correspond: messages name the event, too."""
    try:
        return History.of(header, events, torn=torn, first_line=0)
    except HistoryError as error:
        line = None if error.line is None or line_of is None else line_of(error.line)
        raise HistoryError(
            expected=error.expected.replace(" of line ", " of event "),
            came=error.came,
            attempt=error.attempt,
            line=line,
        ) from error


def _time_ns(entry: Map, place: int) -> int:
    given = entry.get("time")
    return given if type(given) is int and given >= 0 else place


def _is_word_or_none(process: Any) -> bool:
    """Such as an observer's; 1.0 and "1" may be a client's, whose operations would be left out."""
    return process is None or (isinstance(process, str) and not process.isdecimal())


def _is_client(entry: Map) -> bool:
    return entry.get("process") is None or type(entry["process"]) is int


def _is_keyed(clients: Iterable[Map]) -> bool:
    """Whether values are jepsen.independent's `[key value]`, which looks like a cas, or a pair that was added."""
    pairs = triples = 0
    has_bare_answers = False
    for entry in clients:
        value = entry.get("value")
        if entry.get("key") is not None or is_transaction(value):
            return False
        if value is None:
            if entry["type"] == "ok":
                if entry.get("f") not in ("write", "cas"):
                    return False
                has_bare_answers = True
            continue
        if not isinstance(value, list) or isinstance(value, Set):
            return False
        if entry.get("f") == "cas" and len(value) == 3:
            value = [value[0], value[1:]]
            triples += 1
        if len(value) != 2:
            return False
        if isinstance(value[0], list | dict):
            return False
        if entry.get("f") == "cas" and entry["type"] == "invoke" and not isinstance(value[1], list):
            return False
        pairs += entry["type"] == "invoke"
    return pairs > 0 and (triples > 0 or not has_bare_answers)


def _with_keys(checked: Sequence[Map]) -> list[Map]:
    """Give an invocation without a value the key of its completion."""
    filled = list(checked)
    asked: dict[Any, int] = {}
    for place, entry in enumerate(checked):
        if not _is_client(entry):
            continue
        # In a file without processes one operation of each f is open at a time.
        client, value = (entry.get("process"), str(entry.get("f"))), entry.get("value")
        if entry["type"] == "invoke" and value is None:
            asked[client] = place
        elif entry["type"] != "invoke" and client in asked and value is not None:
            number = asked.pop(client)
            filled[number] = {**checked[number], "value": [value[0], None]}
        else:
            asked.pop(client, None)
    return filled


def _parts(entry: Map, keyed: bool) -> tuple[Any, Any]:
    """The key and the value."""
    key, value = entry.get("key"), entry.get("value")
    if keyed and value is not None:
        key, value = value if len(value) == 2 else (value[0], value[1:])
    return key, value


def _are_in_stores(parts: Sequence[tuple[Any, Any]]) -> bool:
    """Whether these are transactions with a key: each store may have keys of the same names."""
    values = [value for _, value in parts if value is not None and value != []]
    return bool(values) and all(map(is_transaction, values)) and any(key is not None for key, _ in parts)


def _on_keys_of_its_store(entry: Map, keyed: bool) -> Map:
    if not _is_client(entry):
        return entry
    store, value = _parts(entry, keyed)
    if store is not None and value is not None:
        value = [[f, [store, key], *rest] for f, key, *rest in value]
    return {**entry, "key": None, "value": value}


class _Processes:
    """Gives each map its client: the number in the map; in a file without numbers, a client with that f open."""

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self._open: dict[str, list[int]] = {}
        self._next = 0

    def of(self, entry: Map, place: int, line_of: LineOf) -> int:
        process = entry.get("process")
        if self._named:
            if process is None:
                raise self._no_process("an operation without one", line_of(place))
            return int(process)
        same = self._open.setdefault(str(entry.get("f")), [])
        if entry["type"] == "invoke":
            same.append(self._next)
            self._next += 1
            return same[-1]
        if len(same) != 1:
            raise self._no_process(f"{len(same)} open operations that this may end", line_of(place))
        return same.pop()

    @staticmethod
    def _no_process(came: str, line: int) -> HistoryError:
        return HistoryError(
            expected="the process of every operation",
            came=came,
            attempt="add :process to each map",
            line=line,
        )


def _asked_at_once(checked: Sequence[Map]) -> list[Map]:
    """Completions alone: invocations of fresh clients are put before all of them."""
    invocations: list[Map] = []
    completions: list[Map] = []
    for entry in checked:
        if not _is_client(entry):
            completions.append(entry)
            continue
        process = len(invocations)
        asked = {name: entry[name] for name in ("f", "key", "value") if name in entry}
        invocations.append({**asked, "type": "invoke", "process": process, "time": 0})
        completions.append({**entry, "process": process})
    return invocations + completions


def _as_transaction(entry: Map) -> Map:
    """In a file with transactions a list of micro-operations is a transaction, whatever its f (as for Elle).

    A read that shows nothing may end behind its key.
    """
    value = entry.get("value")
    if not _is_client(entry) or not is_transaction(value):
        return entry
    if entry.get("f") == "txn" and all(len(micro) > 2 for micro in value or ()):
        return entry
    micros: list[Any] = [[*micro, None] if len(micro) == 2 else micro for micro in value or ()]
    return {**entry, "f": "txn", "value": micros}


def _question(entry: Map, keyed: bool) -> tuple[str, Any, Any]:
    """(f, key, value) of a client's map as the file has them; f is "" if there is none."""
    f, (key, value) = entry.get("f"), _parts(entry, keyed)
    if f is None and is_transaction(value):
        f = "txn"
    return SYNONYMS.get(f, str(f)) if isinstance(f, str) else "", key, value


def _no_f(entry: Map, line: int) -> HistoryError:
    return HistoryError(
        expected="what the operation does (f)",
        came=f"f {entry.get('f')!r}"[:60],
        attempt="add :f to each map",
        line=line,
    )


def _event(
    index: int, time_ns: int, process: Process, entry: Map, question: tuple[str, Any, Any], kinds: Kinds
) -> Event:
    f, key, value = question
    node, role, mode = entry.get("node"), entry.get("role"), entry.get("mode")
    return Event(
        index=index,
        time_ns=time_ns,
        type=str(entry["type"]),  # type: ignore[arg-type]  # one of TYPES
        process=process,
        f=f,
        key=kinds.key(key),
        value=kinds.value(value),
        node=None if node is None else text(node),
        role=None if role is None else text(role),
        mode=None if mode is None else text(mode),
        error=_error(entry, f),
        phase="final" if entry.get("phase") == "final" or entry.get("final?") is True else "load",
    )


def _error(entry: Map, f: str) -> str | None:
    error = entry.get("error")
    is_refused = f == "cas" and entry["type"] == "fail" and entry.get(REFUSAL_OBSERVED) is not False
    if is_refused and (error is None or PRECONDITION.search(text(error))):
        return "mismatch"
    return None if error is None else text(error)


def text(value: Any) -> str:
    """A value as words: an error, or a nemesis's report."""
    if isinstance(value, list):
        return " ".join(map(text, value))
    return "nil" if value is None else str(value)


# ---- the nemesis

_BEGINS = re.compile(r"start-(.+)|(start|kill|pause|bump-clock|bump|strobe-clock|strobe|partition|isolate.*)")
_ENDS = {
    "start": ("kill",),
    "stop": ("start",),
    "resume": ("pause",),
    "reset-clock": ("bump-clock", "strobe-clock"),
    "reset": ("bump", "strobe"),
    "heal": ("partition", "start"),
}
_DOES = (("partition", "cut"), ("isolate", "cut"), ("kill", "kill"), ("pause", "pause"), ("clock", "clock"))


class _Faults:
    """Turns what a nemesis reports into the start and end lines of faults, as far as its words can be understood.

    Each of its operations is reported twice, when it was asked and when it was done: a fault lasts from its first word
    to the last one about its end. None of them is known to have taken effect.
    """

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._ending: str | None = None
        self._begun = 0

    def value(self, f: str) -> tuple[str, str, Any] | None:
        """(type, name, value) of the fault's line; None if this is not the start or the end of one."""
        if self._ending == f:
            self._ending = None
            return None
        for name in self._ended_by(f):
            if name in self._open:
                self._ending = f
                return "info", name, {"id": self._open.pop(name)}
        begins = _BEGINS.fullmatch(f)
        if begins is None or (begins[1] or begins[2]) in self._open:
            return None
        name = begins[1] or begins[2]
        self._open[name] = self._begun
        self._begun += 1
        does = next((does for word, does in _DOES if word in name), "fault")
        return "invoke", name, {"id": self._open[name], "name": name, "does": does}

    @staticmethod
    def _ended_by(f: str) -> tuple[str, ...]:
        return (f.removeprefix("stop-"),) if f.startswith("stop-") else _ENDS.get(f, ())


def _other_event(index: int, time_ns: int, entry: Map, faults: _Faults) -> Event:
    """The event of a map that is no client's: a fault, or words that no checker reads."""
    f, actor = text(entry.get("f")), text(entry["process"])
    fault = faults.value(f) if actor == NEMESIS else None
    if fault is None:
        return Event(
            index=index, time_ns=time_ns, type="info", process=f"{actor}-log", f=f, value=entry.get("value")
        )
    kind, name, value = fault
    asked = {} if entry.get("value") is None or kind != "invoke" else {"asked": entry["value"]}
    return Event(
        index=index,
        time_ns=time_ns,
        type=kind,  # type: ignore[arg-type]  # invoke or info
        process=NEMESIS,
        f=name,
        value={**value, **asked},
    )
