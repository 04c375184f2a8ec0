"""The command line of `python -m nodes.host`, as one value."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from nodes.host.links import Address
from nodes.kernel.outbox import Durability


class WrongUse(Exception):
    """The command line cannot be understood; the message is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options that `--help` lists. `epoch_ns`: the zero of the log's times, on this machine's monotonic clock."""

    system: str
    config: str
    data: str
    listen: Address
    peers: Mapping[str, Address]
    epoch_ns: int
    log: str
    durability: Durability
    stdin_lifeline: bool
    clock: str | None = None
    disk_faults: str | None = None
    trace: str | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUse(message)


def parse(arguments: Sequence[str], systems: Sequence[str]) -> Options:
    """Raises WrongUse."""
    given = vars(_parser(systems).parse_args(arguments))
    peers: list[tuple[str, Address]] = given.pop("peer")
    if len(dict(peers)) < len(peers):
        raise WrongUse("a peer is named twice")
    return Options(peers=dict(peers), **given)


def _parser(systems: Sequence[str]) -> _Parser:
    parser = _Parser(
        prog="python -m nodes.host", description="Run one node as a process.", allow_abbrev=False
    )
    option = parser.add_argument
    option(
        "--system",
        required=True,
        type=lambda text: _system(text, systems),
        metavar="NAME",
        help=f"{', '.join(systems)}, or module:function, or file.py:function",
    )
    option("--config", required=True, metavar="FILE", help="the node's own configuration, JSON")
    option("--data", required=True, metavar="DIR", help="where its files are; made if absent")
    option("--listen", required=True, type=_address, metavar="HOST:PORT", help="port 0: any free one")
    option("--peer", action="append", default=[], type=_peer, metavar="NAME=HOST:PORT", help="once for each")
    option(
        "--epoch-ns",
        type=int,
        default=time.monotonic_ns(),
        metavar="N",
        help="zero of the log's monotonic time",
    )
    option("--log", default=os.devnull, metavar="FILE", help="JSON lines are appended")
    option(
        "--durability",
        choices=("synced", "written"),
        default="synced",
        help="written: the bug ack-before-fsync",
    )
    option(
        "--clock",
        metavar="FILE",
        help="JSON: by how much the node's clocks are wrong; may change at any time",
    )
    option(
        "--disk-faults",
        metavar="DIR",
        help="files there say what goes wrong with the disk, and what it did (nodes/host/medium.py)",
    )
    option(
        "--trace",
        metavar="DIR",
        help="a file of the messages between nodes (nodes/kernel/trace.py) goes there",
    )
    option("--stdin-lifeline", action="store_true", help="end when stdin ends; ignore SIGINT")
    return parser


def _system(text: str, systems: Sequence[str]) -> str:
    if text not in systems and not all(text.rpartition(":")[::2]):
        known = ", ".join(systems)
        raise argparse.ArgumentTypeError(f"expected one of {known}, or module:function, got {text!r}")
    return text


def _address(text: str) -> Address:
    name, _, port = text.rpartition(":")
    host = name.removeprefix("[").removesuffix("]")
    try:
        host.encode("idna")  # as each look-up does, with an error that is no OSError
    except UnicodeError:
        host = ""
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return Address(host, int(port))


def _peer(text: str) -> tuple[str, Address]:
    name, equals, address = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=HOST:PORT")
    return name, _address(address)
