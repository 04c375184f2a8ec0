"""What a disk keeps of a file when the power goes, against a plain model of what was synced."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cluster.mounted_disk.undo import SECTOR_BYTES, Change, Changes, surviving, torn
from harness.cluster.mounted_disk.volume import GRAVES, Inode, Volume
from harness.cluster.mounted_disk.wire import ROOT_ID

Steps = list[tuple[str, int, int]]

steps = st.lists(
    st.tuples(
        st.sampled_from(("write", "write", "write", "truncate", "sync")),
        st.integers(0, 3 * SECTOR_BYTES),
        st.integers(1, SECTOR_BYTES),
    ),
    max_size=14,
)


def played(script: Steps) -> tuple[bytes, bytes, Changes, list[bytes]]:
    """(what the file holds, what was synced, the changes since, every content since the sync) of the plain model."""
    data, synced, changes = bytearray(), b"", Changes()
    contents = [b""]
    for number, (word, offset, length) in enumerate(script, start=1):
        size = len(data)
        match word:
            case "write":
                before = bytes(data[offset : offset + length])
                data.extend(bytes(max(0, offset - size)))
                data[offset : offset + length] = bytes([number]) * length
            case "truncate":
                before = bytes(data[offset:])
                del data[offset:]
                data.extend(bytes(max(0, offset - size)))
            case _:
                synced = bytes(data)
                changes.synced(number)
                contents = [synced]
                continue
        place = min(offset, size) if word == "truncate" else offset
        changes.add(Change(number, number, place, before, size, len(data)))
        contents.append(bytes(data))
    return bytes(data), synced, changes, contents


@given(steps, st.integers(0, 1 << 30))
def test_what_was_synced_stays_and_nothing_else_appears(script: Steps, seed: int) -> None:
    """If it failed, a correct store would lose what it had synced, or find bytes that nobody had written."""
    data, synced, changes, contents = played(script)
    left = surviving(data, changes.unsynced, random.Random(seed))
    if not changes.unsynced:
        assert left == data == synced
    known = {byte for content in contents for byte in content} | {0}
    assert set(left) <= known
    untouched = min(
        [len(synced), *(min(change.offset, change.size) for change in changes.unsynced)], default=len(synced)
    )
    assert left[:untouched] == synced[:untouched]


@given(steps)
def test_all_of_it_can_be_gone(script: Steps) -> None:
    """If it failed, a disk that keeps nothing unsynced would never be met, and a missing sync never be seen."""
    data, synced, changes, _ = played(script)
    found = {surviving(data, changes.unsynced, random.Random(seed)) for seed in range(24)}
    assert synced in found


def test_a_tail_is_lost_torn_or_full_of_zeros() -> None:
    """If it failed, the ways in which a real disk tears a log would not be met."""
    script: Steps = [("write", 0, 100), ("sync", 0, 1), ("write", 100, 400), ("write", 500, 400)]
    data, synced, changes, _ = played(script)
    found = {surviving(data, changes.unsynced, random.Random(seed)) for seed in range(200)}
    assert all(left.startswith(synced) for left in found)
    assert synced in found
    assert any(synced < left < data and data.startswith(left) for left in found), "no torn tail"
    assert any(len(left) == len(data) and left != data and left.endswith(bytes(9)) for left in found)


def test_what_is_old_is_on_disk_by_itself() -> None:
    """If it failed, a power loss would take away what any operating system had written back long before."""
    changes = Changes()
    changes.add(Change(1, 1_000, 0, b"", 0, 4))
    changes.add(Change(2, 2_000, 4, b"", 4, 8))
    changes.written_back(1_000)
    assert [change.number for change in changes.unsynced] == [2]


@pytest.mark.parametrize(
    ("offset", "kept", "size_before", "reaches"),
    [
        (100, 300, 4096, 0),
        (100, 500, 4096, 412),
        (1024, 700, 4096, 512),
        (4096, 700, 4096, 700),
        (4000, 700, 4096, 700),
    ],
)
def test_bytes_that_a_file_had_are_written_by_whole_sectors(
    offset: int, kept: int, size_before: int, reaches: int
) -> None:
    """If it failed, a log that was made as long as it will be (etcd's) would be torn as no disk tears it."""
    assert torn(offset, kept, size_before) == reaches


def test_a_log_of_zeros_is_torn_between_sectors() -> None:
    """If it failed, a store that finds a torn record by its sectors of zeros would be said to lose data."""
    before = bytes(4 * SECTOR_BYTES)
    record = bytes(range(1, 251)) * 4
    after = before[:100] + record + before[100 + len(record) :]
    changes = Changes()
    changes.add(Change(1, 0, 100, before[100 : 100 + len(record)], len(before), len(before)))
    for seed in range(100):
        left = surviving(after, changes.unsynced, random.Random(seed))
        assert len(left) == len(after)
        for start in range(0, len(after), SECTOR_BYTES):
            piece = slice(start, start + SECTOR_BYTES)
            assert left[piece] in (before[piece], after[piece]), start


def test_what_is_written_behind_a_sync_that_came_too_late_is_gone(tmp_path: Path) -> None:
    """If it failed, a store that syncs its pages before it writes where they are (etcd's) would be said to have spoilt
    its files: no disk loses the pages and keeps what was written when they had been synced."""
    for seed in range(40):
        folder = tmp_path / str(seed)
        folder.mkdir()
        volume = Volume(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), lambda: 0)
        root = volume[ROOT_ID]
        inode, _, number = volume.create(root, "db", os.O_RDWR, 0o600)
        handle = volume.handle(number)
        volume.write(handle, 0, bytes(4 * SECTOR_BYTES))
        volume.synced(inode, volume.steps)
        volume.freeze()
        volume.write(handle, 0, b"p" * 2 * SECTOR_BYTES)
        volume.synced(inode, volume.steps)
        volume.write(handle, 3 * SECTOR_BYTES, b"where the pages are")
        volume.create(root, "other", os.O_RDWR, 0o600)
        volume.lose_power(random.Random(seed))
        assert (folder / "db").read_bytes()[3 * SECTOR_BYTES :] == bytes(SECTOR_BYTES), seed
        assert not (folder / "other").exists()
        volume.close()


class Nothing(random.Random):
    """Of all changes that may be lost, none stays."""

    def randrange(self, *span: int) -> int:  # type: ignore[override]  # only what a disk asks for
        return 0


def strict(folder: Path) -> tuple[Volume, Inode, Inode]:
    """A disk with the folder `wal`, which no sync has brought to the disk."""
    volume = Volume(os.open(folder, os.O_RDONLY | os.O_DIRECTORY), lambda: 0, strict=True)
    volume.make_folder(volume[ROOT_ID], "wal", 0o700)
    return volume, volume[ROOT_ID], volume.lookup(volume[ROOT_ID], "wal")[0]


def test_a_folder_with_no_name_on_disk_is_lost_with_all_that_is_synced_in_it(tmp_path: Path) -> None:
    """If it failed, a store that forgets to sync a folder's parent would end the run, and its bug stay hidden."""
    volume, _, wal = strict(tmp_path)
    inode, _, number = volume.create(wal, "0.wal", os.O_RDWR, 0o600)
    volume.write(volume.handle(number), 0, b"row")
    for synced in (inode, wal):
        volume.synced(synced, volume.steps)
    assert volume.lose_power(Nothing()) == (0, 1)
    assert [path.name for path in tmp_path.iterdir()] == [GRAVES]


def test_a_file_that_a_synced_folder_got_from_another_one_stays_there(tmp_path: Path) -> None:
    """If it failed, a power loss after a rename between two folders would end the run."""
    volume, root, wal = strict(tmp_path)
    volume.synced(root, volume.steps)
    volume.create(root, "fresh", os.O_RDWR, 0o600)
    volume.rename(root, "fresh", wal, "0.wal")
    volume.synced(wal, volume.steps)
    volume.lose_power(Nothing())
    assert [path.name for path in (tmp_path / "wal").iterdir()] == ["0.wal"]


def test_names_that_are_lost_keep_no_folder_open(tmp_path: Path) -> None:
    """If it failed, the process of a mounted disk would run out of files in a long run with many power losses."""
    volume = Volume(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), lambda: 0)
    root = volume[ROOT_ID]
    open_files = Path("/proc/self/fd")
    counts = []
    for turn in range(3):
        for number in range(20):
            inode, _, handle = volume.create(root, f"{turn}-{number}", os.O_RDWR, 0o600)
            volume.release(handle)
            volume.forget(inode.number, 1)
            volume.rename(root, f"{turn}-{number}", root, f"{turn}-{number}.new")
        volume.lose_power(Nothing())
        counts.append(len([*open_files.iterdir()]))
    volume.close()
    assert counts[2] == counts[0]


class Keeps(random.Random):
    """A power loss that leaves so many changes of names."""

    def __init__(self, kept: int) -> None:
        super().__init__(1)
        self.kept = kept

    def randrange(self, *_: int) -> int:  # type: ignore[override]
        return self.kept


@pytest.mark.parametrize("kept", range(5))
def test_names_are_lost_in_their_order_also_of_a_folder_that_is_gone(tmp_path: Path, kept: int) -> None:
    """If it failed, a store that turns to a new file and then removes a folder with the old ones could come up with the
    old name, and without the files: no disk does that, and it would be accused."""
    for name in ("old", "moved", "empty"):
        (tmp_path / name).mkdir()
    for name in ("current", "old/data", "moved/in it"):
        (tmp_path / name).write_text(name)
    volume = Volume(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), lambda: 0)
    root = volume[ROOT_ID]
    old, _ = volume.lookup(root, "old")

    def there() -> set[str]:
        paths = (str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
        return {path for path in paths if not path.startswith(GRAVES)}

    states = [there()]
    for change in (
        lambda: volume.rename(root, "current", root, "before"),
        lambda: volume.remove(old, "data"),
        lambda: volume.remove(root, "old", is_folder=True),
        lambda: volume.rename(root, "moved", root, "empty"),
    ):
        change()
        states.append(there())
    assert len({frozenset(state) for state in states}) == 5
    volume.lose_power(Keeps(kept))
    assert there() == states[kept]
    volume.close()
    assert not (tmp_path / GRAVES).exists()


def test_a_folder_with_something_in_it_stays(tmp_path: Path) -> None:
    """If it failed, a store would lose a folder that it cannot remove on any disk."""
    for name in ("full/in it", "empty"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "file").touch()
    volume = Volume(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), lambda: 0)
    root = volume[ROOT_ID]
    for name, code in (("full", errno.ENOTEMPTY), ("file", errno.ENOTDIR), ("none", errno.ENOENT)):
        with pytest.raises(OSError, match=rf"^\[Errno {code}\]"):
            volume.remove(root, name, is_folder=True)
    with pytest.raises(OSError, match="not empty"):
        volume.rename(root, "empty", root, "full")
    assert (tmp_path / "full/in it").is_dir() and (tmp_path / "empty").is_dir()
    volume.close()
