"""Pairs the events of a record without making an object of any."""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel

Array = Any  # numpy's, of int64
PAIRED, ODD = 0, 1
OK, INFO, FINAL, ABSENT = 1, 3, 16, -(1 << 62)  # as in `line_kernels`


@bare_kernel
def pair(process: Array, invokes: Array, running: Array, partner: Array) -> int:
    """Fill `partner`: of an invocation the row of its completion (-1: none), of a completion -2.

    `running` has a place for every process, filled with -1. ODD if some process does not take turns.
    """
    for row in range(process.shape[0]):
        who = process[row]
        if invokes[row]:
            if running[who] >= 0:
                return ODD
            running[who] = row
            partner[row] = -1
        else:
            if running[who] < 0:
                return ODD
            partner[running[who]] = row
            partner[row] = -2
            running[who] = -1
    return PAIRED


@bare_kernel
def pair_columns(
    index: Array, time_ns: Array, process: Array, info: Array, f: Array, key: Array, node: Array, role: Array,
    mode: Array, error: Array, old: Array, new: Array, running: Array, numbers: Array, o_process: Array, types: Array,
    o_f: Array, o_key: Array, o_node: Array, o_role: Array, o_mode: Array, o_error: Array, is_final: Array, kind: Array,
) -> int:  # fmt: skip
    """Fill the columns of operations from those of events; how many operations, -1 if events do not add up.

    `running` has a place for every process, filled with -1; `numbers` gets (invoke, complete, old, new,
    invoke_ns, complete_ns), a row each.
    """
    count = 0
    for row in range(process.shape[0]):
        who = process[row]
        bits = info[row]
        place = running[who]
        if bits & 3 == 0:
            if place >= 0:
                return -1
            running[who] = count
            numbers[0, count] = index[row]
            numbers[1, count] = -1
            numbers[2, count], numbers[3, count] = old[row], new[row]
            numbers[4, count], numbers[5, count] = time_ns[row], -1
            o_process[count] = who
            types[count] = INFO
            o_f[count], o_key[count], o_role[count], o_mode[count] = f[row], key[row], role[row], mode[row]
            o_node[count], o_error[count] = node[row], 0
            is_final[count] = bits & FINAL != 0
            kind[count] = bits >> 2 & 3
            count += 1
            continue
        if place < 0 or f[row] != o_f[place] or (key[row] != 0 and key[row] != o_key[place]):
            return -1
        running[who] = -1
        numbers[1, place], numbers[5, place] = index[row], time_ns[row]
        types[place] = bits & 3
        o_error[place] = error[row]
        if node[row]:
            o_node[place] = node[row]
        if role[row]:
            o_role[place] = role[row]
        if mode[row]:
            o_mode[place] = mode[row]
        answer = bits >> 2 & 3
        if bits & 3 == OK and (answer or new[row] != ABSENT):
            kind[place] = answer
            numbers[2, place], numbers[3, place] = old[row], new[row]
    return count


@bare_kernel
def group(key: Array, bounds: Array, order: Array) -> None:
    """Put rows in order of their keys, within a key in their own: those of k stand from bounds[k] to bounds[k + 1].

    `bounds` comes filled with 0, and has two places more than there are keys.
    """
    for row in range(key.shape[0]):
        bounds[key[row] + 2] += 1
    for each in range(2, bounds.shape[0]):
        bounds[each] += bounds[each - 1]
    for row in range(key.shape[0]):
        at = bounds[key[row] + 1]
        order[at] = row
        bounds[key[row] + 1] = at + 1
