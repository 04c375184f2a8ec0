"""What befalls files of a dead node: how much is lost, and that a reader takes or refuses it as it should."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.cluster.damaged_files import MARKER, XLOG, NodeDisk, damage, lose_unsynced, restore, save
from harness.errors import ClusterError
from harness.faults.fault import Damage
from nodes.host.medium import SYNCED
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type
from nodes.kernel.errors import StartRefused
from nodes.records import framed, records_of

XLOGS = ("*.xlog",)
LOG = "00000000000000000000.xlog"
UUID = "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7"


def log_of(rows: int) -> bytes:
    blocks = (
        xlog.encode_block(
            [
                Row(
                    type=Type.INSERT.value,
                    replica_id=1,
                    lsn=lsn,
                    timestamp=0.0,
                    tsn=lsn,
                    body={16: 512, 33: [lsn]},
                )
            ]
        )
        for lsn in range(1, rows + 1)
    )
    return xlog.encode_header("XLOG", UUID, {}) + b"".join(blocks)


def inode(path: Path) -> int:
    return path.stat().st_ino


def disk_with(folder: Path, data: bytes, synced: int | None = None) -> NodeDisk:
    disk = NodeDisk(folder)
    disk.faults.mkdir()
    (folder / LOG).write_bytes(data)
    (folder / "log.jsonl").write_text("the harness's own")
    if synced is not None:
        disk.synced.write_text(f"{inode(folder / LOG)} 3\n{inode(folder / LOG)} {synced}\ntorn")
    return disk


@pytest.mark.parametrize("seed", range(8))
def test_a_power_loss_takes_only_what_was_not_synced(tmp_path: Path, seed: int) -> None:
    """If it failed, a correct node would lose what it had synced, or a wrong one would lose nothing."""
    data = log_of(20)
    synced = len(log_of(12))
    disk = disk_with(tmp_path, data, synced)
    lost = lose_unsynced(disk, random.Random(seed))
    left = (tmp_path / LOG).read_bytes()
    assert left[:synced] == data[:synced]
    assert 0 < lost <= len(data) - synced
    assert left != data
    assert disk.synced.read_text() == f"{inode(tmp_path / LOG)} {len(left)}\n"
    assert (tmp_path / "log.jsonl").exists()
    assert lose_unsynced(disk, random.Random(seed)) == 0, "what survived is on disk"


def test_a_file_that_was_never_synced_is_gone(tmp_path: Path) -> None:
    """If it failed, a log whose directory entry never reached the disk would be there after a power loss."""
    disk = disk_with(tmp_path, log_of(3), len(log_of(3)))
    (tmp_path / "00000000000000000003.xlog").write_bytes(b"")
    lose_unsynced(disk, random.Random(1))
    assert [path.name for path in disk.files()] == [LOG]


def test_nobody_guesses_what_was_synced(tmp_path: Path) -> None:
    """If it failed, a store that says nothing would be said to have lost what it may well have kept."""
    disk = disk_with(tmp_path, log_of(3))
    with pytest.raises(ClusterError, match="what the node synced cannot be read"):
        lose_unsynced(disk, random.Random(1))
    assert not (disk.faults / SYNCED).exists()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("what", ["torn-tail", "truncated-tail", "bit-flip"])
def test_damage_is_what_a_reader_sees_or_cannot_see(tmp_path: Path, what: Damage, seed: int) -> None:
    """If it failed, a store that is right would be called wrong: a torn tail loses nothing, a bit in the middle must
    be seen, and a log cut between two blocks is a log."""
    data = log_of(20)
    disk = disk_with(tmp_path, data, len(data))
    save(disk)
    assert damage(disk, what, XLOGS, random.Random(seed)) > 0
    damaged = (tmp_path / LOG).read_bytes()
    match what:
        case "torn-tail":
            found = xlog.decode(damaged)
            assert len(found.rows) == 20
            assert found.damage
            assert not xlog.goes_on(damaged, found.good_bytes)
        case "truncated-tail":
            assert len(xlog.decode(damaged).rows) < 20
        case _:
            found = xlog.decode(damaged)
            assert len(found.rows) < 20
            assert xlog.goes_on(damaged, found.good_bytes)
    restore(disk)
    assert (tmp_path / LOG).read_bytes() == data
    assert str(inode(tmp_path / LOG)) in disk.synced.read_text()


def test_folders_are_kept_and_put_back_with_their_links_and_modes(tmp_path: Path) -> None:
    """If it failed, a store with its data in folders would get none of them back, and its refusal would be a crash."""
    disk = disk_with(tmp_path, b"top")
    inner = tmp_path / "base" / "1"
    inner.mkdir(parents=True, mode=0o700)
    (inner / "16384").write_bytes(b"rows")
    (inner / "16384").chmod(0o600)
    (tmp_path / "current").symlink_to("base/1")
    (tmp_path / "lost-disk-1").mkdir()
    save(disk)
    (inner / "16384").write_bytes(b"r")
    (inner / "16385").write_bytes(b"later")
    (tmp_path / "base" / "2").mkdir()
    (tmp_path / "current").unlink()
    restore(disk)
    assert (tmp_path / "current" / "16384").read_bytes() == b"rows"
    assert (inner / "16384").stat().st_mode & 0o777 == 0o600 and inner.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in (tmp_path / "base").rglob("*")) == ["1", "16384"]
    assert (tmp_path / "lost-disk-1").is_dir() and not (disk.saved / "lost-disk-1").exists()
    assert (tmp_path / LOG).read_bytes() == b"top"


def test_what_is_too_short_is_not_damaged(tmp_path: Path) -> None:
    """If it failed, a fault that changed nothing would count as one that took effect."""
    header = xlog.encode_header("XLOG", UUID, {})
    disk = disk_with(tmp_path, header)
    for what in ("torn-tail", "truncated-tail", "bit-flip"):
        assert damage(disk, what, XLOGS, random.Random(1)) == 0
    assert (tmp_path / LOG).read_bytes() == header


FRAMED = ("wal-*.log", "discovery.log")
RECORDS = [["committed", f"t{number}", number] for number in range(20)]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("what", ["torn-tail", "truncated-tail", "bit-flip"])
def test_a_log_with_lengths_and_sums_is_damaged_as_its_reader_sees_it(
    tmp_path: Path, what: Damage, seed: int
) -> None:
    """If it failed, a right store with logs of this form would be called wrong, or never meet a torn record."""
    data = b"".join(map(framed, RECORDS))
    for name in ("wal-000001.log", "wal-000002.log", "discovery.log", "base-000001.snap"):
        (tmp_path / name).write_bytes(data)
    disk = NodeDisk(tmp_path)
    assert damage(disk, what, FRAMED, random.Random(seed)) > 0
    (name,) = [path.name for path in disk.files() if path.read_bytes() != data]
    assert name in ("wal-000002.log", "discovery.log"), (
        "the newest of a pattern, and no file of a different kind"
    )
    damaged = (tmp_path / name).read_bytes()
    if what == "bit-flip":
        with pytest.raises(StartRefused, match="is damaged at byte"):
            records_of(name, damaged)
        return
    records, whole = records_of(name, damaged)
    assert records == (RECORDS if what == "torn-tail" else RECORDS[: len(records)])
    assert len(records) < 20 or whole < len(damaged)


def test_every_pattern_has_its_turn_and_other_forms_are_left_alone(tmp_path: Path) -> None:
    """If it failed, only one log of a store would ever be torn, or a file would be spoilt that no crash spoils so."""
    data = b"".join(map(framed, RECORDS))
    torn = set()
    for seed in range(20):
        for name in ("wal-000001.log", "discovery.log"):
            (tmp_path / name).write_bytes(data)
        damage(NodeDisk(tmp_path), "torn-tail", FRAMED, random.Random(seed))
        torn |= {path.name for path in NodeDisk(tmp_path).files() if path.read_bytes() != data}
    assert torn == {"wal-000001.log", "discovery.log"}
    for name in torn:
        (tmp_path / name).write_bytes(b"a line for people\n" * 9)
    assert damage(NodeDisk(tmp_path), "torn-tail", FRAMED, random.Random(1)) == 0


def test_a_marker_in_the_head_of_a_block_is_no_block(tmp_path: Path) -> None:
    """If it failed, the fault would end the run with an error of the harness."""
    two = XLOG + b"head" + MARKER + b"short" + MARKER + bytes(40)
    for data, changed in ((two, 0), (two + MARKER + bytes(40), 1)):
        folder = tmp_path / str(changed)
        folder.mkdir()
        disk = disk_with(folder, data)
        assert damage(disk, "bit-flip", XLOGS, random.Random(1)) == changed
        assert ((folder / LOG).read_bytes() != data) == bool(changed)
