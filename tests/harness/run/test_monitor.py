"""The monitor, with a made-up cluster: nodes that end are noted, and looked for where a cluster has to look."""

from __future__ import annotations

from collections.abc import Sequence

from harness.cluster.protocol import Ended
from harness.errors import ClusterError
from harness.judge.evidence.damage import could_not_join
from harness.run.conductor import Conductor
from harness.systems.qsync.system import Qsync, QsyncMembers
from tests.harness.fake_cluster import FakeCluster
from tests.harness.run.conducted import MILLISECOND_NS, PAUSE, AtTime, Recorded, drawn, operation

NOBODY_THERE = "can't initialize storage: nobody is there"


def test_crashes_and_stalls_are_recorded() -> None:
    """If it failed, a node that died of itself, or a harness that stood still, would leave no trace."""
    cluster = FakeCluster()
    at: AtTime = {
        20: lambda _: cluster.to_end.append(Ended("n2", 20 * MILLISECOND_NS, "signal 11")),
        25: lambda _: cluster.to_end.append(Ended("n3", 25 * MILLISECOND_NS, "signal 9", (), "Killed 5")),
        30: lambda _: cluster.to_stall.append((25 * MILLISECOND_NS, 420)),
    }
    history = Recorded(drawn(operation(10), operation(40)), cluster, at=at).history
    died = [(crash.node, crash.how, crash.out_of_memory) for crash in history.crashes]
    assert died == [("n2", "signal 11", ""), ("n3", "signal 9", "Killed 5")]
    assert [stall.stalled_ms for stall in history.stalls] == [420]


class Refused(QsyncMembers):
    def cannot_join(self, how: str, last_words: Sequence[str]) -> str:
        return NOBODY_THERE if how == "exit 1" and NOBODY_THERE in last_words else ""


class TellsWhy(Qsync):
    @property
    def members(self) -> QsyncMembers:
        return Refused(self)


def test_a_newcomer_whom_nobody_takes_in_has_not_crashed() -> None:
    """If it failed, a store would be accused of a crash where it said that there is nobody to join; or a member that
    lost all that it had could say so, too, and had not crashed."""
    said = NOBODY_THERE
    cluster = FakeCluster()
    ends = [
        Ended("n2", 0, "exit 1", ("hello", said)),
        Ended("n2", 1, "exit 1", (said,)),
        Ended("n2", 9, "exit 1", (said,)),
        Ended("n3", 2, "exit 1", ("other words",)),
        Ended("n1", 3, "exit 1", (said,)),
    ]

    def ended(conductor: Conductor) -> None:
        deployed = conductor._deployed
        deployed.joined.update(n2=b"", n3=b"")
        deployed.full_ns["n2"] = 5
        cluster.to_end.extend(ends)

    history = Recorded(drawn(operation(10)), cluster, at={5: ended}, system=TellsWhy()).history
    assert [crash.node for crash in history.crashes] == ["n2", "n3", "n1"]
    assert could_not_join(history) == (f"n2 could not join 2 times, and ended: {said}",)


class Looks(FakeCluster):
    """Is not told who ends: it has to look."""

    async def look(self) -> None:
        self._asked("look")
        self.to_end.append(Ended("n3", self.now_ns(), "signal 6"))


def test_who_ended_last_is_looked_for_before_the_run_is_over() -> None:
    """If it failed, a crash in the last moment of a run in containers would be told by nobody."""
    recorded = Recorded(drawn(operation(10)), Looks())
    assert [(crash.node, crash.how) for crash in recorded.history.crashes] == [("n3", "signal 6")]


def test_a_run_of_which_nobody_can_say_who_ended_has_failed() -> None:
    """If it failed, a daemon that hangs would make a green run of one with crashes."""
    cluster = Looks(raises={"look": ClusterError("it is unknown whether a node crashed")})
    recorded = Recorded(drawn(operation(10)), cluster)
    assert isinstance(recorded.error, ClusterError)
    assert "is unknown" in recorded.error.message
    assert cluster.stopped
    assert cluster.calls.count("look") == 1, "a daemon that hangs is not waited for twice"


def test_who_broke_the_run_by_ending_is_looked_for() -> None:
    """If it failed, a crash in containers that keeps a fault from healing would be no evidence, and no anomaly."""
    cluster = Looks(raises={"heal": ClusterError("n3 cannot be started again")})
    recorded = Recorded(drawn(operation(10), operation(90), faults=(PAUSE,)), cluster)
    assert isinstance(recorded.error, ClusterError)
    assert "cannot be started again" in recorded.error.message
    assert [(crash.node, crash.how) for crash in recorded.history.crashes] == [("n3", "signal 6")]


def test_nobody_is_looked_for_before_all_were_started() -> None:
    """If it failed, a container that was made and not started yet would be one that crashed."""
    cluster = Looks(raises={"start": ClusterError("n2 cannot be made")})
    assert not Recorded(drawn(operation(10)), cluster).history.crashes
    assert "look" not in cluster.calls


def test_every_node_is_watched_while_the_load_goes_on() -> None:
    """If it failed, the report could not say what a node was when something happened."""
    history = Recorded(drawn(operation(10), operation(1_900)), FakeCluster()).history
    asked = [state.node for state in history.states]
    assert {node: asked.count(node) >= 6 for node in ("n1", "n2", "n3")} == dict.fromkeys(
        ("n1", "n2", "n3"), True
    )


def test_while_no_node_leads_operations_go_to_the_last_leader() -> None:
    """If it failed, names would be exchanged back in each election, and operations would go to other nodes."""
    leaders = ["n3"]

    class Elects(Qsync):
        def owner_now(self, statuses: object) -> str | None:
            return leaders.pop() if leaders else None

    recorded = Recorded(drawn(operation(10)), FakeCluster(), system=Elects())
    assert leaders == []
    assert recorded.conductor._present.leader == "n3"


def test_a_node_that_answers_is_up_whatever_it_says() -> None:
    """If it failed, a store with a word `up` of its own could excuse its nodes from the checks of what is left."""

    class SaysItIsDown(FakeCluster):
        async def status(self, node: str) -> dict[str, object]:
            return {**(await super().status(node) or {}), "up": False}

    history = Recorded(drawn(operation(10)), SaysItIsDown()).history
    assert {state.status["up"] for state in history.states} == {True}
