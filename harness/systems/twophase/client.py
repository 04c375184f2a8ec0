"""The client of the two-phase store: a transaction is one request to a near node (`nodes.twophase.clients`).

The store reads no ranges and deletes nothing.
"""

from __future__ import annotations

from harness.clients.operations import STEPS, Delete, Dump, RestoredCut, Scan
from harness.systems.framed_client import FramedClient

CLIENT = FramedClient(
    speaks=frozenset({*STEPS, Dump, RestoredCut} - {Scan, Delete}),
    request=lambda asked, number, steps: ["txn", number, steps, {}],
    named="xid",
)
