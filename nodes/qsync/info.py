"""`box.info`: a node's report of itself in Tarantool's words; times are seconds.

`election.leader_idle` is for how long no leader was heard; `leader_name` is the leader's. A node in mode `off` has
neither of them, as in Tarantool up to 3.7.

`ro_reason` is why only local and temporary spaces can be written: "election" (the node is not the leader), "synchro"
(another node owns the queue, or it is frozen), "config" (`read_only`), "orphan" or nil. 2.6 has no `synchro`,
`election` and `ro_reason`.

| field of `synchro.queue` | |
|---|---|
| `age` | for how long the oldest entry has been in the queue |
| `size` | bytes of all entries in the log |
| `confirm_lag` | for how long the synchronous entry that committed last had been in the queue |
| `busy` | whether a record that decides about entries is on its way to the disk |
| `rollback_count` | entries rolled back since the node started |

`lag` is by the wall clocks of two nodes, so it may be below zero: upstream, from writing the last row or heartbeat to
its arrival here; downstream, from writing the newest row to its acknowledgement by the replica.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nodes.iproto.codes import Code
from nodes.iproto.greeting import SERVER_VERSION
from nodes.kernel.events import Instant
from nodes.qsync.applier import Applier
from nodes.qsync.commits import Commits
from nodes.qsync.configuration import Configuration, Identity
from nodes.qsync.election import STATE_NAMES, Election
from nodes.qsync.journal import Journal
from nodes.qsync.relay import Relay

SECOND_NS = 1_000_000_000
UPSTREAM = {
    "off": "disconnected",
    "connecting": "connect",
    "asking": "connected",
    "joining": "fetch_snapshot",
    "subscribing": "sync",
    "following": "follow",
    "stopped": "stopped",
}
"""Tarantool's names for the states of an applier."""


def box_info(
    *,
    configuration: Configuration,
    journal: Journal,
    commits: Commits,
    appliers: Mapping[str, Applier],
    relays: Collection[Relay],
    started_ns: int,
    now: Instant,
) -> dict[str, object]:
    me, vclock = configuration.me, journal.vclock
    later: dict[str, object] = {
        "ro_reason": None if commits.is_writable else commits.ownership.ro_reason,
        "synchro": synchro(commits, now),
        "election": election(commits.election, configuration, now),
    }
    following = {relay.replica_id: relay for relay in relays if relay.replica_id}
    anonymous = sum(relay.replica_id == 0 for relay in relays)
    report: dict[str, object] = {
        "version": f"{SERVER_VERSION}-0-qsync",
        "package": "qsync",
        "id": me.id,
        "uuid": me.uuid,
        "name": me.name,
        "ro": not commits.is_writable,
        "status": "orphan" if commits.ownership.is_orphan else "running",
        "vclock": dict(sorted(vclock.items())),
        "signature": sum(vclock.values()),
        "lsn": vclock.get(me.id, 0),
        "uptime": _seconds(now.monotonic_ns - started_ns),
        "cluster": {"uuid": configuration.cluster_uuid},
        "replication": {
            member.id: _member(
                member, vclock.get(member.id, 0), appliers.get(member.name), following.get(member.id), now
            )
            for member in configuration.members
        },
        "replication_anon": {"count": anonymous},
    }
    return report | later if commits.options.knows_elections else report


def synchro(commits: Commits, now: Instant) -> dict[str, object]:
    limbo = commits.limbo
    return {
        "queue": {
            "owner": limbo.owner_id,
            "term": limbo.term,
            "len": len(limbo),
            "size": limbo.size,
            "age": _seconds(now.monotonic_ns - limbo.entries[0].inserted_ns) if limbo.entries else 0,
            "confirm_lag": _seconds(commits.fates.confirm_lag_ns),
            "busy": commits.records.is_behind_barrier or limbo.confirming_lsn > limbo.confirmed_lsn,
            "rollback_count": limbo.rollback_count,
        },
        "quorum": commits.options.quorum_size,
    }


def election(state: Election, configuration: Configuration, now: Instant) -> dict[str, object]:
    names = {member.id: member.name for member in configuration.members}
    report: dict[str, object] = {
        "state": STATE_NAMES[state.state],
        "term": state.term,
        "vote": state.vote,
        "leader": state.leader_id,
    }
    if state.mode == "off":
        return report
    if state.leader_id:
        report["leader_name"] = names.get(state.leader_id)
    report["leader_idle"] = 0 if state.is_leader else _seconds(now.monotonic_ns - state.leader_heard_ns)
    return report


def _member(
    member: Identity, lsn: int, applier: Applier | None, relay: Relay | None, now: Instant
) -> dict[str, object]:
    report: dict[str, object] = {"id": member.id, "uuid": member.uuid, "name": member.name, "lsn": lsn}
    if applier is not None:
        upstream: dict[str, object] = {
            "status": "stopped" if _failed_here(applier) else UPSTREAM[applier.state],
            "idle": _seconds(now.monotonic_ns - applier.heard_ns),
            "lag": applier.lag_s,
            "peer": applier.peer,
        }
        if applier.message or applier.last_error:
            upstream["message"] = applier.message or applier.last_error
        report["upstream"] = upstream
    if relay is not None:
        report["downstream"] = {
            "status": "follow",
            "idle": _seconds(now.monotonic_ns - relay.heard.monotonic_ns),
            "lag": relay.lag_s,
            "vclock": dict(sorted(relay.vclock.items())),
        }
    elif applier is not None:
        report["downstream"] = {"status": "stopped"}
    return report


def _failed_here(applier: Applier) -> bool:
    """The applier is off because this node's disk failed, not the network: the next beat tries again."""
    return applier.state == "off" and applier.last_error.startswith(Code.WAL_IO.text())


def _seconds(time_ns: int) -> float:
    return max(time_ns, 0) / SECOND_NS
