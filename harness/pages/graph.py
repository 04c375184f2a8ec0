"""Writes the circle of transactions that a verdict shows as GraphML or DOT, by the suffix of the file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers.cycle_graph import NoCycleError
from checkers.verdict import Verdict
from harness.results import output_file

if TYPE_CHECKING:
    from networkx import DiGraph


def write(target: Path, verdict: dict[str, Any]) -> None:
    """Write the circle of the worst violation that has one, else of the worst finding; without a circle, no file.
    Sets `verdict["graph"]` to the file and its size, or to the reason. StoreError if the file system refuses."""
    for graph in _graphs(verdict):
        as_bytes = _graphml if target.suffix.lower() == ".graphml" else _dot
        output_file.write(target, as_bytes(_readable(graph)), "the graph")
        result = {
            "file": str(target),
            **graph.graph,
            "transactions": len(graph),
            "edges": graph.number_of_edges(),
        }
        break
    else:
        result = {"why": "no check found a circle of transactions, so nothing was written"}
    verdict["graph"] = result


def _graphs(verdict: Mapping[str, Any]) -> list[DiGraph]:
    """The circles of all checks that have one, violated checks first."""
    violations = verdict["violations"]
    graphs = []
    for check in sorted(verdict["checks"], key=lambda check: check["checker"] not in violations):
        try:
            graphs.append(Verdict.from_json(check).graph())
        except NoCycleError:
            continue
    return graphs


def _readable(graph: DiGraph) -> DiGraph:
    """The graph with its texts escaped for XML and UTF-8, because a store may send any characters."""
    for attributes in (
        graph.graph,
        *(data for _, data in graph.nodes(data=True)),
        *(data for *_, data in graph.edges(data=True)),
    ):
        for name, value in attributes.items():
            if isinstance(value, str):
                attributes[name] = "".join(
                    letter if letter.isprintable() else letter.encode("unicode_escape").decode()
                    for letter in value
                )
    return graph


def _graphml(graph: DiGraph) -> bytes:
    from networkx import write_graphml_xml

    written = io.BytesIO()
    write_graphml_xml(graph, written)
    return written.getvalue()


def _dot(graph: DiGraph) -> bytes:
    """Graphviz's language; networkx would need pydot for it."""
    lines = [f"digraph {_quoted(graph.graph['anomaly'])} {{"]
    for name, data in graph.nodes(data=True):
        label = f"{name}: {data.get('operations', '')}"
        lines.append(f"  {_quoted(name)} [{_attributes(data, label=label)}];")
    for source, target, data in graph.edges(data=True):
        label = " ".join(str(data[part]) for part in ("kind", "key") if part in data)
        lines.append(f"  {_quoted(source)} -> {_quoted(target)} [{_attributes(data, label=label)}];")
    return "\n".join([*lines, "}", ""]).encode()


def _attributes(attributes: Mapping[str, Any], **more: str) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in {**more, **attributes}.items())


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
