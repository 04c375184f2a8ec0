"""The life of a node's process: one line on stdout that says whether it came up, then service, then a clean stop.

The line is `{"ready":true,"node":…,"pid":…,"port":…}` once it listens and the node has taken its files, or
`{"ready":false,"error":"one sentence"}`. Exit codes: 0 stopped by SIGTERM or SIGINT, 1 did not come up, or refused to
go on (its peers, its disk), 64 wrong use, 70 the node (or this host) is broken, 129 the process at the other end of
stdin is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from nodes.host import folder, lifeline
from nodes.host.clock import Clock
from nodes.host.host import Host, fields_of_failure
from nodes.host.links import Address
from nodes.host.log import NodeLog
from nodes.host.medium import FaultyMedium
from nodes.host.message_trace import MessageTrace
from nodes.host.options import Options, WrongUse, parse
from nodes.host.systems import Hosted, NoSystem, System, system_of

EXIT_NOT_STARTED = 1
EXIT_WRONG_USE = 64
EXIT_ORPHANED = 129


class NotStarted(Exception):
    """The node cannot come up; the message is one sentence."""


DEEPEST = 4_000
"""The recursion limit: messages nest up to 1,024 lists and maps, and `repr` needs more than one call for each."""


def main(arguments: Sequence[str], systems: Mapping[str, System]) -> int:
    try:
        options = parse(arguments, tuple(systems))
    except WrongUse as error:
        _say({"ready": False, "error": str(error)})
        return EXIT_WRONG_USE
    sys.setrecursionlimit(DEEPEST)
    if options.stdin_lifeline:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the harness's to judge
        lifeline.watch_stdin(lambda: os._exit(EXIT_ORPHANED))
    try:
        asyncio.run(_live(options, system_of(options.system, systems)))
    except (NotStarted, NoSystem) as error:
        _say({"ready": False, "error": str(error)})
        return EXIT_NOT_STARTED
    return 0


async def _live(options: Options, system: System) -> None:
    asked_to_stop = _asked_to_stop(ignore_interrupt=options.stdin_lifeline)
    hosted = _hosted(options, system)
    files = _files(options)
    try:
        log = NodeLog(options.log, hosted.name, options.epoch_ns, hosted.node.status)
    except OSError as error:
        raise NotStarted(f"the log {options.log} cannot be written: {error.strerror}") from error
    clock = Clock(options.clock)
    medium = _medium(options.disk_faults)
    trace = _trace(options.trace, hosted)
    host = Host(
        hosted.node, hosted.codec, options.peers, options.data, options.durability, log, clock, medium, trace
    )
    # The port first, and nobody is served before the node has its files: a taken port must leave them untouched.
    server = await _listening(host, options.listen)
    _start(host, hosted, files, options, log)
    await server.start_serving()
    port = server.sockets[0].getsockname()[1]
    host.start_again = lambda: _start_again(Address(options.listen.host, port))
    log.line("info", "ready", {"pid": os.getpid(), "port": port})
    _say({"ready": True, "node": hosted.name, "pid": os.getpid(), "port": port})
    reason = await asked_to_stop
    log.line("info", "stopping", {"signal": reason})
    server.close()
    await host.stop()
    log.line("info", "stopped")
    log.close()


def _asked_to_stop(ignore_interrupt: bool) -> asyncio.Future[str]:
    loop = asyncio.get_running_loop()
    asked: asyncio.Future[str] = loop.create_future()

    def ask(name: str) -> None:
        if not asked.done():
            asked.set_result(name)

    for number in (signal.SIGTERM,) if ignore_interrupt else (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ask, number.name)
    return asked


def _hosted(options: Options, system: System) -> Hosted:
    try:
        config = Path(options.config).read_bytes()
    except OSError as error:
        raise NotStarted(f"the config {options.config} cannot be read: {error.strerror}") from error
    try:
        return system(config)
    except Exception as error:  # whatever a system finds wrong with its config
        raise NotStarted(f"the config {options.config} is not usable: {_one_line(error)}") from error


def _files(options: Options) -> Mapping[str, bytes]:
    try:
        Path(options.data).mkdir(parents=True, exist_ok=True)
        folder.lock(options.data)  # before the read: an older process could still be writing
        return folder.contents(options.data, except_for=(options.log, options.config))
    except BlockingIOError as error:
        raise NotStarted(f"the data folder {options.data} is in use by another process") from error
    except OSError as error:
        at = error.filename or options.data
        raise NotStarted(f"the data cannot be read: {at}: {error.strerror}") from error


def _medium(folder: str | None) -> FaultyMedium | None:
    try:
        return None if folder is None else FaultyMedium(folder)
    except OSError as error:
        raise NotStarted(f"the folder of disk faults {folder} cannot be used: {error.strerror}") from error


def _trace(folder: str | None, hosted: Hosted) -> MessageTrace | None:
    if folder is None or hosted.described is None:
        return None
    try:
        return MessageTrace(folder, hosted.name, hosted.described)
    except OSError as error:
        raise NotStarted(f"the trace folder {folder} cannot be used: {error.strerror}") from error


async def _listening(host: Host, address: Address) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(host.links.accept, address.host, address.port, start_serving=False)
    except OSError as error:
        code = error.errno or _error_of_bind(address)
        why = os.strerror(code).lower() if code > 0 else _one_line(error)
        raise NotStarted(f"cannot listen on {address}: {why}") from error


def _error_of_bind(address: Address) -> int:
    """The errno of binding to the address, 0 if that succeeds. From Python 3.13 on, asyncio's own error lacks it if
    this machine does not have the address."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as tried:
            tried.bind(place)
    except OSError as error:
        return error.errno or 0
    return 0


def _start(host: Host, hosted: Hosted, files: Mapping[str, bytes], options: Options, log: NodeLog) -> None:
    try:
        host.start(files)
    except AssertionError as error:
        _say({"ready": False, "error": f"{hosted.name} failed an assertion: {_one_line(error)}"})
        host.end_broken("assertion failed", error)
    except Exception as error:
        log.line("error", "not started", fields_of_failure(error))
        raise NotStarted(f"{hosted.name} cannot start from {options.data}: {_one_line(error)}") from error


def _start_again(listen: Address) -> NoReturn:
    """Execute the same program anew, at the same address; connections end, files stay."""
    words = sys.orig_argv[:-2] if sys.orig_argv[-2] == "--listen" else sys.orig_argv
    # Of an option that is there twice the last counts.
    os.execv(sys.executable, [*words, "--listen", str(listen)])


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    says_little = not text or isinstance(error, LookupError | TypeError | AttributeError)
    return f"{type(error).__name__}: {text}" if says_little else text


def _say(line: Mapping[str, object]) -> None:
    """Write one line for the parent process; without a reader it is dropped."""
    with suppress(OSError):
        os.write(1, json.dumps(line, separators=(",", ":")).encode() + b"\n")
