"""How the harness talks to the nodes of a real cluster: by a wire of ours, or by a library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from harness.clients.client import LibraryClient
from harness.clients.wire import ClientWire
from harness.cluster.connections import Admin, Connections
from harness.cluster.library_clients import LibraryClients

Talk = ClientWire | LibraryClient
PortOf = Callable[[str], int]
HostOf = Callable[[str], str]
_ANY_BYTES: Final = b"\r\n\r\n"


def clients_of(
    talk: Talk, port_of: PortOf, host_of: HostOf, is_down: Callable[[str], bool] = lambda node: False
) -> Connections | LibraryClients:
    """Where clients dial the nodes: by the routes that faults cut. `is_down`: `LibraryClients` tells."""
    if isinstance(talk, LibraryClient):
        return LibraryClients(talk, port_of, host_of, is_down)
    return Connections(talk, port_of, host_of)


def admin_of(talk: Talk, port_of: PortOf, host_of: HostOf) -> Admin | LibraryClients:
    """Where the harness asks nodes for their state: past all faults."""
    if isinstance(talk, LibraryClient):
        return LibraryClients(talk, port_of, host_of)
    return Admin(talk, port_of, host_of)


def probe_of(talk: Talk) -> bytes:
    """The bytes sent over a link to see that bytes pass; a library's store may name something better than nothing."""
    probe: bytes = getattr(talk, "probe", _ANY_BYTES)
    return probe
