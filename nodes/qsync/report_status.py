"""A node's report of itself to an operator, beside `box.info`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nodes.kernel.events import Instant
from nodes.kernel.quorum import DEFAULT_FORMULA, LINEARIZABLE_FORMULA
from nodes.qsync.applier import Applier
from nodes.qsync.clearing import Clearing
from nodes.qsync.commits import Commits
from nodes.qsync.control import Control
from nodes.qsync.election import STATE_NAMES
from nodes.qsync.journal import Journal, public
from nodes.qsync.linearizable_reads import LinearizableReads
from nodes.qsync.options import SECOND_NS
from nodes.qsync.relay import Relay
from nodes.qsync.schema import Schema


def status_of(
    *,
    version: str,
    now: Instant,
    has_data: bool,
    schema: Schema,
    journal: Journal,
    commits: Commits,
    control: Control,
    clearing: Clearing,
    appliers: Collection[Applier],
    relays: Collection[Relay],
) -> Mapping[str, object]:
    """The report, as JSON values."""
    configuration, options = commits.configuration, commits.options
    election, limbo = commits.election, commits.limbo
    return {
        "name": configuration.name,
        "version": version,
        "wall_ns": now.wall_ns,
        "id": configuration.me.id,
        "role": _role(commits) if has_data else "loading",
        "ro": not commits.is_writable,
        "ro_reason": None if commits.is_writable else commits.ownership.ro_reason,
        "elections": control.elections,
        "election": STATE_NAMES[election.state],
        "election_term": election.term,
        "leader": election.leader_id,
        "owner": limbo.owner_id,
        "term": limbo.term if options.knows_elections else clearing.generation,
        "lsn": journal.vclock.get(configuration.me.id, 0),
        "vclock": {str(origin): lsn for origin, lsn in sorted(public(journal.vclock).items())},
        "pending_promotes": len(commits.pending),
        "promote": control.promotion(),
        "limbo": len(limbo),
        "confirmed_lsn": limbo.confirmed_lsn,
        "in_rollback": limbo.is_in_rollback,
        "rollbacks": limbo.rollback_count,
        "committed": commits.fates.committed_count,
        "following": sorted(applier.peer for applier in appliers if applier.state == "following"),
        "stopped": {applier.peer: applier.message for applier in appliers if applier.state == "stopped"},
        "followers": sorted(relay.replica_id for relay in relays),
        "members": sorted(schema.members()) if has_data else [],
        "quorum": options.quorum_size,
        **({} if options.knows_elections else {"upstreams": _upstreams(appliers, now)}),
    }


Ids = tuple[int, ...]
State = tuple[int, int, int, int, int, int, int, int, Ids, Ids, int, int, int, bool, bool]
"""The fields of `checkers.logs.wal.effects.Rested` from `replica` on."""


def state_of(commits: Commits, reads: LinearizableReads, members: Collection[int]) -> State | None:
    """The state that the log alone determines. None with 2.6, which has no terms."""
    election, limbo, options = commits.election, commits.limbo, commits.options
    if not options.knows_elections:
        return None
    return (
        commits.configuration.me.id,
        election.term,
        election.vote,
        limbo.owner_id,
        limbo.term,
        len(limbo),
        len(commits.pending),
        limbo.confirmed_lsn,
        tuple(sorted(members)),
        tuple(sorted(limbo.acknowledged)),
        options.quorum_size,
        election.quorum,
        reads.others_needed if options.linearizable_quorum == LINEARIZABLE_FORMULA else -1,
        options.quorum == DEFAULT_FORMULA,
        limbo.confirming_lsn > limbo.confirmed_lsn or limbo.is_in_rollback,
    )


def _upstreams(appliers: Collection[Applier], now: Instant) -> dict[str, Mapping[str, object]]:
    """Peer → its upstream as in `box.info.replication`."""
    return {
        applier.peer: {
            "status": "follow" if applier.state == "following" else "disconnected",
            "idle": (now.monotonic_ns - applier.heard_ns) / SECOND_NS,
            "message": applier.message or applier.last_error,
        }
        for applier in appliers
    }


def _role(commits: Commits) -> str:
    implicitly = commits.configuration.protocol == "2.6" and commits.is_writable
    return "owner" if commits.ownership.may_decide or implicitly else "replica"
