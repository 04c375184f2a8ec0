"""A record in segments: the same bytes as one file, whatever moment it is read or killed at."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from checkers.history import HistoryError, foreign, jsonl, segments
from harness import pages
from harness.results import RunFolder, bundle, hashes, segmented_file
from harness.results.segmented_file import SegmentedFile
from harness.run.assemble import parts_of
from harness.run.execute import execute
from harness.run.finish import Recorded, finish, judged_again
from harness.run.watch import Watched
from harness.serve.lines import Lines
from harness.serve.under_way import UnderWay
from tests.harness.runs import small

LINES = tuple(f'{{"index":{number},"told":"{"x" * (number % 37)}"}}\n'.encode() for number in range(400))
WHOLE = b"".join(LINES)


def written(folder: Path, lines: tuple[bytes, ...] = LINES, segment_bytes: int = 1_000) -> Path:
    path = folder / "history.jsonl"
    file = SegmentedFile(path, segment_bytes)
    for line in lines:
        file.write(line)
    file.close()
    return path


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("kept"))


@given(data=st.data())
def test_any_part_is_that_of_one_file(kept: Path, data: st.DataObject) -> None:
    """Broken, an operation on a page would be another one, or a line would be read twice at a border."""
    record = segments.record(kept)
    assert record.size == len(WHOLE)
    at = data.draw(st.integers(0, len(WHOLE) + 10))
    length = data.draw(st.integers(0, 3_000))
    assert record.read(at, length) == WHOLE[at : at + length]
    with segments.stream(kept) as file:
        file.seek(at)
        assert file.readline() == io.BytesIO(WHOLE[at:]).readline()
        assert file.read() == WHOLE[at:][len(io.BytesIO(WHOLE[at:]).readline()) :]


def test_a_full_segment_is_compressed_and_plain_tools_read_it(kept: Path) -> None:
    """Broken, a day's record would take 28 GB, or only this project's code could read a segment."""
    files = segments.segments(kept)
    assert len(files) > 5
    assert all(file.name.endswith(".jsonl.zst") for file in files)
    assert sorted(path.name for path in files[0].parent.iterdir()) == [file.name for file in files]
    data = b"".join(file.read_bytes() for file in files)
    with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
        assert reader.read() + kept.read_bytes() == WHOLE


def unpack(file: Path) -> Path:
    """The plain segment as it was."""
    lone = file.parent.parent / "lone" / "history.jsonl"
    shutil.copytree(file.parent, lone.parent / "history")
    lone.touch()
    places = [0]
    for each in segments.segments(lone):
        places.append(places[-1] + sum(plain for _, plain in segments._table(each)))
    number = int(file.name.split(".")[0])
    plain = file.with_name(segments.name(number) + segments.PLAIN)
    plain.write_bytes(WHOLE[places[number - 1] : places[number]])
    shutil.rmtree(lone.parent)
    return plain


def both(path: Path) -> None:
    unpack(segments.segments(path)[-1])


def only_plain(path: Path) -> None:
    file = segments.segments(path)[-1]
    unpack(file)
    file.with_name(f".{file.name}.unfinished").write_bytes(b"half of it")
    file.unlink()


def two_names(path: Path) -> None:
    """The last segment as it is handed over: the file of the record is that of the segment."""
    path.unlink()
    only_plain(path)
    path.hardlink_to(segments.segments(path)[-1])
    path.with_name(".history.jsonl.unfinished").touch()


@pytest.mark.parametrize(("killed", "lost"), [(both, 0), (only_plain, 0), (two_names, 1)])
def test_a_kill_while_a_segment_is_handed_over_loses_nothing(
    tmp_path: Path, killed: Callable[[Path], None], lost: int
) -> None:
    """Broken, a run that was interrupted after 20 hours would have three minutes twice, or not at all."""
    path = written(tmp_path)
    expected = WHOLE[: len(WHOLE) - lost * path.stat().st_size]
    killed(path)
    record = segments.record(path)
    assert record.read(0, record.size) == expected


def test_the_folder_is_part_of_the_record_alone(tmp_path: Path) -> None:
    """Broken, an export beside a long run's record would be refused, or an empty file would get the run's verdict."""
    path = written(tmp_path)
    other, empty = path.with_name("history.edn"), path.with_name("empty.jsonl")
    other.write_text("{:type :ok :process 0 :f :read :value nil}\n")
    empty.touch()
    assert [operation.f for operation in foreign.read(other).operations] == ["read"]
    assert segments.record(empty).size == 0
    with segments.stream(empty) as file:
        assert file.read() == b""


def without_one(path: Path) -> None:
    segments.segments(path)[2].unlink()


def torn(path: Path) -> None:
    file = segments.segments(path)[2]
    file.write_bytes(file.read_bytes()[:-3])


def flipped(path: Path) -> None:
    file = segments.segments(path)[2]
    data = bytearray(file.read_bytes())
    data[20] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("damage", [without_one, torn, flipped])
def test_a_damaged_segment_is_refused(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Broken, a run would be judged without a part of it, or with wrong bytes."""
    path = written(tmp_path)
    damage(path)
    with pytest.raises(HistoryError, match=r"history/0000[34]"):
        segments.record(path).read(0, len(WHOLE))


def test_no_flipped_bit_of_a_segment_goes_unseen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a run would be judged without a frame that an entry calls empty, or a header ask for all memory."""
    monkeypatch.setattr(segments, "FRAME_BYTES", 1 << 10)
    path = written(tmp_path, segment_bytes=len(WHOLE) + 1)
    (path.parent / "history").mkdir(exist_ok=True)
    plain, lines = path.parent / "history" / "00001.jsonl", b"x" * 1_033
    plain.write_bytes(lines)
    file = segments.pack(plain)
    whole = file.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            file.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            try:
                record = segments.record(path)
                assert record.read(0, record.size) == lines + WHOLE, (place, bit)
            except HistoryError:
                continue


def test_a_full_disk_leaves_plain_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a run would lose what it recorded because nothing could be compressed."""

    def refuse(plain: Path) -> Path:
        raise OSError(28, "No space left on device", str(plain))

    monkeypatch.setattr(segments, "pack", refuse)
    path = written(tmp_path)
    assert {file.name.endswith(".jsonl") for file in segments.segments(path)} == {True}
    record = segments.record(path)
    assert record.read(0, record.size) == WHOLE


def test_where_no_second_name_is_possible_the_record_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, a long run on such a file system would end after 64 MiB."""

    def refuse(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(segmented_file.os, "link", refuse)
    assert written(tmp_path).read_bytes() == WHOLE


def test_a_reader_beside_the_writer_misses_nothing(tmp_path: Path) -> None:
    """Broken, the live page, or a watch that ends a run early, would stand still at the first border."""
    path = tmp_path / "history.jsonl"
    file = SegmentedFile(path, 1_000)
    lines, seen = Lines(path, block_bytes=300), UnderWay(path)
    for number, line in enumerate(LINES):
        file.write(line)
        if number % 7 == 0:
            file.flush()
            assert lines.count() == number + 1
            assert lines.read(number, 1) == [line.rstrip(b"\n")]
            seen.look()
            assert seen.lines == number + 1
    file.close()


PLAN = small(time_limit_s=6.0, rate=60.0, seed=3, bugs=("confirm-early",))


def run_of(results: Path, monkeypatch: pytest.MonkeyPatch, segment_bytes: int) -> RunFolder:
    monkeypatch.setattr(SegmentedFile.__init__, "__defaults__", (segment_bytes,))
    return execute(parts_of(PLAN), results).folder


@pytest.mark.long
def test_a_run_in_segments_is_judged_as_one_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, a day's run would be judged otherwise than the same in one file."""
    whole = run_of(tmp_path / "whole", monkeypatch, 1 << 30)
    split = run_of(tmp_path / "split", monkeypatch, 20_000)
    assert len(segments.segments(split.history)) > 3
    assert jsonl.read(split.history) == jsonl.read(whole.history)
    assert hashes.of_history(split.history) == hashes.of_file(whole.history)
    verdicts: list[dict[str, Any]] = [
        finish(folder, PLAN, Recorded(str(folder.path))) for folder in (whole, split)
    ]
    for check in (
        each for verdict in verdicts for each in (*verdict["checks"], *verdict["settled"]["checks"])
    ):
        del check["seconds"]
    assert verdicts[0] == verdicts[1]
    split = RunFolder(split.path.rename(split.path.with_name(whole.path.name)))
    page = pages.html(whole.path, verdicts[0])
    assert pages.html(split.path, verdicts[0]) == page
    assert judged_again(split.path)["outcome"] == "anomaly"
    held = bundle.of_run(split.path).files
    assert {f"history/{file.name}" for file in segments.segments(split.history)} <= set(held)
    first = segments.segments(split.history)[0]
    data = bytearray(first.read_bytes())
    data[30] ^= 1
    first.write_bytes(data)
    assert hashes.changed(split.path) == ["history/00001.jsonl.zst has another content"]


def test_a_watch_follows_a_run_in_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, `--fail-fast` would see the first three minutes of a day's run alone."""
    split = run_of(tmp_path, monkeypatch, 20_000)
    watched = Watched(split, PLAN)
    watched.look()
    assert watched._at == segments.size(split.history)
    watched.close()


def test_a_segment_is_whole_when_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a reader, or a harness that was killed just then, would find a record with a gap in it."""
    bytes_then: list[int] = []
    as_ever = os.link

    def linked(source: Path, target: Path) -> None:
        bytes_then.append(source.stat().st_size)
        as_ever(source, target)

    monkeypatch.setattr(os, "link", linked)
    file = SegmentedFile(tmp_path / "history.jsonl", segment_bytes=10)
    for _ in range(3):
        file.write(b"12345678\n")
    file.close()
    assert bytes_then == [18]


def test_where_files_have_one_name_it_is_not_tried_at_every_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, each line of a long record on such a file system would be written to the disk alone."""
    tried: list[object] = []

    def refuse(*asked: object) -> None:
        tried.append(asked)
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refuse)
    file = SegmentedFile(tmp_path / "history.jsonl", segment_bytes=40)
    for _ in range(20):
        file.write(b"12345678\n")
    file.close()
    assert len(tried) == 3


def test_a_record_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    """If it failed, the record of a run would be gone where another one takes its folder."""
    (tmp_path / "history.jsonl").write_bytes(b"a record")
    with pytest.raises(FileExistsError):
        SegmentedFile(tmp_path / "history.jsonl")
    assert (tmp_path / "history.jsonl").read_bytes() == b"a record"


def test_a_file_is_full_at_its_size(tmp_path: Path) -> None:
    """If it failed, each file would have a line more than it has room for."""
    path = written(tmp_path, (b"12345678\n",) * 3, segment_bytes=18)
    assert path.read_bytes() == b"12345678\n" and len(segments.segments(path)) == 1


def test_a_segment_that_cannot_be_handed_over_leaves_the_record_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the lines of a run would stand twice in its record, or the run go on without writing any."""
    file = SegmentedFile(tmp_path / "history.jsonl", segment_bytes=9)
    file.write(b"12345678\n")
    (tmp_path / ".history.jsonl.unfinished").touch()  # as if the next file could not be made
    with pytest.raises(FileExistsError):
        file.write(b"lost\n")
    monkeypatch.setattr(os, "link", _refuses)
    with pytest.raises(OSError, match="No space left"):
        file._hand_over()
    file.close()
    assert segments.segments(tmp_path / "history.jsonl") == []
    assert (tmp_path / "history.jsonl").read_bytes() == b"12345678\n"


def _refuses(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
