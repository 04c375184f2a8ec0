"""`python -m harness.cluster.containers.shaping`: commands as JSON lines on stdin until that ends.

| do | with | answers |
|---|---|---|
| name | addresses: node → address | |
| enter | node, pid | |
| shape | fault, links, shaping, seed | at_ns |
| unshape | fault, links | at_ns |
| counters | fault | links: what the fault did on each; stranded; round_trips_ns; are_rules_right |
| ask | links, within_s | round_trips_ns |
| forget | fault | |
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any, cast

from harness.cluster.containers.shaping.holding import Link, Shaping
from harness.cluster.containers.shaping.shaper import Shaper
from harness.cluster.open_files import allow_many
from harness.cluster.relay.control import Lines
from harness.cluster.relay.guard import ask_for_signal_at_death_of_parent
from harness.errors import ClusterError


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    ask_for_signal_at_death_of_parent(signal.SIGTERM)
    answers, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)
    shaper = Shaper()

    async def on_line(line: bytes) -> None:
        answers.write(await answer(shaper, line))

    await loop.connect_read_pipe(lambda: Lines(on_line, over.set), sys.stdin)
    await over.wait()


async def answer(shaper: Shaper, line: bytes) -> bytes:
    """Do one command; the line that answers it."""
    command: Mapping[str, Any] = {}
    try:
        command = json.loads(line)
        result = await _do(shaper, command)
    except Exception as error:  # the process must live on, and the harness must hear of it
        text = str(error) if isinstance(error, ClusterError | OSError | ValueError) else repr(error)
        result = {"error": f"{command.get('do', 'not a command')}: {text}"}
    return json.dumps({"id": command.get("id"), **result}).encode() + b"\n"


async def _do(shaper: Shaper, command: Mapping[str, Any]) -> dict[str, object]:
    match command["do"]:
        case "name":
            shaper.name(command["addresses"])
        case "enter":
            await shaper.enter(command["node"], command["pid"])
        case "shape":
            shaping = Shaping(**command["shaping"])
            return {"at_ns": await shaper.shape(command["fault"], _links(command), shaping, command["seed"])}
        case "unshape":
            return {"at_ns": await shaper.unshape(command["fault"], _links(command))}
        case "counters":
            fault = command["fault"]
            counters = {"links": shaper.counters(fault), "stranded": shaper.stranded()}
            return {
                **counters,
                "are_rules_right": await shaper.are_rules_right(),
                "round_trips_ns": shaper.round_trips(fault),
            }
        case "ask":
            return {"round_trips_ns": await shaper.ask(_links(command), command["within_s"])}
        case "forget":
            shaper.forget(command["fault"])
        case unknown:
            raise ValueError(f"no command is called {unknown!r}")
    return {}


def _links(command: Mapping[str, Any]) -> list[Link]:
    return [cast(Link, tuple(link)) for link in command["links"]]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    allow_many()
    asyncio.run(_serve())
    os._exit(0)  # rules and queues end with the containers; without us the rules let everything pass


if __name__ == "__main__":
    main()
