"""The two searches for an order, against all orders there are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy
import pytest

from checkers.transactional import execution, graph_kernels, polygraph
from checkers.transactional.execution import Problem
from checkers.transactional.graph import PROCESS, RW, completed_at, graph_of
from tests import examples


def drawn(chance: random.Random) -> Problem:
    """Some transactions that read and write a few keys, most of them within real time or an order of some."""
    count, split = chance.randint(2, 4), chance.random() < 0.5
    keys, null = range(chance.randint(1, 3)), 100
    writes = [
        [(key, 10 * txn + key) for key in keys if chance.random() < chance.choice((0.3, 0.9))]
        for txn in range(count)
    ]
    made = {key: [pair[1] for uses in writes for pair in uses if pair[0] == key] for key in keys}
    reads = [
        [
            (key, chance.choice([null + key, *(each for each in made[key] if each // 10 != txn)]))
            for key in keys
            if chance.random() < 0.5
        ]
        for txn in range(count)
    ]
    part = numpy.array([chance.random() < 0.9 or is_read_of(txn, reads) for txn in range(count)], numpy.bool_)
    reads = [uses if part[txn] else [] for txn, uses in enumerate(reads)]
    edges = [(one, other) for one in range(count) for other in range(one) if chance.random() < 0.1]
    edges = [(one, other) for one, other in edges if part[one] and part[other]]
    nodes = count
    if split:
        nodes = 2 * count
        edges = [(one + count, other) for one, other in edges] + [(txn, txn + count) for txn in range(count)]
    invoke = numpy.array([2 * chance.randrange(count) for _ in range(count)], numpy.int64)
    ends = numpy.array([each + 1 + 2 * chance.randrange(2) for each in invoke], numpy.int64)
    gate, closed = numpy.full(nodes, -1, numpy.int64), numpy.zeros(0, numpy.int32)
    if chance.random() < 0.5:
        ends = numpy.array([4 * at + each for at, each in enumerate(ends)], numpy.int64)  # no two at once
        invoke = 4 * invoke
        gate[:count] = invoke
        closed = completed_at(ends, part)
        closed = numpy.where((closed >= 0) & split, closed + count, closed).astype(numpy.int32)
        if chance.random() < 0.3:  # one begins at the event at which another one ends
            gate[chance.randrange(count)] = ends[chance.randrange(count)]
    none = numpy.full(len(edges), -1, numpy.int32)
    source, target = (numpy.array([edge[at] for edge in edges], numpy.int32) for at in (0, 1))
    kind = numpy.full(len(edges), PROCESS, numpy.int8)
    return Problem(
        graph=graph_of(graph_kernels, nodes, source, target, kind, none, none),
        reads=reads,
        writes=writes,
        null=null,
        gate=gate,
        closed=closed,
        ends=ends,
        taking_part=part,
    )


def is_read_of(txn: int, reads: list[list[tuple[int, int]]]) -> bool:
    """Whether somebody read what it wrote: then it took part."""
    return any(version // 10 == txn and version < 100 for uses in reads for _, version in uses)


def orders(problem: Problem) -> Iterator[list[int]]:
    """All orders in which the definition lets the nodes stand."""
    count = len(problem.taking_part)
    members = [node for node in range(len(problem.graph)) if problem.taking_part[node % count]]
    offsets, targets = problem.graph.offsets.tolist(), problem.graph.target.tolist()
    before: dict[int, set[int]] = {node: set() for node in range(len(problem.graph))}
    for one in range(len(problem.graph)):
        for other in targets[offsets[one] : offsets[one + 1]]:
            before[other].add(one)
    for node in members:
        before[node] |= {each for each in problem.closed[: max(0, problem.gate[node])].tolist() if each >= 0}

    def further(done: list[int], state: dict[int, int], busy: dict[int, int]) -> Iterator[list[int]]:
        if len(done) == len(members):
            yield done
        for node in members:
            if node in done or not before[node].isdisjoint(set(members) - set(done)):
                continue
            txn, present, held = node % count, dict(state), dict(busy)
            if node < count:
                read = [(key, present.get(key, problem.null + key)) for key, _ in problem.reads[txn]]
                if read != problem.reads[txn]:
                    continue
                if problem.split and any(key in held for key, _ in problem.writes[txn]):
                    continue
                held |= {key: txn for key, _ in problem.writes[txn]}
            if node >= count or not problem.split:
                present |= dict(problem.writes[txn])
                held = {key: by for key, by in held.items() if by != txn}
            yield from further([*done, node], present, held)

    return further([], {}, {})


def compare(seed: int) -> str:
    problem = drawn(random.Random(seed))
    valid = list(orders(problem))
    for search in (polygraph.choose, execution.execute):
        found = search(problem, 10**6)
        assert found.result == ("found" if valid else "none"), (seed, search)
        assert found.order is None or found.order.tolist() in valid, (seed, search)
    return "found" if valid else "none"


@pytest.mark.parametrize("count", [750, pytest.param(1_500, marks=pytest.mark.long)])
def test_both_find_an_order_if_and_only_if_there_is_one(count: int) -> None:
    """If this fails, a history is called valid that no store could give, or invalid though one could."""
    seen = Counter(compare(seed) for seed in range(count))
    assert min(seen["found"], seen["none"]) > count // 5, seen


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_the_same_of_many_more(part: int) -> None:
    """As above."""
    seen = Counter(compare(seed) for seed in examples.tonight(2_000, part))
    assert min(seen["found"], seen["none"]) > 400, seen


def opened(chance: random.Random, problem: Problem) -> Problem:
    """The same where some reads may have shown other versions of their key too."""
    made: dict[int, list[tuple[int, int]]] = {}
    for txn, uses in enumerate(problem.writes):
        for key, version in uses if problem.taking_part[txn] else ():
            made.setdefault(key, []).append((txn, version))
    reads: list[list[tuple[int, int]]] = []
    choices: list[tuple[int, int, list[int]]] = []
    for txn, uses in enumerate(problem.reads):
        reads.append([])
        for key, version in uses:
            others = [each for by, each in made.get(key, ()) if by not in (txn, version // 10)]
            others += [problem.null + key] if version < problem.null else []
            more = [each for each in others if chance.random() < 0.5]
            if more:
                choices.append((txn, key, chance.sample([version, *more], 1 + len(more))))
            else:
                reads[txn].append((key, version))
    return replace(problem, reads=reads, choices=choices)


def chosen(problem: Problem) -> Iterator[Problem]:
    """The problem with each read that has a choice showing each of its versions."""
    for versions in product(*(versions for _, _, versions in problem.choices)):
        reads = [list(uses) for uses in problem.reads]
        for (txn, key, _), version in zip(problem.choices, versions, strict=True):
            reads[txn].append((key, version))
        yield replace(problem, reads=reads, choices=())


def compare_choices(seed: int) -> str:
    chance = random.Random(seed)
    problem = opened(chance, drawn(chance))
    valid = [order for each in chosen(problem) for order in orders(each)]
    found = polygraph.choose(problem, 10**6, explains=True)
    assert found.result == ("found" if valid else "none"), seed
    assert found.order is None or found.order.tolist() in valid, seed
    if found.result == "none":
        assert found.core and bool(problem.taking_part[list(found.core)].all()), seed
    return f"{found.result} {len(problem.choices) > 0}"


def with_rw(problem: Problem) -> Problem:
    """The same with an edge from each reader of a version to a transaction that read it too, and overwrote it."""
    n, graph = len(problem.taking_part), problem.graph
    edges = {
        (one, other + n * problem.split)
        for one, uses in enumerate(problem.reads)
        for other in range(n)
        for key, version in uses
        if one != other and (key, version) in problem.reads[other] and key in dict(problem.writes[other])
    }
    more = numpy.array(sorted(edges), numpy.int32).reshape(-1, 2).T
    none, kind = numpy.full(len(edges), -1, numpy.int32), numpy.full(len(edges), RW, numpy.int8)
    both = [
        numpy.concatenate(pair)
        for pair in zip(
            (graph.source, graph.target, graph.kind, graph.cause, graph.effect),
            (*more, kind, none, none),
            strict=True,
        )
    ]
    return replace(problem, graph=graph_of(graph_kernels, len(graph), *both))


def compare_cores(seed: int) -> str:
    chance = random.Random(seed)
    problem = drawn(chance)
    problem = opened(chance, problem) if chance.random() < 0.5 else problem
    found = polygraph.choose(with_rw(problem), 10**6, explains=True)
    assert found.result == polygraph.choose(problem, 10**6).result, seed

    def has_order(txns: set[int]) -> bool:
        return any(any(True for _ in orders(each)) for each in chosen(problem.among(sorted(txns))))

    for txn in found.core:
        assert has_order(set(found.core) - {txn}), (seed, "it could be left out", txn)
    assert not found.core or not has_order(set(found.core)), (seed, "they have an order", found.core)
    return found.result


@pytest.mark.parametrize("count", [400, pytest.param(3_000, marks=pytest.mark.long)])
def test_a_core_has_no_order_by_itself_and_no_part_of_it_is_one(count: int) -> None:
    """If this fails, the few transactions that are named show nothing, so that the whole history stands in their
    place; or the reader looks at some that have no share.
    """
    seen = Counter(compare_cores(seed) for seed in range(count))
    assert min(seen["found"], seen["none"]) > count // 8, seen


@pytest.mark.parametrize("count", [400, pytest.param(3_000, marks=pytest.mark.long)])
def test_a_read_with_a_choice_of_writers_shows_one_of_them(count: int) -> None:
    """If this fails, a history with a value that several transactions wrote is accused, or passed, without reason."""
    seen = Counter(compare_choices(seed) for seed in range(count))
    assert min(seen["found True"], seen["none True"]) > count // 8, seen


def test_a_search_whose_steps_are_spent_says_so() -> None:
    """If this fails, a spent budget passes for an order, or for none."""
    seen = Counter(polygraph.choose(drawn(random.Random(seed)), -1).result for seed in range(100))
    assert seen == {"open": 100}
