"""Reads lines of history.jsonl into columns, without making an object of any.

A line is read here if it is a client's event with plain ASCII texts without escapes, whole numbers of at most 18
digits, and as its value nothing, a number, or two or three of them (a cas that failed tells what was there). Blanks may
stand wherever JSON has them, and the fields in any order. Any other line is *odd*: its row is LEFT, and the caller
decodes it. So one place says what is wrong with a line.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's
DONE, ODD, NEW_WORD = 0, 1, 2
POSITION, LINE, TIME, ROWS, WORDS, POOLED = range(6)
REGS = 6
ABSENT = -(1 << 62)
PLAIN, PAIR, OTHER = 0, 1, 2
TRIPLE = 3  # in `info` alone: a failed cas tells what was there, behind its two
INVOKE, OK, FAIL, INFO = 0, 1, 2, 3
FINAL = 16  # bits of `info`: the type (2), what the value is (2), the phase
LEFT, NO_CLIENT = 32, 64  # and in place of these: the caller is to decode the line; it is of no client


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
_LETTERS = (1 << 56) - 1
_LONGEST = len("transaction")
_NEEDED = 0b11111


@inlined_kernel
def _name(data: Array, at: int) -> tuple[int, int]:
    """The text that begins at `at`, packed (0: longer than _LONGEST), and the place of its closing quote (-1: it is not
    plain)."""
    begin = at
    number = 0
    while True:
        letter = data[at]
        if letter == 34:
            break
        if letter < 32 or letter > 126 or letter == 92:
            return 0, -1
        number = (number << 8 | int(letter)) & _LETTERS
        at += 1
    return (0 if at - begin > _LONGEST else (at - begin) << 56 | number), at


@inlined_kernel
def _hashed(data: Array, at: int) -> tuple[int, int]:
    """The hash of the text that begins at `at`, and the place of its closing quote (-1: it is not plain)."""
    number = 5381
    while True:
        letter = data[at]
        if letter == 34:
            return number, at
        if letter < 32 or letter > 126 or letter == 92:
            return 0, -1
        number = (number * 33 + int(letter)) & 0x3FFFFFFFFFFF
        at += 1


@inlined_kernel
def _past_blanks(data: Array, at: int) -> int:
    while data[at] == 32 or data[at] == 9 or data[at] == 13:
        at += 1
    return at


@inlined_kernel
def _is_null(data: Array, at: int) -> bool:
    return bool(data[at] == 110 and data[at + 1] == 117 and data[at + 2] == 108 and data[at + 3] == 108)


@inlined_kernel
def _begins_transaction(data: Array, at: int) -> bool:
    """Whether the four letters are those that a packed "transaction" lacks."""
    return bool(data[at] == 116 and data[at + 1] == 114 and data[at + 2] == 97 and data[at + 3] == 110)


@inlined_kernel
def _number(data: Array, at: int) -> tuple[int, int]:
    """The whole number that begins at `at`, and where it ends: -1 if there is none, or one of too many digits."""
    negative = data[at] == 45
    if negative:
        at += 1
    begin = at
    number = 0
    while 48 <= data[at] <= 57 and at - begin <= 18:
        number = 10 * number + (int(data[at]) - 48)
        at += 1
    if at == begin or at - begin > 18 or (data[begin] == 48 and (at - begin > 1 or negative)):
        return 0, -1
    return (-number if negative else number), at


@inlined_kernel
def _word(
    data: Array, begin: int, end: int, hashed: int, regs: Array, table: Array, pool: Array, starts: Array
) -> int:
    """The number of a word with this hash; a new one is noted. -1 if there is no room for it."""
    size = table.shape[0]
    slot = (hashed ^ hashed >> 15) & (size - 1)
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
def word_of(data: Array, begin: int, end: int, regs: Array, table: Array, pool: Array, starts: Array) -> int:
    """The number of a word; a new one is noted. -1 if there is no room for it."""
    number = 5381
    for at in range(begin, end):
        number = (number * 33 + int(data[at])) & 0x3FFFFFFFFFFF
    return _word(data, begin, end, number, regs, table, pool, starts)


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


@inlined_kernel
def _read_line(
    data: Array, begin: int, row: int, regs: Array, index: Array, times_ns: Array, process: Array, info: Array,
    f: Array, key: Array, node: Array, role: Array, mode: Array, error: Array, wait: Array, old: Array, new: Array,
    texts: Array, table: Array, pool: Array, starts: Array,
) -> int:  # fmt: skip
    """The line that begins at `begin`: DONE, ODD or NEW_WORD."""
    at = _past_blanks(data, begin)
    if data[at] != 123:
        return ODD
    seen = 0
    bits = 0
    time_ns = 0
    old[row] = new[row] = ABSENT
    f[row] = key[row] = node[row] = role[row] = mode[row] = error[row] = wait[row] = 0
    texts[0, row] = texts[1, row] = texts[2, row] = texts[3, row] = 0
    while True:
        at = _past_blanks(data, at + 1)
        if data[at] != 34:
            return ODD
        name_at = at + 1
        name, at = _name(data, name_at)
        if at < 0:
            return ODD
        at = _past_blanks(data, at + 1)
        if data[at] != 58:
            return ODD
        at = _past_blanks(data, at + 1)
        bit = 0
        if name == _INDEX or name == _TIME_NS or name == _PROCESS:
            number, at = _number(data, at)
            if at < 0:
                return ODD
            if name == _INDEX:
                bit = 1
                if number != regs[LINE]:
                    return ODD
            elif name == _TIME_NS:
                bit = 2
                time_ns = number
                if number < regs[TIME]:
                    return ODD
            else:
                bit = 4
                process[row] = number
        elif name == _TYPE or name == _PHASE:
            if data[at] != 34:
                return ODD
            word, at = _name(data, at + 1)
            if at < 0:
                return ODD
            at += 1
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
        elif name == _VALUE:
            bit = 32
            if _is_null(data, at):
                at += 4
            else:
                texts[0, row] = at
                if data[at] == 91:
                    sides = 0
                    while data[at] != 93:
                        if sides and data[at] != 44:
                            return ODD
                        at = _past_blanks(data, at + 1)
                        number = ABSENT
                        if _is_null(data, at):
                            at += 4
                        else:
                            number, at = _number(data, at)
                            if at < 0:
                                return ODD
                        at = _past_blanks(data, at)
                        if sides < 2:
                            old[row], new[row] = new[row], number
                        sides += 1
                    at += 1
                    if sides == 2:
                        bits |= PAIR << 2
                    elif sides == 3:
                        bits |= TRIPLE << 2
                    else:
                        return ODD
                else:
                    number, at = _number(data, at)
                    if at < 0:
                        return ODD
                    new[row] = number
                texts[1, row] = at
        else:
            code = 0
            text_at = at + 1
            ends = -1
            hashed = 0
            if data[at] == 34:
                hashed, ends = _hashed(data, text_at)
                if ends < 0:
                    return ODD
                at = ends + 1
            elif _is_null(data, at):
                at += 4
            else:
                return ODD
            if name == _TRANSACTION:
                bit = 8192
                if not _begins_transaction(data, name_at):
                    return ODD
                if ends >= 0:
                    texts[2, row] = text_at
                    texts[3, row] = ends
            else:
                is_kept = name == _F or name == _KEY or name == _NODE or name == _ROLE or name == _MODE
                if not (is_kept or name == _ERROR or name == _WAIT):
                    return ODD
                if ends >= 0:
                    code = _word(data, text_at, ends, hashed, regs, table, pool, starts)
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
                else:
                    bit = 4096
                    wait[row] = code
        if seen & bit:
            return ODD
        seen |= bit
        at = _past_blanks(data, at)
        if data[at] == 44:
            continue
        if data[at] != 125:
            return ODD
        at = _past_blanks(data, at + 1)
        if data[at] != 10:
            return ODD
        break
    if seen & _NEEDED != _NEEDED:
        return ODD
    index[row] = regs[LINE]
    times_ns[row] = time_ns
    info[row] = bits
    regs[POSITION] = at + 1
    regs[TIME] = time_ns
    return DONE


@bare_kernel
def read_lines(
    data: Array, end: int, regs: Array, offsets: Array, index: Array, times_ns: Array, process: Array, info: Array,
    f: Array, key: Array, node: Array, role: Array, mode: Array, error: Array, wait: Array, old: Array, new: Array,
    texts: Array, table: Array, pool: Array, starts: Array, stop: int,
) -> int:  # fmt: skip
    """Read whole lines from regs[POSITION] to `end`, where a newline is the last byte before `end`; `stop`: or until
    there are so many rows.

    Of each line the arrays from `offsets` to `texts` get a row. `offsets`: where it begins in data; `texts`: where in
    data the value begins and ends, and where the transaction does (0: there is none). DONE; NEW_WORD if there is no
    room for a word of the line at regs[POSITION].
    """
    while regs[POSITION] < end and regs[ROWS] < stop:
        begin = regs[POSITION]
        row = regs[ROWS]
        answer = _read_line(
            data, begin, row, regs, index, times_ns, process, info, f, key, node, role, mode, error, wait, old, new,
            texts, table, pool, starts,
        )  # fmt: skip
        if answer == NEW_WORD:
            return NEW_WORD
        if answer == ODD:
            info[row] = LEFT
            at = begin
            while data[at] != 10:
                at += 1
            regs[POSITION] = at + 1
        offsets[row] = begin
        regs[LINE] += 1
        regs[ROWS] = row + 1
    return DONE
