"""What is promised to whom: one row a configuration, one entry a class of operation.

A verdict judges each class of answers against its own promise, by what the *server* said it did. The classes:

| class | who is asked and how |
|---|---|
| writes | acknowledged writes, and reads that are promised to fit them |
| owner reads | `read-confirmed` at the owner |
| replica reads | `read-confirmed` elsewhere |
| dirty reads | `dirty`, anywhere |

| model | means |
|---|---|
| linearizable | one order, within real time |
| monotone-prefix | stale without bound, but a node never goes back and shows confirmed values only |
| read-uncommitted | anything that somebody wrote |
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """A row of the table; `why` says in a sentence what it rests on."""

    configuration: str
    writes: str
    owner_reads: str
    replica_reads: str
    dirty_reads: str
    why: str


FIXED_OWNER = Promise(
    configuration="C: one owner for the whole run, no failover",
    writes="linearizable",
    owner_reads="linearizable",
    replica_reads="monotone-prefix",
    dirty_reads="read-uncommitted",
    why="one writer, and CONFIRM is on its disk before anything is visible: even an isolated owner is not stale",
)

ELECTED = Promise(
    configuration="H: elections, synchronous PROMOTE, no rollback on timeout",
    writes="linearizable",
    owner_reads="stale",
    replica_reads="monotone-prefix",
    dirty_reads="read-uncommitted",
    why="a PROMOTE decides only when a quorum has it in its own term; linearizable reads ask N - Q + 1 nodes",
)

ELECTED_WITH_ROLLBACK = Promise(
    configuration="I: elections, synchronous PROMOTE, rollback on timeout",
    writes="linearizable",
    owner_reads="stale",
    replica_reads="monotone-prefix",
    dirty_reads="read-uncommitted",
    why="as H; after a rollback that another leader overrules, a node may have to stop",
)

MODELS = ("linearizable", "monotone-prefix", "read-uncommitted")
"""Strongest first."""
