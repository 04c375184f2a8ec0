"""Writes a history as Jepsen's EDN, an operation map a line, so that Knossos and Elle can judge it too.

Keys are written as jepsen.independent does, `[key value]`, unless the history is about a single key: then they are
left out, which is what Knossos' own command takes. Faults become :nemesis lines (:start-NAME, :stop-NAME); monitors,
the harness and dumps of nodes have no place in such a file. Reads that were promised less than linearizable are left
out if `reads` says so (transactions that only read, too), since those checkers would hold them to it.

A refusal says in `:refusal-observed?` whether it observed the state, if refusals of the history do (a cas that saw
another value than the expected one). Jepsen has no word for that, and the file counts as one of another tool, of whose
refusals nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from checkers.history.foreign import edn
from checkers.history.foreign.operation_maps import REFUSAL_OBSERVED
from checkers.history.history import History
from checkers.history.operation import Event, Operation

Reads = Callable[[str | None, str | None], bool]
NOT_FOR_OTHERS = frozenset({"dump"})


def write(history: History, *, reads: Reads = lambda role, mode: True) -> str:
    """The text of the file. `reads(role, mode)`: whether such a read is written."""
    written = [
        each for each in history.operations if each.f not in NOT_FOR_OTHERS and _is_written(each, reads)
    ]
    # By the event: an answer need not name the key that was asked for.
    keys = {index: _key_of(operation) for operation in written for index in operation.events}
    keyed = len({*keys.values()}) > 1
    refusals = _refusals(written) if history.failed_cas_observes else {}
    return "".join(f"{line}\n" for line in _lines(history, keys, keyed, refusals))


def _refusals(operations: Iterable[Operation]) -> dict[int, bool]:
    """By the index of its completion, whether a refusal observed the state."""
    return {
        operation.complete_index: operation.saw_empty
        or operation.found_nothing
        or (operation.f == "cas" and operation.error == "mismatch")
        for operation in operations
        if operation.type == "fail" and operation.complete_index is not None
    }


def _key_of(operation: Operation) -> str | None:
    """The keys of a transaction are in its micro-operations; one of ours may have a word in their place."""
    return None if operation.f == "txn" else operation.key


def _is_written(operation: Operation, reads: Reads) -> bool:
    return not operation.only_reads or operation.type != "ok" or reads(operation.role, operation.mode)


def _lines(
    history: History, keys: Mapping[int, str | None], keyed: bool, refusals: Mapping[int, bool]
) -> Iterator[str]:
    number = 0
    for event in history.events:
        if event.index in keys and event.type == "invoke" and not history.has_real_time:
            continue  # else the order of the lines would be that of real time
        if event.index in keys:
            key = keys[event.index] if keyed else None
            yield _client(event, number, key, refusals.get(event.index))
        elif event.process == "nemesis":
            yield _nemesis(event, number)
        else:
            continue
        number += 1


def _client(event: Event, index: int, key: str | None, observed: bool | None) -> str:
    value = _value(event.f, event.value)
    fields = [
        f":index {index}",
        f":time {event.time_ns}",
        f":type :{event.type}",
        f":process {event.process}",
        f":f {edn.keyword(event.f)}",
        f":value [{edn.write(key)} {value}]" if key is not None else f":value {value}",
    ]
    words = (("error", event.error), ("node", event.node), ("mode", event.mode), ("role", event.role))
    fields += [f":{name} {edn.write(word)}" for name, word in words if word is not None]
    if event.phase == "final":
        fields.append(":final? true")
    if observed is not None:
        fields.append(f":{REFUSAL_OBSERVED} {edn.write(observed)}")
    return "{" + ", ".join(fields) + "}"


def _value(f: str, value: Any) -> str:
    """Names of micro-operations are keywords to Elle."""
    if f == "txn" and isinstance(value, list):
        return "[" + " ".join(map(_micro_operation, value)) + "]"
    return edn.write(value)


def _micro_operation(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], str):
        return "[" + " ".join([edn.keyword(value[0]), *map(edn.write, value[1:])]) + "]"
    return edn.write(value)


def _nemesis(event: Event, index: int) -> str:
    f = f"{'start' if event.type == 'invoke' else 'stop'}-{event.f}"
    return f"{{:index {index}, :time {event.time_ns}, :type :info, :process :nemesis, :f {edn.keyword(f)}, :value nil}}"
