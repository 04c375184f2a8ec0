"""Settings that masters must share: how each reports its own, and the consequences where two differ.

| setting | reported in | where it differs |
|---|---|---|
| strategy | every POST | the two refuse each other's messages, and take no submissions while they hear each other |
| masters | every POST | a master that has not met all takes no submissions, and counts no such POST; the others go on |
| pace (`busy`, `idle`) | `hello` | a master's silence is measured by its own pace |

A master whose messages are refused is alive: its POSTs never count as silence, so no setting causes a split. A master
that starts with a new strategy, or gets one from an operator, must meet all masters anew (`Journal.is_matched`); until
then it leaves no master out. So of two masters with different strategies at most one leaves the other one out: one of
them has not received the other's POST with its own strategy since it got that strategy. A master with a new strategy
drops all POSTs so far, and hangs up on the other masters, so that no older POST is on its way.

A master has met all when the newest POST of each master that it counts has its own masters, base and strategy: each
of them counts the others, and this one. Operators tell one master after the other of a new one. Meanwhile those that
have met go on: the new one makes nothing before all of them count it. docs/decisions/0050 has the proof. A list of
masters only grows. Two masters whose lists differ both say so in their status.

All other settings may differ: how long a master waits before it leaves others out, executes, or asks again.
"""

from __future__ import annotations

from nodes.txlog.configuration import Configuration
from nodes.txlog.journal import Journal
from nodes.txlog.links import Links
from nodes.txlog.posts import Post
from nodes.txlog.site import Site


def said_of(configuration: Configuration) -> dict[str, object]:
    """The settings of the caller in a `hello`."""
    return {"pace_ns": max(configuration.busy_ns, configuration.idle_ns)}


class Settings:
    def __init__(self, site: Site, journal: Journal, links: Links) -> None:
        self._site = site
        self._journal = journal
        self._links = links
        self._strategies: dict[str, str] = {}
        """Peer → the strategy of its last POST, since the own one was chosen."""
        self._masters: dict[str, tuple[str, ...]] = {}
        """Peer → the masters that its last POST counts."""

    def take(self, peer: str, post: Post) -> bool:
        """Note the settings in a POST; False if the POST is refused."""
        own, before = self._journal.strategy, self._strategies.get(peer, self._journal.strategy)
        strategy, self._masters[peer] = post.strategy, post.masters
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
        """Whether all masters have posted the own strategy."""
        return all(map(self.shares, self._journal.peers))

    def differences(self) -> dict[str, str]:
        """Peer → its different settings, in words."""
        own, ours = self._journal.strategy, self._journal.masters
        differences: dict[str, list[str]] = {}
        for peer, strategy in self._strategies.items():
            if strategy != own:
                differences.setdefault(peer, []).append(f"strategy {strategy}, here {own}")
        for peer, theirs in sorted(self._masters.items()):
            if more := [name for name in theirs if name not in ours]:
                text = f"counts {', '.join(more)}, which this master does not"
                differences.setdefault(peer, []).append(text)
            if fewer := [name for name in ours if name not in theirs]:
                differences.setdefault(peer, []).append(f"does not count {', '.join(fewer)}")
        return {peer: "; ".join(words) for peer, words in differences.items()}

    def pace_ns(self, peer: str) -> int:
        """The longest time between two POSTs of the peer; 0: it has not reported that."""
        pace = self._links.told.get(peer, {}).get("pace_ns")
        return pace if isinstance(pace, int) else 0
