"""`python -m harness.cluster.relay`: the relay's process. Takes commands on stdin until that ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Final

from harness.cluster.open_files import allow_many
from harness.cluster.relay.control import Control, Lines
from harness.cluster.relay.guard import Guard, ask_for_signal_at_death_of_parent
from harness.cluster.relay.switchboard import Switchboard

_OBSERVE_EVERY_S: Final = 0.02


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    switchboard, guard = Switchboard(), Guard()
    control = Control(switchboard, guard)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    ask_for_signal_at_death_of_parent(signal.SIGTERM)  # not SIGKILL: the nodes must be killed first
    answers, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)

    async def on_line(line: bytes) -> None:
        answers.write(await control.answer(line))

    await loop.connect_read_pipe(lambda: Lines(on_line, over.set), sys.stdin)
    observer = loop.create_task(_observe(switchboard))
    await over.wait()
    observer.cancel()
    guard.kill_all()


async def _observe(switchboard: Switchboard) -> None:
    """How long something was withheld is known to within one turn of this."""
    while True:
        await asyncio.sleep(_OBSERVE_EVERY_S)
        if switchboard.any_cut():
            switchboard.observe()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    allow_many()
    asyncio.run(_serve())
    os._exit(0)  # connections end with the process; there is nothing to say goodbye to


if __name__ == "__main__":
    main()
