"""Jepsen's operation maps, in any notation, as a history of ours.

    {"type": "invoke", "process": 3, "f": "cas", "value": [1, 2], "time": 81000000, "index": 17}

| field | is taken so |
|---|---|
| type | invoke, ok, fail or info; a map without it is refused |
| process | a number is a client, a word an observer (`nemesis`: faults); absent in all maps: the one with that f open |
| f | "txn" if the value is a list of micro-operations, as it is in a map without f or with f txn; broadcast: "add" |
| key | as it stands; absent: from the values, if all are `[key value]` (jepsen.independent), a cas `[key old new]` |
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
from checkers.history.start import PLAIN_START, Start
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
        """The history of these. `initial`: what the objects held before, as read from the same notation.

        Raises HistoryError if there is no operation among them, or if they do not add up.
        """
        checked = [self._checked(each, place) for place, each in enumerate(self.maps)]
        return _history(checked, self.line_of, self.header, self.torn, initial)

    def _checked(self, each: Any, place: int) -> Map:
        if not isinstance(each, dict) or each.get("type") not in TYPES:
            came = f"type {each.get('type')!r}"[:60] if isinstance(each, dict) else repr(each)[:60]
            raise HistoryError(
                expected="an operation map with type invoke, ok, fail or info",
                came=came,
                attempt="give the history alone, without the test's other data",
                line=self.line_of(place),
            )
        if not self.are_flat and is_deep(each):
            raise too_deep(self.line_of(place))
        return each


def _history(checked: list[Map], line_of: LineOf, header: Header, torn: str | None, initial: Any) -> History:
    clients = [each for each in checked if _is_client(each)]
    if not clients:
        raise no_operations("nothing that a client did")
    keyed = _is_keyed(clients)
    if keyed:
        checked = _with_keys(checked)
    if any(REFUSAL_OBSERVED in each for each in clients):
        header = replace(header, extra={**header.extra, OBSERVING: True})
    has_invocations = any(each["type"] == "invoke" for each in clients)
    if not has_invocations:
        checked = _asked_at_once(checked)
    events: list[Event] = []
    processes = _Processes(named=any(each.get("process") is not None for each in checked))
    faults = _Faults()
    if any(each.get("f") in ("txn", None) and is_transaction(each.get("value")) for each in clients):
        checked = [_as_transaction(each) for each in checked]
    kinds = Kinds()
    questions = [_question(each, keyed) if _is_client(each) else None for each in checked]
    for question in questions:
        if question is not None:
            kinds.note(*question)
    start = PLAIN_START if initial is UNSET else kinds.start(initial)
    time_ns = 0
    for place, (each, question) in enumerate(zip(checked, questions, strict=True)):
        time_ns = max(time_ns, _time_ns(each, place))
        if question is not None:
            process = processes.of(each, place, line_of)
            if not question[0]:
                raise _no_f(each, line_of(place))
            events.append(_event(place, time_ns, process, each, question, kinds))
        else:
            told = {**each, "value": kinds.value(each.get("value"))}
            events.append(_told(place, time_ns, told, faults))
    return _paired(header, events, torn, start, line_of if has_invocations else None)


def no_operations(came: str) -> HistoryError:
    """The refusal of a file in which nothing happened."""
    return HistoryError(
        expected="operations of clients (maps with type, process and f)",
        came=f"no operations: {came}",
        attempt="check that the file was copied whole",
    )


def _paired(
    header: Header, events: Sequence[Event], torn: str | None, start: Start, line_of: LineOf | None
) -> History:
    """Lines of a foreign file and our events need not correspond: messages name the event, too."""
    try:
        return History.of(header, events, torn=torn, first_line=0).starting_at(start)
    except HistoryError as error:
        line = None if error.line is None or line_of is None else line_of(error.line)
        raise HistoryError(
            expected=error.expected.replace(" of line ", " of event "),
            came=error.came,
            attempt=error.attempt,
            line=line,
        ) from error


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _time_ns(each: Map, place: int) -> int:
    given = each.get("time")
    return given if type(given) is int and given >= 0 else place


def _is_client(each: Map) -> bool:
    return each.get("process") is None or _is_whole(each["process"])


def _is_keyed(clients: Iterable[Map]) -> bool:
    """Whether values are jepsen.independent's `[key value]`, which looks like a cas, or a pair that was added."""
    pairs = 0
    for each in clients:
        value = each.get("value")
        if each.get("key") is not None or is_transaction(value):
            return False
        if value is None:
            if each["type"] == "ok":
                return False
            continue
        if not isinstance(value, list) or isinstance(value, Set):
            return False
        if each.get("f") == "cas" and len(value) == 3:
            value = [value[0], value[1:]]
        if len(value) != 2:
            return False
        if isinstance(value[0], list | dict):
            return False
        if each.get("f") == "cas" and each["type"] == "invoke" and not isinstance(value[1], list):
            return False
        pairs += each["type"] == "invoke"
    return pairs > 0


def _with_keys(checked: Sequence[Map]) -> list[Map]:
    """Give an invocation without a value the key that its completion tells."""
    filled = list(checked)
    asked: dict[Any, int] = {}
    for place, each in enumerate(checked):
        process, value = each.get("process"), each.get("value")
        if each["type"] == "invoke" and value is None:
            asked[process] = place
        elif each["type"] != "invoke" and process in asked and value is not None:
            number = asked.pop(process)
            filled[number] = {**checked[number], "value": [value[0], None]}
        else:
            asked.pop(process, None)
    return filled


class _Processes:
    """Gives each map its client: the number in the map; in a file without numbers, a client with that f open."""

    def __init__(self, *, named: bool) -> None:
        self._named = named
        self._open: dict[str, list[int]] = {}
        self._next = 0

    def of(self, each: Map, place: int, line_of: LineOf) -> int:
        process = each.get("process")
        if self._named:
            if process is None:
                raise self._nobody("an operation without one", line_of(place))
            return int(process)
        same = self._open.setdefault(str(each.get("f")), [])
        if each["type"] == "invoke":
            same.append(self._next)
            self._next += 1
            return same[-1]
        if len(same) != 1:
            raise self._nobody(f"{len(same)} open operations that this may end", line_of(place))
        return same.pop()

    @staticmethod
    def _nobody(came: str, line: int) -> HistoryError:
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
    for each in checked:
        if not _is_client(each):
            completions.append(each)
            continue
        process = len(invocations)
        asked = {name: each[name] for name in ("f", "key", "value") if name in each}
        invocations.append({**asked, "type": "invoke", "process": process, "time": 0})
        completions.append({**each, "process": process})
    return invocations + completions


def _as_transaction(each: Map) -> Map:
    """In a file with transactions a list of micro-operations is one, whatever its f (Elle does not look at f).

    A read that shows nothing may end behind its key.
    """
    value = each.get("value")
    if not _is_client(each) or not is_transaction(value):
        return each
    if each.get("f") == "txn" and all(len(micro) > 2 for micro in value or ()):
        return each
    micros: list[Any] = [[*micro, None] if len(micro) == 2 else micro for micro in value or ()]
    return {**each, "f": "txn", "value": micros}


def _question(each: Map, keyed: bool) -> tuple[str, Any, Any]:
    """(f, key, value) of a client's map as the file has them; f is "" if there is none."""
    f, key, value = each.get("f"), each.get("key"), each.get("value")
    if f is None and is_transaction(value):
        f = "txn"
    if keyed and value is not None:
        key, value = value if len(value) == 2 else (value[0], value[1:])
    return SYNONYMS.get(f, str(f)) if isinstance(f, str) else "", key, value


def _no_f(each: Map, line: int) -> HistoryError:
    return HistoryError(
        expected="what the operation does (f)",
        came=f"f {each.get('f')!r}"[:60],
        attempt="add :f to each map",
        line=line,
    )


def _event(
    index: int, time_ns: int, process: Process, each: Map, question: tuple[str, Any, Any], kinds: Kinds
) -> Event:
    f, key, value = question
    node, role, mode = each.get("node"), each.get("role"), each.get("mode")
    return Event(
        index=index,
        time_ns=time_ns,
        type=str(each["type"]),  # type: ignore[arg-type]  # one of TYPES
        process=process,
        f=f,
        key=kinds.key(key),
        value=kinds.value(value),
        node=None if node is None else text(node),
        role=None if role is None else text(role),
        mode=None if mode is None else text(mode),
        error=_error(each, f),
        phase="final" if each.get("phase") == "final" or each.get("final?") is True else "load",
    )


def _error(each: Map, f: str) -> str | None:
    error = each.get("error")
    is_refused = f == "cas" and each["type"] == "fail" and each.get(REFUSAL_OBSERVED) is not False
    if is_refused and (error is None or PRECONDITION.search(text(error))):
        return "mismatch"
    return None if error is None else text(error)


def text(value: Any) -> str:
    """A value as words: an error, or what a nemesis says."""
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


def _told(index: int, time_ns: int, each: Map, faults: _Faults) -> Event:
    """A line that no client wrote: a fault, or words that no checker reads."""
    f, actor = text(each.get("f")), text(each["process"])
    fault = faults.value(f) if actor == NEMESIS else None
    if fault is None:
        return Event(
            index=index, time_ns=time_ns, type="info", process=f"{actor}-log", f=f, value=each.get("value")
        )
    kind, name, value = fault
    asked = {} if each.get("value") is None or kind != "invoke" else {"asked": each["value"]}
    return Event(
        index=index,
        time_ns=time_ns,
        type=kind,  # type: ignore[arg-type]  # invoke or info
        process=NEMESIS,
        f=name,
        value={**value, **asked},
    )
