"""The cut at one node in single steps: what it waits for, and what ends it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nodes.kernel.effects import Persist
from nodes.twophase.agreed import Agreed, Entry
from nodes.twophase.configuration import Configuration, Variant
from nodes.twophase.cuts import Cuts
from nodes.twophase.decisions import Decisions
from nodes.twophase.site import Site
from nodes.twophase.states import State
from nodes.twophase.stock import Local, Stock
from nodes.twophase.variants import Named

A, B = Named("a", 1, version=1), Named("b", 2, version=1)


class Server:
    """The cuts of n1, a member; the test says when transactions leave the active ones, and when they finish."""

    def __init__(self, variant: Variant = "shipped") -> None:
        configuration = Configuration(name="n1", role="server", baseline=("n1",), backups=0, variant=variant)
        self.site = Site(configuration, Decisions())
        self.site.begin(1)
        self.agreed = Agreed(configuration)
        self.agreed.apply(1, ["join", "n1", 1, "server"])
        self.active: list[Local] = []
        self.proposed: list[Entry] = []
        self.withdrawn: list[Entry] = []
        self.cuts = Cuts(
            *(self.site, Stock(self.site).wal, lambda: self.active),
            *(self.proposed.append, self.withdrawn.append, lambda: ""),
        )

    def go_on(self, steps: int) -> None:
        """The next steps of the cut: published, START, collected."""
        for _ in range(steps):
            self.site.fired("cut 1")

    @property
    def records(self) -> list[str]:
        return [each.record for each in self.site.out if isinstance(each, Persist) and each.record != "index"]


@pytest.fixture
def server() -> Server:
    return Server()


def local(writes: bool = True) -> Local:
    rows = [["r", 1, "x", 1]] if writes else []
    return Local("n1-1-1", "n1", 1, 1, state=State.PREPARED, commits=True, writes=rows)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_cut_waits_for_what_leaves_the_active_ones_before_it_is_collected(
    server: Server, steps: int
) -> None:
    """If it failed, FINISH would stand before a commit that belongs to the cut: one half of a transaction is lost."""
    server.active = [leaving := local()]
    leaving.commits = None
    server.cuts.discovered(A)
    server.go_on(steps)
    leaving.commits, leaving.state = True, State.COMMITTING
    server.cuts.leaves_active(leaving)
    server.active = []
    server.go_on(3 - steps)
    assert server.records == ["start"]
    leaving.state, leaving.position = State.COMMITTED, 10**6
    server.cuts.finished(leaving)
    assert server.records == ["start", "finish"]


def test_a_cut_waits_for_nothing_that_writes_nothing(server: Server) -> None:
    """If it failed, a cut would wait for the end of a transaction that leaves no record here."""
    server.active = [local(writes=False)]
    server.cuts.discovered(A)
    server.active = []
    server.go_on(3)
    assert server.records == ["start", "finish"]


def test_a_new_member_takes_part_in_the_cut_that_runs(server: Server) -> None:
    """If it failed, a server that joins by a trimmed log would hold the running cut for one that is over."""
    server.agreed.apply(2, ["cut", "a", "n1", 0])
    assert server.agreed.running is not None
    server.cuts.heard_of(server.agreed)
    server.cuts.discovered(server.agreed.running.named)
    server.go_on(3)
    assert server.records == ["start", "finish"]


def test_a_cut_that_the_log_takes_back_is_not_taken_back_again(server: Server) -> None:
    """If it failed, each restart would write one VOID more for the cut."""
    server.agreed.apply(2, ["cut", "a", "n1", 0])
    server.agreed.apply(3, ["cut-done", "a", "n1", 1, False, "failed"])
    assert server.agreed.cuts["a"].state == "failed"
    server.cuts.load([["start", "a", 1, 1], ["finish", "a", [], []], ["void", "a"]])
    server.cuts.heard_of(server.agreed)
    assert server.records == []


def finished_in_the_log(server: Server) -> None:
    server.cuts.load([["start", "a", 1, 1], ["finish", "a", [], []]])


def begun_here(server: Server) -> None:
    server.cuts.discovered(A)
    server.go_on(3)


@pytest.mark.parametrize("begin", [finished_in_the_log, begun_here])
def test_a_finished_cut_that_fails_is_taken_back(server: Server, begin: Callable[[Server], None]) -> None:
    """If it failed, a restore would take a cut that one node has not finished."""
    begin(server)
    server.cuts.ended(A, failed=True)
    assert server.records[-1:] == ["void"]


def test_a_cut_of_a_time_when_the_node_was_away_colours_it() -> None:
    """If it failed, a commit behind the cut would be signed as one before it."""
    server = Server("seed-counter")
    server.cuts.ended(B, failed=False)
    assert server.cuts.sign() == 2


def test_a_later_cut_that_has_ended_ends_the_marker(server: Server) -> None:
    """If it failed, a node that did not hear how its cut ended would mark messages with it for ever."""
    server.cuts.discovered(A)
    server.go_on(1)
    assert server.cuts.marker() is not None
    server.cuts.ended(B, failed=False)
    assert server.cuts.marker() is None


def test_a_report_is_withdrawn_when_the_cut_has_ended(server: Server) -> None:
    """If it failed, the node would propose for ever that it has done its part of an old cut."""
    server.cuts.discovered(A)
    server.go_on(3)
    for effect in list(server.site.out):
        if isinstance(effect, Persist):
            server.site.persisted(effect.token)
    done = ["cut-done", "a", "n1", 1, True, ""]
    assert server.proposed == [done]
    server.cuts.ended(A, failed=False)
    assert server.withdrawn == [done]
