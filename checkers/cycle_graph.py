"""The circle of transactions behind an anomaly, as a graph of networkx.

A node is a transaction ("T1", …, as the verdict's sentences call them). An edge says that its source must come before
its target; all edges together make the circle.

| of | attribute | what |
|---|---|---|
| the graph | `checker`, `model`, `anomaly` | what was violated |
| a node | `process`, `events` | the client; the history's lines of the transaction, as "4 9" |
| | `operations` | its steps: "append x 3, r y [1, 2]" |
| an edge | `kind` | ww, wr or rw; or process, realtime |
| | `key`, `cause`, `effect` | of ww, wr and rw: the key, and the two steps |
| | `sentence` | the reason in words |

All attributes are texts or numbers, and absent where nothing is known, so that every format of networkx takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from networkx import DiGraph


class NoCycleError(LookupError):
    """The verdict has no circle of transactions; the message says what it has."""


def cycles_in(details: Mapping[str, Any]) -> Iterator[str]:
    """The anomalies with a circle: violations first, each kind worst first."""
    pictures = details.get("anomalies")
    if not isinstance(pictures, Mapping):  # another checker's details
        return
    names = [name for name, picture in pictures.items() if picture.get("edges")]
    yield from sorted(names, key=lambda name: name not in details["violations"])


def cycle_graph(checker: str, model: str, details: Mapping[str, Any], anomaly: str | None = None) -> DiGraph:
    """The circle of this anomaly; None: of the first one that has a circle. Raises NoCycleError."""
    from networkx import DiGraph

    known = list(cycles_in(details))
    chosen = anomaly if anomaly is not None else next(iter(known), None)
    if chosen not in known:
        what = f"circle of transactions for {anomaly}" if anomaly else "circle of transactions"
        there = f"; it has one for {', '.join(known)}" if known else ""
        raise NoCycleError(f"the verdict of {checker} has no {what}{there}")
    picture = details["anomalies"][chosen]
    graph = DiGraph(checker=checker, model=model, anomaly=chosen)
    for transaction in picture["transactions"]:
        graph.add_node(
            transaction["name"],
            **_known(
                process=transaction.get("process"),
                events=" ".join(map(str, transaction["events"])),
                operations=", ".join(map(_words, transaction["operations"])),
            ),
        )
    for edge in picture["edges"]:
        step = {name: None if edge[name] is None else _words(edge[name]) for name in ("cause", "effect")}
        graph.add_edge(
            edge["from"],
            edge["to"],
            **_known(kind=edge["kind"], key=edge["key"], **step, sentence=edge["sentence"]),
        )
    return graph


def _known(**attributes: Any) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _words(step: list[Any]) -> str:
    return " ".join(str(part) for part in step if part is not None)
