"""Reads blocks of xlog files into the columns of `checkers.logs.wal.columns`, without making an object of any row.

A row is read here if it is a usual one, as ours and Tarantool write it: of a user's space (REPLACE, INSERT of a text
and a whole number; DELETE by a text), a NOP, or a CONFIRM. The block holds whole transactions of one origin each. Any
other block is *odd*: the caller decodes it, and says what is wrong with it. Numbers are msgpack's.
"""

from __future__ import annotations

from typing import Any

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's
DONE, ODD, NO_ROOM, FULL = range(4)
POSITION, COUNT, HELD, LSN = range(4)
REGS = 4
ENDS, SYNCHRONOUS = 1, 2
_ABSENT = -(1 << 62)  # as in `line_kernels`
_VALUES_MAX = 1 << 60
_INSERT, _REPLACE, _DELETE, _NOP, _CONFIRM = 2, 3, 5, 12, 40
_WRITE_KIND, _NOP_KIND, _CONFIRM_KIND = 0, 1, 2  # places in `columns.KINDS`
_TYPE, _REPLICA, _LSN, _TIME, _GROUP, _TSN, _FLAGS = 0, 2, 3, 4, 7, 8, 9
_SPACE, _INDEX, _KEY, _TUPLE = 0x10, 0x11, 0x20, 0x21
_COMMIT, _WAIT_ACK = 1, 4
_LOCAL = 1
_ORIGINS_MAX = 32
_USER_SPACES = 512
_NUMBERS_END = 1 << 31
_FIXHEADER = 19
BEHIND = 512
"""Bytes behind the end that a kernel may look at."""
_NO_NUMBER = -1


@inlined_kernel
def _length(marker: int) -> int:
    """Of a whole number that is not negative, with its marker; 0 if it is none."""
    if marker < 0x80:
        return 1
    if marker == 0xCC:
        return 2
    if marker == 0xCD:
        return 3
    if marker == 0xCE:
        return 5
    if marker == 0xCF:
        return 9
    return 0


@inlined_kernel
def _number(data: Array, at: int, length: int) -> int:
    """Below 0 if it has no place in 63 bits."""
    if length == 1:
        return int(data[at])
    number = 0
    for place in range(at + 1, at + length):
        number = (number << 8) | int(data[place])
    return number


@bare_kernel
def hash_of(data: Array, begin: int, end: int) -> int:
    """FNV-1a, of 62 bits."""
    number = 0xBF29CE484222325
    for at in range(begin, end):
        number = ((number ^ int(data[at])) * 0x100000001B3) & 0x3FFFFFFFFFFFFFFF
    return number


@bare_kernel
def checksum_of(data: Array, begin: int, end: int, table: Array) -> int:
    """CRC-32C as an xlog file has it: from 0, without an inversion at the end."""
    number = 0
    for at in range(begin, end):
        number = int(table[(number ^ int(data[at])) & 0xFF]) ^ (number >> 8)
    return number


@bare_kernel
def read_rows(
    data: Array, begin: int, end: int, regs: Array, at: Array, seen: Array, bits_of: Array, float_of: Array,
    kind: Array, bits: Array, waits: Array, origin: Array, owner: Array, space: Array, lsn: Array, first: Array,
    until: Array, term: Array, value: Array, body: Array, time: Array, head: Array, tail: Array,
) -> int:  # fmt: skip
    """Append all rows between two places, whole transactions. ODD, FULL (no room for more rows) and NO_ROOM (none in
    `seen` for regs[LSN]) leave the counters of regs as far as they came; the caller sets them back."""
    here = begin
    open_replica = open_first = open_last = 0
    while here < end:
        marker = int(data[here])
        here += 1
        if marker & 0xF0 != 0x80:
            return ODD
        row_type = replica = number = flags = 0
        back = 0
        has_tsn = False
        float_of[0] = 0.0
        for _ in range(marker & 0x0F):
            name = int(data[here])
            here += 1
            if name == _TIME:
                if data[here] != 0xCB:
                    return ODD
                raw = 0
                for place in range(here + 1, here + 9):
                    raw = (raw << 8) | int(data[place])
                bits_of[0] = raw
                here += 9
                continue
            length = _length(int(data[here]))
            if length == 0:
                return ODD
            found = _number(data, here, length)
            here += length
            if found < 0:
                return ODD
            if name == _TYPE:
                row_type = found
            elif name == _REPLICA:
                replica = found
            elif name == _LSN:
                number = found
            elif name == _TSN:
                back = found
                has_tsn = True
            elif name == _FLAGS:
                flags = found
            elif name != _GROUP or found == _LOCAL:
                return ODD
        if replica == 0 or replica >= _ORIGINS_MAX or back > number or number >= _NUMBERS_END:
            return ODD
        if number >= seen.shape[1]:
            regs[LSN] = number
            return NO_ROOM
        body_at = here
        its_kind = _NOP_KIND
        its_space = its_owner = its_until = 0
        its_head = its_tail = 0
        its_value = _ABSENT
        if row_type == _CONFIRM:
            its_kind = _CONFIRM_KIND
            if data[here] != 0x82 or data[here + 1] != _REPLICA:
                return ODD
            here += 2
            length = _length(int(data[here]))
            its_owner = _number(data, here, length) if length else _NO_NUMBER
            here += length
            if its_owner < 0 or its_owner >= _ORIGINS_MAX or data[here] != _LSN:
                return ODD
            here += 1
            length = _length(int(data[here]))
            its_until = _number(data, here, length) if length else _NO_NUMBER
            here += length
            if its_until < 0 or its_until >= _NUMBERS_END:
                return ODD
        elif row_type == _REPLACE or row_type == _INSERT or row_type == _DELETE:
            its_kind = _WRITE_KIND
            marker = int(data[here])
            if marker & 0xF0 != 0x80:
                return ODD
            here += 1
            fields = 0
            for _ in range(marker & 0x0F):
                name = int(data[here])
                here += 1
                if name == _SPACE or (name == _INDEX and row_type == _DELETE):
                    length = _length(int(data[here]))
                    found = _number(data, here, length) if length else _NO_NUMBER
                    here += length
                    if found < 0:
                        return ODD
                    if name == _SPACE:
                        its_space = found
                    continue
                is_tuple = name == _TUPLE and row_type != _DELETE
                is_key = name == _KEY and row_type == _DELETE
                if not (is_tuple and data[here] == 0x92) and not (is_key and data[here] == 0x91):
                    return ODD
                here += 1
                text = int(data[here])
                size = text & 0x1F
                if text & 0xE0 != 0xA0 or size > 15:
                    return ODD
                here += 1
                for place in range(8):
                    its_head = (its_head << 8) | (int(data[here + place]) if place < size else 0)
                for place in range(8, 15):
                    its_tail = (its_tail << 8) | (int(data[here + place]) if place < size else 0)
                its_tail = (its_tail << 8) | (size + 1)
                here += size
                if is_tuple:
                    length = _length(int(data[here]))
                    its_value = _number(data, here, length) if length else _NO_NUMBER
                    here += length
                    if its_value < 0 or its_value > _VALUES_MAX:
                        return ODD
                fields += 1
            if fields != 1 or its_space < _USER_SPACES or its_space >= _NUMBERS_END:
                return ODD
        elif row_type != _NOP:
            return ODD
        if here > end:
            return ODD
        its_bits = (ENDS if not has_tsn or flags & _COMMIT else 0) | (SYNCHRONOUS if flags & _WAIT_ACK else 0)
        its_first = number - back
        if open_replica == 0:
            if its_first != number:
                return ODD
        elif replica != open_replica or its_first != open_first or number != open_last + 1:
            return ODD
        if row_type == _CONFIRM and (open_replica != 0 or its_bits & ENDS == 0):
            return ODD
        open_replica, open_first, open_last = (0 if its_bits & ENDS else replica), its_first, number
        if regs[HELD] >= at.shape[0] or regs[COUNT] >= kind.shape[0]:
            return FULL
        its_body = hash_of(data, body_at, here)
        its_time = int(float_of[0] * 1e9)
        known = int(seen[replica, number]) - 1
        is_same = (
            known >= 0
            and kind[known] == its_kind
            and bits[known] == its_bits
            and waits[known] == -1
            and first[known] == its_first
            and body[known] == its_body
            and time[known] == its_time
        )
        if not is_same:
            row = regs[COUNT]
            kind[row], bits[row], waits[row] = its_kind, its_bits, -1
            origin[row], owner[row], space[row] = replica, its_owner, its_space
            lsn[row], first[row], until[row], term[row] = number, its_first, its_until, 0
            value[row], body[row], time[row] = its_value, its_body, its_time
            head[row], tail[row] = its_head, its_tail
            if known < 0:
                seen[replica, number] = row + 1
            known = row
            regs[COUNT] = row + 1
        at[regs[HELD]] = known
        regs[HELD] += 1
    return DONE if open_replica == 0 else ODD


@bare_kernel
def read_blocks(
    data: Array, end: int, regs: Array, table: Array, at: Array, seen: Array, bits_of: Array, float_of: Array,
    kind: Array, bits: Array, waits: Array, origin: Array, owner: Array, space: Array, lsn: Array, first: Array,
    until: Array, term: Array, value: Array, body: Array, time: Array, head: Array, tail: Array,
) -> int:  # fmt: skip
    """Read blocks of plain rows from regs[POSITION] to `end`. DONE; ODD at a block that is none or has other rows,
    which stands at regs[POSITION]; FULL; NO_ROOM. `table`: of the checksum. `data` has BEHIND bytes behind `end`."""
    while regs[POSITION] < end:
        here = regs[POSITION]
        begin = here + _FIXHEADER
        if begin > end or data[here] != 0xD5 or data[here + 1] != 0xBA or data[here + 2] != 0x0B:
            return ODD
        if data[here + 3] != 0xAB:
            return ODD
        here += 4
        length = _length(int(data[here]))
        size = _number(data, here, length) if length else _NO_NUMBER
        here += length
        if size < 0 or begin + size > end or data[here] != 0:
            return ODD
        here += 1
        length = _length(int(data[here]))
        claimed = _number(data, here, length) if length else _NO_NUMBER
        here += length
        if here < begin and data[here] & 0xE0 != 0xA0:
            return ODD
        if here < begin and here + 1 + (int(data[here]) & 0x1F) != begin:
            return ODD
        for place in range(here + 1, begin):
            if data[place] != 0:
                return ODD
        if here > begin or claimed != checksum_of(data, begin, begin + size, table):
            return ODD
        count, held = regs[COUNT], regs[HELD]
        answer = read_rows(
            data, begin, begin + size, regs, at, seen, bits_of, float_of, kind, bits, waits, origin, owner, space,
            lsn, first, until, term, value, body, time, head, tail,
        )  # fmt: skip
        if answer != DONE:
            for row in range(count, regs[COUNT]):
                if seen[origin[row], lsn[row]] == row + 1:
                    seen[origin[row], lsn[row]] = 0
            regs[COUNT], regs[HELD] = count, held
            return answer
        regs[POSITION] = begin + size
    return DONE


@bare_kernel
def _behind(data: Array, here: int, end: int, values: int) -> int:
    """Where so many values of msgpack end; -1 if that is behind `end`, or they are none."""
    left = values
    while left > 0:
        if here >= end:
            return -1
        marker = int(data[here])
        here += 1
        left -= 1
        count = size = 0
        if 0x80 <= marker < 0x90:
            left += 2 * (marker & 0x0F)
        elif 0x90 <= marker < 0xA0:
            left += marker & 0x0F
        elif 0xA0 <= marker < 0xC0:
            here += marker & 0x1F
        elif marker == 0xC1:
            return -1
        elif 0xC4 <= marker < 0xCA or 0xD9 <= marker < 0xE0:
            # bin, ext and str, with one, two or four bytes that tell their length; arrays and maps with two or four
            if marker < 0xC7:
                size = 1 << (marker - 0xC4)
            elif marker < 0xCA:
                size = 1 << (marker - 0xC7)
            elif marker < 0xDC:
                size = 1 << (marker - 0xD9)
            else:
                size = 2 << (marker & 1)
            for place in range(here, here + size):
                count = (count << 8) | int(data[place])
            here += size
            if marker >= 0xDE:
                left += 2 * count
            elif marker >= 0xDC:
                left += count
            else:
                here += count + (1 if 0xC7 <= marker < 0xCA else 0)
        elif marker == 0xCA:
            here += 4
        elif marker == 0xCB:
            here += 8
        elif 0xCC <= marker < 0xD4:
            here += 1 << (marker & 3)
        elif 0xD4 <= marker < 0xD9:
            here += 1 + (1 << (marker - 0xD4))
    return here if here <= end else -1


@bare_kernel
def read_tuples(
    data: Array, end: int, regs: Array, space: Array, head: Array, tail: Array, value: Array, is_odd: Array
) -> int:
    """Append the tuples that the rows of a snapshot insert into users' spaces, a text and a whole number each.

    Bytes of all other rows are marked in `is_odd`. ODD at bytes that are no rows; FULL if there is no room for a tuple.
    """
    here = 0
    while here < end:
        begin = here
        marker = int(data[here])
        here += 1
        if marker & 0xF0 != 0x80:
            return ODD
        row_type = 0
        for _ in range(marker & 0x0F):
            name = int(data[here])
            if name == _TYPE:
                row_type = int(data[here + 1])
            here = _behind(data, here, end, 2)
            if here < 0:
                return ODD
        body = here
        if row_type != _NOP and here < end:
            here = _behind(data, here, end, 1)
            if here < 0:
                return ODD
        is_one = row_type == _INSERT and data[body] == 0x82 and data[body + 1] == _SPACE
        its_space = its_head = its_tail = its_value = 0
        if is_one:
            at = body + 2
            length = _length(int(data[at]))
            its_space = _number(data, at, length) if length else _NO_NUMBER
            at += length
            text = int(data[at + 2])
            size = text & 0x1F
            is_one = its_space >= _USER_SPACES and its_space < _NUMBERS_END and data[at] == _TUPLE
            is_one = is_one and data[at + 1] == 0x92 and text & 0xE0 == 0xA0 and size <= 15
            if is_one:
                at += 3
                for place in range(8):
                    its_head = (its_head << 8) | (int(data[at + place]) if place < size else 0)
                for place in range(8, 15):
                    its_tail = (its_tail << 8) | (int(data[at + place]) if place < size else 0)
                its_tail = (its_tail << 8) | (size + 1)
                at += size
                length = _length(int(data[at]))
                its_value = _number(data, at, length) if length else _NO_NUMBER
                is_one = its_value >= 0 and its_value <= _VALUES_MAX and at + length == here
        if not is_one:
            is_odd[begin:here] = True
            continue
        row = regs[COUNT]
        if row >= space.shape[0]:
            return FULL
        space[row], head[row], tail[row], value[row] = its_space, its_head, its_tail, its_value
        regs[COUNT] = row + 1
    return DONE


@bare_kernel
def number_pairs(one: Array, other: Array, table: Array, firsts: Array, numbers: Array) -> int:
    """Give each pair a number; how many different ones there are. `table` is filled with -1, and has twice the room;
    `firsts` gets where each pair stands first."""
    mask = table.shape[0] - 1
    count = 0
    for place in range(one.shape[0]):
        mixed = (one[place] * 0x1F3D5B79 + other[place]) & 0x3FFFFFFFFFFFFFFF
        mixed = (mixed ^ (mixed >> 29)) & 0xFFFFFFFF
        slot = ((mixed * 0x3C6EF373) >> 7) & mask
        while table[slot] >= 0:
            known = firsts[table[slot]]
            if one[known] == one[place] and other[known] == other[place]:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            firsts[count] = place
            count += 1
        numbers[place] = table[slot]
    return count


@bare_kernel
def number_triples(
    one: Array, two: Array, three: Array, table: Array, ones: Array, twos: Array, threes: Array, count: int,
    numbers: Array,
) -> int:  # fmt: skip
    """The same for triples, of which `count` have their number: how many have one then. `ones`, `twos`, `threes` get
    the triples by number; `table` has -1 at free places, and twice the room."""
    mask = table.shape[0] - 1
    for place in range(one.shape[0]):
        second = (two[place] ^ (two[place] >> 32)) & 0xFFFFFFFF
        third = (three[place] ^ (three[place] >> 32)) & 0xFFFFFFFF
        mixed = (second * 0x1F3D5B79) ^ (third * 0x2545F491) ^ one[place]
        mixed = (mixed ^ (mixed >> 29)) & 0xFFFFFFFF
        slot = ((mixed * 0x3C6EF373) >> 7) & mask
        while table[slot] >= 0:
            known = table[slot]
            if ones[known] == one[place] and twos[known] == two[place] and threes[known] == three[place]:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            ones[count], twos[count], threes[count] = one[place], two[place], three[place]
            count += 1
        numbers[place] = table[slot]
    return count
