"""Files that a person named: whole or not at all, wherever they lie, and no device or link is replaced."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.results.output_file import output_file, write


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A named pipe, and the number under which it can be read: what is written fits into it."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, number
    os.close(number)


def test_what_a_link_points_to_is_written(tmp_path: Path) -> None:
    """A page behind a link would stay as it was, and the link would be gone."""
    (tmp_path / "pages").mkdir()
    link = tmp_path / "page.html"
    link.symlink_to("pages/today.html")
    write(link, b"new", "the page")
    assert link.is_symlink() and (tmp_path / "pages" / "today.html").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "pages").iterdir()] == ["today.html"]


def test_of_two_that_write_one_file_the_last_is_whole(tmp_path: Path) -> None:
    """Two commands with one --out at once would leave a file with bytes of both."""
    target = tmp_path / "bundle.zip"
    with output_file(target, "the bundle") as first:
        first.write(b"first")
        first.flush()
        write(target, b"second", "the bundle")
        first.write(b", whole")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first, whole"
    assert [*tmp_path.iterdir()] == [target]


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    """Broken, a record that only its owner may read could be read by every user after the next export."""
    target = tmp_path / "bundle.zip"
    target.touch(0o600)
    write(target, b"new", "the bundle")
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o600)


def test_a_link_to_nowhere_is_refused_by_the_name_that_was_given(tmp_path: Path) -> None:
    """A person would be told of a file that he did not name, or a traceback would come."""
    link = tmp_path / "page.html"
    link.symlink_to("none/today.html")
    with pytest.raises(StoreError, match=f"cannot write the page to {link}: No such file or directory$"):
        write(link, b"new", "the page")


def test_a_circle_of_links_stays_one(tmp_path: Path) -> None:
    """A link would be replaced by a file."""
    link = tmp_path / "page.html"
    link.symlink_to("page.html")
    with pytest.raises(StoreError, match=f"cannot write the page to {link}: Too many levels"):
        write(link, b"new", "the page")
    assert link.is_symlink() and [*tmp_path.iterdir()] == [link]


def test_a_special_file_is_written_to(pipe: tuple[Path, int]) -> None:
    """`--html /dev/stdout` would make a file beside the device, or in its place."""
    path, number = pipe
    write(path, b"new", "the page")
    assert path.is_fifo() and os.read(number, 10) == b"new"
    assert [*path.parent.iterdir()] == [path]


def _breaks_off(target: Path, error: BaseException) -> None:
    with output_file(target, "the page") as file:
        file.write(b"half")
        raise error


def test_a_special_file_gets_nothing_of_what_broke_off(pipe: tuple[Path, int]) -> None:
    """The program that reads a pipe would take half a file for a whole one."""
    path, number = pipe
    with pytest.raises(StoreError, match=rf"cannot write the page to {path}: Input/output error \(source\)$"):
        _breaks_off(path, OSError(5, "Input/output error", "source"))
    assert os.read(number, 10) == b""


def test_a_file_that_is_standard_output_is_written_to(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """`--html /dev/stdout >> FILE` would put the page in the place of FILE, and what comes later would be lost."""
    print("before", flush=True)
    write(Path("/dev/stdout"), b"new\n", "the page")
    print("after", flush=True)
    assert capfd.readouterr().out == "before\nnew\nafter\n"


def test_a_file_stays_as_it_was_if_the_new_one_breaks_off(tmp_path: Path) -> None:
    """Half a file would stand in the place of a whole one, or beside it."""
    target = tmp_path / "page.html"
    target.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        _breaks_off(target, KeyboardInterrupt())
    assert target.read_bytes() == b"old" and [*tmp_path.iterdir()] == [target]
