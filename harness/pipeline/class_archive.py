"""Spark's classes as the JVM keeps them: an archive that is made once and mapped in by every later start.

Half the time of a short session goes into loading and verifying some fifteen thousand classes. Java can keep them in
the form that they have in memory (class data sharing, JEP 350). One small analysis after the installation of PySpark
makes the archive, of the classes that it loads. The archive only saves time: a JVM that cannot use it (another Java,
different jars) starts without it, and a machine that cannot make one works without.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from harness.cluster.scratch import scratch
from harness.pipeline.java import Java

QUIET = "-Xlog:disable -Xlog:all=error:stderr"
"""A JVM that finds the archive unfit says so on stdout, where a verb's JSON goes."""
MAKES = "QSYNC_MAKES_CLASS_ARCHIVE"
TAKES_AT_MOST_S = 120
AGAIN_AFTER_S = 86_400
"""An empty archive notes that making one failed. A busy machine may be the reason, so it is tried again next day."""


def place(java: Java) -> Path | None:
    """Where the archive of this Java and this PySpark belongs; None if there is no PySpark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    jars = Path(spec.origin).parent / "jars"
    release = java.home / "release"
    about = [str(jars), str(java.home), str(java.version)]
    about += [str(path.stat().st_mtime_ns) for path in (jars, release) if path.exists()]
    return (
        Path(sys.prefix)
        / "spark-java"
        / f"classes-{hashlib.sha256(' '.join(about).encode()).hexdigest()[:16]}.jsa"
    )


def options(java: Java) -> str:
    """The options of the JVM: to use the archive, to make it (in the session that was begun for that), or ""."""
    wanted = os.environ.get(MAKES)
    if wanted:
        return f"{QUIET} -XX:ArchiveClassesAtExit={wanted}"
    archive = place(java)
    if archive is None or " " in str(archive):  # Java's options are told apart by blanks
        return ""
    try:
        return f"{QUIET} -XX:SharedArchiveFile={archive}" if archive.stat().st_size else ""
    except OSError:
        return ""


def is_being_made() -> bool:
    """Whether this process was started to make the archive."""
    return MAKES in os.environ


def is_wanted(java: Java) -> bool:
    """Whether no process has tried to make the archive lately, and its folder is writable."""
    archive = place(java)
    if archive is None or is_being_made():
        return False
    try:
        archive.parent.mkdir(exist_ok=True)
        status = archive.stat()
        return not status.st_size and time.time() - status.st_mtime > AGAIN_AFTER_S
    except FileNotFoundError:
        return os.access(archive.parent, os.W_OK)
    except OSError:
        return False


def make(java: Java) -> bool:
    """Make the archive, in a process of its own; False if there is none afterwards."""
    archive = place(java)
    assert archive is not None
    unfinished = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        with scratch("classes") as folder:
            words = [sys.executable, "-P", "-m", "harness.cli.small_analysis", str(folder)]
            is_of_pypi = java.home.is_relative_to(sys.prefix)  # it lacks the archive that ours stands on
            is_ready = not is_of_pypi or _run([str(java.home / "bin" / "java"), "-Xshare:dump"])
            # Whatever it leaves when it is ended goes, too: half an archive would be taken for one ever after.
            if not (is_ready and _run(words, {MAKES: str(unfinished), "TMPDIR": str(folder)})):
                unfinished.unlink(missing_ok=True)
        unfinished.touch()
        unfinished.replace(archive)
        return archive.stat().st_size > 0
    except OSError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)


def _run(words: list[str], more: Mapping[str, str] | None = None) -> bool:
    """Run a program for TAKES_AT_MOST_S at most, and kill all processes that it started. False if it took longer."""
    process = subprocess.Popen(
        words,
        env=os.environ | dict(more or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(TAKES_AT_MOST_S)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
