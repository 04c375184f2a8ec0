"""From a history that no order explains to a few operations that already have none.

A subset proves something only if leaving out the rest could not have made it illegal. These may be left out:

- everything invoked after the failing call returned; what was still running then may or may not have happened
- observations, always
- overwrites and updates, if what they leave behind is legal for no observation and no update that stays: an order
  of all operations stays legal without them
- everything that was over before some call began that fixes the value (a register's, with no other change running
  beside it); the proof then begins with that value, and the crashed calls before it stay

Every step is checked by the same search: what is left still has no order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy

from checkers.history.operation import Operation
from checkers.limits import OutOfTime, shielded
from checkers.linearizable.decide import decide
from checkers.linearizable.models import ILLEGAL, Model, Register, State
from checkers.linearizable.search import Call, Decision, Limits

FEW = 6
CUTS_TRIED = 12
LONG = 2_000  # calls from which on a cut is tried first
CALL = 500  # steps that laying out one call for a look is worth


@dataclass(frozen=True, slots=True)
class Subject:
    """An operation and the call that the search makes of it."""

    operation: Operation
    call: Call


@dataclass(frozen=True, slots=True)
class Proof:
    """Operations that have no legal order, in order of invocation.

    failing: the first that cannot return.
    start: the one state that was possible at event `start_event`, before all of them (None: the history's start).
    after: the call that fixed it, which returned then.
    """

    subjects: tuple[Subject, ...]
    failing: Subject
    start: State
    start_event: int | None
    after: Subject | None = None


def shrunk(model: Model, subjects: Sequence[Subject], decision: Decision, limits: Limits) -> Proof:
    """The smallest proof that is found within the limits of all looks together; `decision` is the search's "no".

    If the time limit ends first, it is a proof that was found by then.
    """
    assert decision.result == "no" and decision.failing is not None
    failing = subjects[decision.failing]
    prefix = _until(
        subjects if decision.core is None else [subjects[place] for place in decision.core], failing
    )
    left = _Left(limits.steps, limits.configurations)
    whole = _Shrinking(model, failing, left, None, model.initial, prefix)
    try:
        return _smallest(whole, subjects)
    except OutOfTime:
        with shielded():
            return (left.cut or whole).proof()


def _smallest(whole: _Shrinking, subjects: Sequence[Subject]) -> Proof:
    prefix = whole.best
    if len(prefix) > LONG:
        cut = _cut(whole, subjects, prefix)
        if cut is not None:
            return cut
    whole.shrink()
    if len(whole.best) > FEW and len(prefix) <= LONG:
        cut = _cut(whole, subjects, prefix)
        if cut is not None and len(cut.subjects) < len(whole.best) - 1:
            return cut
    return whole.proof()


@dataclass(slots=True)
class _Left:
    """The limits that are left for shrinking, and a cut that has been shown to have no order."""

    steps: int
    configurations: int
    cut: _Shrinking | None = None

    def look(self, model: Model, subjects: Sequence[Subject], start: State) -> bool:
        """Whether the subjects surely have no order from `start`; False if no steps are left. Raises OutOfTime."""
        self.steps -= CALL * len(subjects)
        if self.steps <= 0:
            return False
        calls = [subject.call for subject in subjects]
        decision = decide(model, calls, Limits(self.configurations, self.steps), (start,))
        self.steps -= decision.steps
        return decision.result == "no"


def _cut(whole: _Shrinking, subjects: Sequence[Subject], prefix: Sequence[Subject]) -> Proof | None:
    """A proof that begins where the value was fixed, if there is one."""
    if not isinstance(whole.model, Register):
        return None
    for after in _fixing(subjects, whole.failing)[:CUTS_TRIED]:
        event = after.call.complete
        assert event is not None
        start = after.call.action.values[-1]
        # Crashed calls stay, whenever they were invoked: they may take effect behind the cut.
        rest = [subject for subject in prefix if subject.call.complete is None or subject.call.invoke > event]
        cut = _Shrinking(whole.model, whole.failing, whole.left, after, start, rest)
        if cut.proves(rest):
            whole.left.cut = cut
            cut.shrink()
            return cut.proof()
    return None


def _fixing(subjects: Sequence[Subject], failing: Subject) -> list[Subject]:
    """Calls over before the failing one began, beside which no other change ran; the last first, ever farther apart."""
    changes = [
        subject.call
        for subject in subjects
        if subject.call.action.kind != "observe" and subject.call.complete is not None
    ]
    begun = numpy.sort(numpy.array([call.invoke for call in changes], dtype=numpy.int64))
    ended = numpy.sort(numpy.array([call.complete for call in changes], dtype=numpy.int64))
    fixing = []
    for subject in subjects:
        call = subject.call
        if call.complete is None or call.complete >= failing.call.invoke or call.action.word == "is-not":
            continue
        beside = numpy.searchsorted(begun, call.complete) - numpy.searchsorted(ended, call.invoke)
        if beside == (call.action.kind != "observe"):
            fixing.append(subject)
    fixing.sort(key=lambda subject: subject.call.complete or 0, reverse=True)
    return fixing[:1] + [fixing[1 << step] for step in range(CUTS_TRIED) if 1 << step < len(fixing)]


def _until(subjects: Sequence[Subject], failing: Subject) -> list[Subject]:
    """The calls invoked before the failing call returned; calls that ran then have no return yet."""
    end = failing.call.complete
    assert end is not None
    prefix: list[Subject] = []
    for subject in subjects:
        call = subject.call
        running = call.complete is None or call.complete > end
        if call.invoke > end or (running and call.action.kind == "observe"):
            continue
        prefix.append(Subject(subject.operation, replace(call, complete=None)) if running else subject)
    return prefix


@dataclass(slots=True)
class _Shrinking:
    """Shrinks `best`, a failing set of subjects without an order, towards one failing call from one start."""

    model: Model
    failing: Subject
    left: _Left
    after: Subject | None
    start: State
    best: list[Subject]

    def proves(self, subjects: Sequence[Subject]) -> bool:
        return self.left.look(self.model, subjects, self.start)

    def shrink(self) -> None:
        """Leave out ever smaller runs of subjects for as long as the rest still proves it."""
        size = len(self.best)
        while True:
            before = len(self.best)
            self._without_runs(size)
            if self.left.steps <= 0 or (size == 1 and len(self.best) == before):
                return
            size = max(1, size // 2)

    def _without_runs(self, size: int) -> None:
        for kinds in (("observe",), ("overwrite", "update")):
            candidates = [
                subject
                for subject in self.best
                if subject is not self.failing
                and subject.call.action.kind in kinds
                and self._might_go(subject)
            ]
            for first in range(0, len(candidates), size):
                if self.left.steps <= 0:
                    return
                out = {id(subject) for subject in candidates[first : first + size]}
                rest = [subject for subject in self.best if id(subject) not in out]
                gone = [subject for subject in self.best if id(subject) in out]
                if self._may_go(gone, rest) and self.proves(rest):
                    self.best = rest

    def _might_go(self, subject: Subject) -> bool:
        action = subject.call.action
        return action.kind == "observe" or self.model.leaves(action) is not None

    def _may_go(self, gone: Sequence[Subject], rest: Sequence[Subject]) -> bool:
        """Whether no subject that stays can have depended on one that goes."""
        left_behind: dict[State, None] = {}
        for subject in gone:
            action = subject.call.action
            if action.kind != "observe":
                states = self.model.leaves(action)
                if states is None:
                    return False
                left_behind.update(dict.fromkeys(states))
        staying = {subject.call.action for subject in rest if subject.call.action.kind != "overwrite"}
        # A removed call must not have helped one that stays: else the rest has no order only because it is missing.
        return all(self.model.step(state, action) is ILLEGAL for state in left_behind for action in staying)

    def proof(self) -> Proof:
        ordered = sorted(self.best, key=lambda subject: subject.call.invoke)
        event = None if self.after is None else self.after.call.complete
        return Proof(tuple(ordered), self.failing, self.start, event, self.after)
