"""The cut at one node, from its beginning to FINISH.

    marker or discovery ──▶ recording ──▶ published ──▶ START written ──▶ collected ──▶ FINISH written
                            the recorder   the node has   the active       all of them have finished,
                            notes what     changed its    transactions,    and are on one side each
                            leaves active  colour: Mark   and the recorded

Each arrow is an event of its own: other messages may come in between. A message with the marker of a cut that this node
has not begun begins it. The message waits until the id is published; only then is its payload handled. A server that
cannot take part yet, as far as it knows, delays START until it has delivered the beginning of the cut: by then it has
joined, or the base snapshot that clears its flag is over.

A cut may fail on a different node after the FINISH of this one. From then on nodes send messages without its marker,
and such a message may reach a node whose colour changes later. So this node takes its FINISH back (VOID) before it
sends any message without a marker. A server that was away does so when it joins again.

Of the collected transactions, one that rolls back does not count; one with the sign of this cut is AFTER (*excluded*,
if its record stands before START); any other is BEFORE (*included*, if its record stands behind START). A commit by
recovery carries no sign: then there is no FINISH, and the cut has failed.

A client changes its colour and marks its messages. It has no log, and waits for no transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from nodes.kernel.effects import Mark
from nodes.records import Record
from nodes.twophase.agreed import Agreed, Entry
from nodes.twophase.site import Site
from nodes.twophase.sometimes import (
    CUT_FAILED,
    CUT_OF_FLAG,
    CUT_OF_RECOVERY,
    CUT_OVERTAKEN,
    CUT_WAITED,
    EXCLUDED,
    INCLUDED,
    MARKER_FIRST,
    RECORDED,
    TAKEN_BACK,
)
from nodes.twophase.states import State
from nodes.twophase.stock import Local
from nodes.twophase.variants import VARIANTS, Named
from nodes.twophase.wal import Wal


class Phase(Enum):
    RECORDING = auto()
    PUBLISHED = auto()
    STARTED = auto()
    COLLECTED = auto()
    FINISHED = auto()
    FAILED = auto()


@dataclass(slots=True)
class LocalCut:
    """One cut at this node. `recorded`: transactions that left the active ones before it was collected; `waiting`,
    `included` and `excluded` are xids."""

    cut: Named
    phase: Phase = Phase.RECORDING
    recorded: dict[str, Local] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    included: list[str] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)
    start: int = -1
    """The position of the START record."""

    @property
    def is_over(self) -> bool:
        return self.phase in (Phase.FINISHED, Phase.FAILED)


class Cuts:
    """The cut that began last at this node, and what the node knows of earlier ones."""

    def __init__(
        self,
        site: Site,
        wal: Wal,
        actives: Callable[[], Iterable[Local]],
        propose: Callable[[Entry], None],
        withdraw: Callable[[Entry], None],
        hindrance: Callable[[], str],
    ) -> None:
        """`hindrance` says why this node cannot take part in a cut; "": it can."""
        self._site = site
        self._wal = wal
        self._actives = actives
        self._propose = propose
        self._withdraw = withdraw
        self._hindrance = hindrance
        self.variant = VARIANTS[site.configuration.variant]
        self._here: LocalCut | None = None
        self._newest: Named | None = None
        """The newest cut that this node has published."""
        self.running: Named | None = None
        """The cut whose marker this node's messages carry."""
        self._known = 0
        """The greatest number of a cut that has begun here, or of which this node has learned."""
        self._news = 0
        """The number of the newest cut that this node has delivered as a member."""
        self._begun: dict[str, int] = {}
        """Name → number of the cuts with a START in the own log."""
        self._finished: dict[str, int] = {}
        """Name → number of the cuts with a FINISH whose end is not delivered yet."""

    def load(self, records: Iterable[Record]) -> None:
        """Read the cuts in the log. A cut that an earlier life began fails: its marker begins nothing here."""
        for record in records:
            match record:
                case ["start", cut, number, *_]:
                    self._begun[cut] = number
                    self._known = max(self._known, number)
                case ["finish", cut, *_]:
                    self._finished[cut] = self._begun.get(cut, 0)
                case ["void", cut]:
                    self._finished.pop(cut, None)

    def heard_of(self, agreed: Agreed) -> None:
        """Take over the state of a trimmed discovery log: the cuts that ended in it were never delivered here."""
        before = agreed.begun - (agreed.running is not None)
        self._known = max(self._known, before)
        for cut in agreed.cuts.values():
            if cut.state in ("ok", "failed"):
                self._take_back(cut.named, failed=cut.state == "failed")

    # ---- markers and signs

    def sign(self) -> object:
        """The sign of a transaction that commits now."""
        return self.variant.sign(self._newest, self.running is not None)

    def marker(self) -> object:
        return None if self.running is None else self.variant.marker(self.running)

    def meet(self, marker: object) -> bool:
        """True: a message with this marker must wait until the node has changed its colour."""
        if marker is None:
            return False
        cut = self.variant.cut_of(marker)
        here = self._here
        is_beginning = here is not None and here.cut.number == cut.number and here.phase is Phase.RECORDING
        is_running = self.running is not None and self.running.number == cut.number
        if self._site.decisions.is_known(cut.number <= self._known, is_beginning or is_running):
            return is_beginning
        self._site.sometimes.note(MARKER_FIRST)
        self._begin(cut)
        return True

    # ---- discovery

    def discovered(self, cut: Named) -> None:
        """A cut began in the discovery log, and this node is a member."""
        here, is_news = self._here, self._news < cut.number
        self._news = max(self._news, cut.number)
        if is_news and here is not None and here.cut.number == cut.number and here.phase is Phase.PUBLISHED:
            self._soon(here, self._start)
        if cut.number <= self._known:
            return
        if self._site.decisions.takes_part(not any(True for _ in self._actives())):
            self._begin(cut)
        else:
            self._known = cut.number
            self._propose(self._report(cut))

    def ended(self, cut: Named, *, failed: bool) -> None:
        """The cut has ended at all nodes, perhaps with a failure."""
        self._withdraw(self._report(cut))
        # In the step that ends the marker: VOID is on disk before any message leaves without one.
        self._take_back(cut, failed=failed)
        self._known = max(self._known, cut.number)
        if self._newest is None or self._newest.number < cut.number:
            self._newest = cut  # of a time when we were no member
        if self.running is not None and self.running.number <= cut.number:
            self.running = None
        here = self._here
        if here is not None and here.cut.number <= cut.number and not here.is_over:
            here.phase = Phase.FAILED

    def _take_back(self, cut: Named, *, failed: bool) -> None:
        if self._finished.get(cut.id) != cut.number:
            return
        del self._finished[cut.id]
        if failed:
            self._site.sometimes.note(TAKEN_BACK)
            self._wal.append(["void", cut.id])

    # ---- the steps

    def _begin(self, cut: Named) -> None:
        if self._here is not None and not self._here.is_over:
            self._site.sometimes.note(CUT_OVERTAKEN)  # its end is still on its way to us
            self._here.phase = Phase.FAILED
        self._known = max(self._known, cut.number)
        here = self._here = LocalCut(cut)
        # Decided, and not ended: they left the active ones before there was a recorder.
        for local in self._actives():
            if local.commits is not None:
                self._record(here, local)
        self._soon(here, self._publish)

    def _soon(self, here: LocalCut, step: Callable[[LocalCut], None]) -> None:
        self._site.soon(f"cut {here.cut.number}", lambda: None if here.is_over else step(here))

    def _publish(self, here: LocalCut) -> None:
        here.phase = Phase.PUBLISHED
        self._newest = self.running = here.cut
        self._site.out.append(Mark("cut", {"cut": here.cut.id}))
        self._soon(here, self._start)

    def _start(self, here: LocalCut) -> None:
        if here.phase is not Phase.PUBLISHED:
            return None
        if not self._site.is_server:
            here.phase = Phase.FINISHED
            return self._done(here)
        cut, configuration = here.cut, self._site.configuration
        is_used = self._begun.get(cut.id, cut.number) != cut.number  # the discovery log has forgotten it
        why = f"the log has an earlier cut of the name {cut.id}" if is_used else self._hindrance()
        if why and self._news < cut.number:  # in the log, what hinders us may be over before the cut begins
            self._site.sometimes.note(CUT_WAITED)
            return None
        if why:
            self._site.sometimes.note(CUT_OF_FLAG, not is_used)
            return self._fail(here, why)
        here.phase = Phase.STARTED
        self._begun[cut.id] = cut.number
        spaces = list(configuration.atomic_spaces)
        here.start = self._wal.append(
            ["start", cut.id, cut.number, cut.version, configuration.layout, spaces, cut.time_ns]
        )
        self._site.out.append(Mark("start", {"cut": cut.id}))
        return self._soon(here, self._collect)

    def _collect(self, here: LocalCut) -> None:
        here.phase = Phase.COLLECTED
        open_here = {
            local.xid: local for local in self._actives() if local.state in (State.PREPARING, State.PREPARED)
        }
        collected = here.recorded | open_here
        here.waiting = set(self._site.decisions.awaited(tuple(collected)))
        for local in list(here.recorded.values()):
            if local.state in (State.COMMITTED, State.ROLLED_BACK):
                self._take_side(here, local)
        here.recorded = {}
        self._finish_if_all(here)

    def _record(self, here: LocalCut, local: Local) -> None:
        if local.writes and self._site.decisions.tracks_committing:
            self._site.sometimes.note(RECORDED)
            here.recorded[local.xid] = local

    def leaves_active(self, local: Local) -> None:
        here = self._here
        if here is not None and here.phase in (Phase.RECORDING, Phase.PUBLISHED, Phase.STARTED):
            self._record(here, local)

    def finished(self, local: Local) -> None:
        """A transaction is committed, or rolled back, and on disk."""
        here = self._here
        if here is not None and here.phase is Phase.COLLECTED:
            self._take_side(here, local)
            self._finish_if_all(here)

    def _take_side(self, here: LocalCut, local: Local) -> None:
        if here.is_over or local.xid not in here.waiting:
            return
        here.waiting.discard(local.xid)
        if not local.commits:
            if local.is_recovered and self._site.configuration.recovery_rollback_fails_cut:
                self._fail(here, f"{local.xid} was rolled back by recovery")
        elif self._site.decisions.spoils(local.is_recovered):
            self._site.sometimes.note(CUT_OF_RECOVERY)
            self._fail(here, f"{local.xid} was committed by recovery")
        elif self.variant.is_after(local.sign, local.version, here.cut):
            if local.position < here.start:
                here.excluded.append(local.xid)
        elif local.position > here.start:
            here.included.append(local.xid)

    def _finish_if_all(self, here: LocalCut) -> None:
        if here.waiting or here.is_over:
            return
        here.phase = Phase.FINISHED
        self._site.sometimes.note(INCLUDED, len(here.included))
        self._site.sometimes.note(EXCLUDED, len(here.excluded))
        included, excluded = self._site.decisions.sets_of_finish(sorted(here.included), sorted(here.excluded))
        record = ["finish", here.cut.id, list(included), list(excluded)]
        # Before it is on disk: the cut may fail elsewhere meanwhile, and VOID must follow.
        self._finished[here.cut.id] = here.cut.number
        self._wal.append(record, lambda: self._done(here))
        self._site.out.append(Mark("finish", {"cut": here.cut.id}))

    def _done(self, here: LocalCut) -> None:
        self._propose(self._report(here.cut))

    def _report(self, cut: Named, why: str = "") -> Entry:
        """This node has done its part of the cut, or says why it has failed."""
        return ["cut-done", cut.id, self._site.name, self._site.life, not why, why]

    def _fail(self, here: LocalCut, why: str) -> None:
        here.phase = Phase.FAILED
        self._site.sometimes.note(CUT_FAILED)
        self._propose(self._report(here.cut, why))
