"""`python -m harness.cluster.relay`: the relay's process. Takes commands on stdin until that ends."""

from __future__ import annotations

import asyncio
import os
import signal

from harness.cluster.open_files import allow_many
from harness.cluster.relay.control import Control, answer_stdin
from harness.cluster.relay.guard import Guard
from harness.cluster.relay.switchboard import OBSERVE_EVERY_S, Switchboard


async def _serve() -> None:
    switchboard, guard = Switchboard(), Guard()
    observer = asyncio.get_running_loop().create_task(_observe(switchboard))
    await answer_stdin(Control(switchboard, guard).do)
    observer.cancel()
    guard.kill_all()


async def _observe(switchboard: Switchboard) -> None:
    while True:
        await asyncio.sleep(OBSERVE_EVERY_S)
        switchboard.observe()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    allow_many()
    asyncio.run(_serve())
    os._exit(0)  # connections end with the process; there is nothing to say goodbye to


if __name__ == "__main__":
    main()
