"""Which folders are those of nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.systems.qsync.logs import read_logs
from nodes.iproto import xlog
from nodes.iproto.messages import Row, Type
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


@pytest.mark.parametrize("space", [{}, [1], "x"])
def test_a_space_that_is_no_number_is_no_definition(space: Any, tmp_path: Path) -> None:
    """If it failed, logs with whole blocks and odd rows, as of a store that is not ours, would end an audit with a
    traceback."""
    uuid = "00000000-0000-4000-8000-000000000001"
    odd = Row(Type.CONFIRM, 1, 1, 1.0, 1, body={16: space, 2: 1, 3: 0})
    wrong = Row(Type.INSERT, 0, 1, 1.0, 1, body={16: space, 33: (1,)})
    for kind, row in (("XLOG", odd), ("SNAP", wrong)):
        data = xlog.encode_header(kind, uuid, {}) + xlog.encode_block([row]) + xlog.encode_eof()
        (tmp_path / f"{0:020}.{kind.lower()}").write_bytes(data)
    (log,) = read_logs(tmp_path)
    assert [record.kind for record in log.records] == ["confirm"]
    assert "expected int under key 16" in " ".join(log.unread)
