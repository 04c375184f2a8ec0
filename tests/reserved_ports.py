"""Ports that are free and stay so: for what has to know its port before it can listen there.

A port that was merely found free may be somebody else's a moment later. Here the first port of a block stays bound for
as long as this process lives, so no other process that asks here gets a port of the same block; the blocks lie outside
the ranges from which the kernel and the harness take theirs.
"""

from __future__ import annotations

import contextlib
import random
import socket

HOST = "127.0.0.1"
BLOCK = 16
BASES = range(11_000, 19_000, BLOCK)
MOST = BLOCK - 1


def bind(port: int) -> socket.socket:
    """Raises OSError if somebody has it."""
    taken = socket.socket()
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, port))
    except OSError:
        taken.close()
        raise
    return taken


def reserved(count: int) -> int:
    """The first of so many ports in a row."""
    assert 0 < count <= MOST, count
    for base in random.Random().sample(BASES, len(BASES)):
        guard = socket.socket()
        with guard, contextlib.suppress(OSError):
            guard.bind((HOST, base))
            for port in range(base + 1, base + 1 + count):
                bind(port).close()
            guard.detach()  # stays bound until this process ends
            return base + 1
    raise AssertionError("every block of ports is taken")
