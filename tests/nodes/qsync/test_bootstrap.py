"""The first rows of a cluster, and what a node does with rows that it cannot place."""

from __future__ import annotations

import pytest

from nodes.kernel.errors import StartRefused
from nodes.qsync import bootstrap
from nodes.qsync.bootstrap import first_tuples
from nodes.qsync.configuration import Identity
from nodes.qsync.schema import Schema
from nodes.qsync.system_spaces import CLUSTER, PRIVILEGE
from tests.nodes.qsync.conversation import UUID, configuration

CHECKS = 364
"""`_ck_constraint`: its key has two fields."""


def test_every_privilege_of_tarantool_is_among_the_first_rows() -> None:
    """If it failed, the users of a real Tarantool that joins would lack rights."""
    of_tarantool, of_cluster = (
        [row[1:4] for space, row in tuples if space == PRIVILEGE]  # grantee, kind and id of the object
        for tuples in (bootstrap.system_tuples(), first_tuples(configuration("n1")))
    )
    assert len(of_tarantool) == 82
    assert {*of_tarantool} <= {*of_cluster}


def test_only_members_with_an_id_are_among_the_first_rows() -> None:
    """If it failed, an anonymous replica would be a member."""
    nodes = configuration("n1").members
    more = {"members": (*nodes, Identity(id=0, name="n4", uuid=UUID.format(4)))}
    first = bootstrap._first_tuples(UUID.format(9), more["members"], (), ())
    assert [row[0] for space, row in first if space == CLUSTER] == [1, 2, 3]


def test_of_tuples_with_one_key_the_last_counts() -> None:
    """If it failed, rows whose keys have several fields would replace each other: constraints, and tuples of users."""
    pairs = [(CHECKS, (600, "a", 1)), (CHECKS, (600, "b", 1)), (CHECKS, (600, "a", 2))]
    of_users = [(600, (1, "a")), (600, (1, "b"))]
    assert bootstrap.merged([*of_users, *pairs]) == (
        (CHECKS, (600, "a", 2)),
        (CHECKS, (600, "b", 1)),
        *of_users,
    )


def test_a_tuple_of_an_unknown_space_is_refused_in_a_line() -> None:
    """If it failed, a node with the snapshot of a later Tarantool would end with KeyError."""
    with pytest.raises(StartRefused, match="a tuple of space 388, which neither"):
        Schema(configuration("n1"), [*first_tuples(configuration("n1")), (388, (1, "x"))])
