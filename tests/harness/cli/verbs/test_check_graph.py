"""`qsync check --graph`: the circle of transactions of an anomaly as GraphML or DOT."""

from __future__ import annotations

import json
from pathlib import Path

import networkx
import pytest

from harness.pages import graph as writing
from tests.harness.cli.verbs.conftest import Qsync

STRANGE = 'a "key" \\ <&> \x00\x1b'


@pytest.fixture
def lost_update(tmp_path: Path) -> Path:
    """Two transactions read and write the same version; the key has what XML and DOT do not like."""
    steps = [[["r", STRANGE, None], ["w", STRANGE, number]] for number in (1, 2)]
    lines = [
        {"type": type_, "process": process, "f": "txn", "value": steps[process]}
        for type_ in ("invoke", "ok")
        for process in (0, 1)
    ]
    path = tmp_path / "history.json"
    path.write_text(json.dumps(lines))
    return path


def test_networkx_opens_the_graph(qsync: Qsync, lost_update: Path, tmp_path: Path) -> None:
    """If it failed, nobody could open the file, or would not see which dependency an edge is."""
    target = tmp_path / "circle.graphml"
    done = qsync("check", lost_update, "--model", "rw-register", "--graph", target)
    assert done.code == 1
    assert f"graph  {target} (G2-item, 2 transactions, 2 edges)" in done.out
    graph = networkx.read_graphml(target)
    assert graph.graph["anomaly"] == "G2-item"
    assert {kind for *_, kind in graph.edges(data="kind")} == {"rw"}
    assert all(key.startswith('a "key"') for *_, key in graph.edges(data="key"))
    assert len(networkx.find_cycle(graph)) == 2


def test_dot_is_quoted(qsync: Qsync, lost_update: Path, tmp_path: Path) -> None:
    """If it failed, Graphviz would stop at a key with quotes in it."""
    target = tmp_path / "circle.dot"
    done = qsync("check", lost_update, "--model", "rw-register", "--graph", target, "--json")
    assert json.loads(done.out)["graph"]["anomaly"] == "G2-item"
    text = target.read_text()
    assert text.startswith('digraph "G2-item" {\n')
    assert '"T1" -> "T2" [label="rw a \\"key\\" \\\\ <&>' in text
    assert text.endswith("}\n")
    unquoted = text.replace("\\\\", "").replace('\\"', "")
    assert all(line.count('"') % 2 == 0 for line in unquoted.splitlines())


def test_the_circle_is_that_of_a_violation(qsync: Qsync, lost_update: Path, tmp_path: Path) -> None:
    """If it failed, the file would show a finding in place of the anomaly, or a file.GRAPHML would be DOT."""
    told = json.loads(qsync("check", lost_update, "--model", "rw-register", "--json").out)
    (circle,) = (check for check in told["checks"] if check["details"].get("anomalies"))
    without = {**circle, "checker": "without", "details": {}}
    checks = [{**circle, "checker": "finding"}, without, {**circle, "checker": "violation"}]
    verdict = {"violations": ["without", "violation"], "checks": checks}
    writing.write(tmp_path / "circle.GRAPHML", verdict)
    assert networkx.read_graphml(tmp_path / "circle.GRAPHML").graph["checker"] == "violation"
    assert verdict["graph"] == {
        "file": str(tmp_path / "circle.GRAPHML"),
        "checker": "violation",
        "model": circle["model"],
        "anomaly": "G2-item",
        "transactions": 2,
        "edges": 2,
    }
    writing.write(tmp_path / "circle.dot", verdict)
    text = (tmp_path / "circle.dot").read_text()
    assert '"T1" [label="T1: r a ' in text and 'kind="rw"' in text


def test_without_a_circle_nothing_is_written(qsync: Qsync, tmp_path: Path) -> None:
    """If it failed, an empty file would look like a result."""
    path, target = tmp_path / "history.edn", tmp_path / "none.dot"
    path.write_text("{:type :invoke, :process 0, :f :read}\n{:type :ok, :process 0, :f :read, :value 3}\n")
    done = qsync("check", path, "--model", "register", "--graph", target)
    assert done.code == 1
    assert "graph  none: no check found a circle of transactions, so nothing was written" in done.out
    assert not target.exists()


@pytest.mark.parametrize("name", ["circle.png", "circle", "circle.graphml.gz"])
def test_another_suffix_is_one_line(qsync: Qsync, lost_update: Path, tmp_path: Path, name: str) -> None:
    """If it failed, a file of the wrong kind would be written, or a long judgement would end in a traceback."""
    done = qsync("check", lost_update, "--model", "rw-register", "--graph", tmp_path / name)
    assert done.code == 64
    assert "expected a file that ends in .graphml or .dot" in done.line
    assert not (tmp_path / name).exists()


def test_a_full_disk_leaves_no_half_graph(
    qsync: Qsync, lost_update: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, half a file would be there, which some readers take for a whole one."""
    target = tmp_path / "circle.dot"
    target.write_text("the old one")
    monkeypatch.setattr(Path, "replace", _refuses)
    done = qsync("check", lost_update, "--model", "rw-register", "--graph", target)
    assert "cannot write the graph" in done.line
    assert target.read_text() == "the old one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle.dot", "history.json"]


def _refuses(*_: object) -> None:
    raise OSError(28, "No space left on device")
