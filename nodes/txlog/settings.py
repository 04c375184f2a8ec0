"""Settings that masters must share: what each says of its own, and what follows where two differ.

| setting | said in | where it differs |
|---|---|---|
| strategy | every POST | the two refuse each other's messages, and take no submissions while they hear each other |
| masters | `hello` | who does not count a master that one of its peers counts takes no submissions, until it does |
| pace (`busy`, `idle`) | `hello` | a master's silence is measured by its own pace |

A master whose messages are refused lives all the same: its POSTs never count as silence, so nothing is split because of
a setting. A master that begins with a different strategy than before, or is given one, has to meet all masters anew
(`Journal.is_matched`); until then it leaves nobody out. So of two masters with different strategies at most one leaves
the other one out: one of them has not heard the other with its own strategy since it got that one. It forgets what it
has heard, and hangs up on the others, so that no older POST is on its way.

All other settings are a master's own: how long it waits before it leaves others out, executes, or asks again.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodes.txlog.configuration import Configuration
from nodes.txlog.journal import Journal
from nodes.txlog.links import Links
from nodes.txlog.site import Site


def said_of(configuration: Configuration, masters: list[str]) -> dict[str, object]:
    """What a `hello` says of the caller."""
    return {"masters": masters, "pace_ns": max(configuration.busy_ns, configuration.idle_ns)}


class Settings:
    def __init__(self, site: Site, journal: Journal, links: Links) -> None:
        self._site = site
        self._journal = journal
        self._links = links
        self._strategies: dict[str, str] = {}
        """Peer → the strategy of its last POST, since the own one was chosen."""

    def take(self, peer: str, strategy: str) -> bool:
        """A POST says this strategy. False: it is refused."""
        own, before = self._journal.strategy, self._strategies.get(peer, self._journal.strategy)
        self._strategies[peer] = strategy
        if strategy not in (own, before):
            told = {"peer": peer, "theirs": strategy, "own": own}
            self._site.log("refused a master with a different strategy", "error", **told)
        return strategy == own

    def choose(self, strategy: str) -> None:
        """An operator gives the master this strategy."""
        if strategy != self._journal.strategy:
            self._strategies.clear()
            self._links.hang_up()
        self._journal.write(["strategy", strategy])

    def refuses(self, peer: str) -> bool:
        return self._strategies.get(peer, self._journal.strategy) != self._journal.strategy

    def are_shared(self) -> bool:
        """All masters have said the own strategy, and this one counts all that any of them counts."""
        strategies = [self._strategies.get(peer) for peer in self._journal.peers]
        return all(each == self._journal.strategy for each in strategies) and not self._uncounted()

    def differences(self) -> dict[str, str]:
        """Peer → what is different there, in words."""
        own = self._journal.strategy
        found = {
            peer: f"strategy {strategy}, here {own}"
            for peer, strategy in self._strategies.items()
            if strategy != own
        }
        return found | {
            peer: f"counts {', '.join(masters)}, which this master does not"
            for peer, masters in self._uncounted().items()
            if not self._journal.is_matched
        }

    def _uncounted(self) -> Mapping[str, list[str]]:
        known = {peer: self._links.told.get(peer, {}).get("masters") for peer in self._journal.peers}
        return {
            peer: others
            for peer, masters in known.items()
            if isinstance(masters, list)
            and (others := [name for name in masters if name not in self._journal.masters])
        }

    def pace_ns(self, peer: str) -> int:
        """The longest time between two POSTs of the peer; 0: it does not say."""
        told = self._links.told.get(peer, {}).get("pace_ns")
        return told if isinstance(told, int) else 0
