"""The archive of Spark's classes, without a Java."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.pipeline import class_archive
from harness.pipeline.java import Java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Java:
    """A Java, and a PySpark that an archive can be made for."""
    package = tmp_path / "site" / "pyspark"
    (package / "jars").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.delenv(class_archive.MAKES, raising=False)
    (tmp_path / "venv").mkdir()
    return Java(tmp_path / "jdk", 17, "JAVA_HOME")


def archive(java: Java) -> Path:
    found = class_archive.place(java)
    assert found is not None
    return found


def test_without_an_archive_java_is_told_nothing_and_one_is_wanted(java: Java) -> None:
    """If it failed, a JVM would be told to use a file that is not there, or none would ever be made."""
    assert class_archive.options(java) == ""
    assert class_archive.is_wanted(java)


def test_one_that_is_there_is_used_and_not_made_again(java: Java) -> None:
    """If it failed, the time that it saves would be spent on it every time."""
    class_archive.is_wanted(java)
    archive(java).write_bytes(b"classes")
    assert f"-XX:SharedArchiveFile={archive(java)}" in class_archive.options(java)
    assert not class_archive.is_wanted(java)
    assert archive(Java(java.home, 21, "JAVA_HOME")) != archive(java)


def test_where_none_could_be_made_it_is_tried_again_a_day_later(java: Java) -> None:
    """If it failed, a machine that cannot make one would try for two minutes before every verb, or never again."""
    class_archive.is_wanted(java)
    archive(java).touch()
    assert class_archive.options(java) == ""
    assert not class_archive.is_wanted(java)
    long_ago_s = archive(java).stat().st_mtime - 2 * class_archive.AGAIN_AFTER_S
    os.utime(archive(java), (long_ago_s, long_ago_s))
    assert class_archive.is_wanted(java)


@pytest.mark.parametrize("home", ["jdk", "venv"])
def test_making_one_takes_no_longer_than_it_may_and_leaves_no_half_of_it(
    java: Java, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home: str
) -> None:
    """If it failed, a busy machine would hang at its first analyze or end it, or Java would be handed half a file."""
    java = Java(tmp_path / home, 17, "JAVA_HOME")
    program = tmp_path / home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho half > "${class_archive.MAKES}"\nexec sleep 60\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(class_archive, "TAKES_AT_MOST_S", 0.2)
    assert class_archive.is_wanted(java)
    assert not class_archive.make(java)
    assert [path.name for path in archive(java).parent.iterdir()] == [archive(java).name]
    assert class_archive.options(java) == ""
