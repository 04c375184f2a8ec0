"""Requests of clients and operators: `[word, number, …]`, answered by `["answer", number, …]`.

| request | answer |
|---|---|
| `["submit", number, steps, until]` | {"type", "id", …}, when it is `accepted` (durable here), or `executed` here |
| `["read", number, steps]` | the results of reading steps on the executed state of this master |
| `["status", number]` | a map |
| `["dump", number]` | `{"spaces": {space: [[key, value], …]}}`, of the executed state |
| `["strategy", number, name]` | `{"type": "ok"}`, or "fail" during a split; a start after it takes the configured one |
| `["max-peer-lag", number, seconds]` | `{"type": "ok"}`; in a split, too; a start after it takes the configured one |
| `["add-peer", number, name]` | the same; that master takes submissions when all count the same masters |

A submitted transaction ends "accepted", "ok" (with the results), "mismatch", or "fail" (with the error). While a
recovery is under way, submissions wait: they would get timestamps that are too old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, get_args

from nodes.kernel.effects import Send
from nodes.steps import Step, WrongSteps, checked
from nodes.txlog.configuration import Strategy
from nodes.txlog.evaluation import READS, Told, evaluated, is_known
from nodes.txlog.journal import Journal
from nodes.txlog.refs import id_of
from nodes.txlog.site import Site
from nodes.txlog.sometimes import HELD

ACCEPTED, EXECUTED = "accepted", "executed"
SECOND_NS = 1_000_000_000
LAG_S_MAX = 3600


class Clients:
    def __init__(
        self,
        site: Site,
        journal: Journal,
        submitted: Callable[[], None],
        add_peer: Callable[[str], None],
        status: Callable[[], Mapping[str, object]],
        choose: Callable[[str], None],
        why_not: Callable[[], str],
    ) -> None:
        """`choose` sets a strategy; `why_not` says why submissions are refused, "" if they are not."""
        self._site = site
        self._journal = journal
        self._submitted = submitted
        self._add_peer = add_peer
        self._status = status
        self._choose = choose
        self._why_not = why_not
        self._number = 0
        """The number of the last transaction of this life."""
        self._waiting: dict[str, tuple[int, int]] = {}
        """Id → link and number of the client that waits until it is executed."""
        self._held: list[tuple[int, int, list[Step], str]] = []

    def received(self, link: int, message: list[Any]) -> None:
        match message:
            case ["status", int() as number]:
                self._answer(link, number, dict(self._status()))
            case ["dump", int() as number]:
                self._answer(link, number, {"spaces": self._journal.state.spaces()})
            case ["submit", int() as number, steps, ("accepted" | "executed") as until]:
                self._submit(link, number, steps, until)
            case ["read", int() as number, steps]:
                self._read(link, number, steps)
            case ["strategy", int() as number, str() as name]:
                self._change_strategy(link, number, name)
            case ["max-peer-lag", int() as number, lag_s]:
                self._change_lag(link, number, lag_s)
            case ["add-peer", int() as number, str() as name]:
                self._take_peer(link, number, name)
            case [str() as word, int() as number, *_]:
                self._fail(link, number, f"illegal-parameters: unknown request {word!r}"[:100])

    def _submit(self, link: int, number: int, steps: object, until: str) -> None:
        try:
            known = checked(steps, is_known)
        except WrongSteps as wrong:
            return self._fail(link, number, f"illegal-parameters: {wrong}")
        if why := self._why_not():
            return self._fail(link, number, why)
        if self._journal.is_recovering:
            self._site.sometimes[HELD] += 1
            return self._held.append((link, number, known, until))
        return self._make(link, number, known, until)

    def _make(self, link: int, number: int, steps: list[Step], until: str) -> None:
        journal = self._journal
        self._number += 1
        name = id_of(self._site.name, journal.life, self._number)
        before, after = journal.counter, journal.counter + 1
        # Before the answer: it leaves when this record is on disk.
        journal.write(["made", after, self._site.decisions.timestamp(before, after), name, steps])
        if until == ACCEPTED:
            self._answer(link, number, {"type": ACCEPTED, "id": name})
        else:
            self._waiting[name] = (link, number)
        self._submitted()

    def release(self) -> None:
        """A recovery is over: submit the transactions that waited for it."""
        waiting, self._held = self._held, []
        for submission in waiting:
            self._make(*submission)

    def executed(self, name: str, answer: Told) -> None:
        asked = self._waiting.pop(name, None)
        if asked is not None:
            self._answer(*asked, {**answer, "id": name})

    def _read(self, link: int, number: int, steps: object) -> None:
        try:
            known = checked(steps, is_known)
        except WrongSteps as wrong:
            return self._fail(link, number, f"illegal-parameters: {wrong}")
        if any(step[0] not in READS for step in known):
            return self._fail(link, number, "illegal-parameters: expected steps that read")
        return self._answer(link, number, evaluated(known, self._journal.state.values)[0])

    def _take_peer(self, link: int, number: int, name: str) -> None:
        """Add a master, but not during a split: the backup may be of a state that a new master never had."""
        if name in self._journal.masters:
            return self._fail(link, number, f"illegal-parameters: {name} is a master of this cluster"[:100])
        if self._journal.is_settling:
            return self._fail(link, number, "no master can be added during a split")
        self._journal.write(["peer", name])
        self._add_peer(name)
        return self._answer(link, number, {"type": "ok"})

    def _change_strategy(self, link: int, number: int, named: str) -> None:
        name = named.lower()
        if name not in get_args(Strategy):
            return self._fail(link, number, f"illegal-parameters: no strategy {named!r}"[:100])
        if self._journal.is_settling:
            return self._fail(link, number, "the strategy cannot change during a split")
        self._choose(name)
        return self._answer(link, number, {"type": "ok"})

    def _change_lag(self, link: int, number: int, lag_s: object) -> None:
        if isinstance(lag_s, bool) or not isinstance(lag_s, int | float) or not 0 <= lag_s <= LAG_S_MAX:
            limits = f"expected seconds from 0 to {LAG_S_MAX}"
            return self._fail(link, number, f"illegal-parameters: {limits}, got {lag_s!r}"[:100])
        self._journal.write(["max-peer-lag", round(lag_s * SECOND_NS)])
        return self._answer(link, number, {"type": "ok"})

    def disconnected(self, link: int) -> None:
        self._waiting = {name: asked for name, asked in self._waiting.items() if asked[0] != link}
        self._held = [submission for submission in self._held if submission[0] != link]

    def _answer(self, link: int, number: int, value: object) -> None:
        self._site.out.append(Send(link, ["answer", number, value]))

    def _fail(self, link: int, number: int, error: str) -> None:
        self._answer(link, number, {"type": "fail", "error": error})
