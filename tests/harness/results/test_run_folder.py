"""Run folders: nothing is overwritten, a half-written file never looks whole, a refusal is one line."""

from __future__ import annotations

import errno
import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from checkers.history import jsonl
from checkers.history.history import Header
from harness.errors import StoreError, WrongUse
from harness.results import RunFolder, hashes, resolve, run_folder
from harness.results.run_folder import GuardedFile
from harness.systems.plans import planned, read
from tests.harness.results.full_disk import FullDisk

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
PLAN = planned(name="nightly", seed=7)
HEADER = Header(system="qsync", nodes=("n1",))


def test_a_run_has_a_folder_with_its_plan(tmp_path: Path) -> None:
    """If it failed, a run could not be repeated from its folder."""
    folder = RunFolder.create(tmp_path, PLAN, at=AT)
    assert folder.path == tmp_path / "nightly" / "20260304T050607Z-7"
    assert read(folder.plan_file) == PLAN
    assert sorted(path.name for path in folder.path.iterdir()) == ["plan.json"]


def test_runs_of_one_second_have_folders_of_their_own(tmp_path: Path) -> None:
    """If it failed, the second run would write into the first one's record."""
    folders = [RunFolder.create(tmp_path, PLAN, at=AT).path.name for _ in range(3)]
    assert folders == [f"20260304T050607Z-7{end}" for end in ("", "-2", "-3")]


def test_latest_points_to_the_newest(tmp_path: Path) -> None:
    """If it failed, people would look at an older run."""
    for plan in (PLAN, planned(name="other")):
        folder = RunFolder.create(tmp_path, plan)
        link = tmp_path / "latest"
        assert link.resolve() == folder.path.resolve()
        assert not link.readlink().is_absolute(), "results that are moved would point to where they were"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "nightly", "other"]


def test_something_else_called_latest_is_left_alone(tmp_path: Path) -> None:
    """If it failed, somebody's file would be gone."""
    (tmp_path / "latest").write_text("mine")
    RunFolder.create(tmp_path, PLAN)
    assert (tmp_path / "latest").read_text() == "mine"


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    """If it failed, a second writer would destroy the only evidence of a run."""
    folder = RunFolder.create(tmp_path, PLAN)
    folder.open_history().close()
    with pytest.raises(StoreError, match="exists"):
        folder.open_history()


@pytest.mark.parametrize("below", ["file/results", "/proc/results"])
def test_a_results_folder_that_cannot_be_written_is_one_line(tmp_path: Path, below: str) -> None:
    """If it failed, a read-only folder would be a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as refused:
        RunFolder.create(tmp_path / below, PLAN)
    assert refused.value.message.startswith("cannot write results to ")
    assert refused.value.message.endswith("try another folder with --results")


def test_a_disk_that_is_full_at_the_plan_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, an empty plan.json would stand for a run that never was, and stop whoever reads all runs."""

    def little(self: Path, data: bytes) -> int:
        self.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_bytes", little)
    with pytest.raises(StoreError, match="No space left"):
        RunFolder.create(tmp_path, PLAN)
    assert list((tmp_path / "nightly").iterdir()) == []


def test_a_read_only_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a disk that turns read-only between two files would be a traceback."""
    folder = RunFolder.create(tmp_path, PLAN)

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(StoreError, match="Read-only file system"):
        folder.open_history()
    with pytest.raises(StoreError, match="Read-only file system"):
        keep_verdict(folder, {})


def test_a_half_written_verdict_never_looks_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a full disk would leave half a verdict in the place of the old one."""
    folder = RunFolder.create(tmp_path, PLAN)
    keep_verdict(folder, {"outcome": "anomaly"})

    def half(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(StoreError, match="No space left on device"):
        keep_verdict(folder, {"outcome": "valid"})
    assert folder.read_verdict() == {"outcome": "anomaly"}


def test_two_judgements_at_once_are_kept_one_after_the_other(tmp_path: Path) -> None:
    """If it failed, one process would rename what another is writing: half a verdict, or hashes of another one."""
    folder = RunFolder.create(tmp_path, PLAN)
    begun = {name: threading.Event() for name in "ab"}

    def judgement(own: str, other: str) -> None:
        def write(path: Path) -> None:
            with path.open("w") as file:
                file.write(f'{{"outcome": "{own * 100}')
                file.flush()
                begun[own].set()
                begun[other].wait(0.2)
                file.write('"}')

        folder.keep_judgement({"verdict.json": write}, hashes.of_record(folder.path))

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(judgement, "a", "b"), pool.submit(judgement, "b", "a")]:
            done.result()
    assert folder.read_verdict_outcome() in ("a" * 100, "b" * 100)
    assert hashes.changed(folder.path) == []
    assert list(folder.path.glob(".*")) == []


def keep_verdict(folder: RunFolder, verdict: dict[str, object]) -> None:
    """As a judgement of a run without a record keeps it."""
    folder.keep_judgement({"verdict.json": lambda path: path.write_bytes(msgspec.json.encode(verdict))}, {})


def fill(record: jsonl.Writer, size: int) -> None:
    """Record until the disk refuses."""
    for _ in range(10_000):
        record.record("info", "harness", "note", time_ns=0, value="x" * size)


def test_a_full_disk_leaves_a_readable_record(tmp_path: Path) -> None:
    """If it failed, everything that was recorded before the disk was full would be lost as well."""
    path = tmp_path / "history.jsonl"
    record = jsonl.Writer(GuardedFile(FullDisk.buffered(path, 10_000, 512)), HEADER)  # type: ignore[arg-type]  # as in the store
    with pytest.raises(StoreError, match="cannot write the history: No space left on device"):
        fill(record, 50)
    with pytest.raises(StoreError):
        record.close()
    events = jsonl.read(path).events
    assert 70 < len(events) < 80


def test_after_a_line_that_was_lost_no_other_is_taken(tmp_path: Path) -> None:
    """If it failed, a disk that was full for a moment would leave half a line in the middle: all would be refused."""
    path = tmp_path / "history.jsonl"
    disk = FullDisk(path, 5_000)
    record = jsonl.Writer(GuardedFile(io.BufferedWriter(disk, 512)), HEADER)  # type: ignore[arg-type]  # as in the store
    with pytest.raises(StoreError):
        fill(record, 1_000)
    disk.limit = 1_000_000
    for _ in range(3):
        with pytest.raises(StoreError, match="No space left on device"):
            fill(record, 1_000)
    with pytest.raises(StoreError):
        record.flush()
    with pytest.raises(StoreError):
        record.close()
    history = jsonl.read(path)
    assert len(history.events) == 4
    assert history.torn is not None


def test_a_run_is_found_by_its_folder_or_a_file_in_it(tmp_path: Path) -> None:
    """If it failed, people would have to guess what `qsync check` wants."""
    folder = RunFolder.create(tmp_path, PLAN)
    jsonl.write(folder.history, HEADER, [])
    for path in (folder.path, folder.history, tmp_path / "latest", folder.path / "plan.json"):
        assert resolve(path).path == folder.path.resolve()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("empty", "is no run: expected a folder with"),
        ("pipe", "is no file and no folder; try: save to a file"),
        *((path, "does not exist") for path in ("nothing", "empty/nothing", "latest")),
    ],
)
def test_what_is_no_run_is_one_line(tmp_path: Path, path: str, said: str) -> None:
    """If it failed, a mistyped path would be a traceback."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "latest").symlink_to("gone")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WrongUse, match=said):
        resolve(tmp_path / path)


@pytest.mark.parametrize("name", ["hashes.json", "verdict.json", "nodes/n1/log.jsonl"])
def test_a_run_with_a_pipe_among_its_files_is_refused(tmp_path: Path, name: str) -> None:
    """If it failed, each verb would wait for ever for the pipe. One that no verb reads does not matter."""
    folder = RunFolder.create(tmp_path, PLAN)
    jsonl.write(folder.history, HEADER, [])
    (folder.nodes / "n1").mkdir(parents=True)
    os.mkfifo(folder.nodes / "n1" / "control")
    assert resolve(folder.path).path == folder.path.resolve()
    os.mkfifo(folder.path / name)
    with pytest.raises(WrongUse, match=f"{name} is no file and no folder"):
        resolve(folder.path)


def test_the_outcome_of_a_run_is_that_of_its_verdict(tmp_path: Path) -> None:
    """If it failed, retention would remove an anomaly, or a campaign publish a run that nobody judged."""
    for verdict, outcome in (
        ({"outcome": "valid"}, "valid"),
        ({"outcome": "not-evidence"}, "inconclusive"),
        ({"made": "by somebody else"}, None),
    ):
        run = RunFolder.create(tmp_path, PLAN, at=AT)
        assert run.read_verdict_outcome() is None
        keep_verdict(run, verdict)
        assert run.read_verdict_outcome() == outcome


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"3"])
def test_a_verdict_that_cannot_be_read_is_none(tmp_path: Path, content: bytes) -> None:
    """If it failed, one torn file would stop everything that looks at many runs."""
    folder = RunFolder.create(tmp_path, PLAN)
    assert folder.read_verdict() is None
    (folder.path / "verdict.json").write_bytes(content)
    assert folder.read_verdict() is None


@pytest.mark.parametrize("content", [None, b"{", b'{"seed": -1}'])
def test_a_stored_plan_that_cannot_be_read_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    """If it failed, a damaged folder would be a traceback."""
    folder = RunFolder.create(tmp_path, PLAN)
    folder.plan_file.unlink()
    if content is not None:
        folder.plan_file.write_bytes(content)
    with pytest.raises(WrongUse) as refused:
        read(folder.plan_file)
    assert str(folder.plan_file) in refused.value.message


def test_a_file_is_on_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a loss of power could leave a verdict.json that is empty, or the old one beside new hashes."""
    done: list[str] = []
    as_ever = Path.replace

    def renamed(path: Path, target: Path) -> Path:
        done.append(f"rename to {target.name}")
        return as_ever(path, target)

    folder = RunFolder.create(tmp_path, PLAN, at=AT)
    monkeypatch.setattr(Path, "replace", renamed)
    monkeypatch.setattr(run_folder, "_sync", lambda path: done.append(f"sync {path.name}"))
    folder.keep_judgement(
        {run_folder.REPORT: Path.touch, run_folder.COLUMNS: Path.touch, run_folder.VERDICT: Path.touch}, {}
    )
    names = [run_folder.COLUMNS, run_folder.VERDICT, hashes.HASHES, run_folder.REPORT]
    assert done == [
        *(f"sync .{name}.unfinished" for name in names),
        *(f"rename to {name}" for name in names),
        f"sync {folder.path.name}",
    ]
