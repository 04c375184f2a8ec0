"""A whole cluster is stopped at any moment and started again with other options: what it acknowledged stays.

What a row means must stand in the row. Each log of `CASES` is cut at every record (all nodes at one moment), the nodes
are started with each of the options, and every write that was answered before the cut must be there on all of them, or
nodes refuse to start. `unmarked`: the same logs as a version wrote them that did not say whether a PROMOTE waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest

from nodes.iproto import xlog
from nodes.iproto.messages import Answer, Type
from tests.nodes.qsync.virtual_cluster import NAMES, VirtualCluster

OPTIONS: Mapping[str, Mapping[str, object]] = {
    "off": {"election_mode": "off"},
    "candidate": {"election_mode": "candidate"},
    "manual": {"election_mode": "manual"},
    "as shipped": {"election_mode": "candidate", "synchronous_promote": False},
}
WRITES = 20
Disks = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True)
class Cut:
    """All disks at one moment, and the keys of the writes that were answered before it."""

    disks: Disks
    answered: frozenset[str]


def history(before: str, *, concurrent: bool) -> list[Cut]:
    """A life of a cluster with these options: a leader, writes, another leader, writes; cut at every record."""
    cluster = VirtualCluster(7, settings={**OPTIONS[before], "election_timeout_ns": 200_000_000})
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
        for number in keys:
            key = f"k{number}"
            cluster.client.ask(node, "qsync.transaction", (("replace", "register", (key, number)),))
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
    blocks, rows = [], []
    for row in found.rows:
        is_promotion = row.type in (Type.PROMOTE, Type.DEMOTE)
        rows.append(replace(row, wait_sync=False, wait_ack=False) if is_promotion else row)
        if row.is_commit:
            blocks.append(xlog.encode_block(rows))
            rows = []
    return data[: data.index(b"\n\n") + 2] + b"".join(blocks)


def missing_after(cut: Cut, after: str, *, of_node: Mapping[str, Mapping[str, object]] | None = None) -> str:
    """What is wrong when a cluster starts on these disks; an empty text if nothing is, or nodes refused to start."""
    settings = {**OPTIONS[after], "election_timeout_ns": 200_000_000}
    cluster = VirtualCluster(11, settings=settings, of_node=of_node, files=cut.disks)
    cluster.run(200)
    if cluster.crashes:
        refusals = [how for _, how in cluster.crashes if "unmarked_promote" in how]
        return "" if len(refusals) == len(cluster.crashes) else f"crashed: {cluster.crashes}"
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
        register = next(space for space in node.schema.user_spaces() if space.definition.name == "register")
        lost = cut.answered - {str(key[0]) for key in register.scan(dirty=False)}
        if lost:
            return f"{name} lost {len(lost)} of {len(cut.answered)} acknowledged writes: {sorted(lost)[:3]} …"
    return ""


HISTORIES: dict[tuple[str, bool], list[Cut]] = {}


def cuts_of(before: str, *, concurrent: bool) -> list[Cut]:
    if (before, concurrent) not in HISTORIES:
        HISTORIES[before, concurrent] = history(before, concurrent=concurrent)
    return HISTORIES[before, concurrent]


def wrong(before: str, after: str, *, marks: bool, everywhere: bool) -> dict[int, str]:
    """What is lost, by the place of the cut; negative: where the writes were made one after another."""
    found = {}
    for concurrent in (True, False):
        cuts = cuts_of(before, concurrent=concurrent)
        some = [len(cuts) - 1, len(cuts) // 2] if concurrent else [len(cuts) - 1]
        for place in range(len(cuts)) if everywhere else some:
            cut = cuts[place] if marks else replace(cuts[place], disks=unmarked(cuts[place].disks))
            why = missing_after(cut, after)
            if why:
                found[place if concurrent else -place - 1] = why
    return found


@pytest.mark.parametrize("marks", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("after", ["off", "candidate", "as shipped"])
@pytest.mark.parametrize("before", ["off", "candidate", "as shipped"])
def test_other_options_lose_nothing(before: str, after: str, marks: bool) -> None:
    """Broken, a cluster that is started again with other options forgets what it acknowledged, and says nothing."""
    assert wrong(before, after, marks=marks, everywhere=False) == {}


@pytest.mark.nightly
@pytest.mark.parametrize("marks", [True, False], ids=["marked", "unmarked"])
@pytest.mark.parametrize("after", OPTIONS)
@pytest.mark.parametrize("before", OPTIONS)
def test_other_options_lose_nothing_at_any_record(before: str, after: str, marks: bool) -> None:
    """As above, cut at every record."""
    assert wrong(before, after, marks=marks, everywhere=True) == {}


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
