"""What a node is told before it starts: nonsense is refused in one line, and what is written is read back."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from nodes.qsync.access import password_hash
from nodes.qsync.configuration import Configuration, User
from tests.nodes.qsync.conversation import configuration

STRANGERS = tuple(replace(member, id=member.id - 1) for member in configuration("n1").members)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"name": "n9"}, "expected a member named 'n9'"),
        ({"quorum": 4}, "expected a quorum from 1 to 3, got 4"),
        ({"quorum": "N - 5"}, "out of range"),
        ({"quorum": "N +"}, "Failed to load"),
        ({"synchro_timeout_ns": 0}, "expected replication_synchro_timeout above 0"),
        ({"replication_timeout_ns": -1}, "expected replication_timeout above 0"),
        ({"election_timeout_ns": 0}, "expected election_timeout above 0"),
        ({"replication_connect_quorum": -1}, "expected a replication_connect_quorum of at least 0"),
        ({"checkpoint_interval_ns": -1}, "expected checkpoint_interval of at least 0"),
        ({"checkpoint_count": 0}, "at least 1 snapshot"),
        ({"wal_max_size": 1}, "expected a wal_max_size above 1"),
        ({"synchro_queue_max_size": -1}, "expected a queue size of at least 0"),
        ({"wal_queue_max_size": 10**30}, "expected wal_queue_max_size below 2[*][*]63"),
        ({"commit_wait": "later"}, "expected a wait mode of complete, submit, none"),
        ({"election_mode": "leader"}, "expected an election mode of off, voter, manual, candidate"),
        ({"election_fencing": "hard"}, "expected a fencing mode of off, soft, strict"),
        ({"protocol": "1.0"}, "expected a protocol of 3.2, 2.6"),
        ({"protocol": "2.6", "election_mode": "voter"}, "protocol 2.6 has no elections"),
        ({"confirmed_lsn_after_promote": "one"}, "to be kept or zero"),
        ({"users": (User(name="u", hash="secret"),)}, "hash of user u as base64 of 20 bytes, got 'secret'"),
        ({"users": (User(name="u", hash="c2VjcmV0"),)}, "hash of user u as base64 of 20 bytes"),
        ({"users": (User(name="u", may=("create",)),)}, "user u to have rights among read, write, execute"),
        ({"users": (User(name="u", may=("read", "read")),)}, "user u to have rights among"),
        (
            {"users": (User(name="admin"),)},
            "users of different names, none of admin, public, .*, got 'admin'",
        ),
        ({"users": (User(name="super"),)}, "got 'super'"),
        ({"users": (User(name="u"), User(name="u"))}, "users of different names"),
        ({"joins": True}, "expected id 0 of a node that joins"),
        ({"members": STRANGERS, "is_anonymous": True, "election_mode": "voter"}, "has no vote"),
    ],
)
def test_nonsense_is_refused_before_the_node_starts(given: dict[str, object], words: str) -> None:
    """Broken, a node starts with a timeout that is always over, or a quorum that can never be had."""
    with pytest.raises(ValueError, match=words):
        replace(configuration("n1"), **given)  # type: ignore[arg-type]


def test_what_is_written_is_read_back() -> None:
    """Broken, a node runs with other options than its plan says."""
    conf = replace(configuration("n2"), quorum="N / 2 + 1", election_mode="manual", checkpoint_interval_ns=0)
    assert Configuration.from_json(conf.to_json()) == conf


def test_users_of_a_file_have_rights_as_a_list_or_all() -> None:
    """Broken, a word in place of a list of rights becomes letters, or a user without rights in the file cannot be."""
    conf = configuration("n2")
    data = json.loads(conf.to_json())
    data["users"] = [{"name": "guest", "may": ["read"]}, {"name": "u", "hash": password_hash("secret")}]
    users = (User(name="guest", may=("read",)), User(name="u", hash=password_hash("secret")))
    assert Configuration.from_json(json.dumps(data).encode()).users == users
    data["users"] = [{"name": "u", "may": "read"}]
    with pytest.raises(ValueError, match=r"a list of rights as may, got {'name': 'u', 'may': 'read'}"):
        Configuration.from_json(json.dumps(data).encode())


@pytest.mark.parametrize(
    "data", [b'{"name": "n1"}', b"[]", b'{"members": [], "spaces": [], "more": 1}', b"[" * 9999]
)
def test_what_is_no_configuration_is_told_in_a_line(data: bytes) -> None:
    """Broken, a mistake in a file ends in a traceback."""
    with pytest.raises(ValueError, match="not a configuration of a qsync node"):
        Configuration.from_json(data)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            ("replication_timeout_ns",),
            float("nan"),
            "replication_timeout_ns of a Configuration as int, got nan",
        ),
        (("replication_timeout_ns",), None, "replication_timeout_ns of a Configuration as int, got None"),
        (("checkpoint_count",), True, "checkpoint_count of a Configuration as int, got True"),
        (("checkpoint_count",), "2", "checkpoint_count of a Configuration as int, got '2'"),
        (("read_only",), "no", "read_only of a Configuration as bool, got 'no'"),
        (("quorum",), 1.5, "quorum of a Configuration as int or str, got 1.5"),
        (("txn_synchro_timeout_ns",), 1.5, "as int or NoneType, got 1.5"),
        (("cluster_uuid",), "x", "the UUID of a cluster or member, got 'x'"),
        (("members", 0, "uuid"), "n1", "the UUID of a cluster or member, got 'n1'"),
        (("members", 1, "id"), "2", "id of a Identity as int, got '2'"),
        (("members", 1, "id"), 1, "members of different ids"),
        (("members", 1, "id"), 32, "members 0 to 31"),
        (("members", 1, "name"), "n1", "members of different names"),
        (("members", 1, "uuid"), configuration("n1").me.uuid, "members of different UUIDs"),
        (("spaces", 0, "id"), 280, "spaces from 512 on"),
        (("spaces", 0, "id"), 513, "spaces of different ids"),
        (("spaces", 0, "is_sync"), 1, "is_sync of a SpaceDefinition as bool, got 1"),
        (("spaces", 0, "indexes", 0, "parts", 0, "field"), "0", "field of a Part as int, got '0'"),
    ],
)
def test_a_wrong_value_in_a_file_is_told_before_the_node_starts(
    path: tuple[str | int, ...], value: object, words: str
) -> None:
    """Broken, the node starts, and ends with a traceback at the first use of it, or cannot read what it wrote."""
    data = json.loads(configuration("n1").to_json())
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    with pytest.raises(ValueError, match=words):
        Configuration.from_json(json.dumps(data).encode())


def test_an_older_node_can_read_what_is_not_set() -> None:
    """Broken, no cluster can be upgraded: the nodes of the older version do not start."""
    plain, set_otherwise = configuration("n2"), replace(configuration("n2"), wal_cleanup_delay_ns=5)
    assert b"wal_cleanup_delay_ns" not in plain.to_json()
    assert [Configuration.from_json(each.to_json()) for each in (plain, set_otherwise)] == [
        plain,
        set_otherwise,
    ]
