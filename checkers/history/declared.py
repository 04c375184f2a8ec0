"""The effects of operations on the store, as the history's header declares them: `effects`, from `f` to a word.

| word | the operation |
|---|---|
| reads | changes nothing |
| writes | changes something, and shows nothing |
| both | may change something, and shows what was there |
| micro-operations | does what its micro-operations do: `["r", key, value]` reads, every other one writes |
| asynchronous writes | changes something that the store need not replicate before it answers |

If a checker that judges operations by their effect meets a name that the header does not declare, its answer is at best
unknown: it cannot know what it missed. A header without `effects` (format 1, and files of other tools) counts as
declaring the names that the checkers knew when these were recorded (`OF_FORMAT_1`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from checkers.history.history import Header, History
from checkers.history.operation import Operation

Declared = Literal["reads", "writes", "both", "micro-operations", "asynchronous writes"]
WORDS: Final[frozenset[str]] = frozenset(get_args(Declared))

OF_FORMAT_1: Final[Mapping[str, Declared]] = {
    "read": "reads",
    "dump": "reads",
    "get": "reads",
    "write": "writes",
    "put": "writes",
    "append": "writes",
    "cas": "both",
    "txn": "micro-operations",
    "add": "writes",
    "transfer": "both",
    "open": "writes",
    "generate": "both",
    "enqueue": "writes",
    "dequeue": "both",
    "drain": "reads",
    "insert": "asynchronous writes",
}


def declared(header: Header) -> Mapping[str, str]:
    """By `f` the effect, a word of the table above."""
    return header.effects or OF_FORMAT_1


def undeclared(history: History) -> tuple[str, ...]:
    """The names of operations with an effect that the header does not declare, in order of first use."""
    known = declared(history.header)
    unknown = {name for name in history.names if known.get(name) not in WORDS}
    if not unknown:
        return ()
    return tuple(dict.fromkeys(operation.f for operation in history.operations if operation.f in unknown))


def needs_quorum(header: Header, operation: Operation) -> bool:
    """Whether the operation changes something that must be replicated before it is acknowledged. Undeclared operations
    do not count here: see `undeclared`."""
    match declared(header).get(operation.f):
        case "writes" | "both":
            return True
        case "micro-operations":
            micros = operation.value if isinstance(operation.value, list | tuple) else ()
            return any(isinstance(micro, list | tuple) and [*micro[:1]] != ["r"] for micro in micros)
    return False
