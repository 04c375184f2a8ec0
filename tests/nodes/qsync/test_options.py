"""Options by their names in `box.cfg`: each refusal is Tarantool's, and nothing changes with it."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from nodes.iproto.packing import pack
from nodes.qsync.decisions import Decisions
from nodes.qsync.keys import Rejected
from nodes.qsync.options import STATIC, Options
from tests.nodes.qsync.conversation import configuration


def options(**more: object) -> Options:
    return Options.of(configuration("n1", more=more), Decisions())


def test_all_members_elect_a_leader_if_the_quorum_is_above_their_number() -> None:
    """Broken, an operator who sets a quorum above the members can have no leader any more."""
    some = options()
    some.set({"replication_synchro_quorum": 5})
    assert (some.quorum_size, some.election_quorum) == (5, 3)
    some.set({"replication_synchro_quorum": 2})
    assert some.election_quorum == 2


def test_an_empty_quorum_in_a_configuration_is_the_default() -> None:
    """Broken, a node refuses to start with a configuration that was checked and taken."""
    made = replace(configuration("n1"), quorum="", replication_linearizable_quorum="")
    some = Options.of(made, Decisions())
    assert (some.quorum_size, some.others_asked) == (2, 1)
    assert some.told()["replication_synchro_quorum"] == "N / 2 + 1"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("replication_synchro_quorum", 0, "greater than zero and less than maximal number of replicas"),
        ("replication_synchro_quorum", "N - 5", "out of range"),
        ("replication_synchro_quorum", True, "one of types string, number"),
        ("replication_synchro_quorum", float("inf"), "should be a finite number"),
        ("replication_synchro_timeout", 0, "the value must be greater than zero"),
        ("replication_synchro_timeout", True, "should be of type number"),
        ("replication_synchro_timeout", float("nan"), "should be a finite number"),
        ("replication_synchro_queue_max_size", -1, "must be >= 0"),
        ("replication_synchro_queue_max_size", "1", "should be of type number"),
        ("replication_timeout", -1, "greather than 0"),
        ("replication_connect_quorum", -1, "must be greater or equal to 0"),
        ("checkpoint_count", 0, "must not be less than one"),
        ("checkpoint_interval", "1", "should be of type number"),
        ("checkpoint_wal_threshold", float("-inf"), "should be a finite number"),
        ("wal_cleanup_delay", -1, "value must be >= 0"),
        ("election_mode", "leader", "'off', 'voter', 'candidate', 'manual'"),
        ("election_mode", 1, "should be of type string"),
        ("election_fencing_mode", "hard", "'off', 'soft', 'strict'"),
        ("election_timeout", "5", "should be of type number"),
        ("read_only", 1, "should be of type boolean"),
        ("replication_anon", True, "only when the instance is read-only"),
        ("box_cfg_replication_synchro_timeout", "newest", "'old', 'new'"),
        ("replication_syncro_quorum", 2, "unexpected option"),
        (7, 2, "unexpected option"),
    ],
)
def test_a_wrong_option_is_refused_and_nothing_is_set(name: object, value: object, words: str) -> None:
    """If it failed, a typing error would change a cluster's promise, or half of a call would take effect."""
    ours = options()
    before = ours.told()
    with pytest.raises(Rejected, match=words) as refused:
        ours.set({"read_only": True, name: value})
    assert refused.value.code == 59
    assert f"'{name}'" in str(refused.value)
    assert ours.told() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("memtx_use_mvcc_engine", False),
        ("wal_max_size", 5),
        ("wal_mode", "write"),
        ("instance_uuid", "abc"),
        ("replication_anon", 0),
        ("replication", ["127.0.0.1:3301"]),
        ("listen", "127.0.0.1:3302"),
    ],
)
def test_a_static_option_is_refused_with_its_own_code(name: str, value: object) -> None:
    """If it failed, an operator would believe that MVCC can be switched off in a node that runs."""
    with pytest.raises(Rejected, match=f"Can't set option '{name}' dynamically") as refused:
        options().set({name: value})
    assert refused.value.code == 58


def test_a_static_option_may_be_set_to_what_it_is() -> None:
    """If it failed, a whole `box.cfg` given again to a node that runs would be refused, which Tarantool takes."""
    ours = options()
    before = ours.told()
    ours.set(dict(before))
    assert ours.told() == before


def test_nil_and_an_empty_string_stand_for_the_default() -> None:
    """If it failed, an option could be set and never be reset, or nil would be refused as no number."""
    ours = options(read_only=True, election_mode="manual", checkpoint_count=7)
    named = [name for name in ours.told() if name not in STATIC]
    ours.set(dict.fromkeys(named, None))
    assert {name: ours.told()[name] for name in named} == {
        "replication_synchro_quorum": "N / 2 + 1",
        "replication_linearizable_quorum": "N - Q + 1",
        "replication_synchro_timeout": 5.0,
        "txn_synchro_timeout": 5.0,
        "replication_synchro_queue_max_size": 16 * 1024 * 1024,
        "wal_queue_max_size": 16 * 1024 * 1024,
        "replication_timeout": 1.0,
        "replication_connect_quorum": 2,
        "election_mode": "off",
        "election_timeout": 5.0,
        "election_fencing_mode": "soft",
        "read_only": False,
        "checkpoint_count": 2,
        "checkpoint_interval": 3600.0,
        "checkpoint_wal_threshold": 10**18,
        "wal_cleanup_delay": 14_400.0,
        "box_cfg_replication_synchro_timeout": "old",
    }
    ours.set({"election_mode": "candidate"})
    ours.set({"election_mode": ""})
    assert ours.election_mode == "off"


def anonymous() -> Options:
    """Those of an anonymous replica n1, of a cluster with the members n2, n3 and n4."""
    conf = configuration("n1", nodes=4)
    strangers = tuple(replace(member, id=0) if member.name == "n1" else member for member in conf.members)
    return Options.of(replace(conf, members=strangers, joins=True, is_anonymous=True), Decisions())


def test_an_anonymous_replica_asks_one_more_for_a_linearizable_read() -> None:
    """Broken, it counts itself, and one member that it asks may lack what the other two have acknowledged."""
    assert (options().others_asked, anonymous().others_asked) == (1, 2)


def test_an_anonymous_replica_stays_read_only() -> None:
    """If it failed, `read_only` would be accepted there and have no effect."""
    ours = anonymous()
    assert ours.told()["read_only"] is True
    with pytest.raises(Rejected, match="may be set to false only when replication_anon is false") as refused:
        ours.set({"read_only": False})
    assert refused.value.code == 59
    with pytest.raises(Rejected, match="other than 'off' only when replication_anon is false"):
        ours.set({"election_mode": "candidate"})
    ours.set({"read_only": None, "replication_anon": True, "election_mode": "off"})
    assert ours.read_only


def test_what_is_set_is_told() -> None:
    """If it failed, `box.cfg` would say something else than what holds."""
    ours = options()
    new = {
        "replication_synchro_quorum": "N",
        "replication_linearizable_quorum": "Q",
        "replication_synchro_timeout": 0.5,
        "replication_synchro_queue_max_size": 100,
        "wal_queue_max_size": 200,
        "replication_timeout": 2.0,
        "election_mode": "manual",
        "election_timeout": 7.0,
        "election_fencing_mode": "strict",
        "read_only": True,
        "replication_connect_quorum": 1,
        "checkpoint_count": 5,
        "checkpoint_interval": 0.0,
        "checkpoint_wal_threshold": 1000,
        "wal_cleanup_delay": 0.0,
        "box_cfg_replication_synchro_timeout": "new",
    }
    ours.set(dict(new))
    ours.set({"txn_synchro_timeout": 3.0})
    told = {name: value for name, value in ours.told().items() if name not in STATIC}
    assert told == {**new, "txn_synchro_timeout": 3.0}
    assert ours.waits_ns == 3_000_000_000
    assert (ours.quorum_size, ours.synchro_timeout_ns, ours.rollback_on_timeout) == (3, 500_000_000, False)


@pytest.mark.parametrize("seconds", [2.0**53, 1e90])
def test_a_time_out_without_an_end_is_told_as_it_was_set(seconds: float) -> None:
    """Broken, a time-out that is to last for ever ends the node, or is told as another one."""
    options = Options.of(configuration("n1"), Decisions())
    names = ("replication_synchro_timeout", "replication_timeout", "election_timeout", "checkpoint_interval")
    options.set(dict.fromkeys(names, seconds))
    assert {options.told()[name] for name in names} == {seconds}
    options.set(dict.fromkeys(names, 1.7976931348623157e308))
    assert all(float(str(options.told()[name])) > seconds for name in names)


def test_a_formula_counts_the_members_of_now() -> None:
    """If it failed, two of four nodes would be a quorum after a fourth one has joined."""
    ours = options()
    ours.set({"replication_synchro_quorum": "N / 2 + 1"})
    assert ours.quorum_size == 2
    ours.counts(4)
    assert ours.quorum_size == 3


def test_2_6_knows_no_elections() -> None:
    """If it failed, a node would stand for election in a cluster whose members stop on a RAFT row."""
    ours = options(protocol="2.6")
    assert "election_mode" not in ours.told()
    with pytest.raises(Rejected, match="'election_mode': unexpected option"):
        ours.set({"election_mode": "candidate"})
    with pytest.raises(Rejected, match="'memtx_use_mvcc_engine': unexpected option"):
        ours.set({"memtx_use_mvcc_engine": True})
    with pytest.raises(Rejected, match="'replication_synchro_quorum': should be of type number"):
        ours.set({"replication_synchro_quorum": "N / 2 + 1"})
    ours.set({"replication_synchro_quorum": None})
    assert ours.quorum == 1


@pytest.mark.parametrize("value", [1e300, -1e300, 2**64 - 1, -(2**63)])
@pytest.mark.parametrize("name", sorted(options().told().keys() - STATIC))
def test_any_number_is_refused_or_can_be_told(name: str, value: float) -> None:
    """Broken, a number that no answer can carry ends the node when a client asks for its options."""
    some = options(rollback_on_timeout=False)
    with contextlib.suppress(Rejected):
        some.set({name: value})
    assert pack(some.told())


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("replication_timeout", "replication_timeout_ns"),
        ("replication_synchro_timeout", "synchro_timeout_ns"),
        ("txn_synchro_timeout", "waits_ns"),
        ("election_timeout", "election_timeout_ns"),
        ("checkpoint_interval", "checkpoint_interval_ns"),
        ("wal_cleanup_delay", "wal_cleanup_delay_ns"),
    ],
)
def test_a_time_below_a_nanosecond_is_one(name: str, field: str) -> None:
    """Broken, a timeout above 0 is none: the node gives up all peers, or the client waits for another one."""
    some = options(rollback_on_timeout=False)
    some.set({name: 1e-300})
    assert getattr(some, field) == 1
