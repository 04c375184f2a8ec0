"""Writes the circle of transactions that a verdict shows as GraphML or DOT, by the suffix of the file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers.cycle_graph import NoCycleError
from checkers.verdict import Verdict
from harness.pages.file_page import write_file

if TYPE_CHECKING:
    from networkx import DiGraph


def write(target: Path, verdict: dict[str, Any]) -> None:
    """Write the circle of the worst violation that has one, else of the worst finding. Where there is none, no file is
    written. `verdict["graph"]` says what became of it. StoreError if the file system refuses."""
    for graph in _graphs(verdict):
        as_bytes = _graphml if target.suffix.lower() == ".graphml" else _dot
        write_file(target, as_bytes(_readable(graph)), "the graph")
        told = {
            "file": str(target),
            **graph.graph,
            "transactions": len(graph),
            "edges": graph.number_of_edges(),
        }
        break
    else:
        told = {"why": "no check found a circle of transactions, so nothing was written"}
    verdict["graph"] = told


def _graphs(verdict: Mapping[str, Any]) -> list[DiGraph]:
    """Of each check with a circle, violated checks first."""
    violations = verdict["violations"]
    found = []
    for check in sorted(verdict["checks"], key=lambda check: check["checker"] not in violations):
        try:
            found.append(Verdict.from_json(check).graph())
        except NoCycleError:
            continue
    return found


def _readable(graph: DiGraph) -> DiGraph:
    """With texts that XML and UTF-8 can hold: a store may have sent any characters."""
    for attributes in (
        graph.graph,
        *(held for _, held in graph.nodes(data=True)),
        *(held for *_, held in graph.edges(data=True)),
    ):
        for name, value in attributes.items():
            if isinstance(value, str):
                attributes[name] = "".join(
                    each if each.isprintable() else each.encode("unicode_escape").decode() for each in value
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
    for name, held in graph.nodes(data=True):
        label = f"{name}: {held.get('operations', '')}"
        lines.append(f"  {_quoted(name)} [{_attributes(held, label=label)}];")
    for source, target, held in graph.edges(data=True):
        label = " ".join(str(held[part]) for part in ("kind", "key") if part in held)
        lines.append(f"  {_quoted(source)} -> {_quoted(target)} [{_attributes(held, label=label)}];")
    return "\n".join([*lines, "}", ""]).encode()


def _attributes(held: Mapping[str, Any], **more: str) -> str:
    return ", ".join(f"{name}={_quoted(value)}" for name, value in {**more, **held}.items())


def _quoted(value: object) -> str:
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
