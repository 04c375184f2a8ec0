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
import os
import signal
from functools import partial

from harness.cluster.containers.shaping.holding import Shaping
from harness.cluster.containers.shaping.shaper import Shaper
from harness.cluster.open_files import allow_many
from harness.cluster.relay.control import Command, Result, answer_stdin, links_of


async def _do(shaper: Shaper, command: Command) -> Result:
    match command["do"]:
        case "name":
            shaper.name(command["addresses"])
        case "enter":
            await shaper.enter(command["node"], command["pid"])
        case "shape":
            shaping = Shaping(**command["shaping"])
            return {
                "at_ns": await shaper.shape(command["fault"], links_of(command), shaping, command["seed"])
            }
        case "unshape":
            return {"at_ns": await shaper.unshape(command["fault"], links_of(command))}
        case "counters":
            fault = command["fault"]
            counters = {"links": shaper.counters(fault), "stranded": shaper.stranded()}
            return {
                **counters,
                "are_rules_right": await shaper.are_rules_right(),
                "round_trips_ns": shaper.round_trips(fault),
            }
        case "ask":
            return {"round_trips_ns": await shaper.ask(links_of(command), command["within_s"])}
        case "forget":
            shaper.forget(command["fault"])
        case unknown:
            raise ValueError(f"no command is called {unknown!r}")
    return {}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    allow_many()
    asyncio.run(answer_stdin(partial(_do, Shaper())))
    os._exit(0)  # rules and queues end with the containers; without us the rules let everything pass


if __name__ == "__main__":
    main()
