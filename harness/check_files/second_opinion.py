"""Another tool's checker, run over the same history: its verdict stands beside ours and never replaces it.

The command is the user's: a driver of Porcupine, Knossos or elle-cli through java. `{file}` in it is the
file as it was given, `{edn}` a copy of the judged history in Jepsen's EDN, made for it; with neither, the file is put
at its end. Of a run of ours, and where one key is judged, `{file}` is the EDN as well.

Its verdict is the last word on its standard output that is a verdict, in the spelling of any of these tools, if its
exit code allows that word: 0 any, 1 "invalid". Otherwise it is unknown, and so is that of a checker which cannot be
started, or is ended: a program that breaks has exit code 1 too, often without a word.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checkers.verdict import Result
from harness.cluster.scratch import scratch
from harness.errors import WrongUse

_WORDS: tuple[tuple[str, Result], ...] = (
    (r"not[ -]linearizable|nonlinearizable|invalid|illegal|false|anomal(?:y|ies)", "invalid"),
    (r"unknown|timed[ -]?out|timeout", "unknown"),
    (r"linearizable|valid|legal|true|ok", "valid"),
)
_VERDICT = re.compile("|".join(rf"(?P<{result}>\b(?:{words})\b)" for words, result in _WORDS), re.IGNORECASE)
_NAMES_OF_VERDICTS = re.compile(r":?\"?\bvalid\??\"?\s*[:=]?\s*(?=:?(?:true|false|unknown)\b)", re.IGNORECASE)
_CODES: dict[Result, tuple[int, ...]] = {"valid": (0,), "invalid": (0, 1), "unknown": (0, 1, 2)}
"""The exit codes with which a verdict counts: Jepsen's."""
SAID_MAX = 300


@dataclass(frozen=True, slots=True)
class Opinion:
    """The result of the other checker. `said` is the end of its output; `how` names the place that its verdict was read
    from.
    """

    command: str
    result: Result
    how: str
    said: str

    def beside(self, ours: str) -> dict[str, Any]:
        """As verdict.json holds it. They disagree only if both have decided, and differently."""
        decided = {"valid": "valid", "anomaly": "invalid"}.get(ours)
        disagrees = decided is not None and self.result in ("valid", "invalid") and self.result != decided
        return {
            "command": self.command,
            "result": self.result,
            "how": self.how,
            "said": self.said,
            "disagrees": disagrees,
        }


def ask(command: str, edn: str, file: Path | None, timeout_s: float) -> Opinion:
    """Run the command to its end. `edn` is the judged history; `file` is None where no file holds just that.

    Raises WrongUse if it is no command. A program that cannot be started, breaks or takes too long is of the opinion
    "unknown".
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise WrongUse(f"--second-opinion {command!r} is no command: {error}") from error
    if not words:
        raise WrongUse(
            "--second-opinion needs a command, such as: java -jar elle-cli.jar --model list-append"
        )
    with scratch("second-opinion") as folder:
        copy = folder / "history.edn"
        copy.write_text(edn, encoding="utf-8")
        given = str(copy if file is None else file.resolve())
        if not any("{file}" in word or "{edn}" in word for word in words):
            words.append("{file}")
        filled = [word.replace("{file}", given).replace("{edn}", str(copy)) for word in words]
        return _run(command, filled, timeout_s)


def _run(command: str, words: list[str], timeout_s: float) -> Opinion:
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return Opinion(command, "unknown", f"it could not be started: {error.strerror or error}", "")
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return Opinion(command, "unknown", f"it was ended after {timeout_s:g} s", "")
    finally:
        _end(process)
    return opinion(command, out, err, process.returncode)


def _end(process: subprocess.Popen[str]) -> None:
    """Nothing that it started outlives the question."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def opinion(command: str, out: str, err: str, code: int) -> Opinion:
    """The result of a program with this output and exit code."""
    said = (out.strip() or err.strip())[-SAID_MAX:]
    words = list(_VERDICT.finditer(_NAMES_OF_VERDICTS.sub("", out)))
    if not words:
        why = f": {err.strip().splitlines()[-1][:SAID_MAX]}" if err.strip() else ""
        return Opinion(command, "unknown", f"it said no verdict, and ended with exit code {code}{why}", said)
    found: Any = words[-1].lastgroup
    if code not in _CODES[found]:
        how = f"it said {words[-1][0]!r}, and ended with exit code {code}"
        return Opinion(command, "unknown", how, said)
    return Opinion(command, found, f"it said {words[-1][0]!r}", said)
