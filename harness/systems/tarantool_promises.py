"""What Tarantool promises, version by version and configuration by configuration, in its own documentation's words.

Sentences are quoted from the documentation of the version (github.com/tarantool/doc, doc/book/replication and
doc/book/box); where they leave something to the operator, what the harness sees of it is a finding, not a violation.
"""

from __future__ import annotations

from harness.systems.promises import Promise

COMMITTED = "Synchronous transactions are not considered committed until they are replicated onto some number of replicas."
EXTERNAL_FAILOVER = Promise(
    configuration="B: 2.6, an operator fails over with clear_synchro_queue",
    writes="linearizable",
    owner_reads="read-uncommitted",
    replica_reads="read-uncommitted",
    dirty_reads="read-uncommitted",
    why="",
)
