"""Configurations A to I: what a letter sets, what comes of single options, and the row that judges it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness.errors import WrongUse
from harness.plan.plan import Drawn, Plan
from harness.plan.promise import (
    DIRTY_READS,
    FINAL_STATE,
    LINEARIZABLE_READS,
    OWNER_READS,
    REPLICA_READS,
    WRITES,
)
from harness.plan.schedule import names_for
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from harness.systems.qsync.configurations import CONFIGURATIONS, sizes_of
from harness.systems.qsync.promises import PROMISES, without_versions
from nodes.qsync.configuration import Configuration


def configured(plan: Plan) -> list[Configuration]:
    parts = parts_of(plan)
    files = parts.system.configurations(plan, parts.workload.spaces)
    return [Configuration.from_json(data) for data in files.values()]


@pytest.mark.parametrize("letter", CONFIGURATIONS)
def test_a_letter_comes_under_its_own_row(letter: str) -> None:
    """If it failed, a run would be judged by the promise of another configuration."""
    plan = planned(configuration=letter)
    assert plan.expectations.configuration == letter
    assert planned(configuration=CONFIGURATIONS[letter].name).expectations.configuration == letter
    assert PROMISES[letter].configuration.startswith(letter)


@pytest.mark.parametrize(
    ("given", "letter"),
    [
        ({}, "H"),
        ({"rollback_on_timeout": True}, "I"),
        ({"synchronous_promote": False}, "F"),
        ({"synchronous_promote": False, "rollback_on_timeout": True}, "G"),
        ({"election_mode": "off"}, "C"),
        ({"election_mode": "off", "faults": ("all", "failover")}, "D"),
        ({"election_mode": "manual"}, "H"),
        ({"configuration": "F", "synchronous_promote": True}, "H"),
        ({"configuration": "C", "election_mode": "candidate"}, "H"),
        ({"protocol": "2.6"}, "A"),
        ({"protocol": "2.6", "configuration": "C"}, "A"),
        ({"protocol": "2.6", "configuration": "D"}, "B"),
        ({"protocol": "2.6", "faults": ("failover",)}, "B"),
        ({"protocol": "3.2"}, "H"),
        ({"protocol": "3.2", "configuration": "A"}, "C"),
        ({"protocol": "3.2", "configuration": "B"}, "D"),
    ],
)
def test_single_options_decide_and_not_the_letter(given: dict[str, Any], letter: str) -> None:
    """If it failed, an option could weaken a cluster and leave its promise as it was."""
    assert planned(**given).expectations.configuration == letter


def test_by_default_a_time_out_rolls_back_without_elections_alone() -> None:
    """If it failed, docs/seeds.md and decision 15 would say something else than what a cluster does."""
    assert [node.rollback_on_timeout for node in configured(planned())] == [False] * 3
    assert [node.rollback_on_timeout for node in configured(planned(election_mode="off"))] == [True] * 3


def test_protocol_2_6_is_spoken_by_all_nodes_and_one_may_write() -> None:
    """If it failed, a real 2.6 beside our nodes would stop on a row that it does not know, or two would write."""
    nodes = configured(planned(protocol="2.6"))
    assert [node.protocol for node in nodes] == ["2.6"] * 3
    assert [node.election_mode for node in nodes] == ["off"] * 3
    assert [node.read_only for node in nodes] == [False, True, True]


@pytest.mark.parametrize("given", [{"configuration": "F"}, {"election_mode": "manual"}])
def test_protocol_2_6_has_no_elections(given: dict[str, Any]) -> None:
    """If it failed, elections would be asked for and not be there, and the promise of another row would judge."""
    with pytest.raises(ValueError, match=r"protocol 2\.6 has no elections"):
        planned(protocol="2.6", **given)


def test_modes_may_be_mixed() -> None:
    """If it failed, a voter would stand for election, or a candidate wait for an operator."""
    plan = planned(election_mode="voter,candidate,manual")
    assert [node.election_mode for node in configured(plan)] == ["voter", "candidate", "manual"]
    system = parts_of(plan).system
    assert system.owner(plan) == "n2"
    assert system.can_lead(plan) == ("n2", "n3")
    assert not plan.needs_operator
    assert planned(election_mode="voter,manual,manual").needs_operator
    assert msgspec.structs.replace(plan, faults=("membership",)).needs_operator  # n2 may leave
    assert not planned(election_mode="voter,candidate,candidate", faults=("membership",)).needs_operator


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"configuration": "Z"}, "unknown configuration 'Z'"),
        ({"election_mode": "sometimes"}, "unknown election mode"),
        ({"election_mode": "candidate,voter"}, "expected 1 or 3"),
        ({"election_mode": "off,voter,voter"}, "no node could ever lead"),
        ({"node_options": ("n4:election_timeout=1",)}, "no node is called 'n4'"),
        ({"node_options": ("n1:election_mode=off",)}, "unknown option 'election_mode'"),
        (
            {"node_options": ("n1:election_timeout=soon",)},
            "expected seconds above 0, got 'soon'",
        ),
        (
            {"node_options": ("n1:replication_synchro_quorum=1",)},
            "expected 2, as the others have, to 3, got 1",
        ),
        ({"node_options": ("n1:memtx_use_mvcc_engine=no",)}, "expected one of true, false, got 'no'"),
        (
            {"node_options": ("n1:replication_timeout=1",), "configuration": "A"},
            "the same options on all nodes",
        ),
        ({"election_mode": "voter"}, "no node could ever lead"),
        ({"election_mode": "voter", "nodes": 5}, "try: candidate,voter,voter,voter,voter$"),
        ({"election_fencing": "hard"}, "unknown fencing mode"),
    ],
)
def test_nonsense_is_refused(given: dict[str, Any], words: str) -> None:
    """If it failed, a typing error would be a run of something else."""
    with pytest.raises(ValueError, match=words):
        planned(**given)


def test_failover_is_only_where_the_owner_may_change() -> None:
    """If it failed, a fixed owner would be replaced, or "all faults" would leave the failover out."""
    assert "failover" in names_for(planned())
    assert "failover" not in names_for(planned(configuration="C"))
    assert "failover" not in names_for(planned(election_mode="candidate,voter,voter"))
    with pytest.raises(WrongUse, match="a second node that may lead"):
        names_for(planned(faults=("failover",), election_mode="candidate,voter,voter"))


@pytest.mark.parametrize("words", ["400,10", "ten", "-1", "4 0", ""])
def test_queue_sizes_are_numbers_one_for_all_or_for_each(words: str) -> None:
    """If it failed, a mistyped size would be no limit, and the run no evidence about one."""
    with pytest.raises(ValueError, match=r"queue sizes of 2 nodes|expected a number of bytes"):
        sizes_of(words, 3)


def test_each_node_has_its_size_of_the_queue_and_its_snapshots() -> None:
    """If it failed, what a plan says of queues and snapshots would reach no node."""
    nodes = configured(planned(queue_max_size="400,10,0", checkpoint_interval_s=0.5, mvcc=False))
    assert [node.synchro_queue_max_size for node in nodes] == [400, 10, 0]
    assert {node.checkpoint_interval_ns for node in nodes} == {500_000_000}
    assert not any(node.memtx_use_mvcc_engine for node in nodes)
    assert configured(planned(time_limit_s=599))[0].checkpoint_wal_threshold == 10**18
    assert configured(planned(time_limit_s=86_400))[0].checkpoint_wal_threshold == 2**21
    plain = configured(planned())[0]
    assert plain.memtx_use_mvcc_engine
    assert plain.synchro_queue_max_size == 0
    with pytest.raises(WrongUse, match=r"2\.6 knows no limit"):
        parts_of(planned(configuration="A", queue_max_size="10"))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"replication_timeout_s": 1e-12}, "replication_timeout: expected at least 0.001 seconds, got 1e-12"),
        ({"synchro_timeout_s": 1e-12}, "replication_synchro_timeout: expected at least 0.001 seconds"),
        ({"checkpoint_interval_s": 1e-4}, "checkpoint_interval: expected at least 0.001 seconds, got 0.0001"),
        (
            {"node_options": ("n2:election_timeout=1e-12",)},
            "election_timeout: expected at least 0.001 seconds",
        ),
    ],
)
def test_times_that_no_node_can_count_are_refused(fields: dict[str, object], told: str) -> None:
    """If it failed, a run would end in a traceback, or its nodes would do nothing but send heartbeats."""
    with pytest.raises(WrongUse, match=told):
        parts_of(planned(**fields))
    with pytest.raises(ValueError, match=r"0\.01"):
        planned(system="txlog", busy_ms=1e-9)


@pytest.mark.usefixtures("a_tarantool")
@pytest.mark.parametrize("system", ["qsync", "tarantool"])
def test_without_versions_nobody_is_asked_for_linearizable_reads(system: str) -> None:
    """If it failed, nodes would refuse every read of such a run, and nothing would come of it."""
    plan = planned(system=system, configuration="F", cluster="local", mvcc=False)
    assert parts_of(plan).plan.read_mode == "dirty"
    for mode in ("linearizable", "mixed"):
        with pytest.raises(WrongUse, match="without MVCC nodes refuse linearizable reads; try --read dirty"):
            parts_of(plan.changed(read=mode))
        assert parts_of(plan.changed(read=mode, drawn=Drawn(faults=(), operations=())))


@pytest.mark.parametrize("letter", PROMISES)
def test_without_versions_no_read_is_promised_to_be_confirmed(letter: str) -> None:
    """If it failed, a run with MVCC off would be accused of what nobody promised, or its writes be let off."""
    row = PROMISES[letter]
    off = without_versions(row)
    assert (off.model(OWNER_READS), off.model(REPLICA_READS), off.model(LINEARIZABLE_READS)) == ("", "", "")
    assert (off.model(WRITES), off.model(DIRTY_READS), off.model(FINAL_STATE)) == (
        row.model(WRITES),
        row.model(DIRTY_READS),
        row.model(FINAL_STATE),
    )
    assert "MVCC off" in off.configuration
