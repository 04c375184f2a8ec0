"""Requests of clients and operators: `[word, number, …]`, answered by `["answer", number, …]`.

| request | answer |
|---|---|
| `["txn", number, steps, options]` | `{"type", "xid", …}`, see below |
| `["status", number]` | a map |
| `["dump", number]` | `{"spaces": {space: [[key, value], …]}}`: the partitions in which this node is in sync |
| `["cut", number, id]` | when it has begun: `{"type": "ok", "cut": its name in logs}`, or "fail" |
| `["cuts", number]` | a list of maps: request (the requested id), cut (its name in logs), number, state, why |
| `["snapshot", number, id]` | when it has begun, as with a cut |

A transaction ends "ok" ("results": that of each step), "mismatch" ("step" and what it "found"), "fail" or "info" (both
with "error"). A step on an atomic space stands alone, and a write to it has no xid. `options`: `suspend_ms`: the
transaction pauses for so long before it prepares, a minute at most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nodes.kernel.effects import Send
from nodes.steps import Step, WrongSteps, checked
from nodes.twophase.agreed import Agreed, Entry
from nodes.twophase.evaluation import is_known
from nodes.twophase.near import Near
from nodes.twophase.site import Site
from nodes.twophase.stock import Stock


class Clients:
    def __init__(
        self,
        site: Site,
        agreed: Agreed,
        near: Near,
        stock: Stock,
        propose: Callable[[Entry], None],
        status: Callable[[], Mapping[str, object]],
    ) -> None:
        self._site = site
        self._agreed = agreed
        self._near = near
        self._stock = stock
        self._propose = propose
        self._status = status
        self._waiting: dict[tuple[str, str], list[tuple[int, int]]] = {}
        """("cut" or "snapshot", id) → link and number of the clients that have asked."""

    def received(self, link: int, message: object) -> None:
        match message:
            case ["status", int() as number]:
                self._answer(link, number, dict(self._status()))
            case ["dump", int() as number]:
                self._answer(link, number, {"spaces": self._spaces()})
            case ["txn", int() as number, steps, dict() as options]:
                self._transact(link, number, steps, options)
            case ["cut", int() as number, str() as cut]:
                self._begin(link, number, "cut", cut, ["cut", cut, self._site.name, self._site.now.wall_ns])
            case ["cuts", int() as number]:
                self._answer(link, number, self.cuts())
            case ["snapshot", int() as number, str() as snapshot]:
                self._begin(link, number, "snapshot", snapshot, ["snapshot", snapshot])
            case [str() as word, int() as number, *_]:
                self._fail(link, number, f"illegal-parameters: unknown request {word!r}"[:100])

    def _transact(self, link: int, number: int, steps: object, options: dict[str, Any]) -> None:
        try:
            self._near.begin(
                self._allowed(checked(steps, is_known)),
                options,
                lambda outcome: self._answer(link, number, outcome),
            )
        except WrongSteps as wrong:
            self._fail(link, number, f"illegal-parameters: {wrong}")

    def _allowed(self, steps: list[Step]) -> list[Step]:
        """Raises WrongSteps if a step on an atomic space does not stand alone."""
        atomic = {step[1] for step in steps}.intersection(self._site.configuration.atomic_spaces)
        if atomic and len(steps) > 1:
            raise WrongSteps(f"{min(atomic)} is atomic: expected one step alone, got {len(steps)}")
        return steps

    def disconnected(self, link: int) -> None:
        for asked in self._waiting.values():
            asked[:] = [caller for caller in asked if caller[0] != link]

    def _answer(self, link: int, number: int, value: object) -> None:
        self._site.out.append(Send(link, ["answer", number, value]))

    def _fail(self, link: int, number: int, error: str) -> None:
        self._answer(link, number, {"type": "fail", "error": error})

    # ---- cuts and snapshots

    def _begin(self, link: int, number: int, kind: str, name: str, entry: Entry) -> None:
        known = self._agreed.cuts if kind == "cut" else self._agreed.snapshots
        if name in known:
            return self._fail(link, number, f"a {kind} named {name} is there already")
        self._waiting.setdefault((kind, name), []).append((link, number))
        return self._propose(entry)

    def delivered(self, entry: Entry) -> None:
        asked = self._waiting.pop((entry[0], entry[1]), ()) if entry[0] in ("cut", "snapshot") else ()
        for link, number in asked:
            if entry[0] == "cut":
                cut = self._agreed.cuts[entry[1]]
                is_refused, why, name = cut.state == "refused", cut.why, cut.named.id
            else:
                snapshot = self._agreed.snapshots[entry[1]]
                is_refused, why, name = snapshot.state == "refused", snapshot.why, snapshot.id
            if is_refused:
                self._fail(link, number, f"{entry[0]} refused: {why}")
            else:
                self._answer(link, number, {"type": "ok", entry[0]: name})

    def cuts(self) -> list[dict[str, object]]:
        return [
            {
                "request": request,
                "cut": cut.named.id,
                "number": cut.named.number,
                "state": cut.state,
                "why": cut.why,
            }
            for request, cut in self._agreed.cuts.items()
        ]

    def _spaces(self) -> dict[str, list[list[object]]]:
        spaces: dict[str, list[list[object]]] = {}
        for partition, owners in enumerate(self._agreed.in_sync):
            if self._site.name in owners:
                for space, key, value, _ in self._stock.data.rows(partition):
                    spaces.setdefault(space, []).append([key, value])
        return {space: sorted(rows, key=str) for space, rows in sorted(spaces.items())}
