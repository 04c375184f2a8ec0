"""What a history tells of the order of values: never a guess, and the bounds that make it tell much."""

from __future__ import annotations

import random

from checkers.history import Operation
from checkers.history.operation import Outcome
from checkers.history.value_kernels import NEVER
from tests.checkers.history.value_order import ValueOrder


def operation(f: str, value: object, invoke: int, complete: int, type_: Outcome = "ok") -> Operation:
    """One on key r1 whose times are its indexes."""
    return Operation(
        type=type_, process=0, f=f, key="r1", value=value, invoke_index=invoke, invoke_ns=invoke,
        complete_index=complete, complete_ns=complete,
    )  # fmt: skip


def test_real_time_orders_values() -> None:
    """A stale value could not be told from a new one."""
    order = ValueOrder.of(
        [operation("write", 1, 0, 1), operation("write", 2, 2, 3), operation("write", 3, 1, 4)]
    )
    assert order.before(1, 2) and order.before(None, 1)
    assert not order.before(2, 1) and not order.before(1, 3) and not order.before(2, 3)


def test_an_unsure_write_is_never_before_anything() -> None:
    """A write that appears late would be taken for one that went back."""
    order = ValueOrder.of([operation("write", 1, 0, 1, "info"), operation("write", 2, 2, 3)])
    assert not order.before(1, 2)
    assert order.latest(1) == NEVER


def test_a_read_proves_that_an_unsure_write_happened() -> None:
    """What a node showed could be taken back if its writer never heard of it."""
    read = operation("read", 1, 2, 3)
    order = ValueOrder.of([operation("write", 1, 0, 1, "info"), operation("write", 2, 4, 5)], [read])
    assert order.before(1, 2)


def test_a_read_proves_nothing_if_two_may_have_written_the_value() -> None:
    """The other one of two unsure writes of a value would be taken to be over as well."""
    unsure = [operation("write", 1, 0, 1, "info"), operation("write", 1, 1, 2, "info")]
    order = ValueOrder.of([*unsure, operation("write", 2, 6, 7)], [operation("read", 1, 3, 4)])
    assert not order.before(1, 2)


def test_a_compare_and_set_bounds_what_it_replaced() -> None:
    """A write over only when its successor was would be thought to be still possible."""
    unsure = operation("write", 1, 0, 1, "info")
    cas = operation("cas", [1, 2], 2, 3)
    order = ValueOrder.of([unsure, cas, operation("write", 3, 4, 5)])
    assert order.before(1, 3), "1 was there before 2, which was there at 3"
    assert order.before(1, 2)


def test_a_compare_and_set_comes_after_what_it_replaced() -> None:
    """A value made from a late one would be thought to be early."""
    order = ValueOrder.of([
        operation("cas", [1, 2], 0, 9), operation("write", 3, 1, 2), operation("write", 1, 4, 8)
    ])  # fmt: skip
    assert order.before(3, 2), "2 was made from 1, which was asked after 3 was over"


def test_an_unsure_compare_and_set_bounds_nothing() -> None:
    """One that never happened would order others."""
    order = ValueOrder.of([
        operation("cas", [1, 2], 2, 3, "info"), operation("write", 1, 0, 5), operation("write", 4, 6, 7)
    ])  # fmt: skip
    assert not order.before(1, 2)
    assert not order.before(2, 4)


def test_how_long_a_value_has_been_overwritten() -> None:
    """Staleness would be told as more than is sure, or not at all."""
    order = ValueOrder.of(
        [operation("write", 1, 0, 1), operation("write", 2, 2, 9), operation("write", 3, 3, 5)]
    )
    assert order.overwritten_ns(1) == 5
    assert order.overwritten_ns(2) is None


def test_the_order_is_never_a_guess() -> None:
    """A true history would be called impossible: here values repeat, writes are lost, late or unsure."""
    claims = 0
    for seed in range(400):
        chance = random.Random(seed)
        operations, moments = _true_run(chance)
        writes = [each for each in operations if each.f != "read"]
        reads = [each for each in operations if each.f == "read"]
        order = ValueOrder.of(writes, reads)
        for value in moments:
            for other in moments:
                if order.before(value, other):
                    claims += 1
                    assert max(moments[value]) < min(moments[other]), (seed, value, other)
    assert claims > 1_000


def _true_run(chance: random.Random) -> tuple[list[Operation], dict[object, list[float]]]:
    """Operations of one true register, and for each value when it was really written."""
    drawn = []
    for _ in range(12):
        start = chance.uniform(0, 40)
        length = chance.uniform(1, 10)
        late = chance.uniform(0, 30) if chance.random() < 0.2 else None  # unsure, and maybe late
        drawn.append(
            (start + length * chance.random() + (late or 0), start, start + length, late is not None)
        )
    moments: dict[object, list[float]] = {None: [-1.0]}
    times = sorted([start for _, start, _, _ in drawn] + [end for _, _, end, _ in drawn])
    state: int | None = None
    operations = []
    for point, start, end, unsure in sorted(drawn):
        begin, over = times.index(start), times.index(end)
        new = chance.choice((None, *range(1, 9)))
        f = chance.choice(("read", "write", "cas", "write"))
        if f == "read":
            if not unsure:
                operations.append(operation("read", state, begin, over))
            continue
        value: object = [state, new] if f == "cas" else new
        operations.append(operation(f, value, begin, over, "info" if unsure else "ok"))
        if not (unsure and chance.random() < 0.3):
            state = new
            moments.setdefault(new, []).append(point)
    return operations, moments
