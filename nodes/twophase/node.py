"""One node of the two-phase store: events in, effects out. Implements `nodes.kernel.node.Node`.

    Started ──▶ read life, discovery log and log ──▶ beat ──▶ "join" is delivered ──▶ serve
    Received on a peer's link ──▶ `links` ──▶ marker (`cuts`) ──▶ `dispatch` ──▶ a role
    Received on a client's link ──▶ `clients`
    an entry of the discovery log ──▶ `agreed` ──▶ what follows from it, here

| role | file |
|---|---|
| agrees on members, owners in sync, cuts | `discovery.py`, `agreed.py` |
| coordinates transactions | `near.py`; how they end: `deciding.py` |
| holds partitions | `preparing.py`, `finishing.py`, `recovery.py`, `rebalance.py`, `takeover.py`; `atomic.py` |
| takes part in cuts and base snapshots | `cuts.py`, `snapshots.py` |
| serves clients and operators | `clients.py` |

A node with a life that has left starts again: its state may be old, and recovery ends its transactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.kernel.effects import Effect
from nodes.kernel.errors import StartAgain, StartRefused
from nodes.kernel.events import (
    Accepted,
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Instant,
    Persisted,
    PersistFailed,
    Received,
    Started,
    Stopping,
    TimerFired,
)
from nodes.twophase import bugs
from nodes.twophase.agreed import TOPOLOGY_WORDS, Agreed, Entry
from nodes.twophase.atomic import Atomic
from nodes.twophase.clients import Clients
from nodes.twophase.configuration import Configuration
from nodes.twophase.cuts import Cuts
from nodes.twophase.deciding import Deciding
from nodes.twophase.discovery import Discovery
from nodes.twophase.dispatch import Dispatch
from nodes.twophase.finishing import Finishing
from nodes.twophase.kept import Kept
from nodes.twophase.life import next_life
from nodes.twophase.links import Links
from nodes.twophase.near import Near
from nodes.twophase.preparing import Preparing
from nodes.twophase.rebalance import Rebalance
from nodes.twophase.recovery import Recovery
from nodes.twophase.site import Site
from nodes.twophase.snapshots import Snapshots
from nodes.twophase.sometimes import COORDINATOR_DIED_IN_CUT, CUT_REFUSED
from nodes.twophase.stock import Stock
from nodes.twophase.sweeping import Sweeping
from nodes.twophase.takeover import Takeover


class TwoPhase:
    def __init__(self, configuration: Configuration) -> None:
        decisions = bugs.decisions_with(configuration.bugs)
        site = self.site = Site(configuration, decisions)
        agreed = self.agreed = Agreed(configuration, decisions.fails_with_servers)
        stock = self.stock = Stock(site)
        self.sweeping = Sweeping(agreed, self._open, self._kept, self._trim)
        self.discovery = Discovery(site, agreed, self._tell, self._deliver, self.sweeping.over)
        propose = self.discovery.propose
        self.cuts = Cuts(
            *(site, stock.wal, lambda: list(stock.locals.values())),
            *(propose, self.discovery.withdraw, self._hindrance),
        )
        self.links = Links(site, self._take_discovery, self._take, self.cuts.marker, self.cuts.meet)
        self.snapshots = Snapshots(stock, agreed, propose)
        self.finishing = Finishing(stock, agreed, self.cuts, self._send, self._settled)
        self.preparing = Preparing(stock, agreed, self.cuts, self.finishing, self._send)
        self.atomic = Atomic(stock, agreed, self.preparing, self._send, self._settled)
        self.recovery = Recovery(stock, agreed, self.finishing, self._send, propose)
        self.rebalance = Rebalance(
            stock, agreed, self.preparing, self.recovery, self._send, propose, self.discovery.withdraw
        )
        self.takeover = Takeover(stock, agreed, self._send)
        self.deciding = Deciding(
            site, agreed, self.cuts, stock, self.finishing, self._send, self._ask_confirmation
        )
        self.near = Near(site, agreed, self.deciding, self._send)
        self.dispatch = Dispatch(
            site,
            agreed,
            self.near,
            self.deciding,
            self.preparing,
            self.finishing,
            self.recovery,
            self.rebalance,
            self.takeover,
            self.atomic,
        )
        self.clients = Clients(site, agreed, self.near, stock, propose, self.status)
        self._is_member = False
        self._coordinator: str | None = None
        self._inbox: list[tuple[str, list[Any]]] = []
        """The messages of this node to itself."""

    # ---- events

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        site = self.site
        site.now, site.out = now, []
        self._handle(event)
        # Messages to itself come behind the event, like those of other nodes: no role is called in the middle of one.
        while self._inbox:
            word, payload = self._inbox.pop(0)
            self.dispatch.take(site.name, site.life, word, payload)
        return site.out

    def _handle(self, event: Event) -> None:
        match event:
            case Started(files):
                self._start(files)
            case Received():
                if not self.links.received(event):
                    self.clients.received(event.link, event.message)
            case Persisted(token):
                self.site.persisted(token)
            case PersistFailed(_, error):
                self.site.persist_failed(error)
            case TimerFired(name):
                self.site.fired(name)
            case Connected(link, peer):
                self.links.connected(link, peer)
            case ConnectFailed(peer):
                self.links.connect_failed(peer)
            case Disconnected(link):
                if not self.links.disconnected(link):
                    self.clients.disconnected(link)
            case Accepted() | Stopping():
                pass

    def _start(self, files: Mapping[str, bytes]) -> None:
        self.site.begin(next_life(self.site, files))
        if self.site.is_server:
            records = self.stock.wal.read(files)
            cut = self.site.configuration.restore
            if cut is not None and [record[:2] for record in records[:1]] != [["restored", cut]]:
                raise StartRefused(
                    f"expected a log that begins with the rows of the cut {cut}, got one that does not: "
                    "start it on the files that a restore has made"
                )
            self.cuts.load(records)
            for local in self.stock.load(records):
                self.recovery.doubt_at_start(local)
            if self.stock.not_restored:
                self.site.log("restored without atomic spaces", "warning", spaces=self.stock.not_restored)
        self.discovery.start(files)
        self.links.start()
        self.links.beat()
        self._beat()

    def _beat(self) -> None:
        self.site.after("beat", self.site.configuration.beat_ns, self._beat)
        self.links.beat()
        self.discovery.beat()
        self.recovery.pursue()
        self.rebalance.pursue()
        self.deciding.ask_again()
        if self.discovery.coordinator not in (None, self._coordinator):
            is_change = self._coordinator is not None and self.agreed.running is not None
            self.site.sometimes.note(COORDINATOR_DIED_IN_CUT, is_change)
            self._coordinator = self.discovery.coordinator

    # ---- messages of nodes

    def _tell(self, peer: str, message: list[Any]) -> None:
        self.links.tell(peer, message)

    def _send(self, node: str, word: str, payload: list[Any]) -> None:
        """Send to the present life of a member; a message to any other node is dropped."""
        if node == self.site.name:
            self._inbox.append((word, payload))
        elif life := self.agreed.life_of(node):
            self.links.send(node, life, payload[0], word, payload)

    def _take(self, peer: str, life: int, word: str, payload: list[Any]) -> None:
        self.dispatch.take(peer, life, word, payload)

    def _take_discovery(self, peer: str, life: int, message: list[Any]) -> None:
        match message:
            case ["confirm", _, xid, version]:
                ok = self.discovery.newest_topology() <= version
                self.links.tell(peer, ["confirmed", 0, xid, ok])
            case ["confirmed", _, xid, ok]:
                self.deciding.take_confirmed(peer, xid, ok)
            case _:
                self.discovery.take(peer, life, message)

    def _ask_confirmation(self, xid: str, version: int) -> None:
        for server in self.site.configuration.baseline:
            if server != self.site.name:
                self.links.tell(server, ["confirm", 0, xid, version])
        if self.site.is_server:
            self.deciding.take_confirmed(self.site.name, xid, self.discovery.newest_topology() <= version)

    def _settled(self) -> None:
        """A transaction has ended on this node: copies, a new primary and snapshots may have waited for it."""
        self.rebalance.send_if_quiet()
        self.takeover.look()
        self.snapshots.look()

    # ---- entries of the discovery log

    def _deliver(self, index: int, entry: Entry) -> None:
        agreed, site = self.agreed, self.site
        running, barrier = agreed.running, agreed.barrier  # before `apply`, which may end them
        change = agreed.apply(index, entry)
        # Before anything else: a life that has left may commit or answer nothing more.
        if (site.name, site.life) in change.left:
            raise StartAgain(f"life {site.life} of {site.name} has left the cluster")
        if change.joined == (site.name, site.life):
            self._is_member = True
            self.cuts.heard_of(agreed)
        for node, life in change.left:
            self.links.forget(node, life)
            for local in self.preparing.left(node, life):
                self.recovery.doubt(local)
            self.finishing.left(node, life)
            self.atomic.left(node, life)
            self.deciding.left(node, life)
        if change.is_sweep and self._is_member:  # it did not report for a sweep that it reads in its own log
            self.sweeping.delivered(index)
        elif change.is_topology:
            self.sweeping.begin_anew()
        self._follow_cut(running, entry)
        if barrier is not None and agreed.barrier is None:
            self.snapshots.ended(barrier)
        if entry[0] == "resolved":
            self.recovery.resolve(entry[1])
        if entry[0] in TOPOLOGY_WORDS:
            self.rebalance.changed(entry)
            self.takeover.changed()
            self.dispatch.release()  # behind the takeover, which may hold locks and prepares back
            if self._is_member:
                self.recovery.pursue()
                self.rebalance.pursue()
        self.snapshots.look()
        self.clients.delivered(entry)

    def _open(self) -> set[str]:
        """The transactions that have not ended on this node."""
        return {*self.deciding.open, *self.stock.locals, *self.stock.closing, *self.recovery.doubts}

    def _kept(self) -> tuple[Kept[Any], ...]:
        return self.deciding.decided, self.stock.outcomes

    def _trim(self, index: int, state: Mapping[str, Any]) -> None:
        self.discovery.trim(index, state)

    def _follow_cut(self, before: Any, entry: Entry) -> None:
        after = self.agreed.running
        if before is not None and before is not after:
            self.cuts.ended(before.named, failed=before.state == "failed")
        if entry[0] == "cut" and self.agreed.cuts[entry[1]].state == "refused":
            self.site.sometimes.note(CUT_REFUSED)
        if after is not None and self._is_member:
            self.cuts.discovered(after.named)

    def _hindrance(self) -> str:
        if not self._is_member:
            return "the server has not joined yet"
        if self.stock.is_flagged or self.agreed.missing(self.site.name):
            return "a partition was rebalanced since the last base snapshot"
        return ""

    @property
    def sometimes(self) -> Mapping[str, int]:
        """How often each rare turn (`sometimes.py`) occurred in this life."""
        return self.site.sometimes

    # ---- for operators

    def status(self) -> Mapping[str, object]:
        agreed, site = self.agreed, self.site
        here = agreed.is_member(site.name, site.life)
        return {
            "role": site.configuration.role,
            "name": site.name,
            "life": site.life,
            "wall_ns": site.now.wall_ns,
            "ready": here and not agreed.missing(site.name),
            "coordinator": self.discovery.coordinator,
            "term": self.discovery.log.term,
            "delivered": self.discovery.delivered,
            "version": agreed.version,
            "newest_topology": self.discovery.newest_topology(),
            "members": {name: member.life for name, member in sorted(agreed.members.items())},
            "out_of_sync": sum(len(agreed.missing(server)) for server in site.configuration.baseline),
            "unavailable": [p for p in range(len(agreed.in_sync)) if agreed.primary(p) is None],
            "transactions": len(self.deciding.open) + len(self.stock.locals),
            "in_doubt": len(self.recovery.doubts),
            "cut": None if agreed.running is None else agreed.running.named.id,
            "flagged": self.stock.is_flagged,
            "atomic_spaces": list(site.configuration.atomic_spaces),
            "not_restored": self.stock.not_restored,
        }
