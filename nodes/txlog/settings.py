"""Settings that masters must share: how each reports its own, and the consequences where two differ.

| setting | reported in | where it differs |
|---|---|---|
| strategy | every POST | the two refuse each other's messages, and take no submissions while they hear each other |
| masters | `hello` | a master that lacks one which a peer counts takes no submissions until it counts it too |
| pace (`busy`, `idle`) | `hello` | a master's silence is measured by its own pace |

A master whose messages are refused is alive: its POSTs never count as silence, so no setting causes a split. A master
that starts with a new strategy, or gets one from an operator, must meet all masters anew (`Journal.is_matched`); until
then it leaves no master out. So of two masters with different strategies at most one leaves the other one out: one of
them has not received the other's POST with its own strategy since it got that strategy. A master with a new strategy
drops all POSTs so far, and hangs up on the other masters, so that no older POST is on its way.

All other settings may differ: how long a master waits before it leaves others out, executes, or asks again.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodes.txlog.configuration import Configuration
from nodes.txlog.journal import Journal
from nodes.txlog.links import Links
from nodes.txlog.site import Site


def said_of(configuration: Configuration, masters: list[str]) -> dict[str, object]:
    """The settings of the caller in a `hello`."""
    return {"masters": masters, "pace_ns": max(configuration.busy_ns, configuration.idle_ns)}


class Settings:
    def __init__(self, site: Site, journal: Journal, links: Links) -> None:
        self._site = site
        self._journal = journal
        self._links = links
        self._strategies: dict[str, str] = {}
        """Peer → the strategy of its last POST, since the own one was chosen."""

    def take(self, peer: str, strategy: str) -> bool:
        """Note the strategy of a POST; False if the POST is refused."""
        own, before = self._journal.strategy, self._strategies.get(peer, self._journal.strategy)
        self._strategies[peer] = strategy
        if strategy not in (own, before):
            fields = {"peer": peer, "theirs": strategy, "own": own}
            self._site.log("refused a master with a different strategy", "error", **fields)
        return strategy == own

    def choose(self, strategy: str) -> None:
        """Set the strategy, at an operator's request."""
        if strategy != self._journal.strategy:
            self._strategies.clear()
            self._links.hang_up()
        self._journal.write(["strategy", strategy])

    def refuses(self, peer: str) -> bool:
        return self._strategies.get(peer, self._journal.strategy) != self._journal.strategy

    def shares(self, peer: str) -> bool:
        """Whether the last POST of the peer since the own strategy was chosen has the same one."""
        return self._strategies.get(peer) == self._journal.strategy

    def are_shared(self) -> bool:
        """Whether all masters have posted the own strategy, and this one counts all masters that any of them counts."""
        return all(map(self.shares, self._journal.peers)) and not self._uncounted()

    def differences(self) -> dict[str, str]:
        """Peer → its different settings, in words."""
        own = self._journal.strategy
        differences = {
            peer: f"strategy {strategy}, here {own}"
            for peer, strategy in self._strategies.items()
            if strategy != own
        }
        return differences | {
            peer: f"counts {', '.join(masters)}, which this master does not"
            for peer, masters in self._uncounted().items()
            if not self._journal.is_matched
        }

    def _uncounted(self) -> Mapping[str, list[str]]:
        known = {peer: self._links.told.get(peer, {}).get("masters") for peer in self._journal.peers}
        return {
            peer: uncounted
            for peer, masters in known.items()
            if isinstance(masters, list)
            and (uncounted := [name for name in masters if name not in self._journal.masters])
        }

    def pace_ns(self, peer: str) -> int:
        """The longest time between two POSTs of the peer; 0: it has not reported that."""
        pace = self._links.told.get(peer, {}).get("pace_ns")
        return pace if isinstance(pace, int) else 0
