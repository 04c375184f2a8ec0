"""Logs that a real Tarantool (2.6) wrote, audited: its rows have no flags, and its spaces say what is synchronous."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from checkers.logs.wal import LogRules, Logs, check
from checkers.logs.wal.nodes import FATES
from harness.systems.qsync.logs import read_log
from tests import needs

pytestmark = [pytest.mark.real, needs.tarantool]

SCRIPT = """
box.cfg{log = 'tarantool.log', feedback_enabled = false, replication_synchro_timeout = 0.1}
box.schema.space.create('plain'):create_index('primary', {parts = {1, 'string'}})
box.schema.space.create('synchronous', {is_sync = true}):create_index('primary', {parts = {1, 'string'}})
box.snapshot()
box.space.synchronous:replace{'x', 1}
box.space.plain:replace{'x', 2}
box.cfg{replication_synchro_quorum = 2}
pcall(box.space.synchronous.replace, box.space.synchronous, {'x', 3})
box.cfg{replication_synchro_quorum = 1}
box.space.synchronous:replace{'x', 4}
os.exit(0)
"""


def test_what_tarantool_confirmed_and_rolled_back_is_read_from_its_log(tmp_path: Path) -> None:
    """Breaks if the audit misread real logs: a space's option, a ROLLBACK, or a log that begins at a snapshot."""
    folder = tmp_path / "master"
    folder.mkdir()
    (folder / "script.lua").write_text(SCRIPT)
    subprocess.run(["tarantool", "script.lua"], cwd=folder, check=True, timeout=30, capture_output=True)
    rules = LogRules(promotes="at once", has_votes=False)
    (node,) = Logs.of([read_log(folder)], rules).nodes
    fates = node.fates[node.rows.transaction[node.at]].tolist()
    said = {
        row.tuple: FATES[fate]
        for row, fate in zip(node.log.records, fates, strict=True)
        if row.tuple[:1] == ("x",)
    }
    assert said == {
        ("x", 1): "confirmed",
        ("x", 2): "committed",
        ("x", 3): "rolled back",
        ("x", 4): "confirmed",
    }
    assert check([node.log], rules).result == "valid"
