"""Ports for nodes that must be known before the nodes start."""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Iterable
from typing import Final

_PORT_TRIES: Final = 1000
_TAKEN: Final = (errno.EADDRINUSE, errno.EACCES)
"""This port is not to be had, another may be."""


def free_ports(count: int, host: str, span: Iterable[int]) -> list[int]:
    """Different ports of the span that are not in use now on `host`. Raises OSError."""
    wanted = list(span)
    random.shuffle(wanted)
    ports: list[int] = []
    for port in wanted[:_PORT_TRIES]:
        if len(ports) == count:
            break
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as attempt:
            try:
                attempt.bind(address)
            except OSError as error:
                if error.errno not in _TAKEN:
                    raise OSError(f"nothing can listen at {host} there: {error.strerror}") from error
                continue
        ports.append(port)
    if len(ports) < count:
        raise OSError(f"{count} free ports are needed at {host}, found {len(ports)}")
    return ports
