"""Reads blocks of xlog files into the columns of `checkers.logs.wal.columns`, without making an object of any row.

A row is read here if it is a usual one, as ours and Tarantool write it: of a user's space (REPLACE, INSERT of a text
and a whole number; DELETE by a text), a NOP, or a CONFIRM. The block holds whole transactions of one origin each. Any
other block is *odd*: the caller decodes it, and says what is wrong with it. Numbers are msgpack's. The tuples of
snapshots are read here too, because a kernel calls kernels of its own module alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from checkers.compiled import bare_kernel, inlined_kernel

Array = Any  # numpy's
DONE, ODD, NO_ROOM, FULL = range(4)
"""A kernel's answers: it has read all; it met bytes that it does not read; `seen` or the columns have no room."""
POSITION, COUNT, HELD, LSN = range(4)
"""The registers of a reader: the place in the data, how many rows the columns have, how many a log has, an lsn."""
REGISTERS = 4
ENDS, SYNCHRONOUS = 1, 2
ORIGINS_MAX = 32
"""The most replicas that Tarantool allows in a replica set."""
_ABSENT = -(1 << 62)  # as in `line_kernels`
_VALUES_MAX = 1 << 60
_INSERT, _REPLACE, _DELETE, _NOP, _CONFIRM = 2, 3, 5, 12, 40
_WRITE_KIND, _NOP_KIND, _CONFIRM_KIND = 0, 1, 2  # places in `columns.KINDS`
_TYPE, _REPLICA, _LSN, _TIME, _GROUP, _TSN, _FLAGS = 0, 2, 3, 4, 7, 8, 9
_SPACE, _INDEX, _KEY, _TUPLE = 0x10, 0x11, 0x20, 0x21
_COMMIT, _WAIT_ACK = 1, 4
_LOCAL = 1
_USER_SPACES = 512
_NUMBERS_END = 1 << 31
_FIXHEADER = 19
_BLOCK_MARK = (0xD5, 0xBA, 0x0B, 0xAB)
# Msgpack's markers; what is behind them is the length.
_SMALL_MAP, _SMALL_ARRAY, _SHORT_TEXT = 0x80, 0x90, 0xA0
_MAP_OF_2, _ARRAY_OF_1, _ARRAY_OF_2 = _SMALL_MAP + 2, _SMALL_ARRAY + 1, _SMALL_ARRAY + 2
_DOUBLE, _UINT_8, _UINT_16, _UINT_32, _UINT_64 = 0xCB, 0xCC, 0xCD, 0xCE, 0xCF
_TEXT_MAX = 15  # bytes of a key that two numbers hold
BEHIND = 512
"""Bytes behind the end that a kernel may look at."""
_NO_NUMBER = -1
_TIME_END_S = 9.2e9  # later times may not fit 63 bits of nanoseconds


class PackedRows(NamedTuple):
    """The columns of rows (`checkers.logs.wal.plain.PACKED`): an array each, all of one length."""

    kind: Array
    bits: Array
    waits: Array
    origin: Array
    owner: Array
    space: Array
    lsn: Array
    first: Array
    until: Array
    term: Array
    value: Array
    body: Array
    time: Array
    head: Array
    tail: Array


@inlined_kernel
def _length(marker: int) -> int:
    """The length of a whole number that is not negative, with its marker; 0 for any other value."""
    if marker < 0x80:
        return 1
    if marker == _UINT_8:
        return 2
    if marker == _UINT_16:
        return 3
    if marker == _UINT_32:
        return 5
    if marker == _UINT_64:
        return 9
    return 0


@inlined_kernel
def _number(data: Array, at: int, length: int) -> int:
    """The number; below 0 if it needs more than 63 bits, but in the plain twin, which only tests use."""
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


@inlined_kernel
def _whole(data: Array, at: int) -> tuple[int, int]:
    """(the number at a place, where it ends); the number is `_NO_NUMBER` or less for any other value."""
    length = _length(int(data[at]))
    if length == 0:
        return _NO_NUMBER, at
    return _number(data, at, length), at + length


@inlined_kernel
def _packed_text(data: Array, at: int, size: int) -> tuple[int, int]:
    """A text of up to 15 bytes as two numbers: its bytes, and its size + 1 in the last one."""
    head = tail = 0
    for place in range(8):
        head = (head << 8) | (int(data[at + place]) if place < size else 0)
    for place in range(8, _TEXT_MAX):
        tail = (tail << 8) | (int(data[at + place]) if place < size else 0)
    return head, (tail << 8) | (size + 1)


@inlined_kernel
def _header(data: Array, here: int, bits_of: Array) -> tuple[int, int, int, int, int, int]:
    """(where the body begins, type, replica, lsn, distance to the transaction's first row, flags) of a row's header.

    The place is -1 for an odd header. The flags say COMMIT where Tarantool leaves them out: one row is a transaction.
    `bits_of` gets the bits of the timestamp, a double.
    """
    marker = int(data[here])
    here += 1
    if marker & 0xF0 != _SMALL_MAP:
        return -1, 0, 0, 0, 0, 0
    row_type = replica = lsn = flags = distance = 0
    is_alone = True
    bits_of[0] = 0
    for _ in range(marker & 0x0F):
        name = int(data[here])
        here += 1
        if name == _TIME:
            # A negative time would not fit the bits; none is odd to the object reader alone.
            if data[here] != _DOUBLE or data[here + 1] >= 0x80:
                return -1, 0, 0, 0, 0, 0
            raw = 0
            for place in range(here + 1, here + 9):
                raw = (raw << 8) | int(data[place])
            bits_of[0] = raw
            here += 9
            continue
        number, here = _whole(data, here)
        if number < 0:
            return -1, 0, 0, 0, 0, 0
        if name == _TYPE:
            row_type = number
        elif name == _REPLICA:
            replica = number
        elif name == _LSN:
            lsn = number
        elif name == _TSN:
            distance = number
            is_alone = False
        elif name == _FLAGS:
            flags = number
        elif name != _GROUP or number == _LOCAL:
            return -1, 0, 0, 0, 0, 0
    return here, row_type, replica, lsn, distance, flags | (_COMMIT if is_alone else 0)


@inlined_kernel
def _confirm(data: Array, here: int) -> tuple[int, int, int]:
    """(where the body of a CONFIRM ends, the owner, its lsn); -1: odd."""
    if data[here] != _MAP_OF_2 or data[here + 1] != _REPLICA:
        return -1, 0, 0
    owner, here = _whole(data, here + 2)
    if owner < 0 or owner >= ORIGINS_MAX or data[here] != _LSN:
        return -1, 0, 0
    until, here = _whole(data, here + 1)
    if until < 0 or until >= _NUMBERS_END:
        return -1, 0, 0
    return here, owner, until


@inlined_kernel
def _write(data: Array, here: int, row_type: int) -> tuple[int, int, int, int, int]:
    """(where the body of a write ends, space, head and tail of the key, value); -1: odd."""
    marker = int(data[here])
    here += 1
    if marker & 0xF0 != _SMALL_MAP:
        return -1, 0, 0, 0, 0
    space = head = tail = fields = 0
    value = _ABSENT
    for _ in range(marker & 0x0F):
        name = int(data[here])
        here += 1
        if name == _SPACE or (name == _INDEX and row_type == _DELETE):
            number, here = _whole(data, here)
            if number < 0:
                return -1, 0, 0, 0, 0
            if name == _SPACE:
                space = number
            continue
        is_tuple = name == _TUPLE and row_type != _DELETE
        is_key = name == _KEY and row_type == _DELETE
        if not (is_tuple and data[here] == _ARRAY_OF_2) and not (is_key and data[here] == _ARRAY_OF_1):
            return -1, 0, 0, 0, 0
        text = int(data[here + 1])
        size = text & 0x1F
        if text & 0xE0 != _SHORT_TEXT or size > _TEXT_MAX:
            return -1, 0, 0, 0, 0
        head, tail = _packed_text(data, here + 2, size)
        here += 2 + size
        if is_tuple:
            value, here = _whole(data, here)
            if value < 0 or value > _VALUES_MAX:
                return -1, 0, 0, 0, 0
        fields += 1
    if fields != 1 or space < _USER_SPACES or space >= _NUMBERS_END:
        return -1, 0, 0, 0, 0
    return here, space, head, tail, value


@inlined_kernel
def _continues(
    open_replica: int, open_first: int, open_last: int, replica: int, first: int, lsn: int
) -> bool:
    """Whether a row is the first of a transaction, or the next one of the transaction that is open."""
    if open_replica == 0:
        return first == lsn
    return replica == open_replica and first == open_first and lsn == open_last + 1


@inlined_kernel
def _is_row(rows: PackedRows, row: int, kind: int, bits: int, first: int, body: int, time_ns: int) -> bool:
    """Whether a row of the columns, of the same replica and lsn, is this one. 62 bits of a hash stand for the bytes."""
    return bool(
        rows.kind[row] == kind
        and rows.bits[row] == bits
        and rows.waits[row] == -1
        and rows.first[row] == first
        and rows.body[row] == body
        and rows.time[row] == time_ns
    )


@bare_kernel
def read_rows(
    data: Array, begin: int, end: int, registers: Array, held: Array, seen: Array, bits_of: Array, float_of: Array,
    rows: PackedRows,
) -> int:  # fmt: skip
    """Append all rows between two places, whole transactions of one origin each.

    `rows`: the columns, one row for all nodes that have the same. `held` gets each row's place there. `seen[replica,
    lsn]`: 1 + the place of the first row of that number, 0: none. Both counters are in `registers`; ODD, FULL (no room
    for more rows) and NO_ROOM (none in `seen` for registers[LSN]) leave them as far as they came, and the caller sets
    them back. `bits_of`, `float_of`: one number as int64 and as double, in the same memory.
    """
    here = begin
    open_replica = open_first = open_last = 0
    while here < end:
        body, row_type, replica, lsn, distance, flags = _header(data, here, bits_of)
        if body < 0 or replica == 0 or replica >= ORIGINS_MAX or distance > lsn or lsn >= _NUMBERS_END:
            return ODD
        if not float_of[0] < _TIME_END_S:  # NaN is not
            return ODD
        # Machine code does not check indexes: `seen` must have the lsn, and below the columns a place.
        if lsn >= seen.shape[1]:
            registers[LSN] = lsn
            return NO_ROOM
        kind, owner, until, space, head, tail, value = _NOP_KIND, 0, 0, 0, 0, 0, _ABSENT
        here = body
        if row_type == _CONFIRM:
            kind = _CONFIRM_KIND
            here, owner, until = _confirm(data, body)
        elif row_type == _REPLACE or row_type == _INSERT or row_type == _DELETE:
            kind = _WRITE_KIND
            here, space, head, tail, value = _write(data, body, row_type)
        elif row_type != _NOP:
            return ODD
        if here < 0 or here > end:
            return ODD
        bits = (ENDS if flags & _COMMIT else 0) | (SYNCHRONOUS if flags & _WAIT_ACK else 0)
        first = lsn - distance
        if not _continues(open_replica, open_first, open_last, replica, first, lsn):
            return ODD
        if row_type == _CONFIRM and (open_replica != 0 or bits & ENDS == 0):
            return ODD
        open_replica, open_first, open_last = (0 if bits & ENDS else replica), first, lsn
        if registers[HELD] >= held.shape[0] or registers[COUNT] >= rows.kind.shape[0]:
            return FULL
        body_hash = hash_of(data, body, here)
        time_ns = int(float_of[0] * 1e9)
        row = int(seen[replica, lsn]) - 1
        if row < 0 or not _is_row(rows, row, kind, bits, first, body_hash, time_ns):
            if row < 0:
                seen[replica, lsn] = registers[COUNT] + 1
            row = registers[COUNT]
            rows.kind[row], rows.bits[row], rows.waits[row] = kind, bits, -1
            rows.origin[row], rows.owner[row], rows.space[row] = replica, owner, space
            rows.lsn[row], rows.first[row], rows.until[row], rows.term[row] = lsn, first, until, 0
            rows.value[row], rows.body[row], rows.time[row] = value, body_hash, time_ns
            rows.head[row], rows.tail[row] = head, tail
            registers[COUNT] = row + 1
        held[registers[HELD]] = row
        registers[HELD] += 1
    return DONE if open_replica == 0 else ODD


@inlined_kernel
def _rows_in(data: Array, here: int, end: int, table: Array) -> tuple[int, int]:
    """(where the rows of the block at a place begin, where they end); -1: no plain block, or its checksum is wrong.

    A block begins with its mark, the size of its rows, nil for compression, the checksum, and a text that pads all of
    that to _FIXHEADER bytes.
    """
    begin = here + _FIXHEADER
    if begin > end:
        return -1, 0
    for place in range(4):
        if data[here + place] != _BLOCK_MARK[place]:
            return -1, 0
    size, here = _whole(data, here + 4)
    if size < 0 or begin + size > end or data[here] != 0:
        return -1, 0
    claimed, here = _whole(data, here + 1)
    if here < begin and (data[here] & 0xE0 != _SHORT_TEXT or here + 1 + (int(data[here]) & 0x1F) != begin):
        return -1, 0
    for place in range(here + 1, begin):
        if data[place] != 0:
            return -1, 0
    if here > begin or claimed != checksum_of(data, begin, begin + size, table):
        return -1, 0
    return begin, begin + size


@bare_kernel
def read_blocks(
    data: Array, end: int, registers: Array, table: Array, held: Array, seen: Array, bits_of: Array, float_of: Array,
    rows: PackedRows,
) -> int:  # fmt: skip
    """Read blocks of plain rows from registers[POSITION] to `end`. An ODD block stands at registers[POSITION].

    `table`: of the checksum. `data` has BEHIND bytes behind `end`. The rest is as in `read_rows`.
    """
    while registers[POSITION] < end:
        begin, until = _rows_in(data, registers[POSITION], end, table)
        if begin < 0:
            return ODD
        count, held_before = registers[COUNT], registers[HELD]
        answer = read_rows(data, begin, until, registers, held, seen, bits_of, float_of, rows)
        if answer != DONE:
            # An odd block is read again as objects, all of it: no row of it may stay in `seen` or in the columns.
            for row in range(count, registers[COUNT]):
                if seen[rows.origin[row], rows.lsn[row]] == row + 1:
                    seen[rows.origin[row], rows.lsn[row]] = 0
            registers[COUNT], registers[HELD] = count, held_before
            return answer
        registers[POSITION] = until
    return DONE


# ---- the tuples of snapshots: kernels of another file could not call those above


@bare_kernel
def _behind(data: Array, here: int, end: int, values: int) -> int:
    """Where so many values of msgpack end; -1 if that is behind `end`, or the bytes are no values."""
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
    data: Array,
    end: int,
    registers: Array,
    spaces: Array,
    heads: Array,
    tails: Array,
    values: Array,
    is_odd: Array,
) -> int:
    """Append the tuples that the rows of a snapshot insert into users' spaces, a text and a whole number each.

    Bytes of all other rows are marked in `is_odd`. ODD at bytes that are no rows; FULL if there is no room for a tuple.
    """
    here = 0
    while here < end:
        begin = here
        marker = int(data[here])
        here += 1
        if marker & 0xF0 != _SMALL_MAP:
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
        is_one = row_type == _INSERT and data[body] == _MAP_OF_2 and data[body + 1] == _SPACE
        space = head = tail = value = 0
        if is_one:
            space, at = _whole(data, body + 2)
            text = int(data[at + 2])
            size = text & 0x1F
            is_one = space >= _USER_SPACES and space < _NUMBERS_END and data[at] == _TUPLE
            is_one = (
                is_one and data[at + 1] == _ARRAY_OF_2 and text & 0xE0 == _SHORT_TEXT and size <= _TEXT_MAX
            )
            if is_one:
                head, tail = _packed_text(data, at + 3, size)
                value, at = _whole(data, at + 3 + size)
                is_one = value >= 0 and value <= _VALUES_MAX and at == here
        if not is_one:
            is_odd[begin:here] = True
            continue
        row = registers[COUNT]
        if row >= spaces.shape[0]:
            return FULL
        spaces[row], heads[row], tails[row], values[row] = space, head, tail, value
        registers[COUNT] = row + 1
    return DONE
