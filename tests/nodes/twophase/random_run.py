"""Random runs of the two-phase store in the virtual world, and what must hold afterwards.

The bank: transfers between accounts, each of which also appends its number to two lists. An "ok" transfer is in both
lists, a "fail" in none, any other in both or none; the accounts always sum up to the same. Some transactions read two
lists and append to a third. All that was read and appended fits into one order, which fits real time.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from nodes.twophase import dispatch
from nodes.twophase.data import partition_of
from nodes.world.machine import Machine
from tests.nodes.twophase.virtual_cluster import Asked, VirtualCluster

ACCOUNTS, LISTS, EACH = 6, 6, 100
TOTAL = ACCOUNTS * EACH
DROPS_WITHIN_MS = 2_000
"""A coordinator has dropped by then whom it does not hear."""
DISCOVERY = ("append", "appended", "propose", "state", "learn", "alive")
WORDS = (*sorted(dispatch.WORDS), "clear", "copy", "copy?", *DISCOVERY)
ASKED, MOMENT = "transaction", "answer"
RECORDS = ("prepared", "committed", "rolled-back", "start", "finish", "rebalanced", "entry")


@dataclass
class Run:
    cluster: VirtualCluster
    chance: random.Random
    transfers: dict[str, tuple[Asked, str, str]] = field(default_factory=dict)
    """Number → the request, and its two lists."""
    sums: list[Asked] = field(default_factory=list)
    looks: list[Asked] = field(default_factory=list)
    """Reads of lists, with an append to another one or without."""
    cuts: list[Asked] = field(default_factory=list)

    def transfer(self) -> None:
        chance = self.chance
        source, target = chance.sample(range(ACCOUNTS), 2)
        first, second = (f"l{each}" for each in chance.sample(range(LISTS), 2))
        tag, amount = f"t{len(self.transfers)}", chance.randint(1, 20)
        steps: list[list[Any]] = [
            ["add", "bank", source, -amount, 0],
            ["add", "bank", target, amount, None],
            ["append", "log", first, tag],
            ["append", "log", second, tag],
        ]
        if chance.random() < 0.9:
            steps.sort(key=lambda step: (step[1], str(step[2])))
        options = {"suspend_ms": 30} if chance.random() < 0.03 else {}
        if chance.random() < 0.3:  # of one key, or two: one primary more often
            steps = [["append", "log", first, tag]]
            second = first
        self.transfers[tag] = (self.cluster.client.txn(self.any_node(), *steps, **options), first, second)

    def look(self) -> None:
        """Read some lists, and append to a different one; or read all of them."""
        chance, tag = self.chance, f"k{len(self.looks)}"
        names = [f"l{each}" for each in range(LISTS)]
        steps: list[list[Any]] = [["read", "log", name] for name in names]
        if chance.random() < 0.8:
            one, two, target = chance.sample(names, 3)
            steps = [["read", "log", one], ["read", "log", two], ["append", "log", target, tag]]
            steps.sort(key=lambda step: str(step[2]))
        self.looks.append(self.cluster.client.txn(self.any_node(), *steps))

    def any_node(self) -> str:
        return self.chance.choice((*self.cluster.servers, *self.cluster.clients))

    def read_sum(self) -> None:
        steps: list[list[Any]] = [["read", "bank", account] for account in range(ACCOUNTS)]
        self.sums.append(self.cluster.client.txn(self.any_node(), *steps))

    def cut(self) -> None:
        name = f"k{len(self.cuts)}"
        self.cuts.append(self.cluster.client.ask(self.any_node(), "cut", name))

    def load(self, milliseconds: int, *, with_cuts: bool = False, every_ms: int = 4) -> None:
        """Requests at random moments."""
        until_ns = self.cluster.world.agenda.now_ns + milliseconds * 1_000_000
        while self.cluster.world.agenda.now_ns < until_ns:
            self.transfer()
            if self.chance.random() < 0.04:
                self.read_sum()
            if self.chance.random() < 0.15:
                self.look()
            if with_cuts and self.chance.random() < 0.06:
                self.cut()
            self.cluster.run(self.chance.random() * 2 * every_ms)


def begun(seed: int, **settings: Any) -> Run:
    """A cluster with full accounts."""
    cluster = VirtualCluster(seed, **{"clients": ("c1",), **settings})
    cluster.settle()
    fill = cluster.client.txn("n1", *[["write", "bank", account, EACH] for account in range(ACCOUNTS)])
    cluster.run_until(lambda: fill.answer is not None)
    assert fill.type == "ok", fill.answer
    return Run(cluster, random.Random(f"run {seed}"))


def disturb(run: Run) -> None:
    """One fault, with load before, during and after."""
    cluster, chance = run.cluster, run.chance
    nodes = (*cluster.servers, *cluster.clients)
    victim = chance.choice(nodes)
    machine = cluster.machine(victim)
    match chance.choice(("kill", "power", "pause", "isolate", "one way", "blink")):
        case "kill" | "power" as how:
            machine.kill() if how == "kill" else machine.lose_power()
            run.load(chance.choice((20, 300, 1_200)))
            if machine.state == "down":
                machine.start()
        case "pause":
            machine.pause()
            run.load(chance.choice((50, 1_500)))
            machine.resume()
        case "isolate":
            pairs = cluster.isolate(victim)
            run.load(chance.choice((50, 1_500)))
            cluster.heal(pairs)
        case "one way":
            other = chance.choice([node for node in nodes if node != victim])
            cluster.world.network.cut([(victim, other)])
            run.load(chance.choice((50, 800)))
            cluster.heal([(victim, other)])
        case "blink":
            pairs = cluster.isolate(victim)
            run.load(10)
            cluster.heal(pairs)
    cluster.restart_refused()
    run.load(100)


TURNS = (
    *("kill", "power", "pause", "isolate", "cut", "heal", "heal", "start", "start", "start"),
    *("hinder", "hinder", "hinder", "hinder", "go on", "go on", "go on"),
)


def storm(run: Run, turns: int) -> None:
    """Faults one upon the other, under load; at the end all nodes are up and connected.

    Each run hinders few kinds of messages and records, and those often: rare turns need the same one twice.
    """
    cluster, chance = run.cluster, run.chance
    words, records = chance.sample(WORDS, chance.randint(1, 4)), chance.sample(RECORDS, 2)
    machines = cluster.world.machines
    cuts: list[list[tuple[str, str]]] = []
    hindrances: list[Callable[[], None]] = []
    """How each one ends."""
    for _ in range(turns):
        name = chance.choice(sorted(machines))
        machine = machines[name]
        match chance.choice(TURNS):
            case "hinder":
                hindrances.append(_hinder(run, name, words, records))
            case "go on" if hindrances:
                hindrances.pop(chance.randrange(len(hindrances)))()
            case "kill" if machine.state != "down":
                machine.kill()
            case "power" if machine.state != "down":
                machine.lose_power()
            case "pause" if machine.state == "up":
                machine.pause()
            case "isolate":
                cuts.append(cluster.isolate(name))
            case "cut":
                other = chance.choice([node for node in sorted(machines) if node != name])
                cuts.append([(name, other)])
                cluster.world.network.cut(cuts[-1])
            case "heal" if cuts:
                cluster.heal(cuts.pop(chance.randrange(len(cuts))))
            case "start":
                _start(machine)
        run.load(chance.choice((3, 20, 100, 900)))
        cluster.restart_refused()
    for pairs in cuts:
        cluster.heal(pairs)
    for end in hindrances:
        end()
    for machine in machines.values():
        _start(machine)


def _hinder(run: Run, name: str, words: Sequence[str], records: Sequence[str]) -> Callable[[], None]:
    """Messages of a kind wait between this node and others, or its records of a kind for the disk."""
    chance, network, machine = run.chance, run.cluster.world.network, run.cluster.machine(name)
    if chance.random() < 0.2:
        record = chance.choice(records)
        machine.records.hold(record)
        return lambda: machine.records.release(record)
    others = [node for node in sorted(run.cluster.world.machines) if node != name]
    others = chance.choice((others, [chance.choice(others)]))
    pairs = [(name, other) for other in others]
    pairs = chance.choice((pairs, [(two, one) for one, two in pairs]))
    stop = network.stop(pairs, [chance.choice(words)])
    return lambda: network.go_on(stop)


def _start(machine: Machine) -> None:
    if machine.state == "paused":
        machine.resume()
    elif machine.state == "down":
        machine.start()


def calm(run: Run) -> None:
    """No faults any more: everything comes to its end.

    A coordinator that was paused may wake to members that look settled, and drop them a moment later.
    """
    _rest(run)
    run.cluster.run(DROPS_WITHIN_MS)
    _rest(run)


def _rest(run: Run) -> None:
    run.cluster.settle(within_ms=30_000)
    run.cluster.run_until(
        lambda: not any(status["transactions"] for status in run.cluster.statuses().values()),
        within_ms=10_000,
    )


def check_stores(run: Run) -> dict[tuple[str, Any], Any]:
    """All owners hold the same rows, on disk too; returns them."""
    cluster = run.cluster
    agreed = cluster.node(cluster.servers[0]).agreed
    rows: dict[tuple[str, Any], Any] = {}
    for partition in range(agreed.configuration.partitions):
        copies = {owner: cluster.node(owner).stock.data.rows(partition) for owner in agreed.owners(partition)}
        assert len({repr(copy) for copy in copies.values()}) == 1, (partition, copies)
        first = next(iter(copies.values()))
        assert all(
            partition_of((space, key), agreed.configuration.partitions) == partition
            for space, key, *_ in first
        )
        rows |= {(space, key): value for space, key, value, _ in first}
    for server in cluster.servers:
        again = cluster.replayed(server)
        assert [again.data.rows(p) for p in range(agreed.configuration.partitions)] == [
            cluster.node(server).stock.data.rows(p) for p in range(agreed.configuration.partitions)
        ], server
    return rows


def check_history(run: Run, rows: dict[tuple[str, Any], Any]) -> None:
    """Nothing answered is lost, nothing refused is there, nothing is there by half."""
    assert sum(rows["bank", account] for account in range(ACCOUNTS)) == TOTAL
    for asked in run.sums:
        if asked.type == "ok":
            assert sum(asked.answer["results"]) == TOTAL, asked
    for tag, (asked, first, second) in run.transfers.items():
        there = [tag in (rows.get(("log", name)) or []) for name in (first, second)]
        assert there[0] == there[1], (tag, asked, there)
        if asked.type == "ok":
            assert there[0], (tag, asked)
        elif asked.type in ("fail", "mismatch"):
            assert not there[0], (tag, asked)
    for name in {name for _, *names in run.transfers.values() for name in names}:
        tags = rows.get(("log", name)) or []
        assert len(set(tags)) == len(tags), (name, tags)
    check_order(run, rows)


def check_order(run: Run, rows: dict[tuple[str, Any], Any]) -> None:
    """What was read and appended has no cycle: transactions, and the moments at which one of them had its answer."""
    asked = [*(each for each, *_ in run.transfers.values()), *run.looks]
    lists = {f"l{each}": rows.get(("log", f"l{each}")) or [] for each in range(LISTS)}
    writer = {tag: number for number, each in enumerate(asked) for *_, tag in _appends(each)}
    writers = {name: [writer[tag] for tag in tags] for name, tags in lists.items()}
    answers = sorted(each.answered_ns for each in asked if each.type == "ok" and each.answered_ns is not None)
    pairs = [((MOMENT, one), (MOMENT, one + 1)) for one in range(len(answers) - 1)]
    for in_order in writers.values():
        pairs += [((ASKED, one), (ASKED, two)) for one, two in pairwise(in_order)]
    for number, each in enumerate(asked):
        earlier = bisect_left(answers, each.asked_ns) - 1
        if earlier >= 0:
            pairs.append(((MOMENT, earlier), (ASKED, number)))
        if each.type != "ok":
            continue
        assert each.answered_ns is not None
        pairs.append(((ASKED, number), (MOMENT, bisect_left(answers, each.answered_ns))))
        for (word, _, name, *_), result in zip(each.message[2], each.answer["results"], strict=True):
            if word == "read" and name in lists:
                found = result or []
                assert found == lists[name][: len(found)], (each, lists[name])
                before, after = writers[name][: len(found)][-1:], writers[name][len(found) :][:1]
                pairs += [((ASKED, one), (ASKED, number)) for one in before]
                pairs += [((ASKED, number), (ASKED, one)) for one in after]
    order: TopologicalSorter[tuple[str, int]] = TopologicalSorter()
    for one, two in pairs:
        order.add(two, one)
    try:
        order.prepare()
    except CycleError as error:
        raise AssertionError([asked[n] if kind == ASKED else n for kind, n in error.args[1]]) from None


def _appends(asked: Asked) -> list[list[Any]]:
    return [step for step in asked.message[2] if step[0] == "append"]
