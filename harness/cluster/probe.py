"""Fresh traffic on demand: a probe over a route of the relay, to see that a healed link passes bytes again.

Dialing `target` as `source` would, with the probe of the store's protocol sent at once, puts bytes on link (source,
target); the greeting and the answer put bytes on link (target, source). The relay counts them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol, cast

from harness.cluster.place import LOOPBACK
from harness.cluster.relay.link import LinkName


class _Probe(asyncio.Protocol):
    """Sends the probe; the answer is not looked at."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._transport: asyncio.Transport | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._data)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Prober(Protocol):
    """Provokes bytes on a link: `Probes`, or those of several machines."""

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool: ...

    def send(self, link: LinkName) -> None: ...

    def close(self) -> None: ...


class Probes:
    """The probes of one fault that is being healed. `routes` are the relay's ports, `data` what is sent."""

    def __init__(
        self, routes: Mapping[LinkName, int], may_answer: Callable[[str], bool], data: bytes
    ) -> None:
        self.data = data
        self._routes = routes
        self._may_answer = may_answer
        self._sent: dict[LinkName, _Probe] = {}
        self._dialing: dict[asyncio.Task[None], None] = {}

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool:
        """A byte on this link can be provoked: by a probe, or, where no side dials that way, by its answer."""
        source, target = link
        if link in self._routes:
            return self._may_answer(target)
        return self._may_answer(source) and not is_reverse_cut

    def send(self, link: LinkName) -> None:
        """Put a probe on the link, or on its reverse; again if the one before came to nothing."""
        route = link if link in self._routes else (link[1], link[0])
        before = self._sent.get(route)
        if before is None or before.is_lost:
            probe = self._sent[route] = _Probe(self.data)
            task = asyncio.get_running_loop().create_task(self._dial(probe, self._routes[route]))
            self._dialing[task] = None
            task.add_done_callback(self._dialing.pop)

    def close(self) -> None:
        for task in list(self._dialing):
            task.cancel()
        for probe in self._sent.values():
            probe.close()
        self._sent.clear()

    async def _dial(self, probe: _Probe, port: int) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: probe, LOOPBACK, port)
        except OSError:
            probe.is_lost = True
