"""Operations as Porcupine has them, in JSON: one array, or one after the other.

    {"ClientId": 3, "Input": {"Op": "put", "Key": "x", "Value": "1"}, "Call": 10, "Output": {}, "Return": 25}

Call and Return are times by one clock; an operation with the interval [10, 20] is concurrent with one of [20, 30].

| Input | Output | is |
|---|---|---|
| a request of etcd (`checkers.history.etcd_records`) | its answer | etcd-range, etcd-txn, … |
| {Request, Responses}, without the rest | | etcd-watch |
| Op get or put, append; Key, Value (texts) | the text, or {Value} | get, put, append |
| Op read or write (get, put), Value; Key if there are several | the value, or {Value} | read, write |
| Op cas, Old and New (From and To), Key if there are several | true or false, or {Ok} | cas |

Op is a word, or the number 0, 1 or 2 for get, put and append, as in Porcupine's own key-value model and in MIT's labs.
An Output with Unknown, Error or Err leaves the outcome unknown. Everything else is refused, and so is an Output that
says no to anything but a cas: Porcupine leaves the meaning of Input and Output to a model, which is code and not in the
file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

import msgspec

from checkers.history.errors import HistoryError
from checkers.history.etcd_records import PREFIX, TYPES, WATCH, Watch, wrong_record
from checkers.history.foreign.json_values import Values
from checkers.history.foreign.json_values import parse as parse_values
from checkers.history.foreign.operation_maps import Maps, no_operations
from checkers.history.history import Header

BEGINS: Final = re.compile(
    rb'[\s\[,]*\{(?:[^{}\[\]]*"(?:Input|Call|Return)"\s*:|\s*"Request"\s*:\s*\{[^{}]*\}\s*,\s*"Responses"\s*:)',
    re.IGNORECASE,
)
_EXPECTED = "an operation of Porcupine: ClientId, Input, Call, Output, Return"
_WORDS: Final = {
    **dict.fromkeys(("get", "read", "r", "0"), "read"),
    **dict.fromkeys(("put", "write", "w", "set", "1"), "write"),
    **dict.fromkeys(("append", "2"), "append"),
    **dict.fromkeys(("cas", "compareandswap", "compare-and-swap", "compareandset"), "cas"),
}
_NEEDED: Final = {
    "write": (("value",),),
    "append": (("value",),),
    "cas": (("old", "from", "expected"), ("new", "to", "value")),
}
"""The names of what an Input of each must hold: without it, an empty text and nothing look alike."""
_ABSENT: Final = object()
_OF_TEXTS = {"read": "get", "write": "put", "append": "append"}
Refuse = Callable[..., NoReturn]
"""Raises HistoryError: (what came), or (what came, what was expected)."""


def parse(data: bytes) -> Maps:
    """The operation maps in such a file. Raises HistoryError."""
    return maps_of([parse_values(data, "operations of Porcupine")], Header(system="porcupine"))


def maps_of(files: Sequence[Values], header: Header) -> Maps:
    """The operations of all these files together, in the order of their times. Raises HistoryError."""
    calls = [_call(values, place) for values in files for place in range(len(values.values))]
    if not calls:
        raise no_operations("an empty file")
    if not any(call.f.startswith(PREFIX) for call in calls):
        calls = _of_one_model(calls)
    else:
        header = msgspec.structs.replace(header, system="etcd")
    torn = next((f"{values.torn}{_in(values)}" for values in files if values.torn), None)
    maps, lines = _in_time(calls)
    return Maps(maps, lambda place: lines[place](), header, torn)


def _in(values: Values) -> str:
    return f" in {values.name}" if values.name else ""


@dataclass(frozen=True, slots=True)
class _Call:
    client: int
    f: str
    key: Any
    asked: Any
    answered: Any
    ended: str
    error: str | None
    begun: int
    over: int
    line: Callable[[], int]


def _call(values: Values, place: int) -> _Call:
    def line() -> int:
        return values.line_of(place)

    def refuse(came: str, expected: str = _EXPECTED) -> NoReturn:
        attempt = "checkers.history.foreign.porcupine_json says which inputs and outputs are known"
        raise HistoryError(expected=expected, came=f"{came}{_in(values)}", attempt=attempt, line=line())

    entry = values.values[place]
    if not isinstance(entry, dict):
        refuse(repr(entry)[:60])
    if {"Request", "Responses"} >= entry.keys() >= {"Request"}:
        return _watch(entry, place, line, refuse)
    fields = {name.lower().replace("_", ""): value for name, value in entry.items()}
    if missing := {"input", "call", "output", "return"} - fields.keys():
        refuse(f"one without {', '.join(sorted(missing))}")
    client, begun, over = fields.get("clientid", 0), fields["call"], fields["return"]
    if not all(type(number) is int for number in (client, begun, over)) or begun > over:
        refuse(f"ClientId {client!r}, Call {begun!r}, Return {over!r}")
    asked, answer = fields["input"], fields["output"]
    if isinstance(asked, dict) and asked.get("Type") in TYPES:
        f, key, question, answered, ended, error = _of_etcd(asked, answer, refuse)
    else:
        f, key, question, answered, ended, error = _plain(asked, answer, refuse)
    return _Call(client, f, key, question, answered, ended, error, begun, over, line)


# ---- etcd


def _watch(entry: Mapping[str, Any], place: int, line: Callable[[], int], refuse: Refuse) -> _Call:
    try:
        msgspec.convert(entry, Watch)
    except msgspec.ValidationError as error:
        refuse(f"a watch with {error}")
    times = [response.get("Time", 0) for response in entry.get("Responses") or ()]
    times = [time for time in times if type(time) is int and time >= 0] or [0]
    return _Call(1_000_000_000 + place, WATCH, None, entry, entry, "ok", None, min(times), max(times), line)


def _of_etcd(
    asked: Mapping[str, Any], answer: Any, refuse: Refuse
) -> tuple[str, Any, Any, Any, str, str | None]:
    record = {"request": dict(asked)}
    answered = {**record, "response": answer}
    if not isinstance(answer, dict) or (why := wrong_record(answered)):
        refuse(f"a request of etcd with {why if isinstance(answer, dict) else f'the output {answer!r:.40}'}")
    is_partial = answer.get("Persisted") or answer.get("PartialResponse")  # the latter in older reports
    error = answer.get("Error") or ("persisted, without its answer" if is_partial else None)
    client_error = answer.get("ClientError")
    ended = "info" if error else "fail" if client_error else "ok"
    return PREFIX + asked["Type"], None, record, answered, ended, error or client_error or None


# ---- registers and texts


def _plain(asked: Any, answer: Any, refuse: Refuse) -> tuple[str, Any, Any, Any, str, str | None]:
    given = _lower(asked)
    word = given.get("op", given.get("operation", given.get("type")))
    f = _WORDS.get(str(word).lower()) if type(word) in (int, str) else None
    known = {"op", "operation", "type", "key", "value", "old", "new", "from", "to", "expected"}
    if f is None or given.keys() - known:
        refuse(
            f"the input {asked!r:.80}",
            "an Input of etcd, or with Op (get, put, append, read, write, cas), Key and Value",
        )
    told = _lower(answer)
    if told.keys() - {"value", "ok", "success", "unknown", "error", "err"}:
        refuse(f"the output {answer!r:.80}", "an Output with Value, Ok, Unknown or Error")
    error = told.get("error") or told.get("err") or ("unknown" if told.get("unknown") is True else None)
    if error in ("OK", "ok"):
        error = None
    key = given.get("key")
    needed = _NEEDED.get(f, ())
    values = [next((given[name] for name in names if name in given), _ABSENT) for names in needed]
    if _ABSENT in values:
        lacking = next(names[0] for names, each in zip(needed, values, strict=True) if each is _ABSENT)
        refuse(f"the input {asked!r:.80}", f"{lacking.title()} in the Input of a {f}")
    done = told.get("ok", told.get("success")) if isinstance(answer, dict) else answer
    if f == "cas":
        if error is None and type(done) is not bool:
            refuse(f"the output {answer!r:.40}", "true or false, or {Ok}, as the output of a cas")
        return f, key, values, values, "info" if error else "ok" if done else "fail", error
    if error is None and done is False and (f != "read" or isinstance(answer, dict)):
        refuse(f"the output {answer!r:.40}", f"an Output of {f} that is no refusal")
    if f != "read":
        return f, key, values[0], values[0], "info" if error else "ok", error
    if isinstance(answer, dict) and "value" not in told and error is None:
        refuse(f"the output {answer!r:.40}", "the value, or {Value}, as the output of a read")
    shown = told.get("value") if isinstance(answer, dict) else answer
    return f, key, None, shown, "info" if error else "ok", error


def _lower(value: Any) -> dict[str, Any]:
    return {str(name).lower(): part for name, part in value.items()} if isinstance(value, dict) else {}


def _of_one_model(calls: list[_Call]) -> list[_Call]:
    """Texts under keys are of a store of texts, which are empty at first; everything else is registers."""
    are_texts = all(
        call.f in _OF_TEXTS
        and call.key is not None
        and (call.ended != "ok" or isinstance(call.answered, str))
        and (call.f == "read" or isinstance(call.asked, str))
        for call in calls
    )
    if are_texts:
        return [replace(call, f=_OF_TEXTS[call.f]) for call in calls]
    return calls


# ---- order


def _in_time(calls: Sequence[_Call]) -> tuple[list[dict[str, Any]], list[Callable[[], int]]]:
    """Invocations and completions in the order of their times; at one time invocations come first."""
    moments = [(call.begun, 0, place) for place, call in enumerate(calls)]
    moments += [(call.over, 1, place) for place, call in enumerate(calls)]
    moments.sort()
    fresh = max((call.client for call in calls), default=0) + 1
    # A history's times are since the run began; this clock may count from 1970.
    first_ns = moments[0][0]
    process: dict[int, int] = {}
    busy: set[int] = set()
    maps: list[dict[str, Any]] = []
    for time_ns, is_end, place in moments:
        call = calls[place]
        if not is_end:
            process[place] = call.client
            if call.client in busy or call.client < 0:
                process[place], fresh = fresh, fresh + 1
            busy.add(process[place])
        else:
            busy.discard(process[place])
        entry = {
            "type": call.ended if is_end else "invoke",
            "process": process[place],
            "f": call.f,
            "value": call.answered if is_end and call.ended == "ok" else call.asked,
            "time": time_ns - first_ns,
        }
        if call.key is not None:
            entry["key"] = call.key
        if is_end and call.error is not None:
            entry["error"] = call.error
        maps.append(entry)
    return maps, [calls[place].line for _, _, place in moments]
