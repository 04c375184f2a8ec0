"""Which folders are those of nodes."""

from __future__ import annotations

from pathlib import Path

from harness.systems.qsync.logs import read_logs
from nodes.iproto import xlog
from nodes.kernel.effects import REMOVED


def test_the_logs_that_a_node_removed_are_no_second_node(tmp_path: Path) -> None:
    """If it failed, the folder of one node would be audited as that of two, which share an identity."""
    node = tmp_path / "n1"
    for folder in (node, node / REMOVED):
        folder.mkdir()
        header = xlog.encode_header("XLOG", "00000000-0000-4000-8000-000000000001", {})
        (folder / xlog.file_name({})).write_bytes(header)
    assert [log.node for log in read_logs(node)] == ["n1"]
    assert [log.node for log in read_logs(tmp_path)] == ["n1"]
