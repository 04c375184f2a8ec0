"""Drawing out: from a seed to every fault and operation, each from a stream of its own."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.errors import WrongUse
from harness.faults.fault import Fault, Moment, Shape
from harness.plan.plan import Drawn, Operation, Plan, to_json
from harness.run.assemble import parts_of
from harness.run.draw import operations_of
from harness.systems.plans import from_json, planned
from harness.systems.qsync.node_options import QUORUM
from tests.harness.runs import drawn_out, recorded, small

replace = msgspec.structs.replace


def worker_operations(plan: Plan, worker: int) -> list[Operation]:
    parts = parts_of(plan)
    return list(operations_of(plan, parts.system, parts.workload, worker))


def test_every_fault_and_operation_is_a_line() -> None:
    """If it failed, nobody could take a single fault or operation out with an editor."""
    plan = drawn_out(small(seed=4))
    assert plan.drawn is not None
    assert len(plan.drawn.faults) >= 2
    assert len(plan.drawn.operations) > 500
    lines = to_json(plan).decode().splitlines()
    rows = [line.strip().rstrip(",") for line in lines]
    for row in (*plan.drawn.faults, *plan.drawn.operations):
        assert rows.count(msgspec.json.encode(row).decode()) == 1
    assert from_json(to_json(plan), "the plan") == plan


@pytest.mark.parametrize("seed", [4, pytest.param(19, marks=pytest.mark.long)])
def test_a_drawn_plan_runs_the_same(seed: int) -> None:
    """If it failed, a stored drawn-out plan would not repeat the run that it was drawn from."""
    plan = small(seed=seed)
    again = from_json(to_json(drawn_out(plan)), "the plan")
    assert recorded(again).data == recorded(plan).data


@pytest.mark.long
def test_an_edited_plan_changes_nothing_else() -> None:
    """If it failed, a shrinker that takes one thing away would get another run, and could not shrink."""
    plan = drawn_out(small(seed=4, configuration="C"))
    assert plan.drawn is not None
    fault, *faults = plan.drawn.faults
    place = next(i for i, each in enumerate(plan.drawn.operations) if each.f == "read" and each.at_ns > 10**9)
    operation = plan.drawn.operations[place]
    operations = plan.drawn.operations[:place] + plan.drawn.operations[place + 1 :]
    edited = replace(plan, drawn=Drawn(faults=tuple(faults), operations=operations))
    for worker in range(plan.workers):
        kept = [each for each in worker_operations(plan, worker) if each is not operation]
        assert worker_operations(edited, worker) == kept
    before, after = recorded(plan).history, recorded(edited).history
    assert [each.asked for each in after.faults] == [
        each.asked for each in before.faults if each.id != fault.id
    ]
    # Up to the first thing that is missing the two runs are one.
    first_ns = min(fault.at_ns, operation.at_ns)
    early = [event for event in before.events if event.time_ns < first_ns]
    assert list(after.events[: len(early)]) == early


def test_nothing_is_drawn_twice() -> None:
    """If it failed, drawing a drawn-out plan would throw its edits away."""
    plan = drawn_out(small(seed=4))
    assert drawn_out(plan) is plan


def test_another_fault_list_changes_no_operation() -> None:
    """If it failed, a run without one fault could not be compared with the run with it."""
    plans = [small(seed=5, faults=faults) for faults in (("all",), ("none",), ("kill",))]
    first, *others = [[worker_operations(plan, worker) for worker in range(plan.workers)] for plan in plans]
    assert all(other == first for other in others)


def test_one_more_worker_changes_nothing_that_the_others_draw() -> None:
    """If it failed, a bigger load would be another load altogether."""
    few, more = small(seed=5, workers=10, rate=100.0), small(seed=5, workers=11, rate=110.0)
    assert drawn_out(more).drawn.faults == drawn_out(few).drawn.faults  # type: ignore[union-attr]  # both are drawn
    for worker in range(few.workers):
        assert worker_operations(more, worker) == worker_operations(few, worker)


def test_an_operation_less_changes_no_other_worker() -> None:
    """If it failed, one worker's draws would come from another's stream."""
    plan = small(seed=5)
    alone = worker_operations(plan, 3)
    for worker in (0, 1, 2):
        worker_operations(plan, worker)
    assert worker_operations(plan, 3) == alone


def test_written_values_are_unique() -> None:
    """If it failed, a read would not tell which write it saw, and anomalies would stay unseen."""
    plan = drawn_out(small(seed=6, rate=1_000.0))
    assert plan.drawn is not None
    values = [
        each.value[-1] if isinstance(each.value, tuple) else each.value
        for each in plan.drawn.operations
        if each.f != "read"
    ]
    assert len(values) > 2_000
    assert len(set(values)) == len(values)


def test_the_load_is_what_the_plan_asks_for() -> None:
    """If it failed, a run would be judged by a load that it never had."""
    plan = drawn_out(small(seed=6, rate=400.0, replica_reads=0.5))
    assert plan.drawn is not None
    operations = plan.drawn.operations
    assert 0.9 < len(operations) / (400 * 7) < 1.1
    assert all(0 <= each.at_ns < plan.time_limit_ns for each in operations)
    assert [each.at_ns for each in operations] == sorted(each.at_ns for each in operations)
    assert {each.f for each in operations} == {"read", "write", "cas"}
    reads = [each for each in operations if each.f == "read"]
    assert 0.4 < sum(each.node != "n1" for each in reads) / len(reads) < 0.6
    assert {each.node for each in operations if each.f != "read"} == {"n1"}
    assert {each.node for each in reads} == {"n1", "n2", "n3"}


PAUSE = Fault(id=0, name="pause", does="pause", at_ns=10**9, until_ns=2 * 10**9, nodes=("n2",))
WRITE = Operation(at_ns=10**9, worker=0, f="write", key="x", value=1, node="n1")
LINKS = (("n1", "n2"),)
SHAPES = tuple(Shape(after_ns=0, links=((source, "n2"),)) for source in ("n1", "n9"))

SOON = Moment(does="wrote", what="row")


def edited_fault(**fields: Any) -> tuple[Fault, ...]:
    return (replace(PAUSE, **fields),)


@pytest.mark.parametrize(
    ("faults", "operations", "words"),
    [
        (edited_fault(nodes=("n9",)), (), "fault 0 (pause): no node is called 'n9'"),
        (edited_fault(does="cut", nodes=(), links=(("n1", "n9"),)), (), "no node is called 'n9'"),
        (edited_fault(until_ns=10**9 - 1), (), "fault 0 (pause): until_ns"),
        (
            edited_fault(until_ns=10**18),
            (),
            f"fault 0 (pause): {10**18} ns is behind the end of the load; try",
        ),
        (edited_fault(at_ns=10**18, until_ns=10**18, on=SOON), (), "is behind"),
        (edited_fault(does="loss", percent=30), (), "fault 0 (pause): --cluster local cannot do 'loss'"),
        (edited_fault(nodes=()), (), "fault 0 (pause): 'pause' needs nodes"),
        (edited_fault(does="cut"), (), "fault 0 (pause): 'cut' needs links"),
        (edited_fault(does="damage"), (), "fault 0 (pause): 'damage' needs damage"),
        (edited_fault(does="disk-error", error="EBURNT"), (), "no disk fails with 'EBURNT'"),
        (edited_fault(does="clock"), (), "fault 0 (pause): 'clock' needs jump_ns or drift_ppm"),
        (edited_fault(does="clock", drift_ppm=9, delay_ns=10**6), (), "'clock' that strobes needs jump_ns"),
        (edited_fault(does="clock", jump_ns=9, delay_ns=10**6 - 1), (), "a delay_ns of at least 1000000"),
        (edited_fault(does="failover", nodes=("n2", "n3")), (), "'failover' is done to one node, got n2, n3"),
        (edited_fault(does="remove", nodes=("n2", "n3")), (), "'remove' is done to one node"),
        (edited_fault(shapes=SHAPES), (), "fault 0 (pause): 'pause' has no shapes"),
        (edited_fault(does="changing-cut", links=LINKS, shapes=SHAPES), (), "no node is called 'n9'"),
        (edited_fault(does="options", options={"speed": 1}), (), "there is no option 'speed'"),
        (edited_fault(does="options", options={"election_timeout": "soon"}), (), "no node can have {'elec"),
        (edited_fault(does="options", options={QUORUM: "N / 2"}), (), "no node can have {'replication_"),
        (edited_fault(does="options", options={QUORUM: 2.7}), (), "a whole number of nodes, got 2.7"),
        (edited_fault(does="options", options={QUORUM: True}), (), "a whole number of nodes, got True"),
        (edited_fault(does="options", options={QUORUM: 99}), (), "greater than zero and less than maximal"),
        ((PAUSE, replace(PAUSE, at_ns=3 * 10**9, until_ns=4 * 10**9)), (), "two faults have the id 0"),
        ((PAUSE, replace(PAUSE, id=1)), (), "fault 1 (pause) begins before fault 0 has ended"),
        ((), (replace(WRITE, node="n9"),), "operation 0: no node is called 'n9'"),
        ((), (WRITE, replace(WRITE, worker=10)), "operation 1: worker 10"),
        ((), (WRITE, replace(WRITE, at_ns=10**18)), "operation 1: 1000000000000000000 ns is behind"),
        ((), (replace(WRITE, f="increment"),), "operation 0: the workload register has no 'increment'"),
        ((), (replace(WRITE, f="cas", value=3),), "operation 0: the workload register has no 'cas'"),
        ((), (replace(WRITE, key=None),), "operation 0: the workload register has no 'write'"),
    ],
)
def test_a_drawn_plan_that_cannot_be_run_is_refused(
    faults: tuple[Fault, ...], operations: tuple[Operation, ...], words: str
) -> None:
    """If it failed, a slip in an edited plan would break the harness half-way, or silently do nothing."""
    plan = planned(cluster="local", drawn=Drawn(faults=faults, operations=operations))
    with pytest.raises(WrongUse) as refused:
        parts_of(plan)
    assert words in refused.value.message
    assert "\n" not in refused.value.message


def test_shapes_of_a_directed_fault_name_nodes() -> None:
    """If it failed, a partition of placeholders, which are replaced nowhere in shapes, would silently cut nothing."""
    links = (("@owner", "@others"),)
    faults = edited_fault(does="changing-cut", links=links, shapes=(Shape(after_ns=0, links=links),), on=SOON)
    with pytest.raises(WrongUse, match=r"^fault 0 \(pause\): no node is called '@owner'; try one of: n1, "):
        parts_of(planned(cluster="sim", drawn=Drawn(faults=faults, operations=())))


def test_a_share_of_packets_that_no_rule_loses_is_refused() -> None:
    """If it failed, a run in containers would break when the fault is due."""
    fault = replace(PAUSE, does="loss", nodes=(), links=LINKS, percent=50)
    plan = planned(cluster="docker", drawn=Drawn(faults=(fault,), operations=()))
    with pytest.raises(
        WrongUse, match=r"^fault 0 \(pause\): 50 % cannot be lost; try one of: \(10, 30, 60\)$"
    ):
        parts_of(plan)
    parts_of(replace(plan, drawn=Drawn(faults=(replace(fault, percent=60),), operations=())))


def test_lines_of_a_drawn_plan_may_stand_in_any_order() -> None:
    """If it failed, an operation that was added at the end of the file would be left out as late."""
    plan = drawn_out(small(seed=4, time_limit_s=4.0))
    assert plan.drawn is not None
    drawn = Drawn(faults=plan.drawn.faults[::-1], operations=plan.drawn.operations[::-1])
    again = replace(plan, drawn=drawn)
    for worker in range(plan.workers):
        assert worker_operations(again, worker) == worker_operations(plan, worker)
    assert recorded(again).data == recorded(plan).data
