"""Temporary folders of killed processes are found; those of living ones are left alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.verbs import doctor
from harness.cluster import faketime_files, scratch

KILLED = """
import os, signal
from harness.cluster.scratch import scratch
with scratch("spool") as folder:
    (folder / "fetched").mkdir()
    (folder / "fetched" / "plan.json").write_text("{}")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def killed() -> Path:
    """The folder of a process that was killed in the middle of its work."""
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    return Path(done.stdout.strip())


def test_the_folder_of_a_killed_process_is_removed_and_that_of_a_living_one_stays(temporary: Path) -> None:
    """If it failed, killed analyses would fill the disk, or a clean-up would take the files of one at work."""
    left, strange = killed(), temporary / "qsync-spool-made-by-hand"
    strange.mkdir()
    with scratch.scratch("spool") as ours:
        assert left.parent == ours.parent == temporary
        assert scratch.remove_leftovers() == [f"temporary folder {left}"]
        assert ours.is_dir() and strange.is_dir() and not left.exists()
    assert not ours.exists()
    assert scratch.remove_leftovers() == []


def test_a_link_with_such_a_name_is_not_followed(temporary: Path) -> None:
    """If it failed, whoever may write temporary files could have another user's folder emptied, or each
    clean-up would end with "it is still there"."""
    left, mine = killed(), temporary / "mine"
    mine.mkdir()
    (mine / "kept").touch()
    link = temporary / f"{left.name}x"
    link.symlink_to(mine)
    assert scratch.remove_leftovers() == [f"temporary folder {left}"], "a link is no folder of ours"
    assert (mine / "kept").exists()


def shared_files(folder: Path, pid: int) -> list[Path]:
    files = [folder / f"faketime_shm_{pid}", folder / f"sem.faketime_sem_{pid}"]
    for file in files:
        file.write_bytes(bytes(4096))
    return files


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


MAPS = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    kept = mmap.mmap(file.fileno(), 0)
print("mapped", flush=True)
sys.stdin.read()
"""


def test_shared_memory_goes_when_its_process_and_all_children_are_dead(temporary: Path) -> None:
    """If it failed, every killed node would leave two files in memory, or a living child would lose its own."""
    living = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    dead, dead_parent = dead_pid(), dead_pid()
    gone = shared_files(temporary, dead)
    of_the_living, of_a_parent = shared_files(temporary, living.pid), shared_files(temporary, dead_parent)
    other = temporary / "faketime_shm_of_another_tool"
    other.touch()
    child = subprocess.Popen(
        [sys.executable, "-c", MAPS, of_a_parent[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None and child.stdout.readline() == b"mapped\n"
        removed = faketime_files.remove_leftovers(temporary)
        assert sorted(removed) == sorted(f"shared memory {path}" for path in (*gone, of_a_parent[1]))
        assert not any(path.exists() for path in gone)
        assert of_a_parent[0].exists() and all(path.exists() for path in of_the_living) and other.exists()
    finally:
        for process in (child, living):
            process.communicate(b"\n")
    faketime_files.remove_leftovers(temporary)
    assert not of_a_parent[0].exists() and other.exists()


def test_a_clean_up_tells_of_both(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, `doctor --clean` would say that nothing was left behind."""
    monkeypatch.setattr(faketime_files.remove_leftovers, "__defaults__", (temporary, Path("/proc")))
    for look in ("_left_mounted", "_left_here", "_old_versions", "_old_images"):
        monkeypatch.setattr(doctor, look, list)
    left, files = killed(), shared_files(temporary, dead_pid())
    done = CliRunner().invoke(doctor.command, ["--clean"], standalone_mode=False)
    assert done.return_value == 0
    for what in (f"temporary folder {left}", *(f"shared memory {path}" for path in files)):
        assert f"removed  {what}\n" in done.output
    done = CliRunner().invoke(doctor.command, ["--clean"], standalone_mode=False)
    assert done.output == "nothing was left behind\n"
