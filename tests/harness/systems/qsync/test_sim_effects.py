"""Notes of the virtual world about disks and links: each row when it was synced, each claim once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from checkers.logs.wal.effects import Begun, Claimed, Durable, Effect
from harness.systems.qsync.sim_effects import Effects
from nodes.iproto import xlog
from nodes.iproto.messages import Ack, Row, Type
from nodes.kernel.effects import Persist
from nodes.world.machine import WatchesMachine

LOG = "1.xlog"


class Played:
    """One machine that does what a test says, a nanosecond after the other."""

    def __init__(self) -> None:
        self.agenda = SimpleNamespace(now_ns=0)
        machine = SimpleNamespace(name="n1", watch=self._watched)
        world: Any = SimpleNamespace(agenda=self.agenda, machines={"n1": machine})
        self.effects = Effects(world, lambda link: 40 + link)
        self.length = 0

    def _watched(self, watch: WatchesMachine) -> None:
        self.watch = watch

    def at(self, now_ns: int) -> WatchesMachine:
        self.agenda.now_ns = now_ns
        return self.watch

    def writes(self, lsn: int, link: int | None, record: str = "row") -> int:
        """The length of the log with one more row."""
        data = xlog.encode_block([Row(Type.INSERT, 1, lsn, 1.0, lsn, body={16: 512, 33: (lsn,)})])
        self.length += len(data)
        self.watch.writes(Persist(lsn, LOG, data, record), self.length, link)
        return self.length

    def read(self, kind: type[Effect]) -> list[Any]:
        return [effect for effect in self.effects.read() if isinstance(effect, kind)]


def test_a_row_is_durable_when_its_last_byte_is_synced() -> None:
    """If it failed, a store that answers before its sync would go free, or one that waits be accused."""
    played = Played()
    played.at(1)
    first, second = played.writes(1, 2), played.writes(2, 3, "confirm")
    played.at(5).synced(LOG, first - 1)
    played.at(6).synced(LOG, second - 1)
    played.at(7).synced(LOG, second)
    assert [(each.time_ns, each.rows[0].lsn, each.process) for each in played.read(Durable)] == [
        (6, 1, 42),
        (7, 2, None),
    ]


def test_what_was_cut_off_or_lies_on_another_disk_is_never_durable() -> None:
    """If it failed, rows that a torn log lost would stand behind an answer."""
    played = Played()
    played.at(1)
    kept, _ = played.writes(1, None), played.writes(2, None)
    played.watch.cut(LOG, kept)
    played.watch.synced(LOG, 10**6)
    assert [each.rows[0].lsn for each in played.read(Durable)] == [1]
    played.writes(3, None)
    played.at(9).emptied()
    played.watch.synced(LOG, 10**6)
    assert [each.rows[0].lsn for each in played.read(Durable)] == [1]
    assert [(each.time_ns, each.is_empty) for each in played.read(Begun)] == [(9, True)]


def test_a_claim_is_noted_once_and_again_from_an_empty_disk() -> None:
    """If it failed, every peer would count as a claim, or a node that lost its disk could claim what it had before."""
    played = Played()
    for now_ns in (1, 2):
        played.at(now_ns).sends(now_ns, Ack({1: 5}, 2))
    played.at(3).sends(1, Ack({1: 6}, 2))
    played.at(4).emptied()
    played.at(5).sends(1, Ack({1: 6}, 2))
    assert [each.time_ns for each in played.read(Claimed)] == [1, 3, 5]
