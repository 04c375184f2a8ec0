"""Base snapshots: all servers write their rows at a moment at which no transaction is prepared anywhere.

    "snapshot" ──▶ no prepare with writes is taken ──▶ all writes have ended on this node: "snapshot-ready"
    all are ready ──▶ the file, a record in the log, "snapshot-done" ──▶ all are done: transactions go on

The rows of atomic spaces are left out: they are written without a prepare, and have no such moment. A server that joins
or leaves ends the snapshot without a result. A base needs the files of all servers (`restore.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from nodes.records import framed
from nodes.twophase.agreed import Agreed, Entry, Snapshot
from nodes.twophase.sometimes import SNAPSHOT
from nodes.twophase.stock import Stock

FILE = "base-{:06}.snap"


class Snapshots:
    def __init__(self, stock: Stock, agreed: Agreed, propose: Callable[[Entry], None]) -> None:
        self._stock = stock
        self._agreed = agreed
        self._propose = propose
        self._ready: str | None = None
        self._written: str | None = None

    def look(self) -> None:
        """Go on with the snapshot: an entry about it was delivered, or a transaction has ended on this node."""
        site, stock, running = self._stock.site, self._stock, self._agreed.barrier
        if running is None or not site.is_server or not self._agreed.is_member(site.name, site.life):
            return
        is_quiet = not stock.closing and not any(local.writes for local in stock.locals.values())
        if self._ready != running.id and is_quiet:
            self._ready = running.id
            self._propose(["snapshot-ready", running.id, site.name])
        if not running.not_ready and self._written != running.id:
            self._written = running.id
            self._write(running.id)

    def _write(self, snapshot: str) -> None:
        site, stock = self._stock.site, self._stock
        stock.last_base += 1
        file = FILE.format(stock.last_base)
        rows = [
            row
            for partition in range(site.configuration.partitions)
            for row in stock.data.rows(partition)
            if row[0] not in site.configuration.atomic_spaces
        ]
        # The file before the record that names it.
        site.persist(file, framed([snapshot, rows]), "base file", is_whole=True)
        done = ["snapshot-done", snapshot, site.name]
        stock.wal.append(["base", snapshot, file], lambda: self._propose(done))

    def ended(self, snapshot: Snapshot) -> None:
        """Note the end of a snapshot, if this life has written its file: a start delivers all earlier ones again."""
        is_ours, self._ready, self._written = self._written == snapshot.id, None, None
        if snapshot.state == "ok" and is_ours:
            self._stock.site.sometimes.note(SNAPSHOT)
            self._stock.is_flagged = False
            self._stock.wal.append(["base-done", snapshot.id])
