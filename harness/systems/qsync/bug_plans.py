"""In which configuration, and under which faults, each seeded bug can show: what `qsync simulate --bug NAME` sets.

Options of the command line are kept. A bug that is not here is hunted with the settings `ELECTED`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.systems.qsync.node_options import CLEANUP_DELAY

ALL_AND_HOLDS = ("all", "holds")
ELECTED: Mapping[str, Any] = {"faults": ALL_AND_HOLDS, "read": "mixed", "replica_reads": 0.4}
FIXED: Mapping[str, Any] = {
    "configuration": "C",
    "faults": ALL_AND_HOLDS,
    "replica_reads": 0.3,
    "synchro_timeout_s": 0.4,
}
ROLLING_BACK: Mapping[str, Any] = {**ELECTED, "configuration": "I", "synchro_timeout_s": 0.4}
CUTTING: Mapping[str, Any] = {**ELECTED, "cut_every_s": 0.5}

BUG_PLANS: dict[str, Mapping[str, Any]] = {
    "confirm-early": FIXED,
    "ack-before-fsync": {**FIXED, "faults": ("power-owner", "power-all", "isolate-one")},
    "no-cascading-rollback": {**FIXED, "rate": 150.0},
    "confirm-before-wal-owner": {**FIXED, "rate": 20.0},
    "confirm-before-wal-replica": {**FIXED, "rate": 20.0, "replica_reads": 0.9},
    "definite-timeout": ROLLING_BACK,
    "no-split-brain-check": {**ROLLING_BACK, "rate": 60.0},
    "quorum-without-plus-one": {
        **ELECTED,
        "nodes": 4,
        "faults": ("halves", "isolate-owner", "kill", "holds"),
    },
    "lease-by-wall-clock": {
        **ELECTED,
        "faults": ("clock", "isolate-owner"),
        "overlap": 2,
        "read": "linearizable",
    },
    "timers-by-wall-clock": {**ELECTED, "faults": ("clock", "isolate-owner", "halves"), "overlap": 3},
    "promote-keeps-old-quorum": {**ELECTED, "faults": ("quorum", "holds")},
    "snapshot-holds-pending": {**FIXED, "checkpoint_interval_s": 0.3},
    # A replica joins anew when its owner has thrown away what it lacks: the owner died, soon forgot who follows it, and
    # took snapshots since.
    "join-sends-pending": {
        **FIXED,
        "faults": ("kill", "isolate-one", "slow", "holds"),
        "checkpoint_interval_s": 0.3,
        "node_options": tuple(f"n{number}:{CLEANUP_DELAY}=0.1" for number in (1, 2, 3)),
        "synchro_timeout_s": 0.2,
        "overlap": 3,
    },
    # The owner's queue holds more than a replica's, as while a limit is being changed node by node.
    "queue-limit-on-replica": {
        **FIXED,
        "faults": ("slow", "isolate-one"),
        "queue_max_size": "2000,100,100",
        "rate": 150.0,
        "workers": 30,
    },
    # The queue must be full long enough that some of its transactions are asked for after the answer.
    "submit-before-queue": {
        **FIXED,
        "commit_wait": "mixed",
        "faults": ("slow", "isolate-one"),
        "rate": 150.0,
        "workers": 30,
    },
    "no-fencing": {**ELECTED, "faults": ("isolate-owner", "halves")},
    "no-pre-vote": {**ELECTED, "faults": ("isolate-one", "isolate-owner"), "election_timeout_s": 0.2},
    "place-before-marker": CUTTING,
    "place-when-asked": CUTTING,
    "vote-after-promote": {**CUTTING, "faults": ("none",)},
    # Elsewhere a deposed leader may compare with an old state: there a failed compare is no observation.
    "cas-from-pending": {**FIXED, "workers": 6, "rate": 150.0},
    "decide-on-confirmed": {**FIXED, "workload": "append", "rate": 120.0},
    "promote-at-once": {**ELECTED, "configuration": "H"},
    "writable-before-promote": {**ELECTED, "stray_writes": 0.4},
    # Rows reach a candidate before the vote that follows them, unless a connection broke in between: links
    # are given up sooner than a candidate gives up its term.
    "vote-before-flush": {
        **ELECTED,
        "faults": ("holds",),
        "rate": 150.0,
        "replication_timeout_s": 0.1,
        "election_timeout_s": 1.5,
    },
}
