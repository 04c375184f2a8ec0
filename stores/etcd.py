"""etcd 3.4 under test, by the JSON gateway of each member: three or five members, as Debian packages them.

    ./qsync run --system stores/etcd.py --cluster docker --nodes 3

Where etcd can say an operation in one request, it is one. What it cannot compute (append, add, take; two writes of one
key) is two: a linearizable read, and a transaction that compares the `mod_revision` of all that was read and writes. If
a comparison fails, nothing happened. Nothing is asked twice.

Reads in the modes read-confirmed and dirty are serializable ones: the member answers alone, and may be behind.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from harness.clients.client import Library, NotDone
from harness.clients.flat_keys import bounds, dumped, flat, place_of
from harness.clients.optimistic import if_unchanged
from harness.cluster.http import Http
from harness.cluster.place import Place
from harness.operations import STEPS, Asked, Cas, Done, Dump, Mismatch, Outcome, Read, Scan, Step, Write
from harness.systems.own import OwnStore

PEER_PORT = 2380
SERIALIZABLE = ("read-confirmed", "dirty")
ALONE, TOGETHER = ("replica", "read-confirmed"), ("owner", "linearizable")  # answering role, read mode
INVALID_ARGUMENT = 3  # the gRPC code of a request that a member refuses to propose
NEVER_PROPOSED = ("etcdserver: too many requests",)
ALL = {"request_range": {"key": "AA==", "range_end": "AA==", "serializable": True}}

Row = Mapping[str, str]


class Member:
    """Implements `harness.clients.client.Connected`."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._http = Http(host, port, timeout_s)

    def invoke(self, asked: Asked) -> Outcome:
        if isinstance(asked, Dump):
            return dumped(_pair(row) for row in self._txn([ALL])[1][0])
        steps, is_alone = asked.steps, asked.mode in SERIALIZABLE and asked.is_read
        written = [(step.space, step.key) for step in steps if isinstance(step, Write)]
        if isinstance(steps[0], Cas) and len(steps) == 1:
            return self._compare_and_set(steps[0])
        is_twice = len({*written}) < len(written)
        if asked.is_read or (all(isinstance(step, Read | Write) for step in steps) and not is_twice):
            _, found = self._txn([_request(step, serializable=is_alone) for step in steps])
            pairs = zip(steps, found, strict=True)
            shown = [_table(rows) if isinstance(step, Scan) else _value(rows) for step, rows in pairs]
            return Done(shown, *(ALONE if is_alone else TOGETHER))
        return if_unchanged(steps, self._versions, self._write_if, *TOGETHER)

    def _compare_and_set(self, step: Cas) -> Outcome:
        name = {"key": _bytes(flat(step.space, step.key))}
        is_none = {**name, "target": "VERSION", "version": "0"}
        is_old = {**name, "target": "VALUE", "value": _bytes(json.dumps(step.old))}
        put, look = _request(Write(step.space, step.key, step.new)), _request(Read(step.space, step.key))
        is_done, found = self._txn([put], [is_none if step.old is None else is_old], [look])
        return Done([True], *TOGETHER) if is_done else Mismatch(0, _value(found[0]), "owner")

    def _versions(self, places: Sequence[Any]) -> list[tuple[object, object]]:
        _, found = self._txn([_request(Read(*place)) for place in places])
        return [(_value(rows), rows[0]["mod_revision"] if rows else "0") for rows in found]

    def _write_if(self, versions: Mapping[Any, object], changed: Mapping[Any, object]) -> bool:
        names = {place: {"key": _bytes(flat(*place)), "target": "MOD"} for place in versions}
        same = [{**names[place], "mod_revision": version} for place, version in versions.items()]
        puts = [_request(Write(space, key, value)) for (space, key), value in changed.items()]
        return self._txn(puts, same)[0]

    def status(self) -> Mapping[str, object]:
        told = self._ask("maintenance/status", {})
        role = "owner" if told.get("leader") == told["header"]["member_id"] else "replica"
        return {"role": role, "term": int(told["raftTerm"]), "vclock": told["header"].get("revision", "0")}

    def close(self) -> None:
        self._http.close()

    def _txn(self, success: Any, compare: Any = (), failure: Any = ()) -> tuple[bool, list[list[Row]]]:
        """Whether the comparisons held, and the rows that each request shows; all at one moment."""
        told = self._ask("kv/txn", {"compare": compare, "success": success, "failure": failure})
        rows = [each.get("response_range", {}).get("kvs", []) for each in told.get("responses", [])]
        return bool(told.get("succeeded")), rows

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


def _pair(row: Row) -> tuple[str, object]:
    return b64decode(row["key"]).decode(), _value([row])


def _value(rows: Sequence[Row]) -> object:
    return json.loads(b64decode(rows[0]["value"])) if rows else None


def _table(rows: Sequence[Row]) -> list[tuple[str | int, object]]:
    return [(place_of(name)[1], value) for name, value in map(_pair, rows)]


def _request(step: Step, **how: bool) -> dict[str, object]:
    match step:
        case Write(space, key, value):
            return {"request_put": {"key": _bytes(flat(space, key)), "value": _bytes(json.dumps(value))}}
        case Scan():
            first, below = map(_bytes, bounds(step))
            return {"request_range": {"key": first, "range_end": below, **how}}
        case _:
            return {"request_range": {"key": _bytes(flat(step.space, step.key)), **how}}


def start(place: Place) -> tuple[str, ...]:
    addresses = {place.node: place.listen, **place.peers}
    peers = {node: f"http://{addresses[node].split(':')[0]}:{PEER_PORT}" for node in sorted(addresses)}
    mine, clients = peers[place.node], f"http://{place.listen}"
    return tuple(
        f"etcd --name {place.node} --data-dir {place.data}/etcd --logger zap"
        f" --listen-client-urls {clients} --advertise-client-urls {clients}"
        f" --listen-peer-urls {mine} --initial-advertise-peer-urls {mine}"
        f" --initial-cluster {','.join(f'{node}={url}' for node, url in peers.items())}"
        " --heartbeat-interval 100 --election-timeout 500 --snapshot-count 500".split()
    )


SYSTEM = OwnStore(
    "etcd 3.4",
    start=start,
    client=Library(Member, frozenset({*STEPS, Dump})),
    promised={"replica_reads": "monotone-prefix"},  # serializable: stale, but no member goes back
    may_end_under=("disk-error",),
    leader="elected",
    packages=("etcd-server",),
    needs_one_address_list=True,
)
