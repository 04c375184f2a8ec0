"""The messages of the TxLog: those of `nodes.framed`, each of a kind that its first word names."""

from __future__ import annotations

from harness.systems.framed_wire import Framed

WIRE = Framed()
