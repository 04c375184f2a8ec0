"""Files that a person asked for: whole or not at all, wherever they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import StoreError
from harness.pages.file_page import write_file


def test_what_a_link_points_to_is_written(tmp_path: Path) -> None:
    """A page behind a link would stay as it was, and the link would be gone."""
    (tmp_path / "pages").mkdir()
    link = tmp_path / "page.html"
    link.symlink_to("pages/today.html")
    write_file(link, b"new", "the page")
    assert link.is_symlink() and (tmp_path / "pages" / "today.html").read_bytes() == b"new"
    assert [path.name for path in (tmp_path / "pages").iterdir()] == ["today.html"]


def test_a_link_to_nowhere_is_refused_by_the_name_that_was_given(tmp_path: Path) -> None:
    """A person would be told of a file that he did not name, or a traceback would come."""
    link = tmp_path / "page.html"
    link.symlink_to("none/today.html")
    with pytest.raises(StoreError, match=f"cannot write the page to {link}: No such file"):
        write_file(link, b"new", "the page")


def test_a_device_is_written_to() -> None:
    """`--html /dev/stdout` would make a file beside the device."""
    write_file(Path("/dev/null"), b"new", "the page")
    assert Path("/dev/null").is_char_device()
