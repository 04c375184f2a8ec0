"""The operator: who is promoted when, and who is told to step down."""

from __future__ import annotations

from typing import Any

from harness.clients.reply import Replied, Reply
from harness.plan.plan import SECOND_NS
from harness.systems.plans import planned
from harness.systems.qsync.operator import LOOK_EVERY_NS, RESUME_EVERY_NS, ClearQueueOperator
from harness.systems.qsync.system import Qsync
from nodes.iproto.messages import Answer, Call, Request
from tests.harness.fake_cluster import FakeCluster

NODES = ("n1", "n2", "n3")


def status(
    node: str, role: str, lsn: int = 1, deaf_to: tuple[str, ...] = (), idle: float = 0.0
) -> dict[str, Any]:
    upstreams = {
        other: {"status": "disconnected" if other in deaf_to else "follow", "idle": idle}
        for other in NODES
        if other != node
    }
    return {"role": role, "term": 1, "vclock": {"1": lsn}, "upstreams": upstreams}


class Nodes(FakeCluster):
    """Nodes that say what a test makes them say; who is promoted becomes the master at once."""

    def __init__(self, **said: dict[str, Any] | None) -> None:
        super().__init__(NODES)
        self.said = said
        self.asked: list[tuple[str, str]] = []

    async def status(self, node: str) -> dict[str, Any] | None:
        return self.said[node]

    async def call(self, process: int, node: str, request: Request, timeout_ns: int) -> Reply:
        assert isinstance(request, Call)
        self.asked.append((request.name, node))
        said = self.said[node]
        assert said is not None, "a node that is down was asked"
        said["role"] = "owner" if request.name == "qsync.take_over" else "replica"
        return Replied(Answer(request.sync))


def watched(nodes: Nodes, looks: int = 3) -> list[tuple[str, str]]:
    """What the operator asks of whom within so many looks."""
    notes: list[tuple[str, str, object]] = []
    operator = ClearQueueOperator(planned(), nodes, lambda *note: notes.append(note), "n1")
    left = iter(range(looks))
    nodes.run(operator.run(lambda: next(left, None) is None))
    return nodes.asked


def test_a_master_that_is_heard_stays() -> None:
    """If it failed, a calm run would change its master, and every run would be one with failovers."""
    nodes = Nodes(n1=status("n1", "owner"), n2=status("n2", "replica"), n3=status("n3", "replica"))
    assert watched(nodes) == []


def test_a_master_that_nobody_hears_is_replaced_by_who_has_most() -> None:
    """If it failed, an isolated master would stay the only one, and nothing that failover breaks would be seen."""
    nodes = Nodes(
        n1=status("n1", "owner", lsn=9, deaf_to=("n2", "n3")),
        n2=status("n2", "replica", lsn=5, deaf_to=("n1",)),
        n3=status("n3", "replica", lsn=7, deaf_to=("n1",)),
    )
    assert watched(nodes) == [("qsync.take_over", "n3")], "once, and the isolated one is not told"


class SlowToStart(Nodes):
    """Real nodes: the time of the run begins when they are up, 5 s after the cluster's."""

    def __init__(self, **said: dict[str, Any] | None) -> None:
        super().__init__(**said)
        self.zero_ns = -5 * SECOND_NS
        self.generations: list[object] = []

    def now_ns(self) -> int:
        return super().now_ns() - self.zero_ns

    def begin_now(self) -> None:
        self.zero_ns = super().now_ns()

    async def call(self, process: int, node: str, request: Request, timeout_ns: int) -> Reply:
        assert isinstance(request, Call)
        self.generations += request.arguments
        return await super().call(process, node, request, timeout_ns)


def test_a_master_is_of_a_newer_generation_than_the_one_of_the_set_up() -> None:
    """If it failed, nodes that are slow to start would have a first master that no failover replaces: each node that is
    promoted would be told to step down at once."""
    nodes = SlowToStart(
        n1=status("n1", "replica", deaf_to=("n2", "n3")),
        n2=status("n2", "replica", deaf_to=("n1",)),
        n3=status("n3", "replica", deaf_to=("n1",)),
    )
    nodes.run(Qsync()._take_over(planned(configuration="B"), nodes))
    nodes.begin_now()
    nodes.zero_ns -= SECOND_NS  # a second later
    operator = ClearQueueOperator(planned(), nodes, lambda *note: None, "n1")
    looks = iter([False, True])
    nodes.run(operator.run(lambda: next(looks)))
    assert nodes.asked == [("qsync.take_over", "n1"), ("qsync.take_over", "n2")]
    assert nodes.generations == [1, 1_001]


def test_silence_for_longer_than_two_heartbeats_is_a_loss() -> None:
    """If it failed, a paused master, whose connections stay, would never be replaced."""
    nodes = Nodes(
        n1=None,
        n2=status("n2", "replica", deaf_to=("n1",)),
        n3=status("n3", "replica", deaf_to=("n1",)),
    )
    assert watched(nodes) == [("qsync.take_over", "n2")]
    silent = Nodes(
        n1=status("n1", "owner", idle=9.0),
        n2=status("n2", "replica", idle=9.0),
        n3=status("n3", "replica", idle=9.0),
    )
    assert watched(silent) == [], "who hears nobody cannot gather a quorum"


def test_without_a_majority_nobody_is_promoted() -> None:
    """If it failed, the operator would make a minority writable."""
    nodes = Nodes(n1=None, n2=status("n2", "replica", deaf_to=("n1", "n3")), n3=None)
    assert watched(nodes) == []


def test_an_old_master_that_is_heard_again_steps_down() -> None:
    """If it failed, two masters would go on for ever after a healed partition."""
    nodes = Nodes(
        n1=status("n1", "owner", deaf_to=("n2", "n3")),
        n2=status("n2", "replica", deaf_to=("n1",)),
        n3=status("n3", "replica", deaf_to=("n1",)),
    )
    operator = ClearQueueOperator(planned(), nodes, lambda *note: None, "n1")
    looks = iter(range(1))
    nodes.run(operator.run(lambda: next(looks, None) is None))
    nodes.said = {
        "n1": status("n1", "owner"),
        "n2": status("n2", "owner") | {"term": 2},
        "n3": status("n3", "replica"),
    }
    looks = iter(range(2))
    nodes.run(operator.run(lambda: next(looks, None) is None))
    assert nodes.asked == [("qsync.take_over", "n2"), ("qsync.step_down", "n1")]


def stopped(node: str, source: str) -> dict[str, Any]:
    said = status(node, "replica")
    said["upstreams"][source] = {"status": "stopped", "message": "Failed to write to disk"}
    return said


def test_replication_that_stopped_is_started_anew_when_all_are_heard() -> None:
    """If it failed, one row that could not be applied would end every run without equal nodes, and hide what it did."""
    nodes = Nodes(n1=status("n1", "owner"), n2=status("n2", "replica"), n3=stopped("n3", "n1"))
    assert watched(nodes) == [("qsync.resume", "n3")], "once, and not again at every look"
    alone = {
        "n1": status("n1", "owner"),
        "n2": status("n2", "replica", deaf_to=("n3",)),
        "n3": stopped("n3", "n1"),
    }
    alone["n1"]["upstreams"]["n3"]["status"] = "disconnected"
    assert watched(Nodes(**alone)) == [], "n3 is heard by nobody: its neighbours would be waited for"
    beside = {
        "n1": status("n1", "owner", deaf_to=("n2",)),
        "n2": status("n2", "replica"),
        "n3": stopped("n3", "n1"),
    }
    beside["n3"]["upstreams"]["n2"]["status"] = "disconnected"
    assert watched(Nodes(**beside)) == [], (
        "n2 is heard by nobody: n3 would wait for it, and get nothing meanwhile"
    )


def test_a_node_whose_rows_nobody_takes_is_not_silent() -> None:
    """If it failed, an old master whose rows all others refuse would stay a master, and nothing be started anew."""
    nodes = Nodes(
        n1=status("n1", "owner"),
        n2=stopped("n2", "n1") | {"role": "owner", "term": 2},
        n3=stopped("n3", "n1"),
    )
    assert watched(nodes, 1) == [("qsync.step_down", "n1"), ("qsync.resume", "n2"), ("qsync.resume", "n3")]
    silent = Nodes(
        n1=status("n1", "owner", deaf_to=("n2", "n3")),
        n2=stopped("n2", "n1"),
        n3=stopped("n3", "n1"),
    )
    assert watched(silent, 1) == [("qsync.take_over", "n2")], "who hears nobody either is cut off"


def test_what_stops_again_is_started_again() -> None:
    """If it failed, a row that can be applied only when another one has come would never be tried again."""
    nodes = Nodes(n1=status("n1", "owner"), n2=status("n2", "replica"), n3=stopped("n3", "n1"))
    looks = 2 * RESUME_EVERY_NS // LOOK_EVERY_NS
    assert 2 <= len(watched(nodes, looks)) <= 3
