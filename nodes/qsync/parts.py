"""The parts that roles of a node share. Built anew when a snapshot is read, or when a node that joined begins anew."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nodes.kernel.effects import Effect
from nodes.qsync.applier import Applier
from nodes.qsync.bootstrap import Stored, first_snapshot
from nodes.qsync.checkpoints import Captures
from nodes.qsync.commits import Commits
from nodes.qsync.configuration import Configuration
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import Election
from nodes.qsync.exact_election import ExactElection
from nodes.qsync.journal import Journal
from nodes.qsync.linearizable_reads import LinearizableReads
from nodes.qsync.options import Options
from nodes.qsync.relay import Relay
from nodes.qsync.retention import Retention
from nodes.qsync.schema import Schema

DISCONNECT_AFTER_BEATS = 4
"""A link that is silent for this many replication timeouts is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    options: Options
    decisions: Decisions
    journal: Journal
    schema: Schema
    election: Election
    commits: Commits
    reads: LinearizableReads
    captures: Captures
    retention: Retention
    appliers: dict[str, Applier]
    """By the name of the peer."""
    applier_links: dict[int, Applier]
    relays: dict[int, Relay]
    """By link."""
    drop: Callable[[int, str], None]
    """End a link; the log says why."""
    out: list[Effect]


def build(
    configuration: Configuration,
    journal: Journal,
    stored: Sequence[Stored] | None,
    options: Options,
    decisions: Decisions,
    drop: Callable[[int, str], None],
    out: list[Effect],
) -> Parts:
    """Build all parts, with the content of a snapshot."""
    journal.replica_id = configuration.me.id
    schema = Schema(configuration, stored)
    options.counts(len(configuration.registered))
    election = _election(configuration, options, decisions)
    commits = Commits(configuration, journal, schema.by_id, election, options, decisions, out)
    captures = Captures(commits, journal, schema)
    return Parts(
        options=options,
        decisions=decisions,
        journal=journal,
        schema=schema,
        election=election,
        commits=commits,
        reads=LinearizableReads(options.others_asked),
        captures=captures,
        retention=Retention(captures, journal, options, out),
        appliers={peer.name: Applier(peer.name, peer.id) for peer in configuration.peers},
        applier_links={},
        relays={},
        drop=drop,
        out=out,
    )


def _election(configuration: Configuration, options: Options, decisions: Decisions) -> Election:
    kind = ExactElection if configuration.exact_elections else Election
    return kind(
        me=configuration.me.id,
        mode=options.election_mode,
        fencing=options.election_fencing,
        decisions=decisions,
        quorum=options.election_quorum,
        members=options.members,
        election_timeout_ns=options.election_timeout_ns,
        death_timeout_ns=DISCONNECT_AFTER_BEATS * options.replication_timeout_ns,
        chance=random.Random(f"{configuration.seed}/election {configuration.name}"),
    )


def new_journal(configuration: Configuration, first_token: int) -> Journal:
    return Journal(
        configuration.me.id,
        configuration.instance_uuid,
        first_snapshot=lambda: first_snapshot(configuration),
        server_version=configuration.version,
        file_bytes_max=configuration.wal_max_size,
        first_token=first_token,
    )
