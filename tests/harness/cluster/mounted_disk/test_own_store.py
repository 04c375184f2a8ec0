"""A store of one's own that writes a file, on a mounted disk: what it synced is there after a power loss, else not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness.clients.reply import Lost, Replied
from harness.cluster.local.cluster import LocalCluster
from harness.faults.fault import Fault
from harness.run.assemble import local, parts_of
from harness.systems.plans import planned
from nodes.iproto.messages import Answer, Call
from tests import needs

pytestmark = [pytest.mark.real, needs.mounted_disks]
SECOND_NS = 1_000_000_000
WRITES = 20
ROUNDS = 20
"""Of power losses; one is enough unless the machine sleeps for a second between the last write and the loss."""

STORE = """
import asyncio, json, os, sys
from contextlib import suppress
from pathlib import Path
from nodes.iproto.frames import ServerDecoder, encode, greeting
from nodes.iproto.messages import Answer, Call, Refusal

SYNCS = {syncs}
SPACE = {{}}

def begin(data):
    path = Path(data) / "log"
    lines = path.read_bytes().split(b"\\n")[:-1] if path.exists() else []
    for line in lines:
        with suppress(ValueError, TypeError):  # torn, or full of zeros
            key, value = json.loads(line)
            SPACE[key] = value
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def write_all(log, data):
    while data:
        data = data[os.write(log, data):]

def answer(request, log):
    match request:
        case Call(sync, "qsync.transaction", (statements, *_)):
            results = []
            for word, name, *rest in statements:
                if word == "get":
                    results.append([rest[0], SPACE[rest[0]]] if rest[0] in SPACE else None)
                else:
                    (row,) = rest
                    try:
                        write_all(log, b"\\n" + json.dumps(row).encode() + b"\\n")
                        if SYNCS:
                            os.fsync(log)
                    except OSError:
                        os._exit(1)  # it does not go on without its disk
                    SPACE[row[0]] = row[1]
                    results.append(row)
            return Answer(sync, ({{"committed": True, "results": results, "role": "owner"}},))
        case Call(sync, "qsync.status", _):
            return Answer(sync, ({{"role": "owner"}},))
    return Refusal(request.sync, 33, "no such function")

async def main(address, data):
    log = begin(data)
    async def serve(reader, writer):
        writer.write(greeting("2.6.0", "00000000-0000-4000-8000-000000000000", bytes(32)))
        decoder = ServerDecoder()
        while received := await reader.read(65536):
            writer.write(b"".join(encode(answer(each, log)) for each in decoder.feed(received)))
    host, port = address.split(":")
    server = await asyncio.start_server(serve, host, int(port))
    print(json.dumps({{"ready": True, "port": server.sockets[0].getsockname()[1]}}), flush=True)
    await server.serve_forever()

if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
else:
    from harness.systems.own import OwnStore
    SYSTEM = OwnStore("a log", start=lambda place: (place.python, __file__, place.listen, place.data))
"""


async def ask(cluster: LocalCluster, process: int, *statement: object) -> Any:
    reply = await cluster.call(
        process, "n1", Call(1, "qsync.transaction", ([list(statement)], {})), 20 * SECOND_NS
    )
    assert isinstance(reply, Replied) and isinstance(reply.response, Answer), reply
    answer: Any = reply.response.data[0]
    return answer["results"][0]


async def one_round(cluster: LocalCluster, number: int) -> int:
    """How many writes were acknowledged, and are gone after a power loss."""
    keys = [f"{number}-{each}" for each in range(WRITES)]
    for place, key in enumerate(keys):
        await ask(cluster, 2 * number, "replace", "register", [key, place])
    told = {"id": number, "name": "power-owner", "does": "power", "at_ns": 0, "until_ns": 0}
    fault = Fault(**told, nodes=("n1",), seed=number)  # type: ignore[arg-type]  # the fields are as they should be
    await cluster.inject(fault)
    evidence = await cluster.heal(fault)
    assert evidence.took_effect and evidence.healed, evidence
    found = [await ask(cluster, 2 * number + 1, "get", "register", key) for key in keys]
    return found.count(None)


@pytest.mark.parametrize("syncs", [True, False])
def test_a_store_that_syncs_keeps_what_it_said_and_another_does_not(tmp_path: Path, syncs: bool) -> None:
    """If it failed, a store that never syncs would pass every power loss, or one that does would be accused."""
    file = tmp_path / "store.py"
    file.write_text(STORE.format(syncs=syncs))
    parts = parts_of(planned(system=str(file), nodes=1, faults=("power-owner",), cluster="local"))

    async def story() -> list[int]:
        cluster = local(parts, tmp_path / "run")
        lost: list[int] = []
        try:
            await cluster.start()
            await parts.system.set_up(parts.plan, cluster)
            while len(lost) < ROUNDS and (len(lost) < 4 or not (syncs or any(lost))):
                lost.append(await one_round(cluster, len(lost)))
        finally:
            await cluster.stop()
        return lost

    lost = asyncio.run(story())
    assert any(lost) != syncs, lost


def test_a_store_that_stops_on_a_full_disk_is_started_again_when_the_disk_has_room(tmp_path: Path) -> None:
    """If it failed, a store that may stop on a full disk would be missing for the rest of the run."""
    file = tmp_path / "store.py"
    file.write_text(STORE.format(syncs=True))
    parts = parts_of(planned(system=str(file), nodes=1, faults=("full-disk",), cluster="local"))
    told = {"id": 1, "name": "full-disk", "does": "disk-error", "at_ns": 0, "until_ns": 0, "error": "ENOSPC"}
    fault = Fault(**told, nodes=("n1",))  # type: ignore[arg-type]  # the fields are as they should be

    async def story() -> None:
        cluster = local(parts, tmp_path / "run")
        try:
            await cluster.start()
            await parts.system.set_up(parts.plan, cluster)
            await ask(cluster, 1, "replace", "register", ["a", 1])
            await cluster.inject(fault)
            request = Call(1, "qsync.transaction", ([["replace", "register", ["a", 2]]], {}))
            assert isinstance(await cluster.call(2, "n1", request, 20 * SECOND_NS), Lost)
            while not (ended := cluster.ended()):
                await asyncio.sleep(0.01)
            assert [(each.node, each.how) for each in ended] == [("n1", "exit 1")]
            evidence = await cluster.heal(fault)
            assert (evidence.took_effect, evidence.healed) == (True, True), evidence
            assert evidence.detail == "n1 had ended, and was started again"
            assert await ask(cluster, 3, "get", "register", "a") == ["a", 1]
            assert cluster.ended() == ()
        finally:
            await cluster.stop()

    asyncio.run(story())
