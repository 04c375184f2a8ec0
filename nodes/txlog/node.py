"""One master of a TxLog cluster: events in, effects out. Implements `nodes.kernel.node.Node`.

    Started ──▶ read the log ──▶ call all masters ──▶ rounds ──▶ all have the own base: take submissions
    a client's transaction ──▶ `journal` ("made") ──▶ POST to all masters
    POST of a master ──▶ `splits` ──▶ `rounds` (merge, collect, add) ──▶ `executing` ──▶ "executed" to the client

| part | file |
|---|---|
| what is on disk | `journal.py` |
| agrees on one order | `rounds.py`, `posts.py` |
| passes the POSTs of others on | `relays.py` |
| gets the updates of other masters | `acquiring.py` |
| refuses masters with different settings | `settings.py` |
| leaves masters out, and takes them back | `splits.py`, `recovery.py` |
| executes | `executing.py`, `evaluation.py` |
| serves clients and operators | `clients.py` |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nodes.kernel.effects import Effect
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
from nodes.txlog import bugs
from nodes.txlog.acquiring import Acquiring
from nodes.txlog.clients import Clients
from nodes.txlog.configuration import MILLISECOND, Configuration
from nodes.txlog.executing import Executing
from nodes.txlog.journal import Journal
from nodes.txlog.links import Links
from nodes.txlog.posts import NAMES, Post
from nodes.txlog.relays import Relays
from nodes.txlog.rounds import Rounds
from nodes.txlog.settings import Settings, said_of
from nodes.txlog.site import Site
from nodes.txlog.splits import Splits

ROUND, ASK_AGAIN = "round", "ask again"
ASK_AGAIN_NS = 100_000_000
LENGTHS = (
    *(("post", 2 + len(NAMES)), ("relayed", 5), ("difference", 9), ("digest", 9)),
    *(("updates?", 3), ("updates", 3)),
)
"""Word and length of each message between masters."""


class TxLog:
    """The parts of one master in one life of its process, and what each of them is told of the others."""

    def __init__(self, configuration: Configuration) -> None:
        site = self.site = Site(configuration, bugs.decisions_with(configuration.bugs))
        journal = self.journal = Journal(site)
        self.links = Links(
            site,
            lambda peer: peer in journal.peers,
            self._take,
            lambda: said_of(configuration),
        )
        settings = self.settings = Settings(site, journal, self.links)
        relays = self.relays = Relays(site, journal, self.links, settings)
        self.acquiring = Acquiring(site, journal, self.links, self._acquired, relays.is_apart)
        self.rounds = Rounds(
            site,
            journal,
            self.links,
            self.acquiring,
            self._suspects,
            self._grown,
            settings.pace_ns,
            relays.unheard,
        )
        self.splits = Splits(
            site, journal, self.links, self.rounds, settings, self._recovered, self._backed_up, self._grown
        )
        self.clients = Clients(
            site, journal, self._wake, self.links.call, self.status, settings.choose, self._why_no_submissions
        )
        self.executing = Executing(site, journal, self.splits.may_execute, self.clients.executed)

    # ---- events

    def step(self, event: Event, now: Instant) -> Sequence[Effect]:
        site = self.site
        site.now, site.out = now, []
        match event:
            case Started(files):
                self._start(files)
            case Received(link, list() as message) if message:
                if not self.links.received(link, message):
                    self.clients.received(link, message)
            case Persisted(token):
                site.persisted(token)
            case PersistFailed(_, error):
                site.persist_failed(error)
            case TimerFired(name):
                site.fired(name)
            case Connected(link, peer):
                self.links.connected(link, peer)
            case ConnectFailed(peer):
                self.links.connect_failed(peer)
            case Disconnected(link):
                if not self.links.disconnected(link):
                    self.clients.disconnected(link)
            case Accepted() | Stopping() | Received():
                pass
        return site.out

    def _start(self, files: Mapping[str, bytes]) -> None:
        self.journal.read(files)
        self.rounds.begin()
        self.relays.begin()
        self.splits.begin()
        self.executing.begin()
        for peer in self.journal.peers:
            self.links.call(peer)
        self._round()
        self._ask_again()

    def _round(self) -> None:
        journal, rounds = self.journal, self.rounds
        # In this order: the POST reports what the end of the round and the split have changed.
        rounds.look()
        self.splits.look()
        if not journal.is_matched and self.settings.are_shared() and all(map(self._is_met, journal.peers)):
            journal.write(["matched"])
        rounds.post(self.splits.digests)
        self.executing.look()
        self.site.after(ROUND, rounds.pace_ns(), self._round)

    def _is_met(self, peer: str) -> bool:
        """The peer has posted the own masters and base; without a strategy, the counter of a part that stays apart is
        enough.
        """
        post, journal = self.rounds.newest.get(peer), self.journal
        if post is None or post.masters != journal.masters:
            return False
        return (journal.strategy == "none" and peer in journal.missing) or self.rounds.has_own_base(post)

    def _wake(self) -> None:
        """Let the next round come soon: there is something to synchronise."""
        self.rounds.collect()
        after_ns = self.rounds.wakes_after_ns()
        if after_ns is not None:
            self.site.after(ROUND, after_ns, self._round)

    def _ask_again(self) -> None:
        self.acquiring.ask_again()
        self.site.after(ASK_AGAIN, ASK_AGAIN_NS, self._ask_again)

    # ---- messages of masters

    def _take(self, peer: str, link: int, message: list[Any]) -> None:
        match message:
            case [word, *_] if (word, len(message)) not in LENGTHS:
                text = "unknown message, or with fields of another version"
                self.site.log(text, "warning", word=str(word), fields=len(message) - 2, peer=peer)
            case ["post", _, *fields]:
                self._take_post(peer, fields, peer)
            case ["relayed", _, master, about, list() as fields]:
                if master in self.journal.peers and len(fields) == len(NAMES):
                    self.links.told.setdefault(master, about)
                    self._take_post(master, fields, peer)
            case ["difference" | "digest", *_] if self.settings.refuses(peer):
                pass
            case ["difference", _, *fields]:
                self.rounds.take_difference(peer, *fields)
            case ["digest", _, *digest]:
                self.splits.take_digest(digest)
            case ["updates?" | "updates", *_]:
                self.acquiring.take(peer, link, message)

    def _take_post(self, peer: str, fields: list[Any], sender: str) -> None:
        """Take a POST of the peer that came straight, or over the master `sender`."""
        if not self.relays.take(peer, fields, sender):
            return
        post = Post.from_fields(fields)
        self.rounds.heard_ns[peer] = self.site.now.monotonic_ns  # refused or not, it lives
        if sender == peer:
            self.links.refused.discard(peer)
        if not self.settings.take(peer, post):
            return
        if not self.splits.take(peer, post):
            if not self.rounds.take(peer, post):
                self.splits.diverged(peer)
            self._wake()

    def _why_no_submissions(self) -> str:
        journal = self.journal
        different = {
            peer: why
            for peer, why in self.settings.differences().items()
            if peer not in journal.missing
            and self.rounds.is_heard(peer)
            and (self.settings.refuses(peer) or not journal.is_matched)
        }
        if different:
            differences = "; ".join(f"{peer}: {why}" for peer, why in different.items())
            return f"configuration: the settings of the masters differ ({differences})"
        return "" if journal.is_matched else "loading: this master has not met all masters yet"

    # ---- what follows

    def _suspects(self) -> tuple[str, ...]:
        return self.splits.suspects()

    def _acquired(self) -> None:
        self._wake()
        self.executing.look()

    def _grown(self) -> None:
        self.executing.look()

    def _backed_up(self) -> None:
        self.executing.occupy()

    def _recovered(self) -> None:
        self.acquiring.ask()
        self.clients.release()
        self.executing.look()

    # ---- for operators

    @property
    def sometimes(self) -> Mapping[str, int]:
        """How often each rare turn (`sometimes.py`) occurred in this life."""
        return self.site.sometimes

    def status(self) -> Mapping[str, object]:
        journal = self.journal
        mode = "recovering" if journal.is_recovering else "split" if journal.missing else "normal"
        if mode == "normal" and self.splits.suspects():
            mode = "suspect"
        return {
            "role": "master",
            "name": self.site.name,
            "life": journal.life,
            "wall_ns": self.site.now.wall_ns,
            "ready": journal.is_matched,
            "mode": mode,
            "strategy": journal.strategy,
            "max_peer_lag_ms": journal.max_peer_lag_ns / MILLISECOND,
            "epoch": journal.epoch,
            "base": journal.base,
            "synchronised": len(journal.synced),
            "incoming": len(journal.queue),
            "waiting": len(journal.waiting()),
            "executed": journal.executed,
            "hash": journal.state.hash.hex(),
            "workers": len(journal.workers),
            "counter": journal.counter,
            "missing": list(journal.missing),
            "reaches": [
                peer
                for peer in journal.peers
                if self.rounds.is_heard(peer) and not self.settings.refuses(peer)
            ],
            "refused": sorted({*self.links.refused, *filter(self.settings.refuses, journal.peers)}),
            "masters": list(journal.masters),
            **({"differs": differs} if (differs := self.settings.differences()) else {}),
        }
