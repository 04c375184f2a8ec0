"""Rare turns in the logs of real nodes, and what else such a log may have."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from harness.cluster.node_log import rare_turns, shift_log


def test_each_life_counts_and_what_is_no_such_line_does_not(tmp_path: Path) -> None:
    """If it failed, a night would count states that no node reached, or none of those that one did."""
    lines = [
        json.dumps({"message": "rare turn", "row": "split vote"}),
        json.dumps({"message": "ready", "why": "rare turn"}),
        json.dumps({"message": "rare turn", "row": "split vote"}),
        json.dumps({"message": "rare turn", "row": "fenced"}),
        json.dumps({"message": "rare turn"}),
        '"rare turn"',
        "Traceback: rare turn",
        '{"message": "rare turn", "x": ' + "[" * 100_000,
        '{"message": "rare turn", "row": "to',
    ]
    (tmp_path / "n1.jsonl").write_text("\n".join(lines))
    (tmp_path / "n2.jsonl").write_text(lines[3] + "\n")
    logs = [tmp_path / name for name in ("n1.jsonl", "n2.jsonl", "missing.jsonl")]
    assert rare_turns(logs) == {"split vote": 2, "fenced": 2}


def test_a_log_begins_with_the_run_and_else_stays_as_it_was(tmp_path: Path) -> None:
    """If it failed, a line of a node would stand at the wrong time, or be lost."""
    log = tmp_path / "log.jsonl"
    lines = (
        '{"time_ns":1000,"message":"é\u2028\\ud800"}\n',
        "no JSON\n",
        "\n",
        '{"time_ns":"odd"}\n',
        "[" * 100_000 + "\n",
        '{"time_ns":7}',
    )
    log.write_text("".join(lines))
    shift_log(log, 400)
    assert log.read_text() == "".join((lines[0].replace("1000", "600"), *lines[1:5], '{"time_ns":-393}'))
    assert list(tmp_path.iterdir()) == [log]
    shift_log(tmp_path / "none.jsonl", 400)


FULL = """
import resource, signal, sys
from pathlib import Path
from harness.cluster.node_log import shift_log
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    shift_log(Path(sys.argv[1]), 7)
except OSError as error:
    print(error.strerror)
"""


def test_a_full_disk_takes_nothing_from_a_log(tmp_path: Path) -> None:
    """If it failed, the log of a node would be lost at the end of its run, when the disk is full."""
    log = tmp_path / "log.jsonl"
    text = '{"time_ns":1000,"message":"ready"}\n' * 100
    log.write_text(text)
    done = subprocess.run([sys.executable, "-c", FULL, str(log)], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large\n"
    assert log.read_text() == text
    assert list(tmp_path.iterdir()) == [log]
