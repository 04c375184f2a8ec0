"""Kept: in the end, no acknowledged write is gone from every node.

For stores with nodes that need not be equal in the end (a node that stopped following stays stale), or without fresh
reads: there no other checker would detect a lost write. The last leader holds all that was acknowledged, so a write is
surely lost if no member's final dump holds it. The meaning of `gone` depends on the values that operations write, so
each family of checkers defines it: values (`convergence`), values and elements of transactions and sets
(`domain.durability`), sums (`domain.counter`), elements that leave rightly (`domain.queues`).

The checker judges only the dumps of all members together, because a node without a dump may hold what the rest lack;
and only if all was quiet before the dumps. Nodes that have stopped following each other for good, or that stand still
(`checkers.history.rest`), never become equal: then it is enough that the queue's owner, by the newest term, last
reported that nothing is pending. Otherwise the verdict is unknown and says that there was nothing to judge. If a record
does not say whether all was quiet, the checker assumes that it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.members import at_the_end
from checkers.history.operation import Operation
from checkers.history.rest import at_rest
from checkers.history.values import value_words
from checkers.verdict import Result, Verdict, Witness, concluded

NAME = "kept"
MODEL = "some node holds each acknowledged write"

Gone = Callable[[History, Sequence[Operation]], Iterable[Witness]]
"""(history, one final dump of each member) → a witness for each thing that no dump holds."""


def check(history: History, gone: Gone) -> Verdict:
    """Whether no acknowledged effect is missing in all nodes' final dumps.

    Unknown where not every member gave a final state in which all was quiet. `details`: dumps (how many members gave
    one), vacuous (nothing could be judged). Raises what `gone` raises.
    """
    dumps = last_dumps(history)
    is_whole = bool(dumps) and {*at_the_end(history)} <= {dump.node for dump in dumps}
    is_whole = is_whole and (history.settled is not False or _is_done_where_some_stopped(history, dumps))
    witnesses = tuple(gone(history, dumps)) if is_whole else ()
    result: Result = "valid" if is_whole else "unknown"
    summary = "nothing that was acknowledged was gone from every node"
    if not is_whole:
        summary = "nothing to judge: not every member gave a final state in which all was quiet"
    details = {"dumps": len(dumps), "violations": len(witnesses), "vacuous": not is_whole}
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)


def _is_done_where_some_stopped(history: History, dumps: Sequence[Operation]) -> bool:
    """Whether the owner had nothing pending, by the nodes' last reports before the dumps."""
    asked = min(dump.invoke_index for dump in dumps)
    last = {state.node: state.status for state in history.states if state.index < asked}
    members = [last.get(node, {"up": False}) for node in at_the_end(history)]
    owners = [status for status in members if status.get("role") == "owner"]
    if not owners or not (any(status.get("stopped") for status in members) or at_rest(history).is_quiet):
        return False
    owner = max(owners, key=_term)
    pending = [owner.get(word, 0) for word in ("limbo", "pending_promotes", "in_rollback")]
    return all(status.get("up") for status in members) and not any(pending)


def _term(status: Mapping[str, Any]) -> int:
    term = status.get("term")
    return term if isinstance(term, int) else 0


def last_dumps(history: History) -> list[Operation]:
    """The last dump of each node that gave one, by the names of the nodes."""
    last: dict[str, Operation] = {}
    for operation in history.dumps:
        if operation.type == "ok" and operation.node is not None:
            last[operation.node] = operation
    return [operation for _, operation in sorted(last.items())]


def rows_of(dump: Operation, space: str) -> Sequence[Sequence[Any]]:
    """The rows [key, value] that a dump shows of a space. Raises ModelError for what is no dump."""
    spaces = dump.value.get("spaces") if isinstance(dump.value, Mapping) else None
    rows = spaces.get(space, ()) if isinstance(spaces, Mapping) else None
    if not isinstance(rows, list | tuple) or not all(
        isinstance(row, list | tuple) and len(row) == 2 for row in rows
    ):
        expected = f'a dump {{"spaces": {{"{space}": [[key, value], …]}}}}'
        raise ModelError(expected=expected, came=value_words(dump.value, 60), index=dump.invoke_index)
    return rows
