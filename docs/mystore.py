"""A store of one's own: `./qsync run --system docs/mystore.py --nodes 1`. All is in memory, and a kill shows it."""

import asyncio
import json
import sys
from typing import Any

from nodes.iproto.frames import ServerDecoder, encode, greeting
from nodes.iproto.messages import Answer, Call, Refusal

SPACES: dict[str, dict[Any, Any]] = {}


def transaction(statements: Any) -> dict[str, Any]:
    results = []
    for number, (word, name, *rest) in enumerate(statements):
        space = SPACES.setdefault(name, {})
        match word, rest:
            case "get", [key]:
                results.append([key, space[key]] if key in space else None)
            case "replace", [[key, value]]:
                results.append(space.update({key: value}))
            case "cas", [key, old, new]:
                if space.get(key) != old:
                    return {"committed": False, "mismatch": [number, space.get(key)], "role": "owner"}
                results.append(space.update({key: new}) is None)
    return {"committed": True, "results": results, "role": "owner"}


def answer(request: Any) -> Answer | Refusal:
    match request:
        case Call(sync, "qsync.transaction", (statements, *_)):
            return Answer(sync, (transaction(statements),))
        case Call(sync, "qsync.dump", _):
            return Answer(sync, ({"spaces": {name: list(rows.items()) for name, rows in SPACES.items()}},))
        case Call(sync, "qsync.status", _):
            return Answer(sync, ({"role": "owner"},))
    return Refusal(request.sync, 33, "no such function")


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(greeting("2.6.0", "00000000-0000-4000-8000-000000000000", bytes(32)))
    decoder = ServerDecoder()
    while data := await reader.read(65536):
        writer.write(b"".join(encode(answer(message)) for message in decoder.feed(data)))


async def main(host: str, port: str) -> None:
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({"ready": True, "port": server.sockets[0].getsockname()[1]}), flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1].split(":")))
else:  # the harness reads this file for the following; a node starts sooner without it
    from harness.systems.own import OwnStore

    SYSTEM = OwnStore("a dictionary", start=lambda place: (place.python, __file__, place.listen))
