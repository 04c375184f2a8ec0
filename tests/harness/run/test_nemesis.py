"""The nemesis, with a made-up cluster: every fault has a start and an end, or a reason why not."""

from __future__ import annotations

from collections.abc import Awaitable

import msgspec
import pytest

from harness.cluster.sim.virtual_tasks import Pending
from harness.errors import ClusterError
from harness.faults.fault import Evidence, Fault, Moment, Shape
from harness.run.conductor import Conductor
from harness.run.nemesis import GONE, LATE
from harness.run.present import Present
from tests.harness.fake_cluster import FakeCluster
from tests.harness.run.conducted import MILLISECOND_NS, PAUSE, Recorded, drawn, operation


def test_a_fault_has_a_start_and_an_end_with_its_evidence() -> None:
    """If it failed, nobody could tell what a cluster went through, or whether it went through anything."""
    recorded = Recorded(drawn(operation(10), faults=(PAUSE,)), FakeCluster())
    (fault,) = recorded.history.faults
    assert (fault.name, fault.does, fault.nodes, fault.took_effect, fault.healed) == (
        "pause",
        "pause",
        ("n2",),
        True,
        True,
    )
    assert fault.sure == (50 * MILLISECOND_NS, 150 * MILLISECOND_NS)
    assert recorded.cluster.at_work == {}
    calls = [call for call in recorded.cluster.calls if call.startswith(("inject", "heal"))]
    assert calls == ["inject 0", "heal 0"]


class SlowToHeal(FakeCluster):
    """Healing the first fault takes until long after the second one's time."""

    async def heal(self, fault: Fault) -> Evidence:
        evidence = await super().heal(fault)
        if fault.id == 0:
            await self.sleep_until(900 * MILLISECOND_NS)
        return evidence


def test_a_fault_whose_time_has_passed_is_left_out() -> None:
    """If it failed, a fault that lasts for no time at all would have no effect, and the run would prove nothing."""
    times = {1: (200, 400), 2: (850, 1500), 3: (2000, 2100)}
    others = tuple(
        msgspec.structs.replace(PAUSE, id=id_, at_ns=at * MILLISECOND_NS, until_ns=until * MILLISECOND_NS)
        for id_, (at, until) in times.items()
    )
    recorded = Recorded(drawn(operation(10), faults=(PAUSE, *others)), SlowToHeal())
    history = recorded.history
    assert [fault.id for fault in history.faults] == [0, 2, 3]
    told = [
        event.value for event in history.events if (event.process, event.f) == ("harness", "skipped-fault")
    ]
    assert [(value["fault"]["id"], value["why"]) for value in told] == [(1, LATE)]


@pytest.mark.parametrize(("time_limit_s", "left_out"), [(5.0, []), (2.5, [3])])
def test_a_real_cluster_that_heals_slowly_has_its_quiet_times(
    time_limit_s: float, left_out: list[int]
) -> None:
    """If it failed, faults on containers would come on top of each other, and the last of them for no time at all."""
    times = {1: (200, 400), 2: (850, 1500), 3: (2000, 2100)}
    others = tuple(
        msgspec.structs.replace(PAUSE, id=id_, at_ns=at * MILLISECOND_NS, until_ns=until * MILLISECOND_NS)
        for id_, (at, until) in times.items()
    )
    plan = drawn(operation(10), faults=(PAUSE, *others), time_limit_s=time_limit_s).changed(cluster="local")
    recorded = Recorded(plan, SlowToHeal())
    began = {fault.id: fault.start_ns // MILLISECOND_NS for fault in recorded.history.faults}
    asked = {call: at_ms for call, at_ms in {0: 50, 1: 950, 2: 1600, 3: 2750}.items() if call not in left_out}
    assert began == asked, "50, 450 and 500 ms after the one before"
    assert all(fault.took_effect for fault in recorded.history.faults)
    told = [event.value for event in recorded.of("harness") if event.f == "skipped-fault"]
    assert [(value["fault"]["id"], value["why"]) for value in told] == [(id_, LATE) for id_ in left_out]


def test_a_partition_that_would_not_change_is_left_out() -> None:
    """If it failed, one whose other shapes were about who has left could have no effect, and would spoil the run."""
    shapes = (
        Shape(after_ns=0, links=(("n1", "n2"),)),
        Shape(after_ns=100 * MILLISECOND_NS, links=(("n1", "n3"), ("n3", "n1"))),
    )
    links = tuple(link for shape in shapes for link in shape.links)
    changing = msgspec.structs.replace(
        PAUSE, name="changing-partitions", does="changing-cut", nodes=(), links=links, shapes=shapes
    )

    def leaves(conductor: Conductor) -> None:
        conductor._deployed.members = conductor._deployed.members.without("n3")

    recorded = Recorded(drawn(operation(10), faults=(changing,)), FakeCluster(), at={5: leaves})
    assert [fault.id for fault in recorded.history.faults] == []
    told = [event.value["why"] for event in recorded.of("harness") if event.f == "skipped-fault"]
    assert told == [GONE]


@pytest.mark.parametrize("methods", [("inject",), ("heal",), ("inject", "heal")])
def test_the_end_of_a_fault_is_always_written(methods: tuple[str, ...]) -> None:
    """If it failed, the record would not say that a fault whose healing broke was never seen to heal."""
    errors: dict[str, BaseException] = {method: ClusterError(f"{method} broke") for method in methods}
    recorded = Recorded(drawn(operation(10), faults=(PAUSE,)), FakeCluster(raises=errors))
    assert isinstance(recorded.error, ClusterError)
    assert recorded.error.message == f"{methods[0]} broke"
    (fault,) = recorded.history.faults
    assert fault.end_index is not None
    assert "heal 0" in recorded.cluster.calls
    if "heal" in methods:
        assert (fault.took_effect, fault.healed) == (False, False)
        assert fault.evidence["detail"] == f"not healed: {methods[0]} broke"


def test_a_step_of_a_directed_schedule_ends_in_its_time() -> None:
    """If it failed, the end of the load would cut a step short that is at work, and its scene would be another one."""
    hold = msgspec.structs.replace(
        PAUSE, name="holds", does="hold", nodes=(), links=(("n1", "n2"),), until_ns=700 * MILLISECOND_NS
    )
    waits = msgspec.structs.replace(hold, id=1, at_ns=800 * MILLISECOND_NS, until_ns=900 * MILLISECOND_NS)
    plan = drawn(operation(10), operation(100), faults=(hold, waits))
    (fault,) = Recorded(plan, FakeCluster()).history.faults
    assert (fault.id, fault.heal_asked_ns) == (0, 700 * MILLISECOND_NS)


def test_a_changing_partition_changes_though_its_cluster_was_slow() -> None:
    """If it failed, a partition that took as long to begin as to last would never change, and have no effect."""

    class SlowToBegin(FakeCluster):
        changes: list[int]

        async def inject(self, fault: Fault) -> None:
            await super().inject(fault)
            await self.sleep_until(200 * MILLISECOND_NS)
            self.changes = []

        async def change(self, fault: Fault, number: int) -> None:
            self.changes.append(number)

    links = (("n1", "n2"),), (("n1", "n3"),), (("n2", "n3"),)
    shapes = tuple(
        Shape(after_ns=30 * number * MILLISECOND_NS, links=cut) for number, cut in enumerate(links)
    )
    changing = msgspec.structs.replace(
        PAUSE,
        name="changing-partitions",
        does="changing-cut",
        nodes=(),
        links=tuple(link for cut in links for link in cut),
        shapes=shapes,
    )
    cluster = SlowToBegin()
    Recorded(drawn(operation(10), faults=(changing,)), cluster)
    assert cluster.changes == [2], "one between them had no time left"


def test_a_step_whose_trigger_never_comes_is_not_waited_for() -> None:
    """If it failed, a scene that does not come about would keep its run from ending."""

    class NothingHappens(FakeCluster):
        def moment(self, moment: Moment) -> Awaitable[str]:
            self.calls.append("moment")
            return Pending()

    waits = msgspec.structs.replace(PAUSE, name="holds", on=Moment(does="wrote", what="row"))
    recorded = Recorded(drawn(operation(10), operation(100), faults=(waits,)), NothingHappens())
    assert recorded.error is None
    assert recorded.history.faults == ()
    assert "moment" in recorded.cluster.calls


def test_a_fault_on_a_node_that_is_down_already_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a fault that comes to another node than was drawn would pause one that a fault keeps paused."""
    elsewhere = msgspec.structs.replace(PAUSE, id=1, at_ns=80 * MILLISECOND_NS, nodes=("n3",))
    monkeypatch.setattr(
        Present, "fault", lambda present, fault: msgspec.structs.replace(fault, nodes=PAUSE.nodes)
    )
    recorded = Recorded(drawn(operation(10), faults=(PAUSE, elsewhere), overlap=2), FakeCluster())
    assert [fault.id for fault in recorded.history.faults] == [0]
    told = [event.value["why"] for event in recorded.of("harness") if event.f == "skipped-fault"]
    assert told == ["fault 0 (pause) was still at work"]
