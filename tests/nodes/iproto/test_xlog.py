"""Log files: by hand, there and back, torn at every byte, and any bytes at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdCompressor

from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row, Type
from nodes.iproto.rows import packed_row
from tests.nodes.iproto import strategies as like

INSTANCE = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"
HEADER = xlog.encode_header("XLOG", INSTANCE, {1: 7, 2: 3}, {1: 2})


def row(lsn: int, text: str = "x") -> Row:
    return Row(3, 1, lsn, 1.5, lsn, body={0x10: 512, 0x21: (lsn, text)})


BLOCKS = [
    ((row(8),), xlog.encode_block((row(8),))),
    ((row(9, "long " * 1000),), xlog.encode_block((row(9, "long " * 1000),))),
    ((row(10), row(11)), xlog.encode_block((row(10), row(11)))),
]
FILE = HEADER + b"".join(block for _, block in BLOCKS)
ENDS = [len(HEADER) + sum(len(block) for _, block in BLOCKS[:count]) for count in range(4)]


def rows_in(blocks: int) -> tuple[Row, ...]:
    return tuple(each for rows, _ in BLOCKS[:blocks] for each in rows)


# --- by hand ---------------------------------------------------------------------------------------------------


def bitwise_crc32c(data: bytes) -> int:
    """The plain one: initial value 0, polynomial 0x1EDC6F41 reflected, no final inversion."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


def test_header_by_hand() -> None:
    """Tarantool would not open the file, and tarantoolctl would not print it."""
    expected = (
        b"XLOG\n0.13\nVersion: 3.2.0\nInstance: 7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7\n"
        b"VClock: {1: 7, 2: 3}\nPrevVClock: {1: 2}\n\n"
    )
    assert expected == HEADER
    assert b"\nVClock: {}\n\n" in xlog.encode_header("SNAP", INSTANCE, {})


def test_block_by_hand() -> None:
    """Tarantool would see a bad checksum, or other rows than we wrote."""
    payload = bytes.fromhex("84 00 03 02 01 03 08 04 cb 3ff8000000000000  82 10 cd0200 21 92 08 a1 78")
    checksum = bitwise_crc32c(payload).to_bytes(4, "big")
    length = len(payload).to_bytes(1, "big")
    padding = bytes.fromhex("a7 00000000000000")
    fixheader = bytes.fromhex("d5ba0bab") + length + b"\x00" + b"\xce" + checksum + padding
    assert len(fixheader) == 19
    assert xlog.encode_block((row(8),)) == fixheader + payload
    assert xlog.decode(HEADER + fixheader + payload).rows == (row(8),)


def test_names() -> None:
    """Files would be looked for under other names than Tarantool's."""
    assert xlog.file_name({1: 7, 2: 5}) == "00000000000000000012.xlog"
    assert xlog.file_name({}, "SNAP") == "00000000000000000000.snap"


@pytest.mark.parametrize("text_bytes", [1970, 1990, 2010, 5000])
def test_blocks_are_packed_from_two_kib_on(text_bytes: int) -> None:
    """Small blocks would cost the time of packing, or large ones the room of not packing."""
    rows = (row(8, "x" * text_bytes),)
    block = xlog.encode_block(rows)
    assert (block[:4].hex() == "d5ba0bba") == (19 + 30 + text_bytes >= 2048)
    assert xlog.decode(HEADER + block).rows == rows


# --- there and back --------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["XLOG", "SNAP"]),
    like.uuids,
    like.vclocks,
    st.none() | like.vclocks,
    st.lists(st.lists(like.rows(), min_size=1, max_size=4), max_size=4),
    st.integers(1, 5),
    st.booleans(),
)
def test_files_there_and_back(
    kind: xlog.Kind,
    instance_uuid: str,
    vclock: dict[int, int],
    previous_vclock: dict[int, int] | None,
    transactions: list[list[Row]],
    level: int,
    finished: bool,
) -> None:
    """A node would come back from its disk with other rows than it wrote."""
    header = xlog.encode_header(kind, instance_uuid, vclock, previous_vclock, "2.6.0")
    blocks = b"".join(xlog.encode_block(rows, level) for rows in transactions)
    data = header + blocks + (xlog.encode_eof() if finished else b"")
    read = xlog.decode(data)
    assert read.meta == xlog.Meta(kind, "2.6.0", instance_uuid, vclock, previous_vclock)
    assert read.rows == tuple(each for rows in transactions for each in rows)
    assert (read.good_bytes, read.finished, read.damage) == (len(data), finished, None)


# --- damage ----------------------------------------------------------------------------------------------------


def test_torn_at_every_byte_gives_exactly_the_whole_blocks_before() -> None:
    """After a crash in the middle of a write a node would lose a written row, or keep half of one."""
    for length in range(len(HEADER), len(FILE) + 1):
        whole = sum(end <= length for end in ENDS) - 1
        read = xlog.decode(FILE[:length])
        assert read.rows == rows_in(whole)
        assert read.good_bytes == ENDS[whole]
        assert (read.damage is None) == (length in ENDS)
        assert not read.finished


def test_blocks_without_a_header_are_read_up_to_an_end_marker_that_ends_them() -> None:
    """An audit would take the rows of a log for all of it, though something stands behind its end."""
    blocks = b"".join(block for _, block in BLOCKS)
    for whole in (blocks, blocks + xlog.encode_eof(), b"", xlog.encode_eof()):
        assert xlog.rows_in(whole) == (rows_in(3) if blocks in whole else ())
    for wrong in (blocks + xlog.encode_eof() + b"\0", xlog.encode_eof() + blocks, blocks[:-1]):
        with pytest.raises(XlogError, match="expected whole blocks of rows, got"):
            xlog.rows_in(wrong)


def test_a_torn_header_is_damage_without_meta() -> None:
    """A node would not start after a crash that came right after it made a file."""
    for length in range(len(HEADER)):
        for zeros in (b"", bytes(100)):
            read = xlog.decode(HEADER[:length] + zeros)
            assert (read.meta, read.rows, read.good_bytes) == (None, (), 0)
            assert read.damage


def test_zero_tails_are_damage_at_their_offset() -> None:
    """A crash that left the size but not the data would look like a sound log, or like a useless one."""
    for blocks, end in enumerate(ENDS):
        read = xlog.decode(FILE[:end] + bytes(4096))
        assert (read.rows, read.good_bytes) == (rows_in(blocks), end)
        assert read.damage is not None
        assert read.damage.startswith(f"4096 zeros at offset {end};")


def test_flipped_bits_give_the_whole_blocks_before_the_first_flip() -> None:
    """Corrupted data would be replayed as if they had been written."""
    for place in range(len(HEADER), len(FILE)):
        for bit in (0, 7):
            data = bytearray(FILE)
            data[place] ^= 1 << bit
            read = xlog.decode(bytes(data))
            sound = sum(end <= place for end in ENDS) - 1
            if read.damage is None:  # the padding and the unused checksum are not covered by a checksum
                assert read.rows == rows_in(3)
            else:
                assert (read.rows, read.good_bytes) == (rows_in(sound), ENDS[sound])


def test_damage_says_what_where_and_how_much_is_good() -> None:
    """Whoever reads the log of a node that refused to start would not know what to do."""
    damaged = bytearray(FILE)
    damaged[ENDS[1] + 40] ^= 1
    damage = xlog.decode(bytes(damaged)).damage
    assert damage is not None
    size = ENDS[2] - ENDS[1]
    assert damage == (
        f"a block of {size} bytes does not have the checksum that it claims at offset {ENDS[1]}; "
        f"the 1 rows in the first {ENDS[1]} of {len(FILE)} bytes are good"
    )


def test_data_behind_the_end_marker_is_damage() -> None:
    """Rows appended behind the marker would be lost in silence."""
    finished = FILE + xlog.encode_eof()
    read = xlog.decode(finished + BLOCKS[0][1])
    assert (read.rows, read.good_bytes, read.finished) == (rows_in(3), len(finished), True)
    assert read.damage is not None
    assert read.damage.startswith(f"{len(BLOCKS[0][1])} bytes after the end marker")


def block_of(magic: str, payload: bytes) -> bytes:
    head = bytes.fromhex(magic) + b"\xcd" + len(payload).to_bytes(2, "big") + b"\x00"
    head += b"\xce" + bitwise_crc32c(payload).to_bytes(4, "big")
    return head + b"\xa5" + bytes(5) + payload


@pytest.mark.parametrize(
    "block",
    [
        block_of("d5ba0bab", b"\xc1"),
        block_of("d5ba0bab", b"\x81\x00"),
        block_of("d5ba0bab", bytes.fromhex("81 00 03 01")),
        block_of("d5ba0bab", bytes.fromhex("81 00 03 81 10 01")),
        block_of("d5ba0bab", bytes.fromhex("01 80")),
        block_of("d5ba0bba", b"this is not zstd"),
        block_of("d5ba0bba", ZstdCompressor().compress(b"\x81\x00")),
        block_of("d5ba0bba", ZstdCompressor().compress(packed_row(row(1))) + b"no frame"),
    ],
)
def test_a_block_with_a_good_checksum_and_bad_rows_is_damage(block: bytes) -> None:
    """What another program wrote wrong would end the process."""
    read = xlog.decode(FILE + block)
    assert (read.rows, read.good_bytes) == (rows_in(3), len(FILE))
    assert read.damage is not None
    assert read.damage.startswith("a block has a good checksum but")


@pytest.mark.parametrize(
    "data",
    [
        b"VYLOG\n0.13\n\n",
        b"XLOG\n0.14\n\n",
        b"\x7fELF and so on",
        HEADER.replace(b"7170b4a6", b"????????"),
        HEADER.replace(b"{1: 7, 2: 3}", b"{1: 7, 2: }"),
        HEADER.replace(b"VClock:", b"VClock "),
        HEADER.replace(b"XLOG", b"XLO\xc0"),
        bytes(10) + HEADER[10:],
        b"XLOG\n" * 5000,
    ],
)
def test_what_is_no_xlog_is_an_error(data: bytes) -> None:
    """A file that is something else would be cut to nothing and written over."""
    with pytest.raises(XlogError, match="expected"):
        xlog.decode(data)


def test_old_headers_are_read() -> None:
    """Files of Tarantool 1.6 call the instance Server; unknown keys are overlooked."""
    data = f"SNAP\n0.12\nServer: {INSTANCE}\nVClock: {{ 1 : 5 ,2:6 }}\nMood: good\n\n".encode()
    assert xlog.decode(data).meta == xlog.Meta("SNAP", "", INSTANCE, {1: 5, 2: 6}, None)


@given(st.binary(max_size=300), st.sampled_from([b"", HEADER, FILE, b"XLOG\n0.13\n"]))
def test_any_bytes_give_a_value_or_a_named_error(data: bytes, before: bytes) -> None:
    """A file of garbage would end the process in a way that nobody expects."""
    try:
        read = xlog.decode(before + data)
    except XlogError:
        return
    assert 0 <= read.good_bytes <= len(before + data)
    assert read.meta is None or (read.damage is None) == (read.good_bytes == len(before + data))


@given(st.lists(st.tuples(st.integers(0, len(FILE) - 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_overwritten_bytes_give_a_value_or_a_named_error(damage: list[tuple[int, int]]) -> None:
    """As above, for files that were sound once and so are read further."""
    data = bytearray(FILE)
    for place, byte in damage:
        data[place] = byte
    try:
        read = xlog.decode(bytes(data))
    except XlogError:
        assert min(place for place, _ in damage) < len(HEADER)
        return
    assert read.rows == rows_in(3)[: len(read.rows)] or read.damage is None


@given(st.lists(st.lists(like.rows(), min_size=1, max_size=3), min_size=1, max_size=3), st.integers(0, 2**16))
def test_torn_anywhere_keeps_a_prefix(transactions: list[list[Row]], place: int) -> None:
    """As the test at every byte, for rows of all kinds."""
    blocks = [xlog.encode_block(rows) for rows in transactions]
    data = HEADER + b"".join(blocks)
    length = len(HEADER) + place % (len(data) - len(HEADER) + 1)
    read = xlog.decode(data[:length])
    whole, end = 0, len(HEADER)
    while whole < len(blocks) and end + len(blocks[whole]) <= length:
        end += len(blocks[whole])
        whole += 1
    assert read.rows == tuple(each for rows in transactions[:whole] for each in rows)
    assert (read.good_bytes, read.damage is None) == (end, end == length)


# --- rows about the queue and the election ----------------------------------------------------------------------


@pytest.mark.parametrize("row_type", [Type.RAFT, Type.PROMOTE, Type.DEMOTE, Type.CONFIRM, Type.ROLLBACK])
@pytest.mark.parametrize("body", ["80", "81 02 01", "82 02 00 26 80", "81 63 01"])
def test_all_fields_of_a_decision_are_optional(row_type: Type, body: str) -> None:
    """Broken, a snapshot of Tarantool 2.11.5 to 3.4, whose PROMOTE has no term, counts as damaged."""
    payload = bytes.fromhex(f"82 00 {row_type:02x} 03 08") + bytes.fromhex(body)
    found = xlog.decode(HEADER + block_of("d5ba0bab", payload))
    assert (found.damage, len(found.rows)) == (None, 1)


@pytest.mark.parametrize(
    ("row_type", "key"), [(Type.PROMOTE, 0x53), (Type.CONFIRM, 3), (Type.RAFT, 0), (Type.RAFT, 5)]
)
@pytest.mark.parametrize("value", ["a1 78", "ff", "c0", "90"])
def test_a_field_of_another_kind_is_damage(row_type: Type, key: int, value: str) -> None:
    """Broken, a term that is no number ends a node when it starts."""
    payload = bytes.fromhex(f"82 00 {row_type:02x} 03 08  81 {key:02x} {value}")
    assert xlog.decode(HEADER + block_of("d5ba0bab", payload)).damage is not None


def test_a_block_may_be_packed_in_parts() -> None:
    """Broken, the rows behind the first part are missing from a log that counts as good: Tarantool reads all parts."""
    rows = tuple(row(lsn) for lsn in (1, 2, 3))
    payload = b"".join(ZstdCompressor().compress(packed_row(each)) for each in rows)
    found = xlog.decode(HEADER + block_of("d5ba0bba", payload))
    assert (found.rows, found.damage) == (rows, None)


def test_changed_padding_is_damage_that_no_crash_leaves() -> None:
    """Broken, one of the few bits of a block that no checksum covers changes unseen, or costs a node the block."""
    spoilt = bytearray(FILE)
    spoilt[ENDS[2] + 18] ^= 4
    read = xlog.decode(bytes(spoilt))
    assert (read.rows, read.can_be_torn) == (rows_in(2), False)
    assert read.damage is not None
    assert "other padding than zeros" in read.damage
