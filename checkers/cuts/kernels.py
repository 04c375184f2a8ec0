"""The loops over messages, one pass each. `checkers.compiled` compiles them; as they stand they are their plain twin.

A *label* of a row is the index of the first cut, in a series of cuts that only grow, which has the row inside.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's
_SEND, _RECEIVE = 0, 1


@bare_kernel
def match(kind: Array, seq: Array, peer: Array, send_row: Array, send_first: Array, sender_row: Array) -> int:
    """Fill `sender_row` (int32, by row): of a receive the row of its send, -1 if that is not recorded.

    `send_row`: the rows of all sends; those of life i are at send_first[i] … send_first[i+1]-1 with ascending numbers.
    Returns how many sends are missing.
    """
    missing = 0
    for row in range(kind.shape[0]):
        sender_row[row] = -1
        if kind[row] != _RECEIVE:
            continue
        if peer[row] >= 0:
            low, high = send_first[peer[row]], send_first[peer[row] + 1]
            guess = low + seq[row] - 1
            if low <= guess < high and seq[send_row[guess]] == seq[row]:
                sender_row[row] = send_row[guess]
            else:
                # Needs ascending numbers: where a life's do not ascend, `Links.broken` says so and no cut is judged.
                while low < high:
                    middle = (low + high) // 2
                    if seq[send_row[middle]] < seq[row]:
                        low = middle + 1
                    else:
                        high = middle
                if low < send_first[peer[row] + 1] and seq[send_row[low]] == seq[row]:
                    sender_row[row] = send_row[low]
        if sender_row[row] < 0:
            missing += 1
    return missing


@bare_kernel
def causal_order(
    sender_row: Array,
    peer: Array,
    row_end: Array,
    before: Array,
    pointer: Array,
    goal: Array,
    stack: Array,
    on_stack: Array,
    order: Array,
) -> int:
    """Fill `order` (int32) with all rows, each behind what happened before it. Returns how many could be placed.

    Fewer than all: something happens before itself. `pointer` begins at each life's first row; `row_end` is behind its
    last one; `before` is the last life with rows before it on its node, or -1. `goal`, `stack`, `on_stack` are room,
    one a life, with `on_stack` 0.
    """
    placed = 0
    for begin in range(row_end.shape[0]):
        depth = 0
        stack[0] = begin
        goal[0] = row_end[begin]
        on_stack[begin] = 1
        while depth >= 0:
            life = stack[depth]
            wanted, until = -1, 0
            if before[life] >= 0 and pointer[before[life]] < row_end[before[life]]:
                wanted, until = before[life], row_end[before[life]]
            while wanted < 0 and pointer[life] < goal[depth]:
                row = pointer[life]
                sent = sender_row[row]
                if sent >= 0 and pointer[peer[row]] <= sent:
                    wanted, until = peer[row], sent + 1
                else:
                    order[placed] = row
                    placed += 1
                    pointer[life] = row + 1
            if wanted < 0:
                on_stack[life] = 0
                depth -= 1
            # That life waits for this one, and this one for a row of it that it has not come to: a circle.
            elif on_stack[wanted]:
                return placed
            else:
                depth += 1
                stack[depth] = wanted
                goal[depth] = until
                on_stack[wanted] = 1
    return placed


@bare_kernel
def label(node_first: Array, frontiers: Array, is_marked: Array, labels: Array) -> None:
    """Fill `labels` (int32, by row) on marked nodes: `frontiers` (cut, node) holds rows that ascend by cut; else 0."""
    for node in range(is_marked.shape[0]):
        now = 0
        for row in range(node_first[node], node_first[node + 1]):
            if is_marked[node]:
                # <= because the row of the colour change itself is outside.
                while now < frontiers.shape[0] and frontiers[now, node] <= row:
                    now += 1
            labels[row] = now


@bare_kernel
def spread(
    order: Array, sender_row: Array, life_of: Array, life_first: Array, is_open: Array, labels: Array
) -> None:
    """On lives without a colour change a row is behind a cut only if something behind it happened before the row.

    `is_open` (by life): of such a node. Labels of the others are known.
    """
    for place in range(order.shape[0]):
        row = order[place]
        if is_open[life_of[row]]:
            # Both labels are final: `order` has the row before, and the send, in front of this row. A new life knows
            # nothing of the one before it.
            if row != life_first[life_of[row]]:
                labels[row] = labels[row - 1]
            if sender_row[row] >= 0 and labels[sender_row[row]] > labels[row]:
                labels[row] = labels[sender_row[row]]


@bare_kernel
def crossing(sender_row: Array, labels: Array, difference: Array, rows: Array) -> int:
    """Count, by cut, the messages that were sent outside of it and received inside: [label of receive, label of send).

    `difference` (cuts + 1, zeros) becomes the differences of these counts; `rows` the rows of the first of such
    receives, as many as it has room for. Returns their number.
    """
    count = 0
    for row in range(sender_row.shape[0]):
        sent = sender_row[row]
        if sent >= 0 and labels[row] < labels[sent]:
            # Half-open: the cut at the send's label has both inside.
            difference[labels[row]] += 1
            difference[labels[sent]] -= 1
            if count < rows.shape[0]:
                rows[count] = row
            count += 1
    return count


@bare_kernel
def paint(first: Array, end: Array, order: Array, following: Array, painter: Array) -> None:
    """Fill `painter` (by cut): of the ranges first … end-1 that hold the cut, the one that comes first in `order`.

    -1: none. `following` is room, cuts + 1.
    """
    cuts = painter.shape[0]
    for cut in range(cuts):
        painter[cut] = -1
    for cut in range(cuts + 1):
        following[cut] = cut
    for place in range(order.shape[0]):
        item = order[place]
        cut = first[item]
        while True:
            last = cut
            while following[last] != last:
                last = following[last]
            while cut != last:
                further = following[cut]
                following[cut] = last
                cut = further
            if last >= end[item]:
                break
            painter[last] = item
            following[last] = last + 1
            cut = last + 1


@bare_kernel
def clocks(
    order: Array,
    sender_row: Array,
    send_place: Array,
    life_of: Array,
    node_of_life: Array,
    node_first: Array,
    asked: Array,
    asked_next: Array,
    now: Array,
    kept: Array,
    sent: Array,
    seen: Array,
) -> None:
    """Vector clocks: how many rows of each node happened before a row, the row itself counted.

    `send_place`: by row of a send its place in `sent`. `asked`: rows, ascending; `seen` (one for each) becomes the
    clock of the node before that row, but for its own; `asked_next` (by node) begins at each node's first place in
    `asked`. What a node knows there is what all its lives know (`kept`, by node); what a life sends on is what it knows
    itself (`now`, by life). All clocks are int32 by node.
    """
    nodes = kept.shape[0]
    for place in range(order.shape[0]):
        row = order[place]
        life = life_of[row]
        node = node_of_life[life]
        # Before this row's own message is taken in: a cut divides right in front of the row.
        while asked_next[node] < asked.shape[0] and asked[asked_next[node]] == row:
            for other in range(nodes):
                seen[asked_next[node], other] = kept[node, other]
            asked_next[node] += 1
        source = sender_row[row]
        if source >= 0:
            from_there = send_place[source]
            for other in range(nodes):
                if sent[from_there, other] > now[life, other]:
                    now[life, other] = sent[from_there, other]
                if now[life, other] > kept[node, other]:
                    kept[node, other] = now[life, other]
        now[life, node] = row - node_first[node] + 1
        if send_place[row] >= 0:
            for other in range(nodes):
                sent[send_place[row], other] = now[life, other]
