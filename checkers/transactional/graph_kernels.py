"""Kernels on the graph of dependencies: components, orders and shortest cycles, all by automaton.

The graph is in compressed rows: the edges from node n are offsets[n] … offsets[n+1]-1, each with its target and kind.
An automaton says which sequences of kinds are meant: `table[state, kind]` is the next state, or NONE where the kind
may not follow. One with a single state picks kinds; with more it counts and remembers. The search walks the product:
node * states + state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy
from numpy import int8, int32, int64

from checkers.compiled import bare_kernel, kernel
from checkers.transactional.columns import Int8s, Int32s, Int64s

NONE = -1


@kernel
def rows(source: Int32s, count: int) -> tuple[Any, Any]:
    """(offsets int64[count+1], place int64[edges]): edges sorted by source, in the order given within each."""
    offsets = numpy.zeros(count + 1, int64)
    for edge in range(len(source)):
        offsets[source[edge] + 1] += 1
    for node in range(count):
        offsets[node + 1] += offsets[node]
    place = numpy.empty(len(source), int64)
    free = offsets[:-1].copy()
    for edge in range(len(source)):
        place[free[source[edge]]] = edge
        free[source[edge]] += 1
    return offsets, place


@kernel
def components(
    offsets: Int64s, targets: Int32s, kinds: Int8s, table: Any, ends: Int64s, accepting: Int8s
) -> tuple[Any, Any, int]:
    """(component int32[nodes*states], earliest int64[nodes*states], how many): Tarjan (1972) without recursion.

    Components are numbered in reverse topological order: an edge never leads to a higher number. earliest: the least
    ends[node] over all that can be reached (itself included) in an accepting state. Unreachable products (in states
    other than 0, in which no path begins) are numbered only if an edge leads to them, else NONE.
    """
    states = table.shape[0]
    nodes = len(offsets) - 1
    total = nodes * states
    component = numpy.full(total, NONE, int32)
    seen = numpy.zeros(total, int32)
    low = numpy.zeros(total, int32)
    earliest = numpy.full(total, 2**62, int64)
    edge_at = numpy.zeros(total, int64)
    calls = numpy.empty(total, int32)
    stack = numpy.empty(total, int32)
    clock, height, count = 0, 0, 0
    for begin in range(0, total, states):
        if seen[begin] != 0:
            continue
        depth = 1
        calls[0] = begin
        while depth > 0:
            here = calls[depth - 1]
            node, state = here // states, here % states
            if seen[here] == 0:
                clock += 1
                seen[here], low[here] = clock, clock
                stack[height] = here
                height += 1
                edge_at[here] = offsets[node]
                if accepting[state] == 1:
                    earliest[here] = ends[node]
            descended = False
            while edge_at[here] < offsets[node + 1]:
                edge = edge_at[here]
                after = table[state, kinds[edge]]
                if after == NONE:
                    edge_at[here] += 1
                    continue
                there = targets[edge] * states + after
                if seen[there] == 0:
                    calls[depth] = there
                    depth += 1
                    # The edge stays: it is looked at again after the descent, and then gives `low` and `earliest`.
                    descended = True
                    break
                edge_at[here] += 1
                # Only of what is on the stack: a finished component leads to none of this one.
                if component[there] == NONE:
                    low[here] = min(low[here], low[there])
                earliest[here] = min(earliest[here], earliest[there])
            if descended:
                continue
            depth -= 1
            if low[here] == seen[here]:
                while True:
                    height -= 1
                    member = stack[height]
                    component[member] = count
                    earliest[member] = earliest[here]
                    if member == here:
                        break
                count += 1
    return component, earliest, count


@kernel
def serial_order(offsets: Int64s, targets: Int32s, gate: Int64s, closed_by: Int32s) -> tuple[Any, int]:
    """(order int32[…], its length): a topological order of the edges, within real time; Kahn (1962).

    gate[node]: the node comes after all that `closed_by` holds at smaller events (NONE: no such wait); closed_by[event]
    is a node or NONE. The length is less than the number of nodes if there is a cycle.
    """
    nodes = len(offsets) - 1
    missing = numpy.zeros(nodes, int32)
    for edge in range(len(targets)):
        missing[targets[edge]] += 1
    # Stable: the order is a proof of which the verdict has the SHA-256.
    by_gate = numpy.argsort(gate, kind="mergesort")
    gone = numpy.zeros(nodes, int8)
    let_in = numpy.zeros(nodes, int8)
    order = numpy.empty(nodes, int32)
    # Order[:total] is also the queue: those from `handled` on are to do.
    total, handled, begun, event = 0, 0, 0, 0
    while True:
        while handled < total:
            node = order[handled]
            handled += 1
            gone[node] = 1
            for edge in range(offsets[node], offsets[node + 1]):
                there = targets[edge]
                missing[there] -= 1
                if missing[there] == 0 and let_in[there] == 1:
                    order[total] = there
                    total += 1
        while event < len(closed_by) and (closed_by[event] == NONE or gone[closed_by[event]] == 1):
            event += 1
        # Not >=: what begins at the event at which another one ended is concurrent with it.
        if begun == nodes or (event < len(closed_by) and gate[by_gate[begun]] > event):
            break
        node = by_gate[begun]
        begun += 1
        let_in[node] = 1
        if missing[node] == 0:
            order[total] = node
            total += 1
    return order[:total], total


@kernel
def pairs_in_time(
    begin: Int64s, invoke: Int64s, ends: Int64s, by_end: Int64s, entered: Int32s, left: Int32s, room: int
) -> tuple[Any, Any, bool]:
    """(earlier, later int32[…], whether all found room): per group, pairs of which one was over before the other began.

    Row r of group g is one transaction, rows begin[g] … begin[g+1]-1 in the order of invocation; by_end holds the same
    rows in the order of their ends. Of two rows, what the earlier left is paired with what the later entered with.
    Only the nearest are paired: the rest follows.
    """
    earlier = numpy.empty(room, int32)
    later = numpy.empty(room, int32)
    size = 0
    for on in range(len(begin) - 1):
        # In by_end: those before `over` have ended, those before `kept` are followed.
        over, kept = begin[on], begin[on]
        latest = NONE  # when the last of those that ended was invoked
        for row in range(begin[on], begin[on + 1]):
            while over < begin[on + 1] and ends[by_end[over]] < invoke[row]:
                latest = max(latest, invoke[by_end[over]])
                over += 1
            # It ended before one began that is over, too: it comes before that one, which comes before this.
            while kept < over and ends[by_end[kept]] < latest:
                kept += 1
            for place in range(kept, over):
                if left[by_end[place]] != entered[row]:
                    if size == room:
                        return earlier, later, False
                    earlier[size] = left[by_end[place]]
                    later[size] = entered[row]
                    size += 1
    return earlier[:size], later[:size], True


class Edges(NamedTuple):
    """The edges of a graph in rows (see above); `sources` int32[edges]: the nodes that they leave."""

    offsets: Int64s
    sources: Int32s
    targets: Int32s
    kinds: Int8s


class Automaton(NamedTuple):
    """`table` int8[states, kinds]: the next state, or -1. `accepting` int8[states]: 1 where a cycle may end."""

    table: Any
    accepting: Int8s


class Room(NamedTuple):
    """Work arrays of the searches for a shortest cycle, which outlive a call.

    edges    int64[products+2]  the best cycle
    path     int64[products+1]  the one that is looked at
    seen     int32[products]    by which start a product was reached last; NONE before
    mark     int8[nodes]        zeros before and after
    parent   int64[products]    where a product was reached from, and
    by_edge  int64[products]    by which edge
    queue    int64[products+1]
    """

    edges: Int64s
    path: Int64s
    seen: Int32s
    mark: Int8s
    parent: Int64s
    by_edge: Int64s
    queue: Int64s


@bare_kernel
def walk_back(here: int, begin: int, states: int, room: Room) -> int:
    """Write the edges that led from `begin` to `here` into `room.path`; their number, or NONE if a node comes twice."""
    path, mark = room.path, room.mark
    count, at, twice = 0, here, False
    while True:
        twice = twice or mark[at // states] == 1
        mark[at // states] = 1
        if at == begin:
            break
        path[count] = room.by_edge[at]
        count += 1
        at = room.parent[at]
    at = here
    while at != NONE:
        mark[at // states] = 0
        at = room.parent[at]
    for place in range(count // 2):
        other = path[count - 1 - place]
        path[count - 1 - place] = path[place]
        path[place] = other
    return NONE if twice else count


@bare_kernel
def shortest_closing(
    graph: Edges, automaton: Automaton, starts: Int64s, position: int, best: int, least: int, component: Int32s,
    rank: Int32s, steps: int, room: Room,
) -> tuple[int, int, int]:  # fmt: skip
    """(position reached, length of the best cycle, steps left): one edge of `starts` and a path back by the automaton.

    Tries starts[position:] in turn, breadth first, for a cycle of fewer than `best` edges (2**30: any), which it leaves
    in `room.edges`. Stops at a cycle of `least` edges, or after so many steps (then the position is where to go on).
    `component`: nodes in different ones share no cycle. `rank`: product components in reverse topological order.
    """
    table, accepting = automaton
    states = table.shape[0]
    edges, seen, parent, queue = room.edges, room.seen, room.parent, room.queue
    while position < len(starts) and steps > 0 and best > least:
        first = starts[position]
        goal, origin = graph.sources[first], graph.targets[first]
        lowest = 2**30  # what has a lower rank leads to no accepting state of the goal
        for state in range(states):
            if accepting[state] == 1 and rank[goal * states + state] != NONE:
                lowest = min(lowest, rank[goal * states + state])
        head, tail = 0, 1
        begin = origin * states
        queue[0] = begin
        seen[begin] = position
        parent[begin] = NONE
        depth, level_end = 1, 1  # edges of the cycle so far, the start among them
        done = rank[begin] < lowest
        while head < tail and not done:
            if head == level_end:
                depth += 1
                level_end = tail
            if depth + 1 >= best:
                break
            here = queue[head]
            head += 1
            node, state = here // states, here % states
            for edge in range(graph.offsets[node], graph.offsets[node + 1]):
                steps -= 1
                after = table[state, graph.kinds[edge]]
                there_node = graph.targets[edge]
                if after == NONE or component[there_node] != component[goal]:
                    continue
                there = there_node * states + after
                if seen[there] == position or rank[there] < lowest:
                    continue
                seen[there] = position
                parent[there] = here
                room.by_edge[there] = edge
                if there_node == goal:
                    if accepting[after] == 0:
                        continue  # it may not be passed through
                    count = walk_back(there, begin, states, room)
                    if count != NONE:
                        best = count + 1
                        edges[0] = first
                        for place in range(count):
                            edges[place + 1] = room.path[place]
                        done = True
                        break
                    continue
                queue[tail] = there
                tail += 1
        position += 1
    return position, best, steps


@bare_kernel
def shortest_back_in_time(
    graph: Edges, automaton: Automaton, starts: Int64s, position: int, best: int, least: int, invoke: Int64s,
    ends: Int64s, earliest: Int64s, steps: int, room: Room,
) -> tuple[int, int, int]:  # fmt: skip
    """As `shortest_closing`, for cycles with one realtime edge: paths from a node of `starts` to one which had ended
    before it began. `room.edges` holds the path's edges; the length counts the realtime edge too.

    One realtime edge is enough. Intervals on a line never hold two pairs a-before-b, c-before-d without a-before-d or
    c-before-b, so that a cycle with two realtime edges has a shorter one with one of them, over a part of its edges.
    """
    table, accepting = automaton
    states = table.shape[0]
    seen, parent, queue = room.seen, room.parent, room.queue
    while position < len(starts) and steps > 0 and best > least:
        origin = starts[position]
        limit = invoke[origin]
        head, tail = 0, 1
        begin = origin * states
        queue[0] = begin
        seen[begin] = position
        parent[begin] = NONE
        depth, level_end = 1, 1
        done = False
        while head < tail and not done:
            if head == level_end:
                depth += 1
                level_end = tail
            if depth + 1 >= best:
                break
            here = queue[head]
            head += 1
            node, state = here // states, here % states
            for edge in range(graph.offsets[node], graph.offsets[node + 1]):
                steps -= 1
                after = table[state, graph.kinds[edge]]
                if after == NONE:
                    continue
                there_node = graph.targets[edge]
                there = there_node * states + after
                # `earliest` is the least end that any path from there leads to: none leads back in time.
                if seen[there] == position or earliest[there] >= limit:
                    continue
                seen[there] = position
                parent[there] = here
                room.by_edge[there] = edge
                if accepting[after] == 1 and ends[there_node] < limit:
                    count = walk_back(there, begin, states, room)
                    if count != NONE:
                        best = count + 1
                        for place in range(count):
                            room.edges[place] = room.path[place]
                        done = True
                        break
                queue[tail] = there
                tail += 1
        position += 1
    return position, best, steps
