"""One server in single steps: which record is on disk before which message leaves, and which counts more."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.kernel.effects import Effect, Persist
from nodes.twophase.agreed import Agreed
from nodes.twophase.atomic import Atomic
from nodes.twophase.configuration import Configuration
from nodes.twophase.cuts import Cuts
from nodes.twophase.decisions import Decisions
from nodes.twophase.finishing import Finishing
from nodes.twophase.preparing import Preparing
from nodes.twophase.recovery import COMMITTED, ROLLED_BACK, Doubt, Recovery
from nodes.twophase.site import Site
from nodes.twophase.snapshots import Snapshots
from nodes.twophase.states import State
from nodes.twophase.stock import Local, Stock
from nodes.twophase.variants import Named
from tests.nodes.twophase.virtual_cluster import SERVERS


class Server:
    """The roles of n2, a member of three servers; `order` has the files of its records and the words that it sends."""

    def __init__(self) -> None:
        configuration = Configuration(name="n2", role="server", baseline=SERVERS, atomic_spaces=("plain",))
        site = self.site = Site(configuration, Decisions())
        site.begin(1)
        self.agreed = Agreed(configuration, True)
        for index, name in enumerate(SERVERS, 1):
            self.agreed.apply(index, ["join", name, 1, "server"])
        self.stock = stock = Stock(site)
        self.cuts = Cuts(
            *(site, stock.wal, lambda: list(stock.locals.values())),
            *(lambda entry: None, lambda entry: None, lambda: ""),
        )
        self.finishing = Finishing(stock, self.agreed, self.cuts, self.send, lambda: None)
        self.preparing = Preparing(stock, self.agreed, self.cuts, self.finishing, self.send)

    def send(self, peer: str, word: str, payload: list[Any]) -> None:
        self.site.out.append(word)  # type: ignore[arg-type]  # at its place among the records

    def begin_cut(self) -> Named:
        """A cut begins, and goes on as far as it can without a record on disk."""
        self.agreed.apply(9, ["cut", "k", "n1", 0])
        assert self.agreed.running is not None
        named = self.agreed.running.named
        self.cuts.discovered(named)
        for _ in ("publish", "start", "collect"):
            self.site.fired(f"cut {named.number}")
        return named

    @property
    def records(self) -> list[Persist]:
        return [e for e in self.site.out if isinstance(e, Persist) and e.record != "index"]

    @property
    def order(self) -> list[str]:
        kept: list[Effect | str] = [e for e in self.site.out if isinstance(e, Persist | str)]
        return [effect.file if isinstance(effect, Persist) else str(effect) for effect in kept]


@pytest.fixture
def server() -> Server:
    return Server()


def test_a_backup_has_its_record_before_it_answers(server: Server) -> None:
    """If it failed, a transaction could commit with a backup that has lost it."""
    write = ["a", 1, "x", 1]
    server.preparing.take_backup_prepare(
        "n1", 1, "n1-1-1", server.agreed.version, "n1", 1, False, [[0, ["n1", "n2"]]], [write]
    )
    assert server.order == ["wal-000001.log", "backup-prepared"]


def test_a_copy_of_an_atomic_write_is_on_disk_before_the_answer(server: Server) -> None:
    """If it failed, a client could read a value, and a backup that became primary would not have it."""
    atomic = Atomic(server.stock, server.agreed, server.preparing, server.send, lambda: None)
    atomic.take_copy("n1", "n1-1-1", server.agreed.version, ["plain", 1, "x", 1])
    assert server.order == ["wal-000001.log", "atomic-copied"]


def test_a_base_is_on_disk_before_the_record_that_names_it(server: Server) -> None:
    """If it failed, a log could name a base snapshot that a power loss took away."""
    Snapshots(server.stock, server.agreed, lambda entry: None)._write("s")
    assert server.order == ["base-000001.snap", "wal-000001.log", "cuts.index"]


def test_a_commit_counts_more_than_a_rollback(server: Server) -> None:
    """If it failed, recovery could roll back what a client was told is committed."""
    recovery = Recovery(server.stock, server.agreed, server.finishing, server.send, lambda entry: None)
    owners = server.agreed.in_sync[0]
    doubt = Doubt(Local("n3-1-1", "n3", 1, 3, participants=[[0, owners]]))
    for node, state in zip(owners, (ROLLED_BACK, COMMITTED), strict=True):
        doubt.answers[node, 1] = (state, [])
    assert recovery._commits(doubt)


def test_a_cut_that_fails_while_finish_is_on_its_way_is_taken_back(server: Server) -> None:
    """If it failed, FINISH would count for a cut that has failed elsewhere, and a restore could be torn."""
    named = server.begin_cut()
    assert [record.record for record in server.records] == ["start", "finish"]
    server.cuts.ended(named, failed=True)
    assert [record.record for record in server.records] == ["start", "finish", "void"]


def test_a_cut_waits_for_what_was_decided_before_it_began(server: Server) -> None:
    """If it failed, a commit whose record stands behind START would be missing in the cut."""
    local = Local("n1-1-1", "n1", 1, 3, state=State.PREPARED, writes=[["a", 1, "x", 1]], prepared=[0])
    server.stock.locals[local.xid] = local
    server.finishing.finish(local, True)
    server.begin_cut()
    assert [record.record for record in server.records] == ["start"]
    server.site.fired("commit n1-1-1")
    server.site.persisted(server.records[-1].token)
    assert [record.record for record in server.records] == ["start", "committed", "finish"]


def test_an_atomic_write_that_has_ended_holds_back_no_copy(server: Server) -> None:
    """If it failed, a copy of the partition would wait for the next transaction that ends."""
    seen: list[set[int]] = []
    atomic = Atomic(
        *(server.stock, server.agreed, server.preparing, server.send),
        lambda: seen.append(server.stock.busy()),
    )
    server.stock.moving["n1-1-1"] = 3
    atomic._end("n1", "n1-1-1", "ok", None)
    assert seen == [set()]
