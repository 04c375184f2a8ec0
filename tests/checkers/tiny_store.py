"""A quorum-replicated register store in a page, with faults and clients: it makes true histories for the checkers.

One owner (n1) puts writes into its log and sends the rows to all; whoever gets a row acknowledges it to the owner and
hands it on; what a quorum holds is confirmed, answered, and told to all. Time goes in ticks of a millisecond. A cut
link holds what is said on it until it is healed; a paused node wakes as soon as *any* fault on it is healed. Clients
give up after a while, and what they asked may still happen.

It is written to be obviously right, not to be a store. `bug` makes it wrong in one of several ways.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from checkers.history import Event, Header, History
from checkers.history.operation import NOTHING_THERE

TICK_NS = 1_000_000
PATIENCE = 60
LOAD_UNTIL = 600
KEYS = ("r1", "r2", "r3")
MISMATCH = "mismatch"
BUGS = ("confirm-early", "owner-reads-stale", "replica-goes-back", "dumps-differ", "lose-the-last")


Row = tuple[str, int | None]
"""Key and value; None: the key was deleted."""


@dataclass(slots=True)
class Node:
    """`log` holds rows, `confirmed` how many of them are known to be confirmed."""

    name: str
    log: list[Row] = field(default_factory=list)
    early: dict[int, Row] = field(default_factory=dict)
    confirmed: int = 0
    paused: bool = False
    inbox: list[tuple[str, Any]] = field(default_factory=list)

    def value(self, key: str, rows: int) -> int | None:
        return next((value for at, value in reversed(self.log[:rows]) if at == key), None)


@dataclass(slots=True)
class Asked:
    """An operation under way: `waits_for` is the number of confirmed rows at which its answer may leave."""

    process: int
    f: str
    key: str
    value: Any
    node: str
    since: int
    arrives: int
    waits_for: int | None = None
    outcome: str = ""
    answer: Any = None


@dataclass(slots=True)
class Fault:
    id: int
    does: str
    start: int
    end: int
    links: list[tuple[str, str]]
    nodes: list[str]


class TinyStore:
    """One run, fully drawn from `seed`."""

    def __init__(self, seed: int, bug: str = "") -> None:
        self.chance = random.Random(seed)
        self.bug = bug
        self.names = [f"n{number + 1}" for number in range(self.chance.choice((3, 3, 5)))]
        self.quorum = len(self.names) // 2 + 1
        self.nodes = {name: Node(name) for name in self.names}
        self.links: dict[tuple[str, str], list[tuple[int, str, Any]]] = {
            (one, other): [] for one in self.names for other in self.names if one != other
        }
        self.faults = [self._fault(number) for number in range(self.chance.randint(0, 6))]
        self.holds = dict.fromkeys(self.names, 0)
        self.asked: dict[int, Asked] = {}
        self.events: list[Event] = []
        self.now = 0
        self.written = 0
        self.process = 0

    @property
    def owner(self) -> Node:
        return self.nodes["n1"]

    def run(self) -> History:
        while self.now < LOAD_UNTIL or self.asked or any(fault.end >= self.now - 20 for fault in self.faults):
            self._tick()
        for _ in range(50):
            self._tick()
        self._finish()
        header = Header(nodes=tuple(self.names), quorum=self.quorum, owner="n1", heartbeat_ns=50 * TICK_NS)
        return History.of(header, self.events)

    def _fault(self, number: int) -> Fault:
        chance = self.chance
        start = chance.randrange(20, LOAD_UNTIL)
        end = start + chance.randrange(30, 200)
        if chance.random() < 0.4:
            return Fault(number, "pause", start, end, [], chance.sample(self.names[1:], chance.randint(1, 2)))
        every = list(self.links)
        one = chance.choice(self.names)
        links = chance.choice((
            [link for link in every if one in link],
            [link for link in every if link[1] == "n1"],
            [link for link in every if link[0] == "n1"],
            chance.sample(every, len(every) // 2),
        ))  # fmt: skip
        return Fault(number, "cut", start, end, links, [])

    def _record(self, type_: Any, process: int | str, f: str, **fields: Any) -> None:
        fields.setdefault("time_ns", self.now * TICK_NS)
        self.events.append(Event(index=len(self.events), type=type_, process=process, f=f, **fields))

    def _tick(self) -> None:
        self.now += 1
        for fault in self.faults:
            self._begin_or_end(fault)
        self._deliver()
        for name in self.chance.sample(self.names, len(self.names)):
            if not self.nodes[name].paused:
                self._work(self.nodes[name])
        self._answer()
        if self.now < LOAD_UNTIL and self.chance.random() < 0.35:
            self._ask()

    def _begin_or_end(self, fault: Fault) -> None:
        if self.now == fault.start:
            value = {
                "id": fault.id,
                "name": fault.does,
                "does": fault.does,
                "links": fault.links,
                "nodes": fault.nodes,
            }
            self._record("invoke", "nemesis", fault.does, value=value)
            for name in fault.nodes:
                self.nodes[name].paused = True
        if self.now == fault.end:
            for name in fault.nodes:
                self.nodes[name].paused = False
            times = {"all_in_effect_ns": fault.start * TICK_NS, "heal_asked_ns": fault.end * TICK_NS - 1}
            self._record("info", "nemesis", fault.does, value={"id": fault.id, "took_effect": True, **times})

    def _deliver(self) -> None:
        cut = {link for fault in self.faults if fault.start <= self.now < fault.end for link in fault.links}
        for link, queue in self.links.items():
            while link not in cut and queue and queue[0][0] < self.now:
                _, what, message = queue.pop(0)
                self.nodes[link[1]].inbox.append(
                    (what, message) if what != "ack" else (what, (link[0], message))
                )

    def _say(self, node: Node, what: str, message: Any, to: str | None = None) -> None:
        for name in self.names if to is None else [to]:
            if name != node.name:
                self.links[node.name, name].append((self.now + self.chance.randrange(3), what, message))

    def _work(self, node: Node) -> None:
        messages, node.inbox = node.inbox, []
        for what, message in messages:
            if what == "row":
                self._take_row(node, *message)
            elif what == "confirm":
                self._confirm(node, message)
            elif what == "ack":
                self.holds[message[0]] = max(self.holds[message[0]], message[1])
        for operation in [asked for asked in self.asked.values() if asked.node == node.name]:
            if operation.waits_for is None and operation.arrives <= self.now:
                self._serve(node, operation)
        if node is self.owner:
            self.holds["n1"] = len(node.log)
            self._confirm(node, sorted(self.holds.values())[-self.quorum])

    def _take_row(self, node: Node, index: int, row: Row) -> None:
        before = len(node.log)
        node.early[index] = row
        while len(node.log) in node.early:
            node.log.append(node.early[len(node.log)])
        for number in range(before, len(node.log)):
            self._say(node, "row", (number, node.log[number]))
        if len(node.log) > before:
            self._say(node, "ack", len(node.log), "n1")

    def _confirm(self, node: Node, rows: int) -> None:
        if min(rows, len(node.log)) > node.confirmed:
            node.confirmed = min(rows, len(node.log))
            self._say(node, "confirm", node.confirmed)

    def _serve(self, node: Node, operation: Asked) -> None:
        """Decide what the answer will be; it leaves when what it rests on is confirmed."""
        operation.waits_for = 0
        operation.outcome = "ok"
        if operation.f == "read":
            rows = node.confirmed
            if self.bug == "owner-reads-stale" and node is self.owner:
                rows = max(0, rows - 2)
            if self.bug == "replica-goes-back" and node is not self.owner:
                rows = max(0, rows - self.chance.randrange(3))
            operation.answer = node.value(operation.key, rows)
        elif self.chance.random() < 0.05:
            operation.outcome = "fail"
        else:
            self._change(node, operation)

    def _change(self, node: Node, operation: Asked) -> None:
        new = operation.value
        operation.waits_for = len(node.log)
        if operation.f == "cas":
            old, new = operation.value
            if node.value(operation.key, len(node.log)) != old:
                operation.outcome = MISMATCH
                return
        if new is None and node.value(operation.key, len(node.log)) is None:
            operation.outcome = NOTHING_THERE
            return
        row = (operation.key, new)
        node.log.append(row)
        operation.waits_for = 0 if self.bug == "confirm-early" else len(node.log)
        self._say(node, "row", (len(node.log) - 1, row))

    def _answer(self) -> None:
        for operation in list(self.asked.values()):
            answered = (
                operation.waits_for is not None
                and operation.waits_for <= self.nodes[operation.node].confirmed
            )
            if answered and not self.nodes[operation.node].paused:
                self._complete(operation, operation.outcome)
            elif self.now - operation.since > PATIENCE:
                self._complete(operation, "fail" if operation.f == "read" else "info")

    def _complete(self, operation: Asked, outcome: str) -> None:
        del self.asked[operation.process]
        fields: dict[str, Any] = {"key": operation.key, "node": operation.node}
        if outcome == "ok":
            fields["role"] = "owner" if operation.node == "n1" else "replica"
            fields["value"] = operation.answer if operation.f == "read" else operation.value
        elif outcome in (MISMATCH, NOTHING_THERE):
            fields["error"] = outcome
        else:
            fields["error"] = "timeout"
        type_ = "fail" if outcome in (MISMATCH, NOTHING_THERE) else outcome
        self._record(type_, operation.process, operation.f, **fields)

    def _ask(self) -> None:
        chance = self.chance
        key = chance.choice(KEYS)
        f = chance.choice(("read", "read", "write", "cas"))
        node = chance.choice(self.names) if f == "read" else "n1"
        value: Any = None
        if f != "read":
            self.written += 1
            value = None if f == "write" and chance.random() < 0.2 else self.written
            if f == "cas":
                value = [self.owner.value(key, len(self.owner.log) - chance.randrange(2)), value]
        self._invoke(f, key, value, node)

    def _invoke(self, f: str, key: str, value: Any, node: str) -> None:
        self.process += 1
        arrives = self.now + self.chance.choice((1, 1, 2, 3, 20))
        self.asked[self.process] = Asked(self.process, f, key, value, node, self.now, arrives)
        mode = "read-confirmed" if f == "read" else None
        self._record("invoke", self.process, f, key=key, value=value, node=node, mode=mode)

    def _finish(self) -> None:
        """Final dumps, when all is quiet."""
        if self.bug == "lose-the-last":
            for node in self.nodes.values():
                node.log.pop()
        if self.bug == "dumps-differ":
            self.nodes[self.names[-1]].log.pop()
        for name in self.names:
            self.process += 1
            node = self.nodes[name]
            rows = [[key, value] for key in KEYS if (value := node.value(key, len(node.log))) is not None]
            self._record("invoke", self.process, "dump", node=name, phase="final")
            self._record(
                "ok", self.process, "dump", node=name, phase="final", value={"spaces": {"register": rows}}
            )
