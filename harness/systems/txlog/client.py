"""The client of the TxLog: what writes is submitted to a master and awaited until that master has executed it.

A read of mode `linearizable` is submitted, too: it shows the state at its place in the log. Every other read shows the
executed state of the master that is asked.
"""

from __future__ import annotations

from typing import Any

from harness.clients.operations import Cas, Dump, Insert, Read, Scan, Transaction, Write
from harness.systems.framed_client import FramedClient

IN_THE_LOG = "linearizable"
"""The mode of reads that are submitted."""


def request(asked: Transaction, number: int, steps: list[list[Any]]) -> list[Any]:
    if asked.is_read and asked.mode != IN_THE_LOG:
        return ["read", number, steps]
    return ["submit", number, steps, "executed"]


CLIENT = FramedClient(
    speaks=frozenset({Read, Scan, Write, Insert, Cas, Dump}),
    request=request,
    named="id",
    role="replica",  # every master: the answer of one alone may be old
    has_modes=True,
)
