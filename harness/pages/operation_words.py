"""An operation in words: the label beside its bar, its value in a table, all its fields in a tooltip."""

from __future__ import annotations

from collections.abc import Sequence

from checkers.history import Operation
from harness.pages.json_door import as_list, as_mapping, as_text, clipped
from harness.pages.svg import duration, moment


def operation_label(operation: Operation, key: str | None) -> str:
    """`write 7 · n1`, `read → 3 · n2`, `cas 3→7 ✗ mismatch · n1`, `delete · n1`; with its key unless it is `key`."""
    words = f"{_verb(operation)} {operation_value(operation, 24, key)}".rstrip()
    if operation.f == "dump" and key is not None:
        words = f"dump {clipped(key, 16)} = {operation_value(operation, 24, key)}"
    if operation.type == "fail":
        words += f" ✗ {as_text(operation.error, 24)}".rstrip()
    if key is None and operation.key is not None:
        words = f"{clipped(operation.key, 16)}: {words}"
    return f"{words} · {clipped(operation.node, 16)}" if operation.node else words


def _verb(operation: Operation) -> str:
    return "delete" if operation.is_deletion else clipped(operation.f, 24)


def operation_value(operation: Operation, limit: int, key: str | None = None) -> str:
    """The written value, `→ 3` for a read value (∅: no value), `3→7` for a compare-and-set."""
    match operation.f:
        case "read" if key is not None and key in as_mapping(operation.value):
            return f"→ {clipped(key, 16)} = {_or_nothing(operation.value[key], limit)}"
        case "read" if operation.type == "ok":
            return f"→ {_or_nothing(operation.value, limit)}"
        case "read":
            return "→ ?" if operation.type == "info" else ""
        case "cas" if len(pair := as_list(operation.value)) in (2, 3):  # behind the two what was there
            return f"{_or_nothing(pair[0], limit)}→{_or_nothing(pair[1], limit)}"
        case "txn":
            return transaction_words(as_list(operation.value), limit, key)
        case "transfer":
            moved = as_mapping(operation.value)
            return f"{as_text(moved.get('amount'), 8)} {as_text(moved.get('from'), 12)}→{as_text(moved.get('to'), 12)}"
        case "dump" if key is not None:
            return _dumped(operation.value, key, limit)
        case _:
            return as_text(operation.value, limit)


def transaction_words(micros: Sequence[object], limit: int, key: str | None = None) -> str:
    """`x ⊕ 3, y := 4, z → [1, 2]`; only the steps on `key` if there are any, because there is little room."""
    known = [micro for micro in map(as_list, micros) if len(micro) == 3]
    about = [micro for micro in known if key is not None and micro[1] == key] or known
    room = max(limit // max(len(about), 1), 12)
    words = ", ".join(_micro_words(micro, room) for micro in about)
    return words + (", …" if len(about) < len(known) else "")


def _micro_words(micro: Sequence[object], limit: int) -> str:
    f, key, value = as_text(micro[0], 12), as_text(micro[1], 16), micro[2]
    match f:
        case "append":
            return f"{key} ⊕ {as_text(value, limit)}"
        case "w":
            return f"{key} := {as_text(value, limit)}"
    # A read of a list is told from others by its end.
    shown = as_text(as_list(value)[-limit:] or value, 10_000).replace('"', "")
    if len(shown) > limit:
        shown = f"[…{shown[-limit + 2 :]}" if shown.startswith("[") else clipped(shown, limit)
    return f"{key} → {'∅' if value is None else shown}"


def _or_nothing(value: object, limit: int) -> str:
    return "∅" if value is None else as_text(value, limit)


def _dumped(value: object, key: str, limit: int) -> str:
    """The value of one key in a dump, from the space that has it; for a set the number of its elements."""
    elements = 0
    for rows in as_mapping(as_mapping(value).get("spaces")).values():
        for row in map(as_list, as_list(rows)):
            if len(row) > 1 and (row[0] == key or str(row[0]) == key):
                return _or_nothing(row[1], limit)
            elements += len(row) > 1 and row[1] == key
    return f"{elements:,} elements" if elements else "∅"


def began(operation: Operation) -> str:
    """The time of the invocation; in a log without times, the number of the event."""
    return moment(operation.invoke_ns) if operation.has_times else f"event {operation.invoke_index}"


def operation_title(operation: Operation) -> str:
    """The tooltip: all that the history has on the operation."""
    where = [f"process {operation.process}", f"at {operation.node}" if operation.node else ""]
    where += [f"which said it was {operation.role}" if operation.role else "", as_text(operation.mode, 30)]
    lines = [
        f"{_verb(operation)} {as_text(operation.key, 40)} {operation_value(operation, 120)}",
        ", ".join(part for part in where if part),
    ]
    if operation.complete_ns is None:
        lines.append(f"invoked at {began(operation)}; no answer was recorded")
    elif not operation.has_times:
        lines.append(f"events {operation.invoke_index} – {operation.complete_index}")
        lines.append(f"{operation.type} {as_text(operation.error, 120)}".rstrip())
    else:
        took = duration(operation.complete_ns - operation.invoke_ns)
        lines.append(f"{moment(operation.invoke_ns)} – {moment(operation.complete_ns)} ({took})")
        lines.append(f"{operation.type} {as_text(operation.error, 120)}".rstrip())
    return "\n".join(lines)
