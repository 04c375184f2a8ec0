"""A toy node for the tests of local clusters: speaks IPROTO, keeps nothing, dials its peers and pings them.

It takes the command line of `nodes.host`. What its config may ask for: {"refuses": "why"} (says that it is not
ready), {"exits": 3} (ends before it is ready), {"mute": true} (never says anything).

| CALL | what it does |
|---|---|
| qsync.status | answers {"up": true, "pid": …} |
| echo, any arguments | answers them |
| silent | does not answer |
| hang up | closes the connection |
| end, code | ends its process |
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path
from typing import cast

from nodes.host import lifeline
from nodes.iproto.frames import ServerDecoder, encode, greeting
from nodes.iproto.messages import Answer, Call, Ping

GREETING = greeting("3.2.0", "7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7", bytes(32))
PING_EVERY_S = 0.02


class Served(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.decoder = ServerDecoder()
        self.transport.write(GREETING)

    def data_received(self, data: bytes) -> None:
        for message in self.decoder.feed(data):
            match message:
                case Ping(sync):
                    self.transport.write(encode(Answer(sync)))
                case Call(sync, "qsync.status", _):
                    self.transport.write(encode(Answer(sync, ({"up": True, "pid": os.getpid()},))))
                case Call(sync, "echo", arguments):
                    self.transport.write(encode(Answer(sync, arguments)))
                case Call(_, "hang up", _):
                    self.transport.close()
                case Call(_, "end", (code,)):
                    os._exit(cast(int, code))


async def ping_for_ever(host: str, port: int) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection(host, port)
            await reader.readexactly(len(GREETING))
            for sync in range(1_000_000):
                writer.write(encode(Ping(sync)))
                await reader.read(1024)
                await asyncio.sleep(PING_EVERY_S)
        except (OSError, asyncio.IncompleteReadError):
            await asyncio.sleep(PING_EVERY_S)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("--system", "--config", "--data", "--listen", "--epoch-ns", "--log", "--durability"):
        parser.add_argument(name, required=True)
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--clock")
    parser.add_argument("--disk-faults")
    parser.add_argument("--stdin-lifeline", action="store_true")
    return parser.parse_args()


async def main() -> None:
    given = arguments()
    config = json.loads(Path(given.config).read_text())
    lifeline.watch_stdin(lambda: os._exit(129))
    if "exits" in config:
        print("a last word", file=sys.stderr, flush=True)
        os._exit(config["exits"])
    if "refuses" in config:
        print(json.dumps({"ready": False, "error": config["refuses"]}), flush=True)
        os._exit(1)
    host, _, port = given.listen.rpartition(":")
    server = await asyncio.get_running_loop().create_server(Served, host, int(port))
    if not config.get("mute"):
        taken = server.sockets[0].getsockname()[1]
        print(
            json.dumps({"ready": True, "node": config["name"], "pid": os.getpid(), "port": taken}), flush=True
        )
    peers = [peer.partition("=")[2].rpartition(":") for peer in given.peer]
    await asyncio.gather(*(ping_for_ever(host, int(port)) for host, _, port in peers), asyncio.Event().wait())


if __name__ == "__main__":
    lifeline.die_with_parent()
    asyncio.run(main())
