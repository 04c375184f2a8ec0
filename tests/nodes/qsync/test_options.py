"""Options by their names in `box.cfg`: each refusal is Tarantool's, and nothing changes with it."""

from __future__ import annotations

import pytest

from nodes.qsync.keys import Rejected
from nodes.qsync.options import Options
from tests.nodes.qsync.conversation import configuration


def options(**more: object) -> Options:
    return Options.of(configuration("n1", more=more))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("replication_synchro_quorum", 0, "greater than zero and less than maximal number of replicas"),
        ("replication_synchro_quorum", "N - 5", "out of range"),
        ("replication_synchro_quorum", None, "one of types number, string"),
        ("replication_synchro_timeout", 0, "the value must be greater than zero"),
        ("replication_synchro_timeout", True, "should be of type number"),
        ("replication_synchro_timeout", float("nan"), "the value must be greater than zero"),
        ("replication_synchro_queue_max_size", -1, "must be >= 0"),
        ("replication_timeout", -1, "greather than 0"),
        ("election_mode", "leader", "'off', 'voter', 'candidate', 'manual'"),
        ("election_mode", 1, "should be of type string"),
        ("election_fencing_mode", "hard", "'off', 'soft', 'strict'"),
        ("election_timeout", "5", "should be of type number"),
        ("read_only", 1, "should be of type boolean"),
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


def test_a_static_option_is_refused_with_its_own_code() -> None:
    """If it failed, an operator would believe that MVCC can be switched off in a node that runs."""
    with pytest.raises(Rejected, match="Can't set option 'memtx_use_mvcc_engine' dynamically") as refused:
        options().set({"memtx_use_mvcc_engine": False})
    assert refused.value.code == 58


def test_what_is_set_is_told() -> None:
    """If it failed, `box.cfg` would say something else than what holds."""
    ours = options()
    new = {
        "replication_synchro_quorum": "N",
        "replication_synchro_timeout": 0.5,
        "replication_synchro_queue_max_size": 100,
        "replication_timeout": 2.0,
        "election_mode": "manual",
        "election_timeout": 7.0,
        "election_fencing_mode": "strict",
        "read_only": True,
        "box_cfg_replication_synchro_timeout": "new",
    }
    ours.set(dict(new))
    assert ours.told() == new
    assert (ours.quorum_size, ours.synchro_timeout_ns, ours.rollback_on_timeout) == (3, 500_000_000, False)


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
