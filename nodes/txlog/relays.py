"""POSTs that reach a master over others: a connected network acts like one in which all masters are linked.

A POST names the masters of which no POST comes straight to its poster. A master that gets a newer POST of one of these,
straight or over others, passes it on at once, unless it knows of a smaller name that does. So every POST crosses each
link once at most, and where all links stand nothing is passed on.

    ["relayed", 0, master, about, fields]    a POST of `master`, and the settings of its `hello`

A POST that was passed on is a POST that came late: it says what its master had on disk when it was sent. A number
orders the POSTs of one master over all ways, and an older one than the last is dropped. So a master gets some of the
POSTs, in their order, as on one link that loses the others. docs/decisions/0045 has the proof that this is safe.

A master with a new strategy must meet all others straight (`settings.py`): an older POST may be on its way over others.
"""

from __future__ import annotations

from typing import Any

from nodes.txlog.journal import Journal
from nodes.txlog.links import ROUNDS, Links
from nodes.txlog.posts import heard_of
from nodes.txlog.settings import Settings
from nodes.txlog.site import Site
from nodes.txlog.sometimes import RELAYED


class Relays:
    def __init__(self, site: Site, journal: Journal, links: Links, settings: Settings) -> None:
        self._site = site
        self._journal = journal
        self._links = links
        self._settings = settings
        self._began_ns = 0
        self._straight_ns: dict[str, int] = {}
        """Peer → when a POST last came straight from it."""
        self._numbers: dict[str, tuple[int, int]] = {}
        """Peer → the number of its newest POST."""
        self._unheard: dict[str, tuple[str, ...]] = {}
        """Peer → the masters that it does not hear straight."""

    def begin(self) -> None:
        self._began_ns = self._site.now.monotonic_ns

    def unheard(self) -> tuple[str, ...]:
        """The masters of which no POST has come straight for longer than they may take."""
        conf, now_ns = self._site.configuration, self._site.now.monotonic_ns
        return tuple(
            peer
            for peer in self._journal.peers
            if now_ns - self._straight_ns.get(peer, self._began_ns)
            > max(conf.idle_ns, self._settings.pace_ns(peer)) + conf.round_ns
        )

    def is_apart(self, peer: str) -> bool:
        """Whether a peer has reported that it does not hear all masters straight."""
        return bool(self._unheard.get(peer))

    def take(self, master: str, fields: list[Any], sender: str) -> bool:
        """Pass a POST on to the peers that lack it; False if a newer one of that master has come before."""
        number, unheard = heard_of(fields)
        if sender == master:
            self._straight_ns[master] = self._site.now.monotonic_ns
            self._unheard[master] = unheard
        elif self._journal.is_changed:
            return False
        # Not <: the same POST comes over several masters. An older one would take back what a newer one said.
        if number <= self._numbers.get(master, (0, 0)):
            return False
        self._numbers[master] = number
        self._site.sometimes[RELAYED] += sender != master
        message = ["relayed", 0, master, dict(self._links.told.get(master, {})), fields]
        for peer in self._journal.peers:
            is_lacking = master in self._unheard.get(peer, ()) and peer not in (master, sender)
            if is_lacking and not self._is_for_another(master, peer):
                self._links.send(peer, ROUNDS, message)
        return True

    def _is_for_another(self, master: str, peer: str) -> bool:
        """Whether a master with a smaller name, heard here and by the peer, hears that master straight, too.

        The one with the smallest name passes the POST on, whatever the others assume.
        """
        silent = {*self.unheard(), *self._unheard[peer], master, peer}
        return any(
            other < self._site.name and master not in unheard and other not in silent
            for other, unheard in self._unheard.items()
        )
