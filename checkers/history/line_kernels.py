"""Reads lines of history.jsonl into columns, without making an object of any.

A line is read here if it is as our writer writes a client's event: no white space, plain ASCII texts without escapes,
whole numbers of at most 18 digits, and as its value nothing, a number, or two or three of them (a cas that failed tells
what was there). Any other line is *odd*: the caller decodes it. So one place says what is wrong with a line.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's
DONE, ODD, NEW_WORD = 0, 1, 2
POSITION, LINE, TIME, ROWS, WORDS, POOLED, WORD_AT, WORD_END = range(8)
REGS = 8
ABSENT = -(1 << 62)
PLAIN, PAIR, OTHER = 0, 1, 2
INVOKE, OK, FAIL, INFO = 0, 1, 2, 3
FINAL = 16  # bits of `info`: the type (2), what the value is (2), the phase


def _packed(word: str) -> int:
    """How many letters, and the last seven of them, as one number."""
    return len(word) << 56 | int.from_bytes(word.encode()[-7:], "big")


_INDEX, _TIME_NS, _TYPE, _PROCESS, _F, _KEY, _VALUE = map(
    _packed, ("index", "time_ns", "type", "process", "f", "key", "value")
)
_NODE, _ROLE, _MODE, _ERROR, _PHASE, _WAIT, _TRANSACTION = map(
    _packed, ("node", "role", "mode", "error", "phase", "wait", "transaction")
)
_INVOKE, _OK, _FAIL, _INFO, _LOAD, _FINAL = map(_packed, ("invoke", "ok", "fail", "info", "load", "final"))
_TRAN = _packed("tran")
_LETTERS = (1 << 56) - 1
_LONGEST = len("transaction")
_NEEDED = 0b11111


@inlined_kernel
def _end_of_text(data: Array, at: int) -> int:
    """Where the plain text that begins at `at` ends: the place of its closing quote; -1 if it is not plain."""
    while True:
        letter = data[at]
        if letter == 34:
            return at
        if letter < 32 or letter > 126 or letter == 92:
            return -1
        at += 1


@inlined_kernel
def _letters(data: Array, begin: int, end: int) -> int:
    """A word of at most _LONGEST letters, packed; 0 for a longer one."""
    if end - begin > _LONGEST:
        return 0
    number = 0
    for at in range(begin, end):
        number = (number << 8 | int(data[at])) & _LETTERS
    return (end - begin) << 56 | number


@inlined_kernel
def _is_null(data: Array, at: int) -> bool:
    return bool(data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108)


@inlined_kernel
def _end_of_number(data: Array, at: int) -> int:
    """Where the whole number ends; -1 if there is none, or one of too many digits."""
    negative = data[at] == 45
    if negative:
        at += 1
    begin = at
    while 48 <= data[at] <= 57:
        at += 1
    if at == begin or at - begin > 18 or (data[begin] == 48 and (at - begin > 1 or negative)):
        return -1
    return at


@inlined_kernel
def _number(data: Array, begin: int, end: int) -> int:
    negative = data[begin] == 45
    number = 0
    for at in range(begin + negative, end):
        number = 10 * number + (int(data[at]) - 48)
    return -number if negative else number


@bare_kernel
def word_of(data: Array, begin: int, end: int, regs: Array, table: Array, pool: Array, starts: Array) -> int:
    """The number of a word; a new one is noted. -1 if there is no room for it."""
    number = 5381
    for at in range(begin, end):
        number = (number * 33 + int(data[at])) & 0x3FFFFFFFFFFF
    size = table.shape[0]
    slot = (number ^ number >> 15) & (size - 1)
    while table[slot] >= 0:
        word = table[slot]
        first = starts[word]
        if starts[word + 1] - first == end - begin:
            same = True
            for at in range(end - begin):
                if pool[first + at] != data[begin + at]:
                    same = False
                    break
            if same:
                return int(word)
        slot = slot + 1 & size - 1
    word = regs[WORDS]
    used = regs[POOLED]
    if 2 * word >= size or word + 2 > starts.shape[0] or used + end - begin > pool.shape[0]:
        return -1
    for at in range(begin, end):
        pool[used + at - begin] = data[at]
    table[slot] = word
    regs[WORDS] = word + 1
    regs[POOLED] = used + end - begin
    starts[word + 1] = used + end - begin
    return int(word)


@bare_kernel
def note_words(count: int, table: Array, pool: Array, starts: Array) -> None:
    """Fill a larger, empty table with the words that there are."""
    size = table.shape[0]
    for word in range(1, count):
        number = 5381
        for at in range(starts[word], starts[word + 1]):
            number = (number * 33 + int(pool[at])) & 0x3FFFFFFFFFFF
        slot = (number ^ number >> 15) & (size - 1)
        while table[slot] >= 0:
            slot = slot + 1 & size - 1
        table[slot] = word


@bare_kernel
def read_lines(
    data: Array, end: int, base: int, regs: Array, offsets: Array, index: Array, times_ns: Array, process: Array,
    info: Array, f: Array, key: Array, node: Array, role: Array, mode: Array, error: Array, old: Array, new: Array,
    table: Array, pool: Array, starts: Array,
) -> int:  # fmt: skip
    """Read whole lines from regs[POSITION] to `end`, where a newline is the last byte before `end`.

    `base`: the file's offset of data[0]. `offsets` gets that of each line; the columns from `index` to `new` get a
    client's line each. DONE; ODD at the line that stands at regs[POSITION]; NEW_WORD if there is no room for one.
    """
    while regs[POSITION] < end:
        begin = regs[POSITION]
        line = regs[LINE]
        row = regs[ROWS]
        at = begin
        if data[at] != 123:
            return ODD
        seen = 0
        bits = 0
        time_ns = 0
        old[row] = new[row] = ABSENT
        f[row] = key[row] = node[row] = role[row] = mode[row] = error[row] = 0
        while True:
            at += 1
            if data[at] != 34:
                return ODD
            name_at = at + 1
            at = _end_of_text(data, name_at)
            if at < 0 or data[at + 1] != 58:
                return ODD
            name = _letters(data, name_at, at)
            at += 2
            bit = 0
            if name == _INDEX or name == _TIME_NS or name == _PROCESS:
                ends = _end_of_number(data, at)
                if ends < 0:
                    return ODD
                number = _number(data, at, ends)
                at = ends
                if name == _INDEX:
                    bit = 1
                    if number != line:
                        return ODD
                elif name == _TIME_NS:
                    bit = 2
                    time_ns = number
                    if number < regs[TIME]:
                        return ODD
                else:
                    bit = 4
                    process[row] = number
            elif name == _VALUE:
                bit = 32
                if _is_null(data, at):
                    at += 4
                elif data[at] == 91:
                    sides = 0
                    while data[at] != 93:
                        if sides and data[at] != 44:
                            return ODD
                        at += 1
                        number = ABSENT
                        if _is_null(data, at):
                            at += 4
                        else:
                            ends = _end_of_number(data, at)
                            if ends < 0:
                                return ODD
                            number = _number(data, at, ends)
                            at = ends
                        old[row], new[row] = new[row], number
                        sides += 1
                    at += 1
                    if sides == 2:
                        bits |= PAIR << 2
                    elif sides == 3:
                        bits |= OTHER << 2
                        old[row] = new[row] = ABSENT
                    else:
                        return ODD
                else:
                    ends = _end_of_number(data, at)
                    if ends < 0:
                        return ODD
                    new[row] = _number(data, at, ends)
                    at = ends
            else:
                text_at = at + 1
                ends = -1
                if data[at] == 34:
                    ends = _end_of_text(data, text_at)
                    if ends < 0:
                        return ODD
                    at = ends + 1
                elif _is_null(data, at):
                    at += 4
                else:
                    return ODD
                if name == _TYPE or name == _PHASE:
                    if ends < 0:
                        return ODD
                    word = _letters(data, text_at, ends)
                    if name == _TYPE:
                        bit = 8
                        if word == _OK:
                            bits |= OK
                        elif word == _FAIL:
                            bits |= FAIL
                        elif word == _INFO:
                            bits |= INFO
                        elif word != _INVOKE:
                            return ODD
                    else:
                        bit = 64
                        if word == _FINAL:
                            bits |= FINAL
                        elif word != _LOAD:
                            return ODD
                else:
                    code = 0
                    is_kept = name == _F or name == _KEY or name == _NODE or name == _ROLE or name == _MODE
                    if (is_kept or name == _ERROR) and ends >= 0:
                        code = word_of(data, text_at, ends, regs, table, pool, starts)
                        if code < 0:
                            return NEW_WORD
                    if name == _F:
                        bit = 16
                        if ends < 0:
                            return ODD
                        f[row] = code
                    elif name == _KEY:
                        bit = 128
                        key[row] = code
                    elif name == _ROLE:
                        bit = 256
                        role[row] = code
                    elif name == _MODE:
                        bit = 512
                        mode[row] = code
                    elif name == _ERROR:
                        bit = 1024
                        error[row] = code
                    elif name == _NODE:
                        bit = 2048
                        node[row] = code
                    elif name == _WAIT:
                        bit = 4096
                    elif name == _TRANSACTION and _letters(data, name_at, name_at + 4) == _TRAN:
                        bit = 8192
                    else:
                        return ODD
            if seen & bit:
                return ODD
            seen |= bit
            if data[at] == 44:
                continue
            if data[at] == 125 and data[at + 1] == 10:
                break
            return ODD
        if seen & _NEEDED != _NEEDED:
            return ODD
        index[row] = line
        times_ns[row] = time_ns
        info[row] = bits
        offsets[line] = base + begin
        regs[POSITION] = at + 2
        regs[LINE] = line + 1
        regs[TIME] = time_ns
        regs[ROWS] = row + 1
    return DONE
