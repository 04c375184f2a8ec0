"""`qsync analyze` before Spark is there."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import pytest

from harness.cli import spark_group
from harness.cli.main import main
from harness.cli.options import ROOT, results_folder
from harness.cli.verbs.analyze import _given_spool, command
from harness.pipeline.analyze import tables_place


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


def test_a_variable_that_is_set_to_nothing_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, `QSYNC_RESULTS= qsync run` would leave its runs in whatever folder a person is in."""
    asked = (Path("results"), Path("tables"), None, "local[*]")
    for name in ("QSYNC_RESULTS", "QSYNC_TABLES", "QSYNC_SPOOL", "QSYNC_SPARK_MASTER"):
        monkeypatch.setenv(name, "")
    empty = (results_folder(), tables_place(Path("results"), None), _given_spool(*asked))
    assert empty == (ROOT / "results", Path("results/_tables"), None)
    (master,) = (param for param in command.params if param.name == "master")
    assert master.get_default(click.Context(command)) == "local[*]"


@pytest.mark.parametrize("setting", ["spark.executor.memory", "=2g"])
def test_a_setting_without_a_name_or_a_value_is_one_line(
    tmp_path: Path, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If it failed, Spark would start, and end with a word about its connection."""
    assert main(["analyze", "--results", str(tmp_path), "--conf", setting]) == 64
    assert f"--conf takes name=value, got {setting!r}" in capsys.readouterr().err
