"""Rare turns in the logs of real nodes, and what else such a log may have."""

from __future__ import annotations

import json
from pathlib import Path

from harness.cluster.node_log import rare_turns


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
        '{"message": "rare turn", "row": "to',
    ]
    (tmp_path / "n1.jsonl").write_text("\n".join(lines))
    (tmp_path / "n2.jsonl").write_text(lines[3] + "\n")
    logs = [tmp_path / name for name in ("n1.jsonl", "n2.jsonl", "missing.jsonl")]
    assert rare_turns(logs) == {"split vote": 2, "fenced": 2}
