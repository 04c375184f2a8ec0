"""Drawn scenes: what they can reach, that they fit any cluster, and that stored plans draw as before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from harness.campaigns.hunt.seeds import try_seed
from harness.faults.directed import PLACEHOLDERS, draw_directed, in_place
from harness.faults.fault import Fault
from harness.plan.plan import SECOND_NS
from harness.plan.schedule import draw_faults
from harness.systems import SYSTEMS
from harness.systems.plans import planned
from harness.systems.qsync.drawn_scenes import DRAWN, _dies_writing, _node_lags, _rivals_stand
from harness.systems.qsync.variety import SCENES
from nodes.iproto.message_kinds import KINDS
from nodes.kernel.effects import Effect, Truncate
from nodes.qsync import election, replica, stored_log

NODES = ("n1", "n2", "n3")


def scenes(seed: int) -> list[Fault]:
    drawn = draw_directed(NODES, random.Random(seed), SECOND_NS, 30 * SECOND_NS, 0, scenes=DRAWN)
    return list(drawn)


def beside(faults: list[Fault]) -> Iterator[tuple[Fault, Fault]]:
    """Pairs that are drawn for one time."""
    for one in faults:
        yield from ((one, other) for other in faults if one.at_ns == other.at_ns and one is not other)


def is_reached(name: str, faults: list[Fault]) -> bool:
    match name:
        case "the old leader writes another's PROMOTE slowly":
            return any(
                one.does == "failover"
                and other.does == "slow-disk"
                and "@owner" in other.nodes
                and other.kinds == ("promote",)
                for one, other in beside(faults)
            )
        case "acknowledgements come during a ROLLBACK":
            return any(
                one.kinds == ("ack",) and other.does == "slow-disk" and other.kinds == ("rollback",)
                for one, other in beside(faults)
            )
        case "a voter dies when it has voted":
            return any(
                each.does in ("kill", "power") and each.on and each.on.what in ("vote", "raft")
                for each in faults
            )
        case "rivals stand and their voter dies":
            return {"cut-rivals", "promote", "kill-voter"} <= {each.name for each in faults}
        case "a disk fills with a CONFIRM under way":
            return any(each.does == "disk-error" and each.on and each.on.what == "confirm" for each in faults)
        case "a join is broken off":
            return any(
                each.does in ("kill", "power") and each.on and each.on.what in ("join", "joined")
                for each in faults
            )
        case "a node starts again while the queue is full":
            return any(
                one.kinds == ("ack",) and other.name == "kill-in-queue" for one, other in beside(faults)
            )
        case "the former leader is meant":
            return any("@old" in each.nodes for each in faults)
        case "a node that lacks rows is promoted":
            return any(
                one.links == (("*", other.nodes[0]),) and "row" in one.kinds
                for one, other in beside(faults)
                if other.does == "failover"
            )
        case "a node dies with records that are not synced":
            return any(
                one.does == "slow-disk" and other.name == "kill-writing" and one.nodes == other.nodes
                for one, other in beside(faults)
            )
        case "acknowledgements arrive in the middle of a ROLLBACK":
            return any(
                one.kinds == ("ack",)
                and other.kinds == ("rollback",)
                and one.until_ns < other.until_ns <= one.until_ns + SECOND_NS
                for one, other in beside(faults)
            )
        case "a node is away while all others start again":
            return any(
                sum(other.name == "kill-in-turn" and other.nodes != one.nodes for other in faults) >= 2
                for one in faults
                if one.name == "kill-for-long"
            )
        case "answers are late at a node that lags":
            return any(
                one.links == (("@others", other.links[0][1]),) and one.kinds == ("ack",)
                for one, other in beside(faults)
                if other.links and other.links[0][0] == "*"
            )
        case "power is lost as soon as a node is back":
            return any(
                one.name == "kill-writing" and other.name == "power-again" and one.nodes == other.nodes
                for one, other in beside(faults)
            )
    return False


@pytest.mark.parametrize(
    "name",
    [
        "the old leader writes another's PROMOTE slowly",
        "acknowledgements come during a ROLLBACK",
        "a voter dies when it has voted",
        "rivals stand and their voter dies",
        "a disk fills with a CONFIRM under way",
        "a join is broken off",
        "a node starts again while the queue is full",
        "the former leader is meant",
        "a node that lacks rows is promoted",
        "a node dies with records that are not synced",
        "power is lost as soon as a node is back",
        "acknowledgements arrive in the middle of a ROLLBACK",
        "a node is away while all others start again",
        "answers are late at a node that lags",
    ],
)
def test_every_moment_that_no_ready_made_scene_reaches_is_drawn(name: str) -> None:
    """If it failed, a bug that shows there alone would be out of reach of any hunt."""
    assert any(is_reached(name, scenes(seed)) for seed in range(60))


def test_whatever_is_drawn_can_be_done_to_any_cluster() -> None:
    """If it failed, a seed would break the harness, or wait for a message that nobody sends."""
    for seed in range(40):
        for fault in scenes(seed):
            assert fault.until_ns > fault.at_ns
            assert fault.is_directed
            named = {*fault.nodes, *(end for link in fault.links for end in link)}
            assert named <= {*PLACEHOLDERS, *NODES}
            if fault.on is not None:
                assert fault.on.what in KINDS
            for nodes in (NODES, ("n1",), (*NODES, "n4", "n5")):
                owner = nodes[-1]
                placed = in_place(fault, nodes[0], owner, nodes, nodes[0])
                assert {*placed.nodes} <= {*NODES, *nodes}


def test_the_former_leader_is_the_owner_until_there_was_another() -> None:
    """If it failed, a fault of the former leader would hit nobody at the beginning."""
    fault = Fault(id=0, name="slow-disk", does="slow-disk", at_ns=0, until_ns=1, nodes=("@old",))
    assert in_place(fault, "", "n2", NODES).nodes == ("n2",)
    assert in_place(fault, "", "n2", NODES, "n3").nodes == ("n3",)


def test_the_ready_made_scenes_are_drawn_as_before() -> None:
    """If it failed, a stored plan that asks for holds would be another run."""
    plan = planned(cluster="sim", faults=("all", "holds"), seed=5)
    both = planned(cluster="sim", faults=("all", "holds", "moments"), seed=5)
    before = draw_faults(plan, "n1", SYSTEMS["qsync"])
    assert draw_faults(both, "n1", SYSTEMS["qsync"])[: len(before)] == before
    assert len(draw_faults(both, "n1", SYSTEMS["qsync"])) > len(before)


def test_good_nodes_survive_them() -> None:
    """If it failed, a moment would make a false alarm, or would have found a real bug of the node."""
    plan = planned(cluster="sim", faults=("moments",), time_limit_s=8, rate=60, read="mixed", seed=2)
    tried = try_seed(plan)
    assert (tried.outcome, tried.violated) == ("valid", ()), tried.sentence


@pytest.mark.long
def test_a_vote_that_a_restart_forgets_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, two leaders of one term would be out of reach: only a voter that dies votes twice."""
    recovered = replica.vote_of
    monkeypatch.setattr(replica, "vote_of", lambda rows: (recovered(rows)[0], 0))
    monkeypatch.setitem(SCENES, "moments", ((_rivals_stand, 1),))
    plan = planned(
        cluster="sim", faults=("moments",), rate=30, election_timeout_s=0.8, time_limit_s=30, seed=4
    )
    tried = try_seed(plan)
    assert {"leadership", "audit"} & {*tried.violated}


def test_a_vote_for_a_candidate_that_lacks_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a leader without the rows that a quorum has would be out of reach: rows come before votes."""
    monkeypatch.setattr(election, "covers", lambda vclock, other: True)
    monkeypatch.setitem(SCENES, "moments", ((_node_lags, 1),))
    plan = planned(
        cluster="sim", faults=("moments",), rate=30, election_timeout_s=0.8, time_limit_s=15, seed=13
    )
    assert "leadership" in try_seed(plan).violated


def test_a_torn_tail_that_stays_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, nodes would hardly ever start on the half of a record: disks are quick, and nothing is unsynced."""
    read = stored_log.StoredLog._read

    def read_and_leave(self: stored_log.StoredLog, *arguments: Any) -> list[Effect]:
        return [effect for effect in read(self, *arguments) if not isinstance(effect, Truncate)]

    monkeypatch.setattr(stored_log.StoredLog, "_read", read_and_leave)
    monkeypatch.setitem(SCENES, "moments", ((_dies_writing, 1),))
    plan = planned(
        cluster="sim", faults=("moments",), rate=30, election_timeout_s=0.8, time_limit_s=15, seed=0
    )
    assert "crash" in try_seed(plan).violated
