"""Jepsen's test.jepsen and test.fressian: what Jepsen's own code wrote, a round trip, and damage at every byte."""

from __future__ import annotations

import lzma
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import HistoryError, foreign
from checkers.history.foreign import edn, jepsen_store
from checkers.history.foreign.edn import Spelled
from checkers.history.foreign.fressian import Damaged, Values
from checkers.history.values import Set
from tests.checkers.history import fressian_bytes
from tests.checkers.history.fressian_bytes import FRESSIAN, PARTIAL, STREAM, VECTOR, Writer

FOLDER = Path(__file__).parents[1] / "histories" / "jepsen-store"
REGISTER = (FOLDER / "register.jepsen").read_bytes()
SMALL = (FOLDER / "small.jepsen").read_bytes()


def unpacked(name: str) -> bytes:
    return lzma.decompress((FOLDER / f"{name}.xz").read_bytes())


def values_of(data: bytes) -> list[Any]:
    return list(Values(data, 0, len(data)))


# ---- what other programs wrote


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (REGISTER, (FOLDER / "register.edn").read_text()),
        ((FOLDER / "whole.fressian").read_bytes(), (FOLDER / "register.edn").read_text()),
        (unpacked("odd.jepsen"), unpacked("odd.edn").decode()),
        (unpacked("raftc.jepsen"), unpacked("raftc.edn").decode()),
    ],
    ids=["register", "whole", "odd", "raftc"],
)
def test_what_jepsen_wrote_is_what_it_printed(data: bytes, text: str) -> None:
    """A value of a test would be read as another, and the verdict be on another history."""
    maps, printed = jepsen_store.parse(data).maps, edn.read(text).values
    assert [edn.spelling(each) for each in maps] == [edn.spelling(each) for each in printed]
    assert foreign.parse(data).operations == foreign.parse(text.encode()).operations


def test_results() -> None:
    """What Jepsen said of a test would be read as something else."""
    (printed,) = edn.read((FOLDER / "register.results.edn").read_text()).values
    found = jepsen_store.results(FOLDER / "register.jepsen")
    assert found == {**printed, "odd": found["odd"]} and set(found["odd"]) == set(printed["odd"])
    assert jepsen_store.results(FOLDER / "register.edn") is None, "no test.jepsen"


def test_a_test_that_crashed_has_its_whole_chunks() -> None:
    """The history of a test that was killed would be lost, or half of an operation be read."""
    crashed = jepsen_store.parse((FOLDER / "crashed.jepsen").read_bytes()).maps
    assert crashed == jepsen_store.parse(REGISTER).maps[:35]
    assert jepsen_store.results(FOLDER / "crashed.jepsen") is None
    with pytest.raises(HistoryError, match="no operations: the test has no history"):
        foreign.read(FOLDER / "crashed-early.jepsen")


def test_caches_tags_and_footers() -> None:
    """The numbers of cached texts and tags would be mixed up from the 32nd and 16th on, or behind a footer."""
    texts = [f"value {number}" for number in range(40)]
    structs = [[number, f"k{number}"] for number in range(20)]
    assert values_of((FOLDER / "cached.fressian").read_bytes()) == [[*texts, *structs, *texts, *structs]] * 2


# ---- round trip

NAMES = st.text("abcz?-", min_size=1, max_size=4)
KEYWORDS = st.builds(
    lambda name: Spelled.of(name, f":{name}"), NAMES | st.builds("{}/{}".format, NAMES, NAMES)
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([sign << bits for bits in range(65) for sign in (1, -1)]).map(lambda power: power - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=9)
    | KEYWORDS
)
VALUES = st.recursive(
    SCALARS,
    lambda parts: (
        st.lists(parts, max_size=9)
        | st.lists(st.integers(), max_size=4, unique=True).map(Set)
        | st.dictionaries(KEYWORDS | NAMES, parts, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=6), st.randoms(use_true_random=False))
def test_values_are_read_as_they_were_written(values: list[Any], chance: random.Random) -> None:
    """A form of a value that Jepsen's writer chooses rarely would be read as another value."""
    writer = Writer(chance.randrange)
    data = b"".join(map(writer.value, values))
    found = values_of(data)
    assert list(map(edn.spelling, found)) == list(map(edn.spelling, values))
    assert repr(found) == repr(values), "True for 1, a list for a set"


def operation(index: int, kind: str, value: int | None) -> dict[str, Any]:
    return {
        "index": index,
        "time": index * 1_000_003,
        "type": Spelled.of(kind, f":{kind}"),
        "process": 0,
        "f": Spelled.of("write", ":write"),
        "value": value,
    }


@given(st.integers(1, 12), st.integers(1, 5), st.sampled_from([True, False, None]), st.integers(0, 1 << 30))
def test_tests_are_read_as_they_were_written(writes: int, chunk: int, valid: bool | None, seed: int) -> None:
    """Operations would be lost or doubled at the end of a chunk."""
    choose = random.Random(seed).randrange
    entries = [operation(index, ("invoke", "ok")[index % 2], index // 2) for index in range(2 * writes)]
    written: list[bytes] = []
    for index, entry in enumerate(entries):
        if index % chunk == 0:
            writer = Writer(choose)
        written.append(writer.op(entry))
    results = None if valid is None else {"valid?": valid, "count": writes}
    data = fressian_bytes.test_file(written, chunk, results, choose)
    assert jepsen_store.parse(data).maps == entries
    assert jepsen_store._results(data) == results


# ---- damage


def is_one_line(error: Exception) -> bool:
    return "\n" not in str(error) and len(str(error)) < 400


def outcome(data: bytes) -> Any:
    """The operations, or whether one line says why there are none."""
    try:
        return jepsen_store.parse(data).maps
    except HistoryError as error:
        return is_one_line(error)


def read_or_damaged(data: bytes) -> bool:
    """Whether the bytes are values, or one line says why not."""
    try:
        return values_of(data) is not None
    except Damaged as error:
        return is_one_line(error)


@pytest.mark.parametrize("change", [0xFF, 0x01])
def test_damage_at_every_byte(change: int) -> None:
    """A damaged file would end in a traceback, or be judged as another history."""
    whole = outcome(SMALL)  # some bytes belong to no block in use
    for place, byte in enumerate(SMALL):
        damaged = SMALL[:place] + bytes([byte ^ change]) + SMALL[place + 1 :]
        if place < 6:
            with pytest.raises(HistoryError):
                foreign.parse(damaged)
        else:
            assert outcome(damaged) in (True, whole), place


def test_a_file_cut_off_at_every_byte() -> None:
    """A file copied half would be judged as a shorter history."""
    for end in range(7, len(SMALL)):
        with pytest.raises(HistoryError, match="copied whole"):
            jepsen_store.parse(SMALL[:end])


@given(st.integers(0, 1 << 30), st.binary(max_size=3), st.integers(0, 3))
def test_any_bytes_are_values_or_damaged(seed: int, noise: bytes, left_out: int) -> None:
    """Bytes whose checksum is right, but that no writer of Fressian wrote, would end in a traceback."""
    data = unpacked("odd.jepsen")
    chance = random.Random(seed)
    start = chance.randrange(300, 6_000)
    place = chance.randrange(start, start + 200)
    piece = data[start:place] + noise + data[place + left_out : start + 400]
    assert read_or_damaged(piece)


@given(st.binary(max_size=40))
def test_noise_is_values_or_damaged(noise: bytes) -> None:
    """The same."""
    assert read_or_damaged(noise)


HISTORY = {
    1: (FRESSIAN, b"\xc0\xe6" + Writer(lambda n: 0).value("history") + b"\xef\xe3\x09block-ref\x01\x02")
}


@pytest.mark.parametrize(
    ("data", "came"),
    [
        (b"\x91", "value 17 of a cache that holds 0"),
        (b"\xa3", "tag 3 of 0"),
        (b"\xd8\xf7", "None in the place of a whole number"),
        (b"\xec\xf8" + b"\x7f" * 8, "a length of"),
        (b"\xcb", "code CB, which begins no value"),
        (b"\xe6\x01", "cut off"),
        (b"\xed\x01", "cut off"),
        (b"\xcd\xe5\x80", "holds itself"),
        (b"\xcd\xfe\x01", "in which the cache is cleared"),
        (b"\xcd\xe6\xfe\xcd\x05\x01", "in which the cache is cleared"),
        (b"\xe5" * 500, "nested more than"),
        (b"\xda\xc0\xe5\x01", "as the fields of map"),
        (b"\xe3\x02\xc3\x28", "no text"),
        (b"\x01" + b"\xcf" * 4 + struct.pack(">II", 2, 0), "a footer that is not of 1 bytes"),
        (b"\x01" + b"\xcf" * 4 + struct.pack(">II", 1, 0), "checksum"),
        (
            b"\xed" + b"\xcd\xe6\x01\x01" + b"".join(b"\xcd\xe7" + bytes([0x80 + n] * 3) for n in range(30)),
            "repeat",
        ),
        (
            b"\xed\xcd\xec\x68\x10\x00" + b"\x01" * 4096 + b"\x80" * 4096,
            "repeat",
        ),
    ],
)
def test_what_is_wrong_with_values(data: bytes, came: str) -> None:
    """One line would not say what is wrong, or a few bytes would take all memory."""
    with pytest.raises(Damaged, match=came):
        values_of(data)


@pytest.mark.parametrize(
    ("data", "came"),
    [
        (b"JEPSEN\0\0\0\1", "10 bytes, which end before"),
        (b"JEPSEN" + struct.pack(">IQ", 2, 18), "version 2"),
        (b"JEPSEN" + struct.pack(">IQ", 1, 0), "no index"),
        (b"JEPSEN" + struct.pack(">IQ", 1, 1 << 63), "18 bytes, with a block at byte"),
        (fressian_bytes.file({}, root=1), "block 1, which its index does not have"),
        (fressian_bytes.file({1: (FRESSIAN, b"\x05")}, root=1), "5 in the place of the map of a test"),
        (fressian_bytes.file({1: (VECTOR, bytes(8))}, root=1), "a block of big vector"),
        (fressian_bytes.file({1: (9, b"")}, root=1), "a block of type 9"),
        (fressian_bytes.file({**HISTORY, 2: (VECTOR, bytes(7))}, root=1), "in the middle of a number"),
        (fressian_bytes.file({**HISTORY, 2: (VECTOR, bytes(9))}, root=1), "in the middle of a row"),
        (fressian_bytes.file({**HISTORY, 2: (VECTOR, struct.pack(">Q", 3))}, root=1), "0 of its 3 elements"),
        (
            fressian_bytes.file({**HISTORY, 2: (VECTOR, struct.pack(">QQI", 1, 0, 2))}, root=1),
            "lie in each other",
        ),
        (
            fressian_bytes.file({**HISTORY, 2: (VECTOR, struct.pack(">QQI", 1, 4, 2))}, root=1),
            "begins with element 4",
        ),
        (fressian_bytes.file({**HISTORY, 2: (STREAM, b"\xcb")}, root=1), "code CB"),
        (fressian_bytes.file({**HISTORY, 2: (FRESSIAN, b"\x05")}, root=1), "5 in the place of a list"),
        (
            fressian_bytes.file({1: (PARTIAL, struct.pack(">I", 1) + b"\xc0\xe4")}, root=1),
            "lie in each other",
        ),
        (
            fressian_bytes.file(
                {n: (PARTIAL, struct.pack(">I", n + 1) + b"\xc0\xe4") for n in range(1, 2_000)}, root=1
            ),
            "in each other without end",
        ),
        (b"\xc0\xe6" + b"\xef\xdb?\x01" * 1_000, "in each other without end"),
        (b"\xc0\xe5\x01", "the fields of map"),
    ],
)
def test_what_is_wrong_with_files(data: bytes, came: str) -> None:
    """The same, or a block that names itself would be read for ever."""
    with pytest.raises(HistoryError, match=came) as raised:
        foreign.parse(data)
    assert "\n" not in str(raised.value)
