"""etcd 3.4 under test, by the JSON gateway of each member: three or five members, as Debian packages them.

    ./qsync run --system stores/etcd.py --cluster docker --nodes 3

An operation is one request where etcd can express it in one. Operations that etcd cannot compute (append, add, take,
delete; two writes of one key) are two requests: a linearizable read, and a transaction that compares the `mod_revision`
of all keys that were read, and writes. If a comparison fails, nothing changed. No request is sent twice.

Reads in the modes read-confirmed and dirty are serializable ones: the member answers alone, and may be behind.
A member that leaves comes back as a new one: it is added first, and joins with an empty folder.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from harness.clients import operations as op
from harness.clients.client import Library, NotDone
from harness.clients.flat_keys import bounds, dumped, flat, shown
from harness.clients.optimistic import if_unchanged, is_one_request
from harness.cluster.http import Http
from harness.cluster.place import Place
from harness.systems.own import OwnStore

PEER_PORT = 2380
SERIALIZABLE = ("read-confirmed", "dirty")
ALONE, TOGETHER = ("replica", "read-confirmed"), ("owner", "linearizable")  # answering role, read mode
INVALID_ARGUMENT = 3  # the gRPC code of a request that a member refuses to propose
NEVER_PROPOSED = ("etcdserver: too many requests",)
ALL = {"request_range": {"key": "AA==", "range_end": "AA==", "serializable": True}}


class Member:
    """Implements `harness.clients.client.Connected`."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._http = Http(host, port, timeout_s)

    def invoke(self, asked: op.Asked) -> op.Outcome:
        match asked:
            case op.Transaction():
                return self._transact(asked)
            case op.Dump():
                return dumped(row[:2] for row in self._txn([ALL])[1][0])
            case op.AddMember(_, address):
                self._ask("cluster/member/add", {"peerURLs": [_peer(address)]})
            case op.RemoveMember(number):
                self._ask("cluster/member/remove", {"ID": str(number)})
        return op.Done([True])

    def _transact(self, asked: op.Transaction) -> op.Outcome:
        steps, is_alone = asked.steps, asked.mode in SERIALIZABLE and asked.is_read
        if isinstance(steps[0], op.Cas) and len(steps) == 1:
            return self._compare_and_set(steps[0])
        if asked.is_read or is_one_request(steps):
            _, found = self._txn([_request(step, serializable=is_alone) for step in steps])
            return op.Done(list(map(shown, steps, found)), *(ALONE if is_alone else TOGETHER))
        return if_unchanged(steps, self._versions, self._write_if, *TOGETHER)

    def _compare_and_set(self, step: op.Cas) -> op.Outcome:
        is_none, is_old = ("VERSION", "version", "0"), ("VALUE", "value", _bytes(json.dumps(step.old)))
        target, field, wanted = is_none if step.old is None else is_old
        same = {"key": _bytes(flat(step.space, step.key)), "target": target, field: wanted}
        put, look = op.Write(step.space, step.key, step.new), op.Read(step.space, step.key)
        is_done, found = self._txn([_request(put)], [same], [_request(look)])
        return op.Done([True], *TOGETHER) if is_done else op.Mismatch(0, shown(look, found[0]), "owner")

    def _versions(self, places: Sequence[Any]) -> list[tuple[object, object]]:
        _, found = self._txn([_request(op.Read(*place)) for place in places])
        return [rows[0][1:] if rows else (None, "0") for rows in found]

    def _write_if(self, seen: Mapping[Any, object], changed: Mapping[Any, object]) -> bool:
        same = [{"key": _bytes(flat(*at)), "target": "MOD", "mod_revision": rev} for at, rev in seen.items()]
        puts = [_request(op.Write(space, key, value)) for (space, key), value in changed.items()]
        return self._txn(puts, same)[0]

    def status(self) -> Mapping[str, object]:
        told, members = self._ask("maintenance/status", {}), self._ask("cluster/member/list", {})["members"]
        number, revision = told["header"]["member_id"], told["header"].get("revision", "0")
        role = "owner" if told.get("leader") == number else "replica"
        ids = {"id": int(number), "members": sorted(int(each["ID"]) for each in members)}
        return {"role": role, "term": int(told["raftTerm"]), "vclock": revision, **ids}

    def close(self) -> None:
        self._http.close()

    def _txn(self, success: Any, compare: Any = (), failure: Any = ()) -> tuple[bool, list[list[Any]]]:
        """Whether the comparisons held, and the rows that each request shows, as `_row`; all at one moment."""
        told = self._ask("kv/txn", {"compare": compare, "success": success, "failure": failure})
        found = [each.get("response_range", {}).get("kvs", []) for each in told.get("responses", [])]
        return bool(told.get("succeeded")), [[_row(each) for each in rows] for rows in found]

    def _ask(self, what: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """NotDone where it surely came to nothing; any other error leaves open whether it did."""
        status, answer = self._http.ask("POST", f"/v3/{what}", request)
        told = answer if isinstance(answer, dict) else {"error": f"status {status}"}
        if status == 200 and "error" not in told:
            return told
        sure = told.get("code") == INVALID_ARGUMENT or told.get("error") in NEVER_PROPOSED
        raise (NotDone if sure else RuntimeError)(told.get("error"))


def _bytes(text: str) -> str:
    return b64encode(text.encode()).decode()


def _row(told: Mapping[str, str]) -> tuple[str, Any, str]:
    return b64decode(told["key"]).decode(), json.loads(b64decode(told["value"])), told["mod_revision"]


def _request(step: op.Step, **how: bool) -> dict[str, object]:
    names = bounds(step) if isinstance(step, op.Scan) else (flat(step.space, step.key),)
    place = dict(zip(("key", "range_end"), map(_bytes, names), strict=False))
    if not isinstance(step, op.Write):
        return {"request_range": place | how}
    value = {"value": _bytes(json.dumps(step.value))}
    return {"request_delete_range": place} if step.value is None else {"request_put": place | value}


def _peer(address: str) -> str:
    return f"http://{address.split(':', maxsplit=1)[0]}:{PEER_PORT}"


def start(place: Place) -> tuple[str, ...]:
    peers = {node: _peer(address) for node, address in {place.node: place.listen, **place.peers}.items()}
    mine, clients = peers[place.node], f"http://{place.listen}"
    return tuple(
        f"etcd --name {place.node} --data-dir {place.data}/etcd --logger zap"
        f" --listen-client-urls {clients} --advertise-client-urls {clients}"
        f" --listen-peer-urls {mine} --initial-advertise-peer-urls {mine}"
        f" --initial-cluster {','.join(f'{node}={url}' for node, url in sorted(peers.items()))}"
        f" --initial-cluster-state {'existing' if place.joins else 'new'}"
        " --heartbeat-interval 100 --election-timeout 500 --snapshot-count 500 --strict-reconfig-check=false".split()
    )


SYSTEM = OwnStore(
    "etcd 3.4",
    start=start,
    client=Library(Member, frozenset({*op.STEPS, op.Dump, *op.MEMBER_CHANGES})),
    promised={"replica_reads": "monotone-prefix"},  # serializable: stale, but no member goes back
    may_end_under=("disk-error",),
    cannot_join_says=("cannot fetch cluster info", "error validating peerURLs", "incompatible with current"),
    leader="elected",
    packages=("etcd-server",),
    needs_one_address_list=True,
)
