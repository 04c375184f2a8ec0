"""A correct store of one's own, after docs/mystore.py: a log that is synced, and nodes that hand calls to the owner."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from nodes.iproto.frames import ServerDecoder, encode, greeting
from nodes.iproto.messages import Answer, Call, Refusal

GREETING = greeting("2.6.0", "00000000-0000-4000-8000-000000000000", bytes(32))
SPACES: dict[str, dict[Any, Any]] = {}


class Log:
    def __init__(self, path: Path) -> None:
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]  # what was torn was never acknowledged
        for line in whole.splitlines():
            apply(json.loads(line))
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.ftruncate(self._file, len(whole))
        os.lseek(self._file, 0, os.SEEK_END)

    def append(self, rows: list[Any]) -> None:
        os.write(self._file, json.dumps(rows).encode() + b"\n")
        os.fsync(self._file)


def apply(rows: list[Any]) -> None:
    for name, key, value in rows:
        SPACES.setdefault(name, {})[key] = value


def transaction(statements: Any, log: Log) -> dict[str, Any]:
    results: list[Any] = []
    rows: list[Any] = []
    seen = {name: dict(space) for name, space in SPACES.items()}
    for number, (word, name, *rest) in enumerate(statements):
        space = seen.setdefault(name, {})
        match word, rest:
            case "get", [key]:
                results.append([key, space[key]] if key in space else None)
            case "replace", [[key, value]]:
                space[key] = value
                rows.append([name, key, value])
                results.append(None)
            case "cas", [key, old, new]:
                if space.get(key) != old:
                    return {"committed": False, "mismatch": [number, space.get(key)], "role": "owner"}
                space[key] = new
                rows.append([name, key, new])
                results.append(True)
    if rows:
        log.append(rows)
        apply(rows)
    return {"committed": True, "results": results, "role": "owner"}


def answer(request: Any, log: Log) -> Answer | Refusal:
    match request:
        case Call(sync, "qsync.transaction", (statements, *_)):
            return Answer(sync, (transaction(statements, log),))
        case Call(sync, "qsync.dump", _):
            return Answer(sync, ({"spaces": {name: list(rows.items()) for name, rows in SPACES.items()}},))
        case Call(sync, "qsync.status", _):
            return Answer(sync, ({"role": "owner"},))
    return Refusal(request.sync, 33, "no such function")


async def own(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Log) -> None:
    writer.write(GREETING)
    decoder = ServerDecoder()
    while data := await reader.read(65536):
        writer.write(b"".join(encode(answer(message, log)) for message in decoder.feed(data)))


async def hand_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, owner: str) -> None:
    """Everything but the status goes to the owner, over a connection for each client."""
    writer.write(GREETING)
    decoder, above = ServerDecoder(), None
    answers: list[asyncio.Task[None]] = []
    while data := await reader.read(65536):
        for message in decoder.feed(data):
            if isinstance(message, Call) and message.name == "qsync.status":
                writer.write(encode(Answer(message.sync, ({"role": "replica"},))))
                continue
            if above is None:
                back, above = await asyncio.open_connection(*owner.split(":"))
                await back.readexactly(len(GREETING))
                answers.append(asyncio.create_task(hand_back(back, writer)))
            above.write(encode(message))


async def hand_back(back: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await back.read(65536):
        writer.write(data)
    writer.close()


async def main(listen: str, data: str, config: str, *peers: str) -> None:
    told = json.loads(Path(config).read_text())
    log = Log(Path(data) / "durable.log")
    owner = dict(peer.split("=") for peer in peers).get(told["owner"])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await (own(reader, writer, log) if owner is None else hand_on(reader, writer, owner))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    host, port = listen.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"ready": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
else:
    from harness.cluster.place import Place
    from harness.systems.own import OwnStore

    def start(place: Place) -> tuple[str, ...]:
        peers = (f"{peer}={address}" for peer, address in place.peers.items())
        return (place.python, __file__, place.listen, place.data, place.config, *peers)

    SYSTEM = OwnStore("a synced log", start=start, promised={"quorum": ""})
