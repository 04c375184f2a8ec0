"""`qsync analyze` before Spark is there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from harness.cli import spark_group
from harness.cli.main import main


class BeganAnew(BaseException):
    """Stands for the process that takes this one's place: nothing of this one is undone."""


@pytest.mark.parametrize("tables", [None, "s3://b/tables"])
def test_nothing_is_made_before_the_command_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: str | None
) -> None:
    """If it failed, the first analyze, which brings PySpark, would leave an empty folder among the temporary files."""
    there: list[Path] = []

    def begin_anew(needs: str) -> None:
        there.extend((tmp_path / "temporary").iterdir())
        raise BeganAnew

    (tmp_path / "temporary").mkdir()
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(spark_group, "ensure", begin_anew)
    words = ["analyze", "--results", str(tmp_path / "results")]
    with pytest.raises(BeganAnew):
        main(words + (["--tables", tables] if tables else []))
    assert there == []
