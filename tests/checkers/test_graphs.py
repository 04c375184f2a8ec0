"""Verdicts and histories as graphs of networkx."""

from __future__ import annotations

import random

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import linearizable, transactional
from checkers.cycle_graph import NoCycleError
from checkers.history import Event, Header, History
from checkers.history.happened_before import happened_before
from checkers.verdict import Verdict
from tests import examples


def history(*lines: tuple[str, int, str, object]) -> History:
    """(type, process, f, value) of each event."""
    return History.of(
        Header(workload="append"),
        [
            Event(index=index, time_ns=index, type=type_, process=process, f=f, value=value)
            for index, (type_, process, f, value) in enumerate(lines)
        ],
    )


LOST_UPDATE = history(
    ("invoke", 0, "txn", [["r", "x", None], ["w", "x", 1]]),
    ("invoke", 1, "txn", [["r", "x", None], ["w", "x", 2]]),
    ("ok", 0, "txn", [["r", "x", None], ["w", "x", 1]]),
    ("ok", 1, "txn", [["r", "x", None], ["w", "x", 2]]),
)


def test_a_circle_of_transactions_is_a_graph() -> None:
    """If it failed, a person could not look at an anomaly with the tools that they know."""
    verdict = transactional(LOST_UPDATE, workload="rw-register", model="serializable")
    assert verdict.result == "invalid"
    for each in (verdict, Verdict.from_json(verdict.to_json())):
        graph = each.graph()
        assert graph.graph == {"checker": "transactional", "model": "serializable", "anomaly": "G2-item"}
        assert dict(graph.nodes(data="operations")) == {"T1": "r x null, w x 1", "T2": "r x null, w x 2"}
        assert [(kind, key) for *_, kind, key in edges(graph)] == [("rw", "x"), ("rw", "x")]
        assert len(networkx.find_cycle(graph)) == 2
    assert all("came before" in sentence for *_, sentence in graph.edges(data="sentence"))


def edges(graph: networkx.DiGraph[str]) -> list[tuple[str, str, str, str]]:
    return [(one, other, held["kind"], held["key"]) for one, other, held in graph.edges(data=True)]


def test_a_verdict_without_a_circle_says_so() -> None:
    """If it failed, there would be an empty graph, or a KeyError from inside."""
    verdict = linearizable(history(("invoke", 0, "read", None), ("ok", 0, "read", 3)))
    with pytest.raises(NoCycleError, match="the verdict of linearizable has no circle of transactions"):
        verdict.graph()
    found = transactional(LOST_UPDATE, workload="rw-register", model="serializable")
    with pytest.raises(NoCycleError, match="for G0; it has one for G2-item"):
        found.graph("G0")


@given(st.integers(0, 10_000), st.integers(1, 5))
@examples.up_to(300)
def test_what_happened_before_is_the_reduction_of_real_time(seed: int, clients: int) -> None:
    """If it failed, an edge would be missing, or one would say what follows from others."""
    chance = random.Random(seed)
    open_: set[int] = set()
    lines: list[tuple[str, int, str, object]] = []
    for _ in range(chance.randrange(30)):
        process = chance.randrange(clients)
        if process in open_:
            lines.append((chance.choice(("ok", "ok", "fail")), process, "write", 1))
            open_.remove(process)
        else:
            lines.append(("invoke", process, "write", 1))
            open_.add(process)
    made = history(*lines)
    plain: networkx.DiGraph[int] = networkx.DiGraph()
    plain.add_nodes_from(each.invoke_index for each in made.operations)
    for one in made.operations:
        for other in made.operations:
            if one.returned_index is not None and one.returned_index < other.invoke_index:
                plain.add_edge(one.invoke_index, other.invoke_index)
    graph = made.happened_before()
    assert set(graph.edges) == set(networkx.transitive_reduction(plain).edges)
    assert set(graph.nodes) == set(plain.nodes)
    for one, other, kind in graph.edges(data="kind"):
        assert (kind == "process") == (graph.nodes[one]["process"] == graph.nodes[other]["process"])


def test_too_large_a_history_is_one_clear_error() -> None:
    """If it failed, a million operations would fill the memory before anything is said."""
    made = history(*((type_, 0, "write", 1) for _ in range(6) for type_ in ("invoke", "ok")))
    with pytest.raises(
        ValueError, match=r"at most 5 operations, got 6; try a part: history\.happened_before"
    ):
        happened_before(made.operations, 5)
    wide = history(
        *(("invoke", process, "write", 1) for process in range(3)),
        *(("ok", process, "write", 1) for process in range(3)),
        *(("invoke", process, "write", 1) for process in range(3, 6)),
    )
    with pytest.raises(ValueError, match="at most 8 edges, got 9"):
        happened_before(wide.operations, 8)
    assert len(wide.happened_before(wide.select(outcome="ok"))) == 3
