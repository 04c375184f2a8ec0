"""One network namespace: the sockets that are opened in it, and the rules that hand packets to them.

A socket stays in the namespace in which it was made, so this process enters one only for a moment. Rules are those of
iptables: nearly every kernel has its target NFQUEUE, which asks a program. Fewer have the same in nft.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from harness.cluster.containers.shaping.queue_messages import Answer, Packet, bind, decode, verdict
from harness.errors import ClusterError

_OURS: Final = Path("/proc/thread-self/ns/net")
_DIALED_WITHIN_S: Final = 0.3
QUEUE: Final = 321
PACKETS_MAX: Final = 16384
_NETLINK_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_NO_LOST_MESSAGES: Final = 5
"""NETLINK_NO_ENOBUFS: that messages were lost is no error; the queue is fail-open."""
_RECEIVE_BYTES: Final = 8 << 20
_NEW_NETWORK: Final = 0x40000000
_DATAGRAM_BYTES: Final = 1 << 16
_QUEUED: Final = f"-j NFQUEUE --queue-num {QUEUE} --queue-bypass"


class Namespace:
    """The network namespace of a process, held open: a later process with the same number is never taken for it.

    Raises OSError; also for the namespace that we live in ourselves, in which no rule is ours to set.
    """

    def __init__(self, pid: int) -> None:
        self._file = Path(f"/proc/{pid}/ns/net").open()  # noqa: SIM115 - `close` closes it
        if os.fstat(self._file.fileno()).st_ino == _OURS.stat().st_ino:
            self._file.close()
            raise OSError(errno.EXDEV, f"process {pid} has no network of its own")

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """In the block, this thread is in the namespace."""
        with _OURS.open() as home:
            _enter(self._file.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()


def _enter(descriptor: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(descriptor, _NEW_NETWORK):
        number = ctypes.get_errno()
        raise OSError(number, f"a network namespace cannot be entered: {os.strerror(number)}")


def dial_as(pid: int, host: str, port: int) -> None:
    """Dial as that process would, from its network; 0: from ours. Raises OSError, also if no process listens."""
    namespace = Namespace(pid) if pid else None
    try:
        with contextlib.nullcontext() if namespace is None else namespace.inside():
            socket.create_connection((host, port), timeout=_DIALED_WITHIN_S).close()
    finally:
        if namespace is not None:
            namespace.close()


class Queue:
    """The kernel's queue of one namespace; None is ours. Raises OSError."""

    def __init__(self, namespace: Namespace | None) -> None:
        with contextlib.nullcontext() if namespace is None else namespace.inside():
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_NETFILTER)
        try:
            self._open()
        except BaseException:
            self._socket.close()
            raise

    def _open(self) -> None:
        netlink = self._socket
        netlink.bind((0, 0))
        netlink.settimeout(5)
        # Only root may have so much; a little is enough for little traffic.
        with contextlib.suppress(OSError):
            netlink.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_RCVBUFFORCE", 33), _RECEIVE_BYTES)
        netlink.setsockopt(_SOL_NETLINK, _NO_LOST_MESSAGES, 1)
        for sequence, request in enumerate(bind(QUEUE, 1, PACKETS_MAX), start=1):
            netlink.send(request)
            self._check(sequence)
        netlink.setblocking(False)

    def _check(self, sequence: int) -> None:
        while True:
            for message in decode(self._socket.recv(_DATAGRAM_BYTES)):
                if isinstance(message, Answer) and message.sequence == sequence:
                    if message.error_number:
                        raise OSError(message.error_number, os.strerror(message.error_number))
                    return

    def fileno(self) -> int:
        return self._socket.fileno()

    def packets(self) -> Iterator[Packet]:
        """The messages that have come since the last call."""
        while True:
            try:
                data = self._socket.recv(_DATAGRAM_BYTES)
            except BlockingIOError:
                return
            yield from (message for message in decode(data) if isinstance(message, Packet))

    def decide(self, packet: int, decision: int) -> None:
        with contextlib.suppress(OSError):  # it is gone with its container
            self._socket.send(verdict(QUEUE, packet, decision))

    def close(self) -> None:
        self._socket.close()


async def set_rules(namespace: Namespace, sources: Iterable[str], targets: Iterable[str]) -> None:
    """Packets from `sources` that arrive in the namespace, and those that leave for `targets`, go to the queue.

    All at one instant. Without sources and targets all rules go. A container's own table `mangle` is otherwise unused.
    """
    lines = [
        "*mangle",
        "-F INPUT",
        "-F OUTPUT",
        *(f"-A INPUT -s {address} {_QUEUED}" for address in sources),
        *(f"-A OUTPUT -d {address} {_QUEUED}" for address in targets),
        "COMMIT",
    ]
    await _run(namespace, ("iptables-restore", "--noflush"), "\n".join(lines) + "\n")


async def rules(namespace: Namespace) -> int:
    """How many rules of ours stand in the namespace."""
    listing = await _run(namespace, ("iptables", "-t", "mangle", "-S"), "")
    return sum(f"--queue-num {QUEUE}" in line for line in listing.splitlines())


async def _run(namespace: Namespace, command: tuple[str, ...], text: str) -> str:
    """The output of the command in the namespace. ClusterError if it fails."""
    descriptor, pipe = namespace.fileno(), asyncio.subprocess.PIPE
    words = ("nsenter", f"--net=/proc/self/fd/{descriptor}", *command)
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=(descriptor,)
        )
    except OSError as error:
        raise ClusterError(f"{words[0]} cannot be run: {error}; try: apt-get install util-linux") from error
    output, errors = await process.communicate(text.encode())
    if process.returncode:
        why = " ".join(errors.decode(errors="replace").split()) or "it gave no reason"
        raise ClusterError(f"{' '.join(command)} failed: {why[:200]}; try: ./qsync doctor")
    return output.decode()
