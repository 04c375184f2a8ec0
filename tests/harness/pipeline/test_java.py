"""Which Java is taken, without starting Spark."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.pipeline import java


def fake(folder: Path, version: str, home: str = "") -> Path:
    """A java that only says its version, and otherwise what it was called with."""
    program = folder / home / "bin" / "java" if home else folder / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit\n'
        'for word do printf "<%s>" "$word"; done\n'
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled", lambda: None)


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    """If it failed, a person's own choice of a Java would be ignored."""
    fake(tmp_path / "path", "17.0.1")
    fake(tmp_path, "21.0.2", "home")
    found = java.find({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path")})
    assert (found.version, found.origin, found.home) == (21, "JAVA_HOME", tmp_path / "home")


def test_a_version_that_spark_does_not_take_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a machine with only a Java 8 or 25 would have no Spark, or one that breaks."""
    fake(tmp_path / "path", "25")
    bundled = fake(tmp_path, "21.0.8", "bundled")
    monkeypatch.setattr(java, "_bundled", lambda: bundled)
    found = java.find({"PATH": str(tmp_path / "path")}, tmp_path / "wrapper")
    assert (found.version, found.home) == (21, tmp_path / "wrapper")


def test_the_wrapper_leaves_out_one_flag_and_keeps_every_other_word(tmp_path: Path) -> None:
    """If it failed, Spark's options would be torn, or the Java from PyPI would not start."""
    home = java.wrapped(fake(tmp_path, "21.0.8", "it's $HOME"), tmp_path / "wrapper")
    asked = [home / "bin" / "java", "-Xmx1g", java.LACKING, "-Da=two  words", "", "Main"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said == "<-Xmx1g><-Da=two  words><><Main>"


def test_without_any_java_the_message_says_what_was_looked_at(tmp_path: Path) -> None:
    """If it failed, somebody without a Java would see a traceback of Spark's."""
    fake(tmp_path, "1.8.0_392")
    with pytest.raises(java.NoJava, match=r"java on the PATH is version 8, .*try: .*openjdk-17") as raised:
        java.find({"PATH": str(tmp_path)})
    assert raised.value.exit_code == 3


def test_a_script_that_only_calls_a_java_is_passed_over(tmp_path: Path) -> None:
    """With asdf or jenv, Spark would look for bin/java beside their shims, and not start."""
    shim = fake(tmp_path / "shims", "17.0.1")
    with pytest.raises(java.NoJava, match=f"version 17 by a script, {shim}"):
        java.find({"PATH": str(shim.parent)})


def test_a_version_that_is_written_beside_a_java_is_read_there(tmp_path: Path) -> None:
    """If it failed, every verb on Spark would start a Java twice only to ask its version, or take a missing one."""
    program = fake(tmp_path, "17.0.1", "home")
    (tmp_path / "home" / "release").write_text(
        'IMPLEMENTOR="x"\nJAVA_VERSION="21.0.8"\nJAVA_VERSION_DATE="2025"\n'
    )
    assert java.version_of(program) == 21
    (tmp_path / "home" / "release").write_text('JAVA_VERSION="1.8.0_392"')
    assert java.version_of(program) == 8
    (tmp_path / "home" / "release").write_text("nothing of the kind")
    assert java.version_of(program) == 17
    (tmp_path / "home" / "release").write_text('JAVA_VERSION="21.0.8"')
    program.unlink()
    assert java.version_of(program) is None


def test_a_java_that_does_not_start_is_none(tmp_path: Path) -> None:
    """If it failed, a broken JAVA_HOME would be handed to Spark."""
    assert java.version_of(tmp_path / "nothing") is None
