"""etcd's store by its definition: requests one after the other, and a search of all their orders."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from checkers.history import Event, Header, History
from checkers.history.etcd_records import ALL_CLIENTS, PREFIX

Json = dict[str, Any]
KEYS = ("a", "b")


class Store:
    """The state after some requests. `states`: rows by key, by revision."""

    def __init__(self) -> None:
        self.revision = 1
        self.states: dict[int, dict[str, tuple[str, int, int]]] = {1: {}}

    def answer(self, request: Json) -> Json:
        """Run a request. Raises LookupError for a revision that is not there yet."""
        if request["Type"] == "range":
            asked = request["Range"]
            return {
                "Range": rows(self.states[asked["Revision"] or self.revision], asked),
                "Revision": self.revision,
            }
        now = dict(self.states[self.revision])
        txn = request["Txn"]
        holds = all(
            now.get(one["Key"], ("", 0, 0))[1] == one["ExpectedRevision"] for one in txn["Conditions"]
        )
        results, changed = [], False
        for step in txn["OperationsOnSuccess" if holds else "OperationsOnFailure"]:
            result: Json = {"KVs": None, "Count": 0, "Deleted": 0}
            if step["Type"] == "range-operation":
                result |= rows(now, step["Range"])
            elif step["Type"] == "put-operation":
                key = step["Put"]["Key"]
                now[key] = step["Put"]["Value"]["Value"], self.revision + 1, now.get(key, ("", 0, 0))[2] + 1
                changed = True
            elif now.pop(step["Delete"]["Key"], None) is not None:
                result["Deleted"], changed = 1, True
            results.append(result)
        if changed:
            self.revision += 1
            self.states[self.revision] = now
        return {"Txn": {"Failure": not holds, "Results": results}, "Revision": self.revision}


def rows(state: dict[str, tuple[str, int, int]], asked: Json) -> Json:
    end, limit = asked.get("End", ""), asked.get("Limit", 0)
    found = [key for key in sorted(state) if (asked["Start"] <= key < end if end else key == asked["Start"])]
    shown = [
        {
            "Key": key,
            "Value": {"Value": state[key][0]},
            "ModRevision": state[key][1],
            "Version": state[key][2],
        }
        for key in (found[:limit] if limit else found)
    ]
    return {"KVs": shown, "Count": len(found)}


@dataclass(frozen=True)
class Asked:
    """A request in its interval; `answer` is None if none came."""

    request: Json
    answer: Json | None
    begun: float
    over: float


def has_order(requests: list[Asked]) -> bool:
    """Whether some order within real time gives all answers; those without an answer may be left out."""
    for size in range(len(requests) + 1):
        for order in permutations(requests, size):
            if all(one in order for one in requests if one.answer is not None) and _explains(order):
                return True
    return False


def _explains(order: tuple[Asked, ...]) -> bool:
    store = Store()
    for place, one in enumerate(order):
        if any(later.answer is not None and later.over < one.begun for later in order[place + 1 :]):
            return False
        try:
            answer = store.answer(one.request)
        except LookupError:
            if one.answer is not None:
                return False
            continue
        if one.answer is not None and answer != one.answer:
            return False
    return True


def step(kind: str, key: str, value: str = "") -> Json:
    """One operation of a transaction."""
    return {
        "Type": f"{kind}-operation",
        "Range": {"Start": key if kind == "range" else ""},
        "Put": {"Key": key if kind == "put" else "", "Value": {"Value": value}},
        "Delete": {"Key": key if kind == "delete" else ""},
    }


def put(key: str, value: str) -> Json:
    return txn(step("put", key, value))


def delete(key: str) -> Json:
    return txn(step("delete", key))


def txn(*success: Json, conditions: tuple[tuple[str, int], ...] = (), failure: tuple[Json, ...] = ()) -> Json:
    compared = [{"Key": key, "ExpectedRevision": revision} for key, revision in conditions]
    return {
        "Type": "txn",
        "Txn": {
            "Conditions": compared,
            "OperationsOnSuccess": list(success),
            "OperationsOnFailure": list(failure),
        },
    }


def get(start: str, end: str = "", *, limit: int = 0, revision: int = 0) -> Json:
    return {"Type": "range", "Range": {"Start": start, "End": end, "Limit": limit, "Revision": revision}}


def record(request: Json, answer: Json) -> Json:
    """The value of an operation."""
    return {"request": request, "response": answer}


def shown_from_nowhere(key: str) -> Json:
    """The answer of a read at revision 1, at which nothing was written."""
    row = {"Key": key, "Value": {"Value": "7"}, "ModRevision": 1, "Version": 1}
    return {"Range": {"KVs": [row], "Count": 1}, "Revision": 1}


def drawn(chance: random.Random, count: int) -> list[Asked]:
    """Requests of a right store, some without an answer, one perhaps with a wrong one."""
    store, requests = Store(), []
    for place in range(count):
        request = _request(chance, place, store.revision)
        is_lost, happens = place > 0 and chance.random() < 0.35, chance.random() < 0.5
        answer = None
        if not is_lost or happens:
            answer = store.answer(request)
        begun = place - chance.random() * 2
        requests.append(Asked(request, None if is_lost else answer, begun, place + 0.1 + chance.random() * 2))
    if chance.random() < 0.5:
        at = chance.randrange(count)
        if (wrong := requests[at]).answer is not None:
            requests[at] = Asked(wrong.request, _bent(chance, wrong.answer), wrong.begun, wrong.over)
    return requests


def _request(chance: random.Random, place: int, revision: int) -> Json:
    key, value = chance.choice(KEYS), chance.choice("xyz")
    match 0 if place == 0 else chance.randrange(7):
        case 0:
            return get("a", chance.choice(("", "c")), limit=chance.choice((0, 0, 1)))
        case 1:
            return get(key, revision=chance.randint(0, revision))
        case 2:
            return delete(key)
        case 3:
            expected = chance.randint(0, revision)
            return txn(step("put", key, value), conditions=((key, expected),), failure=(step("range", key),))
        case 4:
            return txn(
                step("range", "a"), step("put", key, value), step("delete", "a" if key == "b" else "b")
            )
    return put(key, value)


def _bent(chance: random.Random, answer: Json) -> Json:
    """The answer with one number or text changed."""
    import copy

    wrong = copy.deepcopy(answer)
    places: list[tuple[Any, Any]] = [(wrong, "Revision")]
    results = [wrong["Range"]] if "Range" in wrong else wrong["Txn"]["Results"]
    for result in results:
        for row in result["KVs"] or ():
            places += [(row, "ModRevision"), (row, "Version"), (row["Value"], "Value")]
    where, name = chance.choice(places)
    where[name] = chance.choice("xyz") if name == "Value" else max(1, where[name] + chance.choice((-1, 1)))
    return wrong


def history_of(requests: list[Asked], *, all_clients: bool = True) -> History:
    """The history of these requests, a process each."""
    moments = sorted((at, is_end, place) for place, one in enumerate(requests)
                     for is_end, at in enumerate((one.begun, one.over)))  # fmt: skip
    events = []
    for index, (_, is_end, place) in enumerate(moments):
        one = requests[place]
        value = {"request": one.request}
        if is_end and one.answer is not None:
            value["response"] = one.answer
        ended = "info" if one.answer is None else "ok"
        events.append(
            Event(
                index=index,
                time_ns=index,
                type=ended if is_end else "invoke",  # type: ignore[arg-type]
                process=place,
                f=PREFIX + one.request["Type"],
                value=value,
            )
        )
    return History.of(Header(system="etcd", extra={ALL_CLIENTS: True} if all_clients else {}), events)
