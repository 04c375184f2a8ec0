"""`qsync analyze --follow` while runs come in."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness.pipeline import follow
from tests.harness.pipeline.stored_runs import store_run

pytestmark = pytest.mark.filterwarnings("default")
WAIT_S = 300


class Stream:
    """A session and its stream, in which nothing comes: each step of its making gives it again."""

    isActive = True  # noqa: N815  # Spark's name

    def __getattr__(self, name: str) -> Stream:
        return self

    def __call__(self, *_: object, **__: object) -> Stream:
        return self

    def exception(self) -> None:
        return None


def test_a_run_that_is_judged_again_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the tables would keep the old verdict of a run until the next new one comes."""
    looks: list[object] = []
    monkeypatch.setattr(follow, "session", lambda *_, **__: nullcontext(Stream()))
    monkeypatch.setattr(follow, "bring_in", lambda *asked: looks.append(asked))
    turns = iter(range(9))
    follow.follow(
        tmp_path, tmp_path / "_tables", "local", {}, print, until=lambda: next(turns) == 2, every_s=-1.0
    )
    assert len(looks) == 3


@pytest.mark.parametrize("is_address", [False, True])
def test_a_signal_lets_the_first_batch_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_address: bool
) -> None:
    """The first batch is the longest one. Ctrl-C within a call to the JVM would break the session that it ends."""
    looks: list[bool] = []
    said: list[str] = []

    def bring_in(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        looks.append(True)

    monkeypatch.setattr(follow, "session", lambda *_, **__: nullcontext(Stream()))
    monkeypatch.setattr(follow, "bring_in", bring_in)
    tables = tmp_path / "_tables"
    if is_address:
        follow.follow_address(tmp_path, tables, tmp_path, "local", {}, said.append, log=tmp_path / "log")
    else:
        follow.follow(tmp_path, tables, "local", {}, said.append)
    assert (looks, said[-1]) == ([True], follow.ENDED)


@pytest.mark.spark
def test_runs_that_come_in_are_in_the_tables_and_a_signal_ends_it_in_order(tmp_path: Path) -> None:
    """If it failed, a person at night would look at yesterday's tables, or a service that is stopped would leave
    folders among the temporary files, night after night."""
    results, temporary = tmp_path / "results", tmp_path / "temporary"
    temporary.mkdir()
    store_run(results, 1)
    words = [sys.executable, "-P", "-m", "harness.cli", "analyze", "--follow", "--results", str(results)]
    environ = {**os.environ, "TMPDIR": str(temporary)}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environ)
    watchdog = threading.Timer(WAIT_S, process.kill)
    watchdog.start()
    try:
        said = _until(process, "following")
        assert "1 new, 0 changed" in said
        assert any(temporary.glob("qsync-*"))
        store_run(results, 2)
        (results / "nightly" / "20261121T000000Z-9").mkdir()  # a run that has just begun
        assert "1 new, 0 changed" in _until(process, "new,")
        process.terminate()
        assert process.stderr is not None
        assert "the tables are whole" in process.stderr.read()
        assert process.wait() == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    assert len({row["run"] for row in _rows(results / "_tables" / "runs")}) == 2
    assert (results / "_tables" / "overview.html").exists()
    left = {path.name for path in temporary.iterdir() if not path.name.startswith("hsperfdata")}
    assert not {name for name in left if not name.startswith(("qsync-kernels-", "qsync-spark-java-"))}


def _until(process: subprocess.Popen[str], word: str) -> str:
    """What it says up to the line with this word."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if word in line:
            return said
    raise AssertionError(f"{word!r} was never said, only: {said}")


def _rows(folder: Path) -> list[dict[str, Any]]:
    import pyarrow.dataset

    found: list[dict[str, Any]] = pyarrow.dataset.dataset(folder, partitioning="hive").to_table().to_pylist()
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_the_work_finish_and_the_second_one_does_not(number: signal.Signals) -> None:
    """If it failed, a signal in the middle of a call to the JVM would break the session that it ends."""
    with follow.ended_by_signal() as ended:
        os.kill(os.getpid(), number)
        assert ended.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
