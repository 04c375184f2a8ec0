"""Fresh traffic on demand: a PING over a route of the relay, to see that a healed link passes bytes again.

Dialing `target` as `source` would, with a PING sent at once, puts bytes on link (source, target); the greeting and
the answer put bytes on link (target, source). Nobody waits for them here: the relay's counters tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast

from harness.cluster.relay.link import LinkName
from nodes.iproto.frames import encode
from nodes.iproto.messages import Ping

_HOST: Final = "127.0.0.1"
_PING: Final = encode(Ping(1))


class _Ping(asyncio.Protocol):
    """Sends one PING; whatever comes back is not looked at."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self.is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(_PING)

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()


class Prober(Protocol):
    """What provokes bytes on a link: `Probes`, or those of several machines."""

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool: ...

    def send(self, link: LinkName) -> None: ...

    def close(self) -> None: ...


class Probes:
    """The probes of one fault that is being healed. `routes` are the relay's ports."""

    def __init__(self, routes: Mapping[LinkName, int], may_answer: Callable[[str], bool]) -> None:
        self._routes = routes
        self._may_answer = may_answer
        self._sent: dict[LinkName, _Ping] = {}
        self._dialing: dict[asyncio.Task[None], None] = {}

    def can_reach(self, link: LinkName, is_reverse_cut: bool) -> bool:
        """A byte on this link can be provoked: by a PING, or, where nobody dials that way, by its answer."""
        source, target = link
        if link in self._routes:
            return self._may_answer(target)
        return self._may_answer(source) and not is_reverse_cut

    def send(self, link: LinkName) -> None:
        """Put a PING on the link, or on its reverse; again if the one before came to nothing."""
        route = link if link in self._routes else (link[1], link[0])
        before = self._sent.get(route)
        if before is None or before.is_lost:
            ping = self._sent[route] = _Ping()
            task = asyncio.get_running_loop().create_task(self._dial(ping, self._routes[route]))
            self._dialing[task] = None
            task.add_done_callback(self._dialing.pop)

    def close(self) -> None:
        for task in list(self._dialing):
            task.cancel()
        for ping in self._sent.values():
            ping.close()
        self._sent.clear()

    async def _dial(self, ping: _Ping, port: int) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: ping, _HOST, port)
        except OSError:
            ping.is_lost = True
