"""A whole cluster is stopped at any moment and started again with other options: what it acknowledged stays.

What a row means must stand in the row. Each log is cut at every record (all nodes at one moment), the nodes are started
with each of the options, and every write that was answered before the cut must be there on all of them, or nodes refuse
to start. `2.6` is that version's protocol, whose queue has an owner without a PROMOTE. `unmarked`: the same logs as a
version wrote them that did not say whether a PROMOTE waits.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from harness.systems.qsync import starts
from nodes.iproto import xlog
from nodes.iproto.messages import Answer, Key, Row, Type
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant, Started
from nodes.qsync.filter import number
from nodes.qsync.replica import Replica
from tests import needs
from tests.nodes.qsync.conversation import configuration
from tests.nodes.qsync.virtual_cluster import NAMES, VirtualCluster

OPTIONS: Mapping[str, Mapping[str, object]] = {
    "off": {"election_mode": "off"},
    "candidate": {"election_mode": "candidate"},
    "manual": {"election_mode": "manual"},
    "as shipped": {"election_mode": "candidate", "synchronous_promote": False},
    "2.6": {"protocol": "2.6"},
}
NOT_THE_OWNER = {"2.6": {name: {"read_only": True} for name in NAMES[1:]}}
REFUSALS = ("unmarked_promote", "protocol 2.6")
"""What a refusal names."""
WRITES = 20
Disks = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True)
class Cut:
    """All disks at one moment, and the keys of the writes that were answered before it."""

    disks: Disks
    answered: frozenset[str]
    space: str = "register"


def history(before: str, *, concurrent: bool) -> list[Cut]:
    """A life of a cluster with these options: a leader, writes, another leader, writes; cut at every record."""
    settings = {**OPTIONS[before], "election_timeout_ns": 200_000_000}
    cluster = VirtualCluster(7, settings=settings, of_node=NOT_THE_OWNER.get(before))
    cluster.run(50)
    cuts: list[Cut] = []
    answered: set[str] = set()
    asked: dict[str, int] = {}

    def look() -> None:
        for key, place in asked.items():
            if isinstance(list(cluster.client.asked.values())[place].reply, Answer):
                answered.add(key)
        disks = {name: dict(cluster.machine(name).disk.files()) for name in NAMES}
        if not cuts or cuts[-1].disks != disks:
            cuts.append(Cut(disks, frozenset(answered)))

    def run(milliseconds: int) -> None:
        until_ns = cluster.world.agenda.now_ns + milliseconds * 1_000_000
        while cluster.world.agenda.now_ns < until_ns:
            cluster.world.agenda.advance()
            look()

    def write(node: str, keys: range) -> None:
        for place in keys:
            key = f"k{place}"
            cluster.client.ask(node, "qsync.transaction", (("replace", "register", (key, place)),))
            asked[key] = len(cluster.client.asked) - 1
            if not concurrent:
                run(20)
        run(100)

    for leader, keys in (("n1", range(WRITES // 2)), ("n2", range(WRITES // 2, WRITES))):
        if before in ("off", "manual"):
            if before == "off" and leader == "n2":
                cluster.client.ask("n1", "box.ctl.demote")
                run(100)
            cluster.client.ask(leader, "box.ctl.promote")
        if before == "2.6" and leader == "n2":
            cluster.client.ask("n1", "qsync.step_down")
            cluster.client.ask("n2", "qsync.take_over", 1)
        run(700)
        chosen = next(name for name in NAMES if cluster.node(name).commits.is_writable)
        write(chosen, keys)
    assert len(answered) == WRITES, f"only {len(answered)} writes were answered"
    assert not cluster.crashes
    return cuts


def unmarked(disks: Disks) -> Disks:
    """The same logs without marks at PROMOTE and DEMOTE."""
    return {
        node: {name: _unmarked(data) if name.endswith(".xlog") else data for name, data in files.items()}
        for node, files in disks.items()
    }


def _unmarked(data: bytes) -> bytes:
    found = xlog.decode(data)
    if found.meta is None:
        return data
    rows = [
        replace(row, wait_sync=False, wait_ack=False) if row.type in (Type.PROMOTE, Type.DEMOTE) else row
        for row in found.rows
    ]
    return data[: data.index(b"\n\n") + 2] + b"".join(map(xlog.encode_block, _transactions(rows)))


def missing_after(cut: Cut, after: str, *, may_refuse: bool = True) -> str:
    """What is wrong when a cluster starts on these disks; an empty text if nothing is, or nodes refused to start."""
    settings = {**OPTIONS[after], "election_timeout_ns": 200_000_000}
    cluster = VirtualCluster(11, settings=settings, of_node=NOT_THE_OWNER.get(after), files=cut.disks)
    cluster.run(200)
    if cluster.crashes:
        refusals = [how for _, how in cluster.crashes if any(each in how for each in REFUSALS)]
        is_refused = may_refuse and len(refusals) == len(cluster.crashes)
        return "" if is_refused else f"crashed: {cluster.crashes}"
    if after in ("off", "manual"):
        first = max(NAMES, key=lambda name: sum(cluster.node(name).journal.vclock.values()))
        cluster.client.ask(first, "box.ctl.promote")
    cluster.run(1_500)
    if cluster.crashes:
        return f"crashed: {cluster.crashes}"
    for name in NAMES:
        node = cluster.node(name)
        stopped = {each.peer: each.message for each in node.appliers.values() if each.state == "stopped"}
        if stopped:
            return f"{name} stopped following: {stopped}"
        register = next(space for space in node.schema.user_spaces() if space.definition.name == cut.space)
        lost = cut.answered - {str(key[0]) for key in register.scan(dirty=False)}
        if lost:
            return f"{name} lost {len(lost)} of {len(cut.answered)} acknowledged writes: {sorted(lost)[:3]} …"
    return ""


HISTORIES: dict[tuple[str, bool], list[Cut]] = {}


def cuts_of(before: str, *, concurrent: bool) -> list[Cut]:
    if (before, concurrent) not in HISTORIES:
        HISTORIES[before, concurrent] = history(before, concurrent=concurrent)
    return HISTORIES[before, concurrent]


Places = Callable[[int], Iterable[int]]
"""Where a life is cut that has so many records."""


def in_the_middle(count: int) -> Iterable[int]:
    return [count // 2]


def in_the_middle_and_at_the_end(count: int) -> Iterable[int]:
    return [count // 2, count - 1]


def wrong(
    before: str, after: str, *, marks: bool, places: Places = range, is_quick: bool = False
) -> dict[int, str]:
    """What is lost, by the place of the cut; negative: where the writes were made one after another.

    `is_quick`: such writes are left out.
    """
    found = {}
    for concurrent in (True,) if is_quick else (True, False):
        cuts = cuts_of(before, concurrent=concurrent)
        for place in places(len(cuts)):
            cut = cuts[place] if marks else replace(cuts[place], disks=unmarked(cuts[place].disks))
            why = missing_after(cut, after)
            if why:
                found[place if concurrent else -place - 1] = why
    return found


@pytest.mark.parametrize("marks", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("off", "candidate"),
        ("candidate", "off"),
        ("candidate", "candidate"),
        ("candidate", "as shipped"),
        ("as shipped", "candidate"),
        ("as shipped", "off"),
        ("2.6", "2.6"),
        ("2.6", "candidate"),
        ("candidate", "2.6"),
    ],
)
def test_other_options_lose_nothing(before: str, after: str, marks: bool) -> None:
    """Broken, a cluster that is started again with other options forgets what it acknowledged, and says nothing."""
    assert wrong(before, after, marks=marks, places=in_the_middle, is_quick=True) == {}


@pytest.mark.long
@pytest.mark.parametrize("marks", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("after", ["off", "candidate", "as shipped", "2.6"])
@pytest.mark.parametrize("before", ["off", "candidate", "as shipped", "2.6"])
def test_other_options_lose_nothing_at_the_end(before: str, after: str, marks: bool) -> None:
    """As above, and cut behind the last record, of concurrent writes and of others."""
    assert wrong(before, after, marks=marks, places=in_the_middle_and_at_the_end) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("marks", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("after", OPTIONS)
@pytest.mark.parametrize("before", OPTIONS)
def test_other_options_lose_nothing_at_any_record(before: str, after: str, marks: bool) -> None:
    """As above, cut at every record."""
    assert wrong(before, after, marks=marks) == {}


def test_a_snapshot_of_2_6_can_be_started_from_with_elections() -> None:
    """Broken, the way that the refusal of a log of 2.6 names does not keep what was acknowledged."""
    cluster = VirtualCluster(3, settings=OPTIONS["2.6"], of_node=NOT_THE_OWNER["2.6"])
    cluster.run(100)
    keys = frozenset(f"k{number}" for number in range(5))
    for key in sorted(keys):
        cluster.client.ask("n1", "qsync.transaction", (("replace", "register", (key, 1)),))
    cluster.run(200)
    for name in NAMES:
        cluster.client.ask(name, "box.snapshot")
    cluster.run(200)
    assert all(isinstance(asked.reply, Answer) for asked in cluster.client.asked.values())
    cut = Cut({name: dict(cluster.machine(name).disk.files()) for name in NAMES}, keys)
    assert missing_after(cut, "candidate", may_refuse=False) == ""


def cuts_of_real_2_6() -> list[Cut]:
    """The stored log of a real server, cut at every record; the last with the server's snapshot."""
    configurations = VirtualCluster(0).configurations
    name = "tarantool-2.6.0"
    found = []
    for place in starts.cuts_for(name, "2.6", len(NAMES)):
        start = starts.start_of(f"{name}@{place}")
        keys = frozenset(key for key, _ in start.answered)
        found.append(Cut(starts.files_of(start, configurations), keys, starts.SPACE.name))
    return found


@pytest.mark.parametrize(
    ("after", "every"),
    [
        *((after, 4) for after in OPTIONS),
        *(pytest.param(after, 1, marks=pytest.mark.long) for after in OPTIONS),
    ],
)
def test_other_options_lose_nothing_of_logs_of_real_2_6(after: str, every: int) -> None:
    """Broken, what an owner without a PROMOTE confirmed is lost when other options are set; or the way out, which the
    refusal names, does not keep it."""
    *cuts, whole = cuts_of_real_2_6()
    some = list(enumerate(cuts))[::-every]
    assert {place: why for place, cut in some if (why := missing_after(cut, after))} == {}
    assert len(whole.answered) == 13
    assert missing_after(whole, after, may_refuse=False) == ""


REAL = """
box.cfg{{log = 'tarantool.log', feedback_enabled = false, replication_synchro_timeout = 0.1,
        instance_uuid = '{}', replicaset_uuid = '{}'}}
local parts = {{{{1, 'string'}}}}
box.schema.space.create('register', {{id = 512, is_sync = true}}):create_index('primary', {{parts = parts}})
local fiber = require('fiber')
local writers = {{}}
for i = 1, 20 do
    writers[i] = fiber.new(box.space.register.replace, box.space.register, {{'k' .. i, i}})
    writers[i]:set_joinable(true)
    if i % 4 == 0 then fiber.sleep(0.01) end
end
for i = 1, 20 do writers[i]:join() end
box.cfg{{replication_synchro_quorum = 2}}
pcall(box.space.register.replace, box.space.register, {{'never', 1}})
os.exit(0)
"""
WITHOUT_RAFT = {name: options for name, options in OPTIONS.items() if name != "2.6"}


@pytest.mark.real
@needs.tarantool
def test_logs_of_real_2_6_lose_nothing_at_any_record(tmp_path: Path) -> None:
    """Broken, a log that real 2.6.0 wrote is read, and what it confirmed is not there: its queue has no PROMOTE."""
    base = configuration("n1", nodes=1, quorum=1)
    (tmp_path / "script.lua").write_text(REAL.format(base.instance_uuid, base.cluster_uuid))
    subprocess.run(["tarantool", "script.lua"], cwd=tmp_path, check=True, timeout=60, capture_output=True)
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".snap", ".xlog")}
    log, *empty = sorted(name for name in files if name.endswith(".xlog"))
    for name in empty:  # begun when the server ended
        del files[name]
    found = xlog.decode(files[log])
    assert found.meta is not None
    header = files[log][: files[log].index(b"\n\n") + 2]
    ends = [place for place, row in enumerate(found.rows, start=1) if row.is_commit]
    refused = 0
    for end in (0, *ends):
        rows = found.rows[:end]
        cut = {**files, log: header + b"".join(map(xlog.encode_block, _transactions(rows)))}
        kept = max([number(row, Key.LSN) for row in rows if row.type == Type.CONFIRM], default=0)
        wanted = {
            row.body[Key.TUPLE.value][0] for row in rows if row.lsn <= kept and Key.TUPLE.value in row.body
        }  # type: ignore[index]
        node = Replica(replace(base, protocol="2.6"))
        node.step(Started(cut), Instant(0, 0))
        held = {str(key[0]) for key in node.schema.lookup["register"].scan(dirty=False)} if wanted else set()
        assert held == {key for key in wanted if str(key).startswith("k")}, end
        has_synchronous = any(row.body.get(Key.SPACE_ID.value) == 512 for row in rows)
        for options in WITHOUT_RAFT.values():
            other = Replica(replace(base, **options))  # type: ignore[arg-type]
            if has_synchronous:
                refused += 1
                with pytest.raises(StartRefused, match=r"protocol 2\.6"):
                    other.step(Started(cut), Instant(0, 0))
            else:
                other.step(Started(cut), Instant(0, 0))
    assert refused > 50, "hardly anything was tried"


def _transactions(rows: Sequence[Row]) -> Iterator[list[Row]]:
    one: list[Row] = []
    for row in rows:
        one.append(row)
        if row.is_commit:
            yield one
            one = []


class Mixed:
    """A cluster whose nodes have different options, and a client that writes to whichever node is writable."""

    def __init__(self, seed: int, modes: Mapping[str, str]) -> None:
        of_node = {
            name: {"election_mode": mode, "election_timeout_ns": 200_000_000} for name, mode in modes.items()
        }
        self.cluster = VirtualCluster(seed, of_node=of_node)
        self.asked: dict[str, int] = {}
        self.cluster.run(300)

    def configure(self, name: str, mode: str) -> None:
        self.cluster.client.ask(name, "box.cfg", {"election_mode": mode})
        self.cluster.run(300)

    def write(self, count: int = 3) -> None:
        """To the node that takes writes; none if there is none at the moment."""
        for _ in range(count):
            writable = [name for name in NAMES if self.cluster.node(name).commits.is_writable]
            if writable:
                key = f"k{len(self.asked)}"
                self.cluster.client.ask(
                    writable[0], "qsync.transaction", (("replace", "register", (key, 1)),)
                )
                self.asked[key] = len(self.cluster.client.asked) - 1
            self.cluster.run(40)

    def check(self) -> None:
        """All follow all, nothing has stopped, and what was answered is on every node."""
        self.cluster.run(2_000)
        assert not self.cluster.crashes
        replies = list(self.cluster.client.asked.values())
        answered = {key for key, place in self.asked.items() if isinstance(replies[place].reply, Answer)}
        for name in NAMES:
            node = self.cluster.node(name)
            assert [each.message for each in node.appliers.values() if each.message] == [], name
            register = next(
                space for space in node.schema.user_spaces() if space.definition.name == "register"
            )
            assert answered <= {str(key[0]) for key in register.scan(dirty=False)}, name
        assert answered, "nothing was written"
        before = len(answered)
        self.write(1)
        self.cluster.run(500)
        replies = list(self.cluster.client.asked.values())
        assert sum(isinstance(replies[place].reply, Answer) for place in self.asked.values()) > before, (
            "no more writes"
        )


@pytest.mark.parametrize("mode", ["off", "voter", "manual"])
@pytest.mark.parametrize("seed", range(3))
def test_a_node_with_another_mode_follows(seed: int, mode: str) -> None:
    """Broken, a node without elections among candidates stops with a split-brain that there is not."""
    mixed = Mixed(seed, {"n1": "candidate", "n2": "candidate", "n3": mode})
    mixed.cluster.run(1_500)
    mixed.write()
    mixed.check()
    mixed.configure("n3", "candidate")
    mixed.write()
    mixed.check()


@pytest.mark.parametrize("seed", range(3))
def test_elections_are_switched_on_node_by_node(seed: int) -> None:
    """Broken, the only way to elections without an outage makes the last node stop."""
    mixed = Mixed(seed, dict.fromkeys(NAMES, "off"))
    mixed.cluster.client.ask("n1", "box.ctl.promote")
    mixed.cluster.run(500)
    mixed.write()
    for name in NAMES:
        mixed.configure(name, "candidate")
        mixed.write()
    mixed.check()


@pytest.mark.parametrize("seed", range(3))
def test_elections_are_switched_off_node_by_node(seed: int) -> None:
    """Broken, all nodes stop, and writes time out."""
    mixed = Mixed(seed, dict.fromkeys(NAMES, "candidate"))
    mixed.cluster.run(1_500)
    mixed.write()
    for name in NAMES:
        mixed.configure(name, "off")
        mixed.write()
    mixed.cluster.client.ask("n1", "box.ctl.promote")
    mixed.check()


@pytest.mark.parametrize("seed", range(10))
def test_a_follower_that_is_off_for_a_while_deposes_nobody(seed: int) -> None:
    """Broken, a follower that is switched off and on again begins an election against a living leader."""
    mixed = Mixed(seed, dict.fromkeys(NAMES, "candidate"))
    mixed.cluster.run(1_500)
    leader = next(name for name in NAMES if mixed.cluster.node(name).election.is_leader)
    follower = next(name for name in NAMES if name != leader)
    term = mixed.cluster.node(leader).election.term
    mixed.configure(follower, "off")
    mixed.configure(follower, "candidate")
    mixed.cluster.run(2_000)
    assert mixed.cluster.node(leader).election.is_leader
    assert mixed.cluster.node(leader).election.term == term
