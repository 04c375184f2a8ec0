"""Reads lines of history.jsonl into columns, without making an object of any.

A line is read here if it is a client's event with plain ASCII texts without escapes, whole numbers of at most 18
digits, and as its value nothing, a number, or two or three of them (a cas that failed tells what was there). Blanks may
stand wherever JSON has them, and the fields in any order. Any other line is *odd*: its row is LEFT, and the caller
decodes it. So one place says what is wrong with a line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's
DONE, ODD, NEW_WORD = 0, -1, -2
POSITION, LINE, TIME, ROWS, WORDS, POOLED = range(6)
REGS = 6
ABSENT = -(1 << 62)
PLAIN, PAIR, OTHER = 0, 1, 2
TRIPLE = 3  # in `info` alone: a failed cas tells what was there, behind its two
INVOKE, OK, FAIL, INFO = 0, 1, 2, 3
FINAL = 16  # bits of `info`: the type (2), what the value is (2), the phase
LEFT, NO_CLIENT = 32, 64  # and in place of these: the caller is to decode the line; it is of no client

TAB, NEWLINE, RETURN, BLANK, QUOTE, COMMA, MINUS, ZERO, NINE, COLON = b'\t\n\r ",-09:'
OPEN_LIST, BACKSLASH, CLOSE_LIST, OPEN, TILDE, CLOSE = b"[\\]{~}"


class Words(NamedTuple):
    """The words that were met. Word n stands from starts[n] to starts[n + 1] in `pool`; 0 is no word.

    `table` finds a word by its hash (-1: a free slot); it has a power of two of slots, at least half of them free.
    """

    table: Array
    pool: Array
    starts: Array


class Beside(NamedTuple):
    """Notes of a line beside its event.

    `offsets`: where it begins in data; `wait`: a word; `texts`: where in data the value begins and ends, and where the
    transaction does (0: there is none).
    """

    offsets: Array
    wait: Array
    texts: Array


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
_NEEDED = 0b11111  # index, time, process, type and f
_SEED = 5381  # of a word's hash


@inlined_kernel
def _is_plain(letter: int) -> bool:
    """Whether a letter of a text stands for itself: an escape, a control character or UTF-8 is the caller's matter."""
    return BLANK <= letter <= TILDE and letter != BACKSLASH


@inlined_kernel
def _name(data: Array, at: int) -> tuple[int, int]:
    """The text that begins at `at`, packed (0: longer than _LONGEST), and the place of its closing quote (ODD: it is
    not plain)."""
    begin = at
    number = 0
    while data[at] != QUOTE:
        if not _is_plain(data[at]):
            return 0, ODD
        number = (number << 8 | int(data[at])) & _LETTERS
        at += 1
    return (0 if at - begin > _LONGEST else (at - begin) << 56 | number), at


@inlined_kernel
def _hash(number: int, letter: int) -> int:
    # Kept below 2 ** 46, so that the product stays within 64 bits: plain Python's numbers would not wrap around.
    return (number * 33 + letter) & 0x3FFFFFFFFFFF


@inlined_kernel
def _hashed(data: Array, at: int) -> tuple[int, int]:
    """The hash of the text that begins at `at`, and the place of its closing quote (ODD: it is not plain)."""
    number = _SEED
    while data[at] != QUOTE:
        if not _is_plain(data[at]):
            return 0, ODD
        number = _hash(number, int(data[at]))
        at += 1
    return number, at


@inlined_kernel
def _past_blanks(data: Array, at: int) -> int:
    while data[at] == BLANK or data[at] == TAB or data[at] == RETURN:
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
    """The whole number that begins at `at`, and where it ends: ODD if there is none, or one of too many digits."""
    negative = data[at] == MINUS
    if negative:
        at += 1
    begin = at
    number = 0
    while ZERO <= data[at] <= NINE and at - begin <= 18:
        number = 10 * number + (int(data[at]) - ZERO)
        at += 1
    # JSON has no leading zeros.
    if at == begin or at - begin > 18 or (data[begin] == ZERO and at - begin > 1):
        return 0, ODD
    return (-number if negative else number), at


@inlined_kernel
def _number_or_null(data: Array, at: int) -> tuple[int, int]:
    """As `_number`; null is ABSENT."""
    if _is_null(data, at):
        return ABSENT, at + 4
    return _number(data, at)


@inlined_kernel
def _slot(hashed: int, size: int) -> int:
    return (hashed ^ hashed >> 15) & (size - 1)


@inlined_kernel
def _word(data: Array, begin: int, end: int, hashed: int, regs: Array, words: Any) -> int:
    """The number of a word with this hash; a new one is noted. NEW_WORD if there is no room for it."""
    size = words.table.shape[0]
    slot = _slot(hashed, size)
    while words.table[slot] >= 0:
        word = words.table[slot]
        first = words.starts[word]
        if words.starts[word + 1] - first == end - begin:
            same = True
            for at in range(end - begin):
                if words.pool[first + at] != data[begin + at]:
                    same = False
                    break
            if same:
                return int(word)
        slot = slot + 1 & size - 1
    word = regs[WORDS]
    used = regs[POOLED]
    # Half of the slots stay free, else the loop above would not end for a word that is new.
    if 2 * word >= size or word + 2 > words.starts.shape[0] or used + end - begin > words.pool.shape[0]:
        return NEW_WORD
    for at in range(begin, end):
        words.pool[used + at - begin] = data[at]
    words.table[slot] = word
    regs[WORDS] = word + 1
    regs[POOLED] = used + end - begin
    words.starts[word + 1] = used + end - begin
    return int(word)


@bare_kernel
def word_of(data: Array, begin: int, end: int, regs: Array, words: Any) -> int:
    """The number of a word; a new one is noted. NEW_WORD if there is no room for it."""
    number = _SEED
    for at in range(begin, end):
        number = _hash(number, int(data[at]))
    return _word(data, begin, end, number, regs, words)


@bare_kernel
def note_words(count: int, words: Any) -> None:
    """Fill a larger, empty table with the words that there are."""
    size = words.table.shape[0]
    for word in range(1, count):
        number = _SEED
        for at in range(words.starts[word], words.starts[word + 1]):
            number = _hash(number, int(words.pool[at]))
        slot = _slot(number, size)
        while words.table[slot] >= 0:
            slot = slot + 1 & size - 1
        words.table[slot] = word


@inlined_kernel
def _value(data: Array, at: int, row: int, old: Array, new: Array) -> tuple[int, int]:
    """Fill old[row] and new[row], and return what the value is (PLAIN, PAIR, TRIPLE) and where it ends (ODD: it is
    something else)."""
    if data[at] != OPEN_LIST:
        new[row], at = _number(data, at)
        return PLAIN, at
    sides = 0
    while data[at] != CLOSE_LIST:
        if sides and data[at] != COMMA:
            return OTHER, ODD
        number, at = _number_or_null(data, _past_blanks(data, at + 1))
        if at < 0:
            return OTHER, ODD
        at = _past_blanks(data, at)
        if sides < 2:  # a third side is what a failed cas found: only its line tells it
            old[row], new[row] = new[row], number
        sides += 1
    if sides == 2:
        return PAIR, at + 1
    if sides == 3:
        return TRIPLE, at + 1
    return OTHER, ODD


@inlined_kernel
def _type(word: int) -> int:
    if word == _OK:
        return OK
    if word == _FAIL:
        return FAIL
    if word == _INFO:
        return INFO
    return INVOKE if word == _INVOKE else ODD


@inlined_kernel
def _text(
    data: Array, at: int, name: int, name_at: int, row: int, regs: Array, events: Any, beside: Any, words: Any
) -> tuple[int, int]:
    """The field of this name, whose text or null begins at `at`: its bit, and where it ends (ODD, NEW_WORD)."""
    code = 0
    begin = at + 1
    hashed, end = 0, ODD  # there is no text
    if data[at] == QUOTE:
        hashed, end = _hashed(data, begin)
        if end < 0:
            return 0, ODD
        at = end + 1
    elif _is_null(data, at):
        at += 4
    else:
        return 0, ODD
    if name == _TRANSACTION:
        if not _begins_transaction(data, name_at):
            return 0, ODD
        if end >= 0:
            beside.texts[2, row] = begin
            beside.texts[3, row] = end
        return 8192, at
    is_kept = name == _F or name == _KEY or name == _NODE or name == _ROLE or name == _MODE
    if not (is_kept or name == _ERROR or name == _WAIT):
        return 0, ODD
    if end >= 0:
        code = _word(data, begin, end, hashed, regs, words)
        if code < 0:
            return 0, NEW_WORD
    if name == _F:
        events.f[row] = code
        return 16, at if end >= 0 else ODD
    if name == _KEY:
        events.key[row] = code
        return 128, at
    if name == _ROLE:
        events.role[row] = code
        return 256, at
    if name == _MODE:
        events.mode[row] = code
        return 512, at
    if name == _ERROR:
        events.error[row] = code
        return 1024, at
    if name == _NODE:
        events.node[row] = code
        return 2048, at
    beside.wait[row] = code
    return 4096, at


@inlined_kernel
def _read_line(data: Array, begin: int, row: int, regs: Array, events: Any, beside: Any, words: Any) -> int:
    """Fill the row from the line that begins at `begin`: DONE, ODD or NEW_WORD.

    Every loop ends within the data, because its last byte is a newline, which no part of a line may have.
    """
    at = _past_blanks(data, begin)
    if data[at] != OPEN:
        return ODD
    seen = 0  # a bit for each field
    bits = 0
    time_ns = 0
    events.old[row] = events.new[row] = ABSENT
    events.f[row] = events.key[row] = events.node[row] = events.role[row] = events.mode[row] = events.error[
        row
    ] = 0
    beside.wait[row] = 0
    beside.texts[0, row] = beside.texts[1, row] = beside.texts[2, row] = beside.texts[3, row] = 0
    while True:
        at = _past_blanks(data, at + 1)
        if data[at] != QUOTE:
            return ODD
        name_at = at + 1
        name, at = _name(data, name_at)
        if at < 0:
            return ODD
        at = _past_blanks(data, at + 1)
        if data[at] != COLON:
            return ODD
        at = _past_blanks(data, at + 1)
        bit = 0
        if name == _INDEX or name == _TIME_NS or name == _PROCESS:
            number, at = _number(data, at)
            if name == _INDEX:
                bit = 1
                # Only lines in their places: the caller says which one is missing, or comes twice.
                if number != regs[LINE]:
                    return ODD
            elif name == _TIME_NS:
                bit = 2
                time_ns = number
                # Times must not go back; equal ones may stand beside each other.
                if number < regs[TIME]:
                    return ODD
            else:
                bit = 4
                events.process[row] = number
        elif name == _TYPE or name == _PHASE:
            if data[at] != QUOTE:
                return ODD
            word, at = _name(data, at + 1)
            if at < 0:
                return ODD
            at += 1
            if name == _TYPE:
                bit = 8
                type_ = _type(word)
                if type_ < 0:
                    return ODD
                bits |= type_
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
                beside.texts[0, row] = at
                kind, at = _value(data, at, row, events.old, events.new)
                bits |= kind << 2
                beside.texts[1, row] = at
        else:
            bit, at = _text(data, at, name, name_at, row, regs, events, beside, words)
        if at < 0:
            return at
        if seen & bit:  # a field that comes twice
            return ODD
        seen |= bit
        at = _past_blanks(data, at)
        if data[at] == COMMA:
            continue
        if data[at] != CLOSE:
            return ODD
        at = _past_blanks(data, at + 1)
        if data[at] != NEWLINE:
            return ODD
        break
    if seen & _NEEDED != _NEEDED:
        return ODD
    events.index[row] = regs[LINE]
    events.time_ns[row] = time_ns
    events.info[row] = bits
    # Last: a line that is odd, or has a word too many, leaves the registers as they were.
    regs[POSITION] = at + 1
    regs[TIME] = time_ns
    return DONE


@bare_kernel
def read_lines(data: Array, end: int, regs: Array, events: Any, beside: Any, words: Any, stop: int) -> int:
    """Read whole lines from regs[POSITION] to `end`, where a newline is the last byte before `end`; `stop`: or until
    there are so many rows.

    Each line gets a row of `events` (`columns.Events`) and of `beside`. DONE; NEW_WORD if there is no room for a word
    of the line at regs[POSITION].
    """
    while regs[POSITION] < end and regs[ROWS] < stop:
        begin = regs[POSITION]
        row = regs[ROWS]
        answer = _read_line(data, begin, row, regs, events, beside, words)
        if answer == NEW_WORD:
            return NEW_WORD
        if answer == ODD:
            events.info[row] = LEFT
            at = begin
            while data[at] != NEWLINE:
                at += 1
            regs[POSITION] = at + 1
        beside.offsets[row] = begin
        regs[LINE] += 1
        regs[ROWS] = row + 1
    return DONE
