"""The relays of all hosts, and the one of the harness, as one.

A connection runs through the relay of the side that dialed it. So a link n1→n2 is cut at two places: where n1's
connections to n2 pass, and where the answers on n2's connections to n1 do. Times of other hosts are brought to ours;
where it matters when a command took effect, the later end of the question and answer counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from harness.cluster.probe import Probes
from harness.cluster.real_cluster import CLIENT
from harness.cluster.relay.link import LinkName
from harness.cluster.relay.remote import Commands, Relay
from harness.cluster.ssh.machine import Machine

_EARLIEST: Final = ("begun", "first")
_LATEST: Final = ("healed", "last")


class Relays(Commands):
    """`machines`: each node's host, with its relay; `here`: the relay of clients."""

    def __init__(self, here: Relay, machines: Mapping[str, Machine]) -> None:
        self._here = here
        self._machines = machines

    async def ask(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        """Ask at once the relays at the ends of the links, or all relays."""
        links = arguments.pop("links", None)
        requests = [
            (home, {**arguments, **({} if share is None else {"links": share})})
            for home, share in self._concerned(links)
        ]
        relays: dict[str, Relay | Machine] = {CLIENT: self._here, **self._machines}
        answers = await asyncio.gather(*(relays[home].ask(command, **given) for home, given in requests))
        merged: dict[str, Any] = {}
        if any("at_ns" in answer for answer in answers):
            merged["at_ns"] = time.monotonic_ns()
        if any("connections" in answer for answer in answers):
            merged["connections"] = sum(int(answer.get("connections", 0)) for answer in answers)
        if any("links" in answer for answer in answers):
            merged["links"] = self._merged(zip((home for home, _ in requests), answers, strict=True))
        return merged

    def _concerned(self, links: Iterable[LinkName] | None) -> list[tuple[str, list[LinkName] | None]]:
        """One name for each relay, with its share of the links."""
        names = {CLIENT: CLIENT}
        for node, machine in self._machines.items():
            names.setdefault(node, next(n for n, m in self._machines.items() if m is machine))
        if links is None:
            return [(home, None) for home in dict.fromkeys(names.values())]
        shares: dict[str, dict[LinkName, None]] = {}
        for link in links:
            for end in link:
                shares.setdefault(names[end], {})[link] = None
        return [(home, list(share)) for home, share in shares.items()]

    def _merged(self, answers: Iterable[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        rows: dict[LinkName, dict[str, Any]] = {}
        for home, answer in answers:
            ahead_ns = 0 if home == CLIENT else self._machines[home].clocks.monotonic_ns
            for row in answer.get("links", ()):
                fresh = {name: _in_our_time(name, value, ahead_ns) for name, value in row.items()}
                known = rows.setdefault(tuple(row["link"]), fresh)
                if known is not fresh:
                    known.update({name: _combined(name, known[name], fresh[name]) for name in fresh})
        return list(rows.values())


def _in_our_time(name: str, value: Any, ahead_ns: int) -> Any:
    """A time of a host as one of ours; every other value as it is."""
    is_time = name.startswith(_EARLIEST + _LATEST) and isinstance(value, int)
    return value - ahead_ns if is_time else value


def _combined(name: str, one: Any, other: Any) -> Any:
    """One value of a link from those of two relays: their sum, or for times the extreme."""
    if name == "link" or one is None or other is None:
        return other if one is None else one
    if name.startswith((*_EARLIEST, "shortest")):
        return min(one, other)
    if name.startswith((*_LATEST, "longest", "is_")):
        return max(one, other)
    return one + other


class SshProbes:
    """Implements `harness.cluster.probe.Prober`: a probe is dialed from where its link begins."""

    def __init__(self, here: Probes, routes: Mapping[LinkName, int], machines: Mapping[str, Machine]) -> None:
        self._here = here
        self._routes = routes
        self._machines = machines
        self._sent: dict[str, None] = {}

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool:
        return self._here.can_reach(link, is_reverse_cut)

    def send(self, link: LinkName) -> None:
        route = link if link in self._routes else (link[1], link[0])
        source, target = route
        if source == CLIENT:
            self._here.send(link)
            return
        self._sent[source] = None
        port, data = self._routes[route], self._here.data.hex()
        self._machines[source].tell("probe", source=source, target=target, port=port, data=data)

    def close(self) -> None:
        self._here.close()
        for source in self._sent:
            self._machines[source].tell("probed")
        self._sent.clear()
