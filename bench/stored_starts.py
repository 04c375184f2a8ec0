"""Writes a stored start: the logs of a cluster, and what clients were told at each record.

`harness.systems.qsync.starts` describes the form. TO is its folder.

    git archive fc6d03c | tar x -C /tmp/old
    (cd /tmp/old && PYTHONPATH=/tmp/old python -P HERE/bench/stored_starts.py elections TO)
    python -m bench.stored_starts tarantool TO

The first argument is what is to be written: `elections`, `at-once`, `by-hand`, or `tarantool`. All but `tarantool` are
written by the nodes of the checkout that is imported: of an older version, to be worth storing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from nodes.iproto import xlog
from nodes.iproto.messages import Answer, Key, Type
from nodes.qsync.configuration import SpaceDefinition
from tests.nodes.qsync.virtual_cluster import NAMES, VirtualCluster

STORED = SpaceDefinition(id=1024, name="stored", is_sync=True)
"""As in `harness.systems.qsync.starts`, which an older checkout does not have."""
LOG = "00000000000000000000.xlog"
WRITES = 6
"""By each leader."""
AT_ONCE = 3
OURS: Mapping[str, Mapping[str, object]] = {
    "elections": {"election_mode": "candidate"},
    "at-once": {"election_mode": "candidate", "synchronous_promote": False},
    "by-hand": {"election_mode": "off"},
}
SUMMARY = {
    "elections": "elections, PROMOTEs that waited and do not say so",
    "at-once": "as shipped: elections, PROMOTEs at once that do not say so",
    "by-hand": "no elections, PROMOTEs at once that do not say so",
    "tarantool": "real Tarantool 2.6.0: an owner without a PROMOTE",
}
MEANS = {"elections": "waits", "at-once": "at once", "by-hand": "at once"}
REAL = """
box.cfg{log = 'tarantool.log', feedback_enabled = false, replication_synchro_timeout = 0.1}
box.schema.space.create('stored', {id = 1024, is_sync = true}):create_index('primary', {parts = {{1, 'string'}}})
local fiber = require('fiber')
local writers = {}
for i = 1, 12 do
    writers[i] = fiber.new(box.space.stored.replace, box.space.stored, {'stored-' .. i, i})
    writers[i]:set_joinable(true)
    if i % 4 == 0 then fiber.sleep(0.01) end
end
for i = 1, 12 do writers[i]:join() end
box.cfg{replication_synchro_quorum = 2}
pcall(box.space.stored.replace, box.space.stored, {'stored-13', 13})
box.cfg{replication_synchro_quorum = 1}
box.space.stored:replace({'stored-14', 14})
box.snapshot()
os.exit(0)
"""


def ours(name: str) -> tuple[dict[str, bytes], dict[str, object]]:
    """A leader, writes, another leader, writes, the first leader again, writes."""
    settings = {**OURS[name], "election_timeout_ns": 200_000_000, "spaces": (STORED,)}
    cluster = VirtualCluster(7, settings=settings)
    cluster.run(50)
    asked: dict[int, int] = {}
    answered: dict[int, None] = {}
    cuts: list[list[int]] = []

    def look() -> None:
        replies = list(cluster.client.asked.values())
        for number, place in asked.items():
            if isinstance(replies[place].reply, Answer):
                answered.setdefault(number)
        cut = [*(len(cluster.machine(node).disk.files().get(LOG, b"")) for node in NAMES), len(answered)]
        if not cuts or cuts[-1] != cut:
            cuts.append(cut)

    def run(milliseconds: int) -> None:
        until_ns = cluster.world.agenda.now_ns + milliseconds * 1_000_000
        while cluster.world.agenda.now_ns < until_ns:
            cluster.world.agenda.advance()
            look()

    for turn, leader in enumerate(("n1", "n2", "n1")):
        if name == "by-hand" and turn:
            cluster.client.ask("n2" if leader == "n1" else "n1", "box.ctl.demote")
            run(100)
        cluster.client.ask(leader, "box.ctl.promote")
        run(600)
        for number in range(turn * WRITES + 1, (turn + 1) * WRITES + 1):
            row = (f"stored-{number}", number)
            cluster.client.ask(leader, "qsync.transaction", (("replace", "stored", row),))
            asked[number] = len(cluster.client.asked) - 1
            if number % AT_ONCE == 0:
                run(30)
        run(100)
    assert len(answered) == 3 * WRITES, f"{len(answered)} writes were answered"
    assert not cluster.crashes
    logs = {f"{node}.xlog": cluster.machine(node).disk.files()[LOG] for node in NAMES}
    return logs, {
        "protocol": "3.2",
        "unmarked_promote": MEANS[name],
        "answered": [[f"stored-{number}", number] for number in answered],
        "cuts": cuts,
    }


def tarantool() -> tuple[dict[str, bytes], dict[str, object]]:
    """One server; a write without a quorum is rolled back; a snapshot at the end."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "script.lua").write_text(REAL, encoding="utf-8")
        subprocess.run(["tarantool", "script.lua"], cwd=folder, check=True, timeout=60, capture_output=True)
        files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
    snapshot = max(name for name in files if name.endswith(".snap"))
    data = files[LOG]
    rows = xlog.decode(data).rows
    told: list[list[object]] = []
    cuts: list[list[int]] = []
    for place, row in enumerate(rows, start=1):
        if not row.is_commit:
            continue
        if row.type == Type.CONFIRM:
            until = row.body[Key.LSN.value]
            assert isinstance(until, int)
            confirmed = [
                list(each.body[Key.TUPLE.value])  # type: ignore[call-overload]
                for each in rows[:place]
                if each.body.get(Key.SPACE_ID.value) == STORED.id and each.lsn <= until
            ]
            told += [each for each in confirmed if each not in told and each != ["stored-13", 13]]
        length = _length(data, place)
        if cuts and cuts[-1][0] == length:  # the server wrote several transactions at once
            cuts.pop()
        cuts.append([length, len(told)])
    logs = {"n1.xlog": data, snapshot: files[snapshot]}
    return logs, {"protocol": "2.6", "unmarked_promote": None, "answered": told, "cuts": cuts}


def _length(data: bytes, rows: int) -> int:
    """How many bytes the first rows of a log take: blocks end with transactions."""
    low, high = data.index(b"\n\n") + 2, len(data)
    while low < high:
        middle = (low + high) // 2
        if len(xlog.decode(data[:middle]).rows) >= rows:
            high = middle
        else:
            low = middle + 1
    return low


def main(what: str, folder: str) -> None:
    files, told = tarantool() if what == "tarantool" else ours(what)
    names = {"tarantool": "tarantool-2.6.0"}
    start = Path(folder) / names.get(what, f"unmarked-{what}")
    start.mkdir(exist_ok=True)
    for name, data in files.items():
        (start / name).write_bytes(data)
    told = {"summary": SUMMARY[what], **told}
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in told.items()]
    (start / "start.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
