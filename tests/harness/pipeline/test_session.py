"""A Spark session that meets an error; of Spark it needs the errors alone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.pipeline import java, session

pytestmark = pytest.mark.spark


def test_a_master_that_goes_away_while_the_packages_are_sent_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, a master that is lost at the very beginning would end the verb with a traceback of py4j."""
    from py4j.protocol import Py4JError

    def add_archive(path: str) -> None:
        raise Py4JError("the master went away")

    spark = SimpleNamespace(sparkContext=SimpleNamespace(addArchive=add_archive))
    found = java.Java(tmp_path, 17, "JAVA_HOME")
    monkeypatch.setattr(java, "find", lambda environ: found)
    monkeypatch.setattr(session, "_started", lambda *named: spark)
    monkeypatch.setattr(session, "_stop", lambda spark: None)
    monkeypatch.setattr(session, "packed", lambda package, folder: package)
    with (
        pytest.raises(session.SparkError, match="the master went away; its own words are in"),
        session.session("spark://127.0.0.1:7077", log=tmp_path / "log"),
    ):
        pass


def test_a_jvm_that_dies_during_the_session_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, a JVM that the kernel killed for its memory would be told as a bug of the harness."""
    from pyspark import SparkContext

    def refused() -> None:
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(SparkContext, "_active_spark_context", "a dead one")
    monkeypatch.setattr(java, "find", lambda environ: java.Java(tmp_path, 17, "JAVA_HOME"))
    monkeypatch.setattr(session, "_started", lambda *named: SimpleNamespace(stop=refused))
    with (
        pytest.raises(session.SparkError, match="Connection refused; its own words are in"),
        session.session(log=tmp_path / "log"),
    ):
        refused()
    assert SparkContext._active_spark_context is None
