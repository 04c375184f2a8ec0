"""The kinds of values that options take, each by itself: what they take, and the words for what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from harness.cli.param_types import JOBS, Folder, InputPath, Kind, Number, OutputFile, Text, Whole, YesNo


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file and a folder in it, and one that is called like an address."""
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "s3:" / "mine").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


TAKEN: list[tuple[Kind, str, Any]] = [
    (Whole(1, 3), "1", 1),
    (Whole(1, 3), "3", 3),
    (Number(0, 1), "0", 0.0),
    (Number(0, 1), "1", 1.0),
    (Number(), "-1e300", -1e300),
    (JOBS, "4096", 4_096),
    *((YesNo(), word, True) for word in ("true", "Yes", "ON", "1")),
    *((YesNo(), word, False) for word in ("false", "No", "OFF", "0")),
    (OutputFile(".dot"), "folder/x.DOT", Path("folder/x.DOT")),
    (OutputFile(), "file", Path("file")),
    (Folder(), "folder/new/er", Path("folder/new/er")),
    (Folder(), "s3:/mine", Path("s3:/mine")),
    (Folder(takes_address=True), "s3://b/x", Path("s3://b/x")),
    (InputPath(), "nowhere", Path("nowhere")),
]


@pytest.mark.parametrize(("kind", "text", "value"), TAKEN)
def test_what_is_meant_is_taken(here: Path, kind: Kind, text: str, value: object) -> None:
    """If it failed, a value at a bound, or in capitals, would be refused, or be another one."""
    assert kind.convert(text, None, None) == value


REFUSED: list[tuple[Kind, str, str]] = [
    (Text(), " ", "expected a word, got nothing"),
    (InputPath(), "", "expected a path, got nothing"),
    (Whole(1, 3), "0", "expected a whole number of at least 1 and of at most 3, got 0"),
    (Whole(1, 3), "4", "expected a whole number of at least 1 and of at most 3, got 4"),
    (Whole(), "1.5", "expected a whole number, got '1.5'"),
    (Number(0, is_open=True), "0", "expected a number greater than 0, got 0"),
    (Number(0), "-1", "expected a number of at least 0, got -1"),
    (Number(), "nan", "expected a number, got nan"),
    (Number(), "inf", "expected a number, got inf"),
    (Number(), "many", "expected a number, got many"),
    (JOBS, "0", "of at least 1"),
    (JOBS, "4097", "of at most 4096"),
    (YesNo(), "maybe", "expected true or false, got 'maybe'"),
    (OutputFile(".dot", ".xml"), "x.png", "expected a file that ends in .dot or .xml, got 'x.png'"),
    (OutputFile(), "folder", "expected a file to write, and folder is a folder"),
    (OutputFile(), "file/x", "cannot write file/x: file is no folder"),
    (OutputFile(), "none/x", "cannot write none/x: none is not there"),
    (Folder(), "file/new", "expected a folder, and file is a file"),
    (Folder(takes_address=True), "file", "expected a folder, and file is a file"),
    (Folder(), "s3://b/x", "expected a folder of this machine, got s3://b/x"),
]


@pytest.mark.parametrize(("kind", "text", "words"), REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(here: Path, kind: Kind, text: str, words: str) -> None:
    """If it failed, a run would begin that was not asked for, or a person would not learn what was expected."""
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(text, None, None)
    assert words in str(refused.value)
