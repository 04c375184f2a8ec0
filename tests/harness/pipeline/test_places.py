"""Which folder is meant by a path or an address."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.main import main
from harness.errors import WrongUse
from harness.pipeline.places import place_of
from harness.results.objects import Address


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
    assert place_of(Path(given)) == Path(meant)


def test_a_folder_that_looks_like_an_address_and_is_there_is_meant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a folder with a colon in its name could not be analyzed."""
    (tmp_path / "s3a:" / "x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert place_of(Path("s3a:/x")) == Path("s3a:/x")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("s3://bucket/results", Address("s3", "bucket/results")),
        ("s3a://bucket/a/b/", Address("s3", "bucket/a/b")),
        ("s3://bucket", Address("s3", "bucket")),
        ("gs://bucket/results", Address("gs", "bucket/results")),
        ("abfss://box@account.dfs.core.windows.net/x", Address("abfs", "box@account.dfs.core.windows.net/x")),
    ],
)
def test_an_address_in_an_object_store_is_one(given: str, meant: Address) -> None:
    """If it failed, what is at an address would be looked for in a folder called `s3:`."""
    assert place_of(Path(given)) == meant
    assert str(meant).startswith(("s3://", "gs://", "abfs://"))


@pytest.mark.parametrize("given", ["hdfs://host/results", "https://host/results"])
def test_an_address_of_another_kind_is_one_line(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    """If it failed, somebody with such an address would be told that a folder is missing, or get pages of Java."""
    with pytest.raises(WrongUse, match=r"got https?://host|got hdfs://host"):
        place_of(Path(given))
    assert main(["analyze", "--results", given]) == 64
    assert "try: mount it" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given", ["s3://KEY:hush@bucket/results", "s3://", "s3://bucket/x?region=y&secret_key=hush"]
)
def test_credentials_in_an_address_are_refused_and_not_repeated(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, a secret would stand in a CI's log, and be taken for a bucket."""
    assert main(["analyze", "--results", given]) == 64
    said = capsys.readouterr()
    assert "hush" not in said.err + said.out and said.err.count("\n") == 1


def test_a_folder_whose_name_is_no_utf8_is_one_line(tmp_path: Path) -> None:
    """If it failed, the tables of such a folder would end in a traceback of pyarrow, after Spark has started."""
    folder = tmp_path / "\udcff"
    folder.mkdir()
    with pytest.raises(WrongUse, match=r"/.udcff: expected a name in UTF-8; try: a link"):
        place_of(folder)
    (tmp_path / "link").symlink_to(folder)
    assert place_of(tmp_path / "link") == tmp_path / "link"
