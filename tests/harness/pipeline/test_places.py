"""Which folder is meant by a path or an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import WrongUse
from harness.pipeline.places import folder


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("results", "results"),
        ("/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:/a/b%20c", "/a/b c"),
        ("a b:/c", "a b:/c"),
    ],
)
def test_a_path_is_itself_and_a_file_address_its_path(given: str, meant: str) -> None:
    """If it failed, tables would go into a folder called `file:`."""
    assert folder(Path(given)) == Path(meant)


def test_a_folder_that_looks_like_an_address_and_is_there_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a folder with a colon in its name could not be analyzed."""
    (tmp_path / "s3a:" / "x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert folder(Path("s3a:/x")) == Path("s3a:/x")


def test_an_object_store_is_one_line_that_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, somebody with an s3a:// address would be told that a folder is missing, or get pages of Java."""
    with pytest.raises(WrongUse, match=r"got s3a://bucket/results: .*; try: mount it"):
        folder(Path("s3a://bucket/results"))
    assert main(["analyze", "--results", "s3a://bucket/results"]) == 64
    assert "try: mount it" in capsys.readouterr().err
