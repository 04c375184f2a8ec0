"""Which operations were over before which others began, as a graph of networkx.

The order of real time is an interval order: an operation comes before each one that began after its answer. The graph
has its transitive reduction, the edges that follow from no others: `a → c` is left out where some `b` lies between.
The order of a process is part of it, because a process waits for each answer. An operation of unknown outcome (`info`)
comes before nothing: it may still take effect.

For c clients the reduction has at most about c edges an operation, while the whole order has the square of the number
of operations.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING

from checkers.history.operation import Operation

if TYPE_CHECKING:
    from networkx import DiGraph

EDGES_MAX = 1_000_000


def happened_before(operations: Sequence[Operation], edges_max: int = EDGES_MAX) -> DiGraph:
    """Nodes are the indexes of invocations, with `process`, `f`, `key`, `value`, `type`, `node`; an edge has a `kind`:
    "process" or "realtime".

    ValueError if there are more than `edges_max` operations or edges; nothing is made then.
    """
    from networkx import DiGraph

    _bounded(len(operations), "operations", edges_max)
    ended = sorted(
        (operation for operation in operations if operation.returned_index is not None),
        key=attrgetter("returned_index"),
    )
    returns = [operation.complete_index or 0 for operation in ended]
    latest = list(accumulate((operation.invoke_index for operation in ended), max))
    before: list[tuple[Operation, Sequence[Operation]]] = []
    count = 0
    for operation in operations:
        over = bisect_left(returns, operation.invoke_index)
        if over == 0:
            continue
        # An operation that returned before the latest of these invocations precedes that operation, too.
        nearest = bisect_left(returns, latest[over - 1])
        before.append((operation, ended[nearest:over]))
        count += over - nearest
        _bounded(count, "edges", edges_max)
    graph = DiGraph()
    for operation in operations:
        fields = {name: getattr(operation, name) for name in ("process", "f", "key", "value", "type", "node")}
        graph.add_node(operation.invoke_index, **fields)
    for operation, earlier in before:
        for sooner in earlier:
            kind = "process" if sooner.process == operation.process else "realtime"
            graph.add_edge(sooner.invoke_index, operation.invoke_index, kind=kind)
    return graph


def _bounded(count: int, noun: str, most: int) -> None:
    if count > most:
        raise ValueError(
            f"expected at most {most:,} {noun}, got {count:,}; "
            "try a part: history.happened_before(history.select(keys={…}))"
        )
