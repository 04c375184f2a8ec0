"""`qsync check PATH --shiviz FILE`: the messages of a run as a file that ShiViz reads."""

from __future__ import annotations

import json
import re
from pathlib import Path

from checkers.cuts.neighbourhood import SHIVIZ_EXPRESSION
from harness.cli.exit_codes import ExitCode
from tests.harness.cli.verbs.conftest import Qsync

RUN = ("--cluster", "sim", "--time-limit", "2", "--rate", "40", "--faults", "none", "--seed", "1")


def test_the_messages_of_a_run_are_written_with_their_clocks(
    qsync: Qsync, results: Path, tmp_path: Path
) -> None:
    """Broken, ShiViz would draw no arrow, or refuse the file."""
    qsync("run", "--system", "twophase", *RUN)
    file = tmp_path / "log.txt"
    assert qsync("check", results / "latest", "--shiviz", file).code == ExitCode.VALID
    pattern = re.compile(SHIVIZ_EXPRESSION.replace("?<", "?P<"))
    found = [pattern.fullmatch(line) for line in file.read_text().splitlines()]
    assert len(found) > 100
    assert all(found), "each line is an event"
    clocks = [json.loads(each["clock"]) for each in found if each is not None]
    assert any(len(clock) > 1 for clock in clocks), "a receipt knows its sender's clock"
    hosts = {each["host"] for each in found if each is not None}
    assert hosts == {"n1", "n2", "n3"}


def test_a_run_without_messages_is_refused_in_one_line(qsync: Qsync, results: Path, tmp_path: Path) -> None:
    """Broken, an empty file would look like a run in which no node said anything."""
    qsync("run", *RUN)
    said = qsync("check", results / "latest", "--shiviz", tmp_path / "log.txt")
    assert said.code == ExitCode.WRONG_USE
    assert "has no record of the messages between nodes" in said.line
    history = tmp_path / "history.edn"
    history.write_text("{:type :invoke, :process 0, :f :write, :value [x 1]}\n")
    said = qsync("check", history, "--shiviz", tmp_path / "log.txt")
    assert said.code == ExitCode.WRONG_USE
    assert "is a history, and has no messages" in said.line
