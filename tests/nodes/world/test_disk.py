"""The virtual disk against a plain twin: what is synced stays, what is written stays but for a power loss."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from nodes.world.disk import VirtualDisk

FILES = ("log", "snap")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from(FILES), st.integers(0, 20)),
        st.tuples(st.just("sync"), st.sampled_from(FILES), st.integers(0, 100)),
        st.tuples(st.just("truncate"), st.sampled_from(FILES), st.integers(0, 100)),
        st.tuples(st.just("forget"), st.sampled_from(FILES), st.integers(0, 100)),
        st.tuples(st.just("power"), st.just(""), st.integers(0, 1_000)),
    ),
    max_size=40,
)


@dataclass
class Plain:
    data: bytes = b""
    synced: int = 0
    was_synced: bool = False
    ends: set[int] = field(default_factory=set)
    """The lengths that it had after each write."""


@given(steps=STEPS)
def test_synced_bytes_survive_everything(steps: list[tuple[str, str, int]]) -> None:
    """Broken, a correct node loses acknowledged writes in the simulator, or a wrong one keeps them."""
    disk, twin = VirtualDisk(), dict[str, Plain]()
    for number, (step, name, size) in enumerate(steps):
        if step == "append":
            plain = twin.setdefault(name, Plain())
            plain.data += bytes([number % 255 + 1]) * size
            plain.ends.add(len(plain.data))
            assert disk.append(name, plain.data[len(plain.data) - size :]) == len(plain.data)
        elif step == "power":
            _lose_power(disk, twin, random.Random(size))
        elif name in twin:
            _change(disk, name, step, twin[name], size)
        assert disk.files() == {name: twin[name].data for name in sorted(twin)}
        assert disk.unsynced_bytes() == sum(len(plain.data) - plain.synced for plain in twin.values())


def _change(disk: VirtualDisk, name: str, step: str, plain: Plain, size: int) -> None:
    length = min(size, len(plain.data))
    if step == "sync":
        disk.sync(name, length)
        plain.synced, plain.was_synced = max(plain.synced, length), True
    elif step == "truncate":
        disk.truncate(name, size)
        plain.data, plain.synced = plain.data[:size], length
    else:
        disk.forget_unwritten(name, size)
        plain.data = plain.data[: max(length, plain.synced)]


def _lose_power(disk: VirtualDisk, twin: dict[str, Plain], chance: random.Random) -> None:
    """Of the unsynced tail a beginning may be left, with zeros up to the end of a write or with nothing behind."""
    disk.lose_power(chance)
    files = disk.files()
    for name, plain in list(twin.items()):
        left = files.get(name, b"")
        assert left[: plain.synced] == plain.data[: plain.synced]
        tail, old = left[plain.synced :], plain.data[plain.synced :]
        kept = len(tail.rstrip(b"\0"))
        assert tail[:kept] == old[:kept]
        assert len(tail) == kept or len(left) in plain.ends
        plain.data, plain.synced = left, len(left)
        if plain.was_synced:
            assert name in files, "a file that was synced is there, be it empty"
        elif not left:
            assert name not in files, "a file that was never synced is gone from its directory"
            del twin[name]


def test_a_file_that_was_synced_empty_survives_a_power_loss() -> None:
    """Broken, a node that marks something by an empty file, as it may, loses what the real host keeps."""
    for how in ("synced", "whole", "written"):
        disk = VirtualDisk()
        if how == "whole":
            disk.put_whole("mark", b"")
        else:
            disk.append("mark", b"")
        if how == "synced":
            disk.sync("mark", 0)
        disk.lose_power(random.Random(1))
        assert disk.files() == ({} if how == "written" else {"mark": b""})


def test_a_power_loss_has_all_three_outcomes() -> None:
    """Broken, torn records or zeros never occur, and no node is tried with them."""
    outcomes = set[str]()
    for seed in range(60):
        disk = VirtualDisk()
        disk.append("log", b"header")
        disk.sync("log", 6)
        disk.append("log", b"record")
        lost = disk.lose_power(random.Random(seed))
        tail = disk.files()["log"][6:]
        outcomes.add("nothing" if not tail else "zeros" if b"\0" in tail else "part")
        assert lost == 6 - len(tail.rstrip(b"\0"))
        assert disk.unsynced_bytes() == 0
    assert outcomes == {"nothing", "zeros", "part"}


def test_a_file_that_is_made_behind_another_has_nothing_when_that_one_lost_something() -> None:
    """Broken, the simulator tries a node with what no host can leave behind: one syncs the first file before it makes
    the second."""
    for seed in range(60):
        disk = VirtualDisk()
        disk.append("first", b"record")
        disk.append("second", b"record")
        disk.lose_power(random.Random(seed))
        files = disk.files()
        assert files.get("first") == b"record" or "second" not in files, seed


def test_a_file_that_is_lengthened_behind_another_has_nothing_when_that_one_lost_something() -> None:
    """Broken, a node that writes two files in turn finds the later write on its disk and not the earlier one."""
    seen = set[tuple[bool, bool, bool]]()
    for seed in range(3_000):
        disk = VirtualDisk()
        for name in ("index", "log"):
            disk.append(name, b"x")
            disk.sync(name, 1)
        for name in ("log", "index", "log"):
            disk.append(name, b"r")
        disk.lose_power(random.Random(seed))
        files = {name: data.rstrip(b"\0") for name, data in disk.files().items()}
        seen.add((len(files["log"]) > 1, len(files["index"]) > 1, len(files["log"]) > 2))
    assert seen == {(False,) * 3, (True, False, False), (True, True, False), (True,) * 3}


def test_what_a_killed_process_did_not_write_gives_later_writes_no_place_in_the_order() -> None:
    """Broken, a power loss after a kill leaves the record of an index, which is written behind the log, and tears the
    record of the log."""
    for seed in range(300):
        disk = VirtualDisk()
        for name in ("log", "index"):
            disk.append(name, b"x")
            disk.sync(name, 1)
            disk.append(name, b"r")
        for name in ("log", "index"):
            disk.forget_unwritten(name, 1)
        disk.append("log", b"longer")
        disk.append("index", b"s")
        disk.lose_power(random.Random(seed))
        files = {name: data.rstrip(b"\0") for name, data in disk.files().items()}
        assert files["log"] == b"xlonger" or files["index"] == b"x", seed
