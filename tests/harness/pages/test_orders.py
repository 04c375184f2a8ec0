"""Orders and possible values on the page, from the verdict of the real checker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from checkers import linearizable
from checkers.history import jsonl
from harness.pages import material, page
from harness.pages.orders import for_the_canvas, orders_of_witnesses
from tests.harness.pages.run_folders import HEADER, NODES

MS = 1_000_000


def write_run(folder: Path, asked: list[tuple[int, str, Any, str, int, int]]) -> Path:
    """A judged run of (process, f, value, outcome, from ms, to ms) on key r1."""
    lines: list[dict[str, Any]] = []
    for process, f, value, type_, start_ms, end_ms in asked:
        about = {"process": process, "f": f, "key": "r1", "node": NODES[0]}
        question = None if f == "read" else value
        lines.append({"type": "invoke", "value": question, "time_ns": start_ms * MS, **about})
        lines.append({"type": type_, "value": value, "time_ns": end_ms * MS, "role": "owner", **about})
    lines.sort(key=lambda line: line["time_ns"])
    folder.mkdir()
    told = [{**line, "index": index} for index, line in enumerate(lines)]
    text = "".join(json.dumps(line) + "\n" for line in (HEADER, *told))
    (folder / "history.jsonl").write_text(text)
    verdict = linearizable.check(jsonl.read(folder / "history.jsonl"))
    assert verdict.result == "invalid"
    document = {"outcome": "anomaly", "violations": ["linearizable"], "checks": [verdict.to_json()]}
    (folder / "verdict.json").write_text(json.dumps(document))
    (folder / "plan.json").write_text("{}")
    return folder


STALE = [(0, "write", 1, "ok", 0, 1), (1, "write", 2, "ok", 2, 3), (2, "read", 1, "ok", 5, 6)]


def test_a_stale_read_has_its_order_and_its_possible_value(tmp_path: Path) -> None:
    """If it failed, a reader would learn that something is wrong, and not what would have been right."""
    folder = write_run(tmp_path / "run", STALE)
    [found] = orders_of_witnesses(material.read(folder))
    [order] = found.orders
    assert [(step.words, step.state) for step in order.steps] == [
        ("process 0: write 1 · n1", "1"),
        ("process 1: write 2 · n1", "2"),
    ]
    assert order.then == "Next could only be: process 2: read → 1 · n1. That does not fit the value 2."
    assert [(each.words, each.could) for each in found.possible] == [("process 2: read → 1 · n1", "2")]
    [drawn] = for_the_canvas([found])
    assert (drawn["operations"], drawn["refused"]) == ([0, 2], [4])
    assert 'data-order="0"' in page.html(folder)


def test_an_order_of_one_operation_is_said_in_the_singular(tmp_path: Path) -> None:
    """If it failed, a page would say "all 1 operations"."""
    shown = page.html(write_run(tmp_path / "run", [(0, "write", 1, "ok", 0, 1), (1, "read", 7, "ok", 2, 3)]))
    assert (
        "Order 1: 0 of 1 operation</b>" in shown
        and "No order has it" in shown
        and "1 operations" not in shown
    )


def test_writes_outside_of_the_witness_are_possible_values_too(tmp_path: Path) -> None:
    """If it failed, the page would say that a read had to return one value, where any of three was right."""
    late = [(3, "write", 3, "info", 0, 1), (4, "write", 4, "ok", 4, 9), (5, "write", 5, "ok", 20, 21)]
    [found] = orders_of_witnesses(material.read(write_run(tmp_path / "run", [*STALE, *late])))
    assert [each.could for each in found.possible] == ["3 or 2 or 4"]
    assert len(found.orders[0].steps) < found.operations


def test_a_proof_that_begins_late_begins_with_its_value(tmp_path: Path) -> None:
    """If it failed, the first step of an order would be refused for a value of long ago."""
    chain = [(0, "write", 0, "ok", 0, 1)]
    chain += [(0, "cas", [n, n + 1], "ok", 10 * n + 2, 10 * n + 3) for n in range(20)]
    folder = write_run(tmp_path / "run", [*chain, (1, "read", 10, "ok", 300, 301)])
    [found] = orders_of_witnesses(material.read(folder))
    assert (found.start, found.operations) == ("20", 1)
    assert (
        found.orders[0].then
        == "Next could only be: process 1: read → 10 · n1. That does not fit the value 20."
    )
    assert [each.could for each in found.possible] == ["20"]


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "no such model"},
        {"model": 7},
        {"proofs": [{"kind": "witness", "operations": ["x"], "until": None, "after": None}]},
        {"proofs": [{"kind": "witness", "operations": [0, 2, 4], "until": "x", "after": 99}]},
        {"proofs": 5},
    ],
)
def test_an_odd_verdict_has_no_orders(tmp_path: Path, changed: dict[str, Any]) -> None:
    """If it failed, a verdict of a different version would cost the reader the whole page."""
    folder = write_run(tmp_path / "run", STALE)
    document = json.loads((folder / "verdict.json").read_text())
    document["checks"][0]["details"] |= changed
    (folder / "verdict.json").write_text(json.dumps(document))
    assert orders_of_witnesses(material.read(folder)) == ()
    assert page.html(folder).endswith("</html>")


def test_a_proof_that_begins_with_a_write_that_was_refused_has_no_orders(tmp_path: Path) -> None:
    """If it failed, an odd verdict would cost the reader the whole page."""
    folder = write_run(tmp_path / "run", [*STALE, (3, "write", 3, "fail", 7, 8)])
    document = json.loads((folder / "verdict.json").read_text())
    [check] = document["checks"]
    check["details"]["proofs"][0]["after"] = 6
    check["witnesses"][0]["events"].append(6)
    (folder / "verdict.json").write_text(json.dumps(document))
    assert orders_of_witnesses(material.read(folder)) == ()
