"""Another tool's checker, run over the same history: its verdict stands beside ours and never replaces it.

The command is the user's: `knossos:JAR` and `porcupine:PROGRAM` (`register_checkers`), or any other program, such as
elle-cli through java. `{file}` in it is the file as it was given, `{edn}` a copy of the judged history in Jepsen's EDN,
made for it; with neither, the file is put at its end. Of a run of ours, and where one key is judged, `{file}` is the
EDN as well.

Its verdict is the gravest value of the keys `valid?` on its standard output, or, without such a key, the last word that
is a verdict in the spelling of any of these tools, if its exit code allows that: 0 any, 1 "invalid" and "unknown", 2
"unknown". Otherwise it is unknown, and so is that of a checker which cannot be
started, or is ended: a program that breaks has exit code 1 too, often without a word.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from checkers.history.history import History
from checkers.proofs.meaning import Terms
from checkers.verdict import Result
from harness.cluster.scratch import scratch
from harness.errors import WrongUse
from harness.judge.files.register_checkers import CHECK, adapter_of, merged_answer

_HOLDS, _FAILS = r"linearizable|serializable|valid|legal|true|ok", r"invalid|illegal|false|anomal(?:y|ies)"
_NOT = r"(?:\bnot|\bnon|\bnever|n't)[ -]*(?:[a-z]+[ -]){0,4}?"
_NO_FAULT = rf"(?:\bno|\b0|\bzero|\bwithout|\bany|{_NOT})[ -]*(?:\w+ )?(?:{_FAILS})\b"
_NONE = rf"\b(?:{_FAILS})\"?\s*[:=]\s*(?:0\b|none\b|\[\]|\{{\}})"
_WORDS: tuple[tuple[str, str], ...] = (
    (rf"{_NO_FAULT}|{_NONE}", "neither"),
    (rf"(?:{_NOT}(?:{_HOLDS})|\b(?:{_HOLDS})\"?\s*[:=]\s*(?:no|false)|\b(?:{_FAILS}))\b", "invalid"),
    (r"\b(?:unknown|timed[ -]?out|timeout)\b", "unknown"),
    (rf"\b(?:{_HOLDS})\b", "valid"),
)
"""In this order. "No anomalies" may speak of one kind of fault alone, so it counts as no verdict."""
_VERDICT = re.compile("|".join(rf"(?P<{result}>{words})" for words, result in _WORDS), re.IGNORECASE)
_NAMES_OF_VERDICTS = re.compile(r":?\"?\bvalid\??\"?\s*[:=]?\s*(?=:?(?:true|false|unknown)\b)", re.IGNORECASE)
_KEY = re.compile(r"\bvalid(?:\?\"?\s*[:=]?|\"\s*:)\s*[:\"]?(?P<value>true|false|unknown)\b", re.IGNORECASE)
_OF_KEY: Mapping[str, Result] = {"false": "invalid", "unknown": "unknown", "true": "valid"}
"""The gravest first."""
_CODES: dict[Result, tuple[int, ...]] = {"valid": (0,), "invalid": (0, 1), "unknown": (0, 1, 2)}
"""The exit codes with which a verdict counts: Jepsen's."""
SAID_MAX = 300


@dataclass(frozen=True, slots=True)
class Opinion:
    """The result of the other checker. `said`: the end of its output; `how`: where the verdict was read."""

    command: str
    result: Result
    how: str
    said: str
    check: str = ""
    """The name of our check to compare with; "": our outcome, by all checks."""
    left_out: int = 0
    """Observations that the other checker did not get. So its "valid" does not contradict our "invalid"."""

    def beside(self, verdict: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of verdict.json. The two disagree only if both have decided, and differently."""
        ours = {"valid": "valid", "anomaly": "invalid"}.get(verdict["outcome"])
        if self.check:
            ours = next(
                (check["result"] for check in verdict["checks"] if check["checker"] == self.check), None
            )
        disagrees = (
            ours in ("valid", "invalid") and self.result in ("valid", "invalid") and self.result != ours
        )
        if self.left_out and self.result == "valid":
            disagrees = False
        return {
            "command": self.command,
            "result": self.result,
            "how": self.how,
            "said": self.said,
            "ours": ours,
            "check": self.check,
            "disagrees": disagrees,
        }


def ask_about_registers(
    command: str, history: History, judged: Mapping[str, Terms], timeout_s: float
) -> Opinion | None:
    """The opinion of Knossos or Porcupine; None if the command names neither. `judged`: the terms of our checks."""
    chosen = adapter_of(command)
    if chosen is None:
        return None
    adapter, program = chosen
    if not program:
        raise WrongUse(f"--second-opinion {command} names no program; try: --second-opinion {command}PATH")
    question = adapter.question(history, judged)
    if isinstance(question, str):
        return Opinion(command, "unknown", question, "", CHECK)
    with scratch("second-opinion") as folder:
        for name, text in question.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        paths = [str(folder / name) for name in question.files]
        ended = _run(command, adapter.command(program, paths), timeout_s)
    if isinstance(ended, Opinion):
        return replace(ended, check=CHECK)
    word = merged_answer(ended.out, len(question.files)) if ended.out.strip() else ""
    answer = opinion(command, word, ended.err, ended.code)
    how = answer.how
    if question.left_out:
        how += f"; {question.left_out} refused cas that saw another value were left out"
    return replace(
        answer, how=how, said=ended.out.strip()[-SAID_MAX:], check=CHECK, left_out=question.left_out
    )


def ask(command: str, edn: str, file: Path | None, timeout_s: float) -> Opinion:
    """Run the command to its end. `edn` is the judged history; `file`: a file with just this history, or None.

    Raises WrongUse if it is no command. The opinion of a program that cannot be started, breaks or takes too long is
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
        ended = _run(command, filled, timeout_s)
    return ended if isinstance(ended, Opinion) else opinion(command, ended.out, ended.err, ended.code)


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that came to its end."""

    out: str
    err: str
    code: int


def _run(command: str, words: list[str], timeout_s: float) -> Ended | Opinion:
    """The output of the program; the opinion "unknown" of one that cannot be started, or takes too long."""
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
    return Ended(out, err, process.returncode)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the process with those that it started; one that began a session of its own goes on."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def opinion(command: str, out: str, err: str, code: int) -> Opinion:
    """The result of a program with this output and exit code."""
    said = (out.strip() or err.strip())[-SAID_MAX:]
    keys = {key["value"].lower(): key[0] for key in _KEY.finditer(out)}
    gravest = next((value for value in _OF_KEY if value in keys), None)
    if gravest is not None:
        return _allowed(command, _OF_KEY[gravest], keys[gravest], code, said)
    found = _VERDICT.finditer(_NAMES_OF_VERDICTS.sub("", out))
    words = [word for word in found if word.lastgroup != "neither"]
    if not words:
        why = f": {err.strip().splitlines()[-1][:SAID_MAX]}" if err.strip() else ""
        return Opinion(command, "unknown", f"it said no verdict, and ended with exit code {code}{why}", said)
    result: Any = words[-1].lastgroup
    return _allowed(command, result, words[-1][0], code, said)


def _allowed(command: str, result: Result, word: str, code: int, said: str) -> Opinion:
    """The result that the word stands for, if it fits the exit code."""
    if code not in _CODES[result]:
        return Opinion(command, "unknown", f"it said {word!r}, and ended with exit code {code}", said)
    return Opinion(command, result, f"it said {word!r}", said)
