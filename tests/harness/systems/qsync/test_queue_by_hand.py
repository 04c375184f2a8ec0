"""Configuration B with reference nodes: the queue goes from one to another by `clear_synchro_queue`, from outside."""

from __future__ import annotations

import msgspec
import pytest

from harness.campaigns.hunt import try_seed
from harness.systems import system_of
from nodes.iproto.codes import Code
from nodes.iproto.messages import Answer, Call, Refusal, Response
from nodes.kernel.effects import Send
from nodes.kernel.events import Instant, Received, Started
from nodes.qsync.replica import Replica
from tests.harness.runs import recorded, small
from tests.suites import mostly_long

PLAN = small(configuration="B", faults=("isolate-owner", "kill"), time_limit_s=12.0, seed=5)
NOW = Instant(1_000_000, 1_000_000)


def alone() -> Replica:
    plan = msgspec.structs.replace(PLAN, nodes=1, faults=("none",))
    node = system_of("qsync").node_makers(plan, ("register",))["n1"]()
    assert isinstance(node, Replica)
    node.step(Started({}), NOW)
    return node


def asked(node: Replica, name: str, *arguments: object) -> Response:
    effects = node.step(Received(9, Call(1, name, arguments)), NOW)
    (answer,) = [effect.message for effect in effects if isinstance(effect, Send)]
    assert isinstance(answer, Answer | Refusal)
    return answer


def write(node: Replica) -> list[object]:
    """What it says at once to somebody who writes; nothing as long as the write is under way."""
    call = Call(2, "qsync.transaction", ([["replace", "register", ["x", 1]]],))
    return [effect.message for effect in node.step(Received(9, call), NOW) if isinstance(effect, Send)]


def test_a_node_is_writable_from_take_over_to_step_down() -> None:
    """If it failed, two nodes would write at once, or none would, whatever the operator does."""
    node = alone()
    (refused,) = write(node)
    assert isinstance(refused, Refusal)
    assert refused.code == Code.READONLY
    assert isinstance(asked(node, "qsync.take_over", 7), Answer)
    assert (node.status()["role"], node.status()["term"]) == ("owner", 7)
    assert not any(isinstance(said, Refusal) for said in write(node))
    assert isinstance(asked(node, "qsync.step_down"), Answer)
    (refused,) = write(node)
    assert isinstance(refused, Refusal)


@pytest.mark.parametrize("number", [None, 0, "1", True])
def test_a_generation_is_a_number(number: object) -> None:
    """If it failed, nobody could tell who was chosen last."""
    refused = asked(alone(), "qsync.take_over", *(() if number is None else (number,)))
    assert isinstance(refused, Refusal)
    assert refused.code == Code.ILLEGAL_PARAMS


def test_the_queue_goes_on_to_another_when_its_owner_is_cut_off() -> None:
    """If it failed, configuration B would be that of a fixed owner under another name."""
    run = recorded(PLAN)
    events = run.history.events
    taken = [e.node for e in events if e.process == "operator" and e.f == "take-over" and e.value == DONE]
    assert len(set(taken)) > 1, taken
    left = [e.node for e in events if e.process == "operator" and e.f == "step-down" and e.value == DONE]
    assert left, "the old owner was left writable"
    writers = {op.node for op in run.history.operations if op.f == "write" and op.type == "ok"}
    assert len(writers) > 1
    assert run.parts.system.promise(PLAN).configuration.startswith("B: ")


DONE = {"done": True, "error": None}


@pytest.mark.parametrize("seed", mostly_long(range(3), quick=[0]))
def test_it_is_judged_by_its_own_row(seed: int) -> None:
    """If it failed, what 2.6 does not promise would be held against it, or nothing would be asked of it at all."""
    one = try_seed(msgspec.structs.replace(PLAN, seed=seed))
    assert (one.configuration, one.outcome, one.violated) == ("B", "valid", ())
