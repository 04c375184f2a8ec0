"""Runs of a campaign as processes: starts a `qsync run` for each, watches it, and reads its result.

A run dies with its campaign (on Linux by the kernel), so a resumed campaign meets no process of the killed one. Nothing
is retried: the first result of a run counts.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from harness.campaigns.journal import Ended, Task, ToJudge, now
from harness.campaigns.judging import consistent, fields_of_line, fields_of_verdict
from harness.plan.plan import Plan, to_json
from harness.run.finish import Recorded

_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


@dataclass(slots=True)
class Running:
    """One process, and its task."""

    task: Task
    cluster: str
    began_s: float
    process: subprocess.Popen[bytes]
    said: BinaryIO
    complained: BinaryIO


@dataclass(slots=True)
class Runs:
    """Begins runs, at most `at_once` for their kind of cluster, and returns them as they end."""

    results: Path
    plans: Mapping[str, Plan]
    at_once: Callable[[str], int]
    judged_later: bool = False
    """Runs keep their records and leave the verdict to the campaign."""
    running: list[Running] = field(default_factory=list)

    def has_room(self, task: Task) -> bool:
        """Whether a run on this cluster may begin beside the active ones; each kind has its own limit."""
        limit = self.at_once(self.plans[task.cell].cluster)
        used = sum(1 / self.at_once(run.cluster) for run in self.running)
        return used + 1 / limit <= 1 + 1e-9

    def begin(self, task: Task) -> None:
        plan = msgspec.structs.replace(self.plans[task.cell], seed=task.seed)
        said, complained = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115  # closed when it has ended
        process = subprocess.Popen(
            command(self.results, *(["--record-only"] if self.judged_later else [])),
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=complained,
            start_new_session=True,
            # The only other thread draws a line, and holds no lock that this function needs.
            preexec_fn=partial(_as_a_child, os.getpid()),  # noqa: PLW1509
        )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:  # one that has died already has a result, too
            pipe.write(to_json(plan))
        self.running.append(Running(task, plan.cluster, time.monotonic(), process, said, complained))

    def ended(self) -> Iterator[Ended | ToJudge]:
        """The results of the runs that have ended since the last call."""
        for run in [run for run in self.running if run.process.poll() is not None]:
            self.running.remove(run)
            yield _result(run, self.results)

    def interrupt(self, patience_s: float = 30.0) -> None:
        """Interrupt all active runs; kill those that go on after `patience_s`."""
        for sent in (signal.SIGINT, signal.SIGKILL):
            for run in self.running:
                if run.process.poll() is None:
                    run.process.send_signal(sent)
            deadline_s = time.monotonic() + patience_s
            while time.monotonic() < deadline_s and any(run.process.poll() is None for run in self.running):
                time.sleep(0.05)


def _as_a_child(parent: int) -> None:
    """A run dies with this process. SIGINT ends it in order, even if this process ignores the signal (`&`)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the parent was killed before it could be said


def command(results: Path, *more: str) -> list[str]:
    """A `qsync run` of the plan that comes by its standard input."""
    words = (sys.executable, "-P", "-m", "harness.cli", "run", "--plan", "/dev/stdin", "--json")
    return [*words, "--results", str(results), *more]


def fields_of_run(said: bytes, complained: bytes, code: int, results: Path) -> dict[str, Any]:
    """The fields of `Ended` that follow from what a run has printed, and from its exit code."""
    document = _decoded(said)
    if document is not None:
        return consistent(fields_of_verdict(document, Path(document["folder"]), results), code)
    lines = complained.decode(errors="replace").strip().splitlines()
    sentence = lines[-1].removeprefix("qsync: ") if lines else f"the run ended with {code} and said nothing"
    return fields_of_line(sentence, code)


def _result(run: Running, results: Path) -> Ended | ToJudge:
    said, complained = _read(run.said), _read(run.complained)
    seconds = round(time.monotonic() - run.began_s, 3)
    code = run.process.returncode
    about: dict[str, Any] = {
        "cell": run.task.cell, "seed": run.task.seed, "at": now(), "seconds": seconds
    }  # fmt: skip
    document = _decoded(said)
    if document is None or "outcome" in document:
        return Ended(**about, exit_code=code, **fields_of_run(said, complained, code, results))
    recorded = msgspec.convert(document, Recorded)
    return ToJudge(
        **about,
        run=os.path.relpath(recorded.folder, results),
        interrupted=recorded.interrupted,
        failure=recorded.failure,
    )


def _read(file: BinaryIO) -> bytes:
    with file:
        file.seek(0)
        return file.read()


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(data)  # not msgspec, which refuses the name of a folder that is not UTF-8
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "folder" in document else None
