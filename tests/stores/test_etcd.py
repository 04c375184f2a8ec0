"""The client of stores/etcd.py against made-up answers, and etcd itself in containers."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.cli.main import main
from harness.clients.client import NotDone
from harness.clients.operations import (
    AddMember,
    Append,
    Cas,
    Delete,
    Done,
    Mismatch,
    Read,
    RemoveMember,
    Transaction,
    Write,
)
from harness.cluster.place import Place
from harness.errors import WrongUse
from harness.run.assemble import parts_of
from harness.systems import system_of
from harness.systems.plans import planned
from harness.workloads import WORKLOADS
from tests import needs

STORE = str(Path(__file__).parents[2] / "stores/etcd.py")
A = ("register", "a")


def answering(*answers: tuple[int, Any]) -> tuple[Any, list[dict[str, Any]]]:
    """A connection whose member gives these answers, and what it is asked."""
    client: Any = system_of(STORE).client
    asked: list[dict[str, Any]] = []
    left = iter(answers)

    class Http:
        def ask(self, method: str, path: str, body: Any) -> tuple[int, Any]:
            asked.append({"path": path, **body})
            return next(left)

    connection = object.__new__(client.connects)
    connection._http = Http()
    return connection, asked


def row(value: object, revision: int = 7) -> dict[str, str]:
    def packed(text: str) -> str:
        return b64encode(text.encode()).decode()

    return {"key": packed("register/:a"), "value": packed(json.dumps(value)), "mod_revision": str(revision)}


def shown(*rows: dict[str, str]) -> dict[str, Any]:
    return {"response_range": {"kvs": list(rows)} if rows else {}}


@pytest.mark.parametrize(
    ("status", "said", "is_sure"),
    [
        (400, {"error": "etcdserver: duplicate key given in txn request", "code": 3}, True),
        (503, {"error": "etcdserver: too many requests", "code": 8}, True),
        (503, {"error": "etcdserver: request timed out", "code": 14}, False),
        (503, {"error": "etcdserver: leader changed", "code": 14}, False),
        (503, {"error": "etcdserver: server stopped", "code": 14}, False),
        (200, {"error": "etcdserver: mvcc: database space exceeded", "code": 8}, False),
        (502, "nonsense", False),
        (404, None, False),
    ],
)
def test_which_errors_surely_mean_that_nothing_happened(status: int, said: Any, is_sure: bool) -> None:
    """If it failed, a write that a later leader commits would be a `fail` that was seen: a false alarm."""
    connection, _ = answering((status, said))
    with pytest.raises(NotDone if is_sure else RuntimeError):
        connection.invoke(Transaction((Write(*A, 1),)))


def test_compare_and_set_is_one_transaction() -> None:
    """If it failed, two clients could both be told that they have replaced the same value."""
    connection, asked = answering(
        (200, {"succeeded": True, "responses": [{"response_put": {}}]}),
        (200, {"responses": [shown(row(5))]}),
        (200, {"responses": [shown()]}),
    )
    assert connection.invoke(Transaction((Cas(*A, 1, 2),))).results == [True]
    assert connection.invoke(Transaction((Cas(*A, 1, 2),))) == Mismatch(0, 5, "owner")
    assert connection.invoke(Transaction((Cas(*A, None, 2),))) == Mismatch(0, None, "owner")
    assert [each["compare"][0]["target"] for each in asked] == ["VALUE", "VALUE", "VERSION"]


def test_an_append_compares_what_it_read_and_says_when_it_was_outrun() -> None:
    """If it failed, an element could be lost, or a `fail` be one that happened: in etcd's 3.4 gateway, a comparison
    that does not hold leaves `succeeded` and `responses` out."""
    connection, asked = answering(
        (200, {"succeeded": True, "responses": [shown(row([1], 9))]}),
        (200, {"succeeded": True, "responses": [{"response_put": {}}]}),
        (200, {"succeeded": True, "responses": [shown()]}),
        (200, {"header": {}}),
    )
    assert connection.invoke(Transaction((Append(*A, 2),))) == Done([True], "owner", "linearizable")
    assert asked[1]["compare"][0]["mod_revision"] == "9"
    with pytest.raises(NotDone, match="outrun"):
        connection.invoke(Transaction((Append(*A, 2),)))
    assert asked[3]["compare"][0]["mod_revision"] == "0"


def test_a_deletion_compares_what_it_read_and_says_whether_it_was_there() -> None:
    """If it failed, a deletion would write a null, or one of nothing would be recorded as done."""
    connection, asked = answering(
        (200, {"succeeded": True, "responses": [shown(row(5, 9))]}),
        (200, {"succeeded": True, "responses": [{"response_delete_range": {"deleted": "1"}}]}),
        (200, {"succeeded": True, "responses": [shown()]}),
    )
    assert connection.invoke(Transaction((Delete(*A),))) == Done([True], "owner", "linearizable")
    assert asked[1]["compare"][0]["mod_revision"] == "9"
    assert asked[1]["success"] == [{"request_delete_range": {"key": row(5)["key"]}}]
    assert connection.invoke(Transaction((Delete(*A),))) == Done([False], "owner", "linearizable")
    assert len(asked) == 3, "nothing was there: nothing is asked for"


@pytest.mark.parametrize(
    ("mode", "is_alone"), [("linearizable", False), (None, False), ("read-confirmed", True), ("dirty", True)]
)
def test_a_serializable_read_says_so(mode: str | None, is_alone: bool) -> None:
    """If it failed, a stale read that etcd allows would be judged as one that it does not."""
    connection, asked = answering((200, {"succeeded": True, "responses": [shown(row(5))]}))
    done = connection.invoke(Transaction((Read(*A),), mode))
    assert asked[0]["success"][0]["request_range"]["serializable"] is is_alone
    role = ("replica", "read-confirmed") if is_alone else ("owner", "linearizable")
    assert done == Done([5], *role)


def test_members_are_known_by_their_ids_and_changed_by_them() -> None:
    """If it failed, the harness would not see who is a member, or would remove another one. Ids need 64 bits."""
    number = 2**63 + 1
    connection, asked = answering(
        (
            200,
            {"header": {"member_id": str(number), "revision": "7"}, "leader": str(number), "raftTerm": "2"},
        ),
        (200, {"members": [{"ID": str(number), "peerURLs": ["http://10.0.0.1:2380"]}, {"ID": "5"}]}),
        (200, {"member": {"ID": "6"}}),
        (200, {"members": []}),
    )
    told = connection.status()
    assert (told["role"], told["id"], told["members"]) == ("owner", number, [5, number])
    assert connection.invoke(AddMember("n3", "10.0.0.3:3301")) == Done([True])
    assert connection.invoke(RemoveMember(number)) == Done([True])
    assert asked[2:] == [
        {"path": "/v3/cluster/member/add", "peerURLs": ["http://10.0.0.3:2380"]},
        {"path": "/v3/cluster/member/remove", "ID": str(number)},
    ]


def test_a_new_member_joins_those_that_are_there() -> None:
    """If it failed, a newcomer would found a cluster of its own, or be refused for a list that is not the others'."""
    fields = dict.fromkeys(("config", "log", "clock"), "")
    peers = {"n1": "10.0.0.1:3301"}
    command = system_of(STORE).command(planned(system=STORE, cluster="docker", nodes=3))
    place = Place(node="n3", data="/data", listen="10.0.0.3:3301", peers=peers, epoch_ns=0, **fields)
    words = command(replace(place, joins=True))
    assert words[words.index("--initial-cluster-state") + 1] == "existing"
    assert words[words.index("--initial-cluster") + 1] == "n1=http://10.0.0.1:2380,n3=http://10.0.0.3:2380"
    assert "new" in command(place)


@pytest.mark.parametrize(
    ("how", "last", "is_allowed"),
    [
        ("exit 1", '"error":"cannot fetch cluster info from peer urls: could not retrieve"', True),
        ("exit 1", '"error":"error validating peerURLs"', True),
        ("exit 1", '"error":"incompatible with current running cluster"', True),
        ("exit 1", '"error":"failed to find database snapshot file"', False),
        ("signal 11", '"error":"error validating peerURLs"', False),
    ],
)
def test_a_newcomer_without_members_to_join_has_not_crashed(how: str, last: str, is_allowed: bool) -> None:
    """If it failed, a partition beside a join would be a false alarm, or a crash would pass."""
    system: Any = system_of(STORE)
    assert bool(system.members.cannot_join(how, (last, ""))) is is_allowed


def test_where_and_with_which_workloads_it_runs() -> None:
    """If it failed, a run that cannot work would end in the words of a member that finds no peers."""
    with pytest.raises(WrongUse, match=r"one list of addresses.*try: --cluster docker"):
        parts_of(planned(system=STORE, cluster="local", nodes=3))
    docker = planned(system=STORE, cluster="docker", nodes=3)
    for name in WORKLOADS:
        if name not in ("mixed-spaces", "restore"):
            parts_of(msgspec.structs.replace(docker, workload=name))
    with pytest.raises(WrongUse, match=r"asynchronous space.*try: --workload register or .*or append or"):
        parts_of(msgspec.structs.replace(docker, workload="mixed-spaces"))
    parts_of(msgspec.structs.replace(docker, faults=("membership",)))
    for fault in ("clock", "failover", "timeouts"):
        with pytest.raises(WrongUse, match="cannot do the fault"):
            parts_of(msgspec.structs.replace(docker, faults=(fault,)))


@pytest.mark.parametrize(("name", "lines"), [("etcd.py", 150), ("http_store.py", 60)])
def test_what_people_copy_is_short(name: str, lines: int) -> None:
    """If it failed, docs/put-your-store-under-test.md would promise what the examples do not keep."""
    assert len(Path(STORE).with_name(name).read_text().splitlines()) <= lines


TRIES = 3
BUSY = ("too little load", "too few answers", "the harness itself stood still", "the nodes were not quiet")
"""What makes a run no evidence on a machine that has much else to do, whatever the store."""


@pytest.mark.docker
@pytest.mark.parametrize("faults", ["kill,isolate-one", "remove-node,add-node"])
def test_etcd_is_valid_under(faults: str, tmp_path: Path) -> None:
    """If it failed, the store that people copy would raise false alarms, or would not start, or its members would not
    change."""
    needs.docker().close()
    load = ("--nodes", "3", "--rate", "40", "--workers", "10", "--time-limit", "15", "--read", "mixed")
    options = (*load, "--faults", faults, "--results", str(tmp_path))
    for seed in range(TRIES):
        printed = io.StringIO()
        with redirect_stdout(printed):
            main(["run", "--system", STORE, "--cluster", "docker", *options, "--seed", str(seed), "--json"])
        verdict = json.loads(printed.getvalue())
        assert verdict["violations"] == [], verdict["sentence"]
        others = [each for each in verdict["evidence"]["missing"] if not each.startswith(BUSY)]
        assert not others, others
        assert {*faults.split(",")} <= set(verdict["evidence"]["kinds_in_effect"]), verdict["sentence"]
        if verdict["outcome"] == "valid":
            return
    raise AssertionError(f"not one run of etcd was valid: {verdict['sentence']}")
