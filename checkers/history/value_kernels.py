"""Loops of `checkers.history.value_order` and `checkers.replicas.prefix` that whole-array steps cannot express."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's
NEVER = 1 << 62  # an event index after any real one

CIRCLE = -2  # a writer that in the end made what it replaced


@bare_kernel
def follow(source: Array, earliest: Array, acknowledged: Array, passed: Array, order: Array) -> None:
    """Make `earliest` of each writer the last among it and its sources, and `order` the writers, sources first.

    A source that took effect after the writer was acknowledged becomes -1, and each of a circle CIRCLE. `passed` comes
    filled with -1.
    """
    many, count = source.shape[0], 0
    for first in range(many):
        # Writers without a place yet stand at the end of `order`, a source before its writer.
        writer, at = first, many
        while writer >= 0 and passed[writer] < 0:
            at -= 1
            order[at], passed[writer] = writer, first
            writer = source[writer]
        # Back at a writer of this walk.
        while writer >= 0 and passed[writer] == first:
            source[writer], writer = CIRCLE, source[writer]
        for place in range(at, many):
            writer = order[place]
            order[count] = writer
            count += 1
            if source[writer] >= 0 and acknowledged[writer] < earliest[source[writer]]:
                source[writer] = -1
            elif source[writer] >= 0:
                earliest[writer] = max(earliest[writer], earliest[source[writer]])


@bare_kernel
def bound(source: Array, order: Array, latest: Array) -> None:
    """Make `latest` of each writer the least among it and those that it is a source of; `order`: sources first."""
    for place in range(order.shape[0] - 1, -1, -1):
        writer = order[place]
        if source[writer] >= 0:
            latest[source[writer]] = min(latest[source[writer]], latest[writer])


@bare_kernel
def least_from_here_on(key: Array, first: Array, second: Array) -> None:
    """Make each entry of `first` and of `second` the least of its own and all behind it that have the same key.

    Entries of one key stand together.
    """
    for place in range(key.shape[0] - 2, -1, -1):
        if key[place] == key[place + 1]:
            first[place] = min(first[place], first[place + 1])
            second[place] = min(second[place], second[place + 1])


@bare_kernel
def went_back(
    bounds: Array, asked: Array, ended: Array, invoke: Array, complete: Array, key: Array, value: Array,
    is_judged: Array, earliest: Array, latest: Array, overtaken: Array, replaced: Array, newest: Array,
    newest_by: Array, superseded: Array, superseded_by: Array, newer: Array, ahead: Array,
) -> None:  # fmt: skip
    """Fill `newer` and `ahead`: of each judged read the read before it that proves that it went back, by a value of the
    same key or by one of another key; -1 if there is none.

    The reads of a server stand from `bounds[server]` to `bounds[server + 1]`: in `asked` in the order of their
    invocations, in `ended` of their completions. `key` and `value` are by read; `earliest`, `latest`, `overtaken` and
    `replaced` by value, as `ValueOrders` has them. `newest` and `newest_by` have room for each key, `superseded` and
    `superseded_by` for each value; `superseded`, `newer` and `ahead` come filled with -1.
    """
    for server in range(bounds.shape[0] - 1):
        reached, reached_by = -1, -1
        newest[:] = -1
        position = bounds[server]
        for place in range(bounds[server], bounds[server + 1]):
            read = asked[place]
            # Only reads that were over: of two that overlap, either may have come first.
            while position < bounds[server + 1] and complete[ended[position]] < invoke[read]:
                shown = ended[position]
                moment = earliest[value[shown]]
                if moment < NEVER:
                    if moment > newest[key[shown]]:
                        newest[key[shown]], newest_by[key[shown]] = moment, shown
                    if moment > reached:
                        reached, reached_by = moment, shown
                old = replaced[value[shown]]
                # All behind a marked value are marked, too, so this is linear.
                while old >= 0 and superseded[old] != server:
                    superseded[old], superseded_by[old] = server, shown
                    old = replaced[old]
                position += 1
            if not is_judged[read]:
                continue
            mine = value[read]
            by = newest_by[key[read]]
            # `newest_by` still has what other servers left: it counts only where `newest` is set.
            if latest[mine] < newest[key[read]]:
                newer[read] = by
            elif superseded[mine] == server:
                newer[read] = superseded_by[mine]
            if reached_by >= 0 and key[reached_by] != key[read] and overtaken[mine] < reached:
                ahead[read] = reached_by
