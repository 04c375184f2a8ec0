"""Writes acknowledged before the run, in the logs that its nodes began with, are there at the end.

A run may begin with the logs of an earlier one. The answers to that run's clients are not in this history: the header
has them, `"acknowledged_before": {"space": …, "rows": [[key, value], …]}`. No client writes to that space any more.
So each final dump must hold these rows (rule lost-from-start). If nodes need not be equal in the end, or were not
quiet, it is enough that one dump holds a row. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkers.history.history import History
from checkers.history.members import at_the_end
from checkers.history.operation import Operation
from checkers.history.values import identity, many
from checkers.replicas.kept import last_dumps, rows_of
from checkers.verdict import Result, Verdict, Witness, concluded, witness

NAME = "stored-start"
MODEL = "what was acknowledged before the run is kept"
BEFORE = "acknowledged_before"


def check(history: History, *, everywhere: bool = True) -> Verdict:
    """Whether the final dumps hold what was acknowledged before; `everywhere`: each of them must.

    Unknown where nothing was, or not every member gave a dump. `details`: rows, dumps, vacuous.
    """
    before: dict[str, Any] = history.header.extra.get(BEFORE, {"space": "", "rows": []})
    space, rows = before["space"], before["rows"]
    dumps = last_dumps(history)
    silent = sorted({*at_the_end(history)} - {dump.node for dump in dumps})
    must_all = everywhere and history.settled is not False
    held = [(dump, {*map(identity, rows_of(dump, space))}) for dump in dumps]
    witnesses = []
    for row in rows:
        without = [dump for dump, stored in held if identity(row) not in stored]
        if without and (must_all or (len(without) == len(held) and not silent)):
            witnesses.append(_witness(space, row, without))
    result: Result = "valid"
    summary = f"what was acknowledged before the run is there ({many(len(rows), 'row')})"
    if silent or not dumps:
        result, summary = "unknown", f"no final dump of {', '.join(silent) or 'any node'}"
    elif not rows:
        result, summary = "unknown", "nothing was acknowledged before the run"
    details = {"rows": len(rows), "dumps": len(dumps), "vacuous": not rows}
    return concluded(NAME, witnesses, summary, result=result, model=MODEL, details=details)


def _witness(space: str, row: list[Any], without: Sequence[Operation]) -> Witness:
    nodes = ", ".join(str(dump.node) for dump in without)
    summary = f"{nodes} did not hold {row} in {space} at the end, which was acknowledged before the run"
    node = without[0].node if len(without) == 1 else None
    return witness("lost-from-start", summary, without, key=str(row[0]), node=node)
