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
    ended = sorted((each.returned_index, each) for each in operations if each.returned_index is not None)
    returns = [index for index, _ in ended]
    latest = list(accumulate((each.invoke_index for _, each in ended), max))
    before: list[tuple[Operation, Sequence[tuple[int, Operation]]]] = []
    count = 0
    for each in operations:
        over = bisect_left(returns, each.invoke_index)
        if over == 0:
            continue
        # What returned before the latest of these invocations is before that operation, too.
        nearest = bisect_left(returns, latest[over - 1])
        before.append((each, ended[nearest:over]))
        count += over - nearest
        _bounded(count, "edges", edges_max)
    graph = DiGraph()
    for each in operations:
        fields = {name: getattr(each, name) for name in ("process", "f", "key", "value", "type", "node")}
        graph.add_node(each.invoke_index, **fields)
    for each, earlier in before:
        for _, other in earlier:
            kind = "process" if other.process == each.process else "realtime"
            graph.add_edge(other.invoke_index, each.invoke_index, kind=kind)
    return graph


def _bounded(count: int, what: str, most: int) -> None:
    if count > most:
        raise ValueError(
            f"expected at most {most:,} {what}, got {count:,}; "
            "try a part: history.happened_before(history.select(keys={…}))"
        )
