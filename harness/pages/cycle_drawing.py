"""The cycle of transactions that proves an anomaly: a box for each, an arrow for each "must come before".

The first box stands once more at the end, dashed, because it would have to precede itself. A box leads to its operation
on the timeline, an arrow to the reason of its edge. The checker's details have the data: {"transactions": [{"name",
"events", "operations"}], "edges": [{"from", "to", "kind", "key", "cause", "effect", "sentence"}]}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from markupsafe import Markup

from checkers.history import Operation
from harness.pages.json_door import Json, as_list, as_mapping, as_mappings, as_text, clipped
from harness.pages.operation_words import transaction_words
from harness.pages.svg import WIDTH, element, joined, text_width, whole_svg

BOX_HEIGHT, ARROW_HEIGHT, LEFT, TEXT_SIZE = 26, 34, 20, 12
BOXES_MAX = 10
WORDS_MAX = 140
MEANINGS = {
    "ww": "its write of {} comes before that of",
    "wr": "its write of {} was read by",
    "rw": "it read {} without the write of",
    "process": "was over, at the same place, before",
    "realtime": "was over before",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an edge of the cycle exists: `title` names its ends, `ends` are the two steps with their transactions."""

    name: str
    title: str
    sentence: str
    ends: tuple[End, ...]


@dataclass(frozen=True, slots=True)
class End:
    """A transaction at one end of an edge, and the step that makes the edge. `index` is None if it is unknown."""

    words: str
    step: str
    index: int | None


def reasons(picture: object, operations: Mapping[int, Operation], place: int) -> tuple[Reason, ...]:
    """A reason for each arrow of the drawing. `place`: that of the witness among those of the page."""
    transactions, edges = _circle(picture)
    by_name = {as_text(transaction.get("name"), 10): transaction for transaction in transactions}
    return tuple(
        Reason(
            _edge_name(place, number),
            f"{as_text(edge.get('from'), 10)} → {as_text(edge.get('to'), 10)}: {_meaning(edge)}",
            as_text(edge.get("sentence"), 600),
            tuple(
                _end(by_name.get(as_text(edge.get(end), 10), {}), edge.get(step), operations)
                for end, step in (("from", "cause"), ("to", "effect"))
            ),
        )
        for number, edge in enumerate(edges)
    )


def _end(transaction: Json, step: object, operations: Mapping[int, Operation]) -> End:
    name, where = as_text(transaction.get("name"), 10), _where(transaction, operations)
    whole = transaction_words(as_list(transaction.get("operations")), WORDS_MAX)
    words = f"{name}{f', {where}' if where else ''}: {whole}"
    return End(words, transaction_words([step], WORDS_MAX), _invoked(transaction, operations))


def _edge_name(place: int, number: int) -> str:
    return f"edge-{place}-{number}"


def _circle(picture: object) -> tuple[tuple[Json, ...], tuple[Json, ...]]:
    """(transactions, edges), or nothing if they are not a circle that can be drawn."""
    transactions = as_mappings(as_mapping(picture).get("transactions"))
    edges = as_mappings(as_mapping(picture).get("edges"))
    if len(edges) < 2 or len(edges) != len(transactions) or len(edges) > BOXES_MAX:
        return (), ()
    return transactions, edges


def cycle_drawing(picture: object, operations: Mapping[int, Operation], place: int = 0) -> Markup:
    """The drawing; empty without a cycle. `operations`, by event, give process and node."""
    transactions, edges = _circle(picture)
    if not edges:
        return Markup("")
    parts: list[str] = []
    y = 4.0
    for number, (transaction, edge) in enumerate(zip(transactions, edges, strict=True)):
        arrow = element("a", _arrow(edge, y + BOX_HEIGHT), href=f"#{_edge_name(place, number)}")
        parts += [_box(transaction, operations, y), arrow]
        y += BOX_HEIGHT + ARROW_HEIGHT
    again = f"{as_text(transactions[0].get('name'), 10)}  again: it would have to come before itself"
    parts.append(_drawn_box(again, y, "box again", ""))
    title = "The transactions that would each have to come before themselves"
    return whole_svg((WIDTH, y + BOX_HEIGHT + 6), title, *parts, class_="cycle", role="group")


def _box(transaction: Json, operations: Mapping[int, Operation], y: float) -> Markup:
    name = as_text(transaction.get("name"), 10)
    words = transaction_words(as_list(transaction.get("operations")), WORDS_MAX)
    box = _drawn_box(f"{name}  {words}", y, "box", _where(transaction, operations))
    index = _invoked(transaction, operations)
    return box if index is None else element("a", box, href=f"#op-{index}")


def _operation(transaction: Json, operations: Mapping[int, Operation]) -> Operation | None:
    named = (operations.get(index) for index in as_list(transaction.get("events")) if isinstance(index, int))
    return next((operation for operation in named if operation is not None), None)


def _invoked(transaction: Json, operations: Mapping[int, Operation]) -> int | None:
    operation = _operation(transaction, operations)
    return None if operation is None else operation.invoke_index


def _where(transaction: Json, operations: Mapping[int, Operation]) -> str:
    """The process and the node, which only the history has."""
    operation = _operation(transaction, operations)
    if operation is None:
        return ""
    at = f" at {clipped(operation.node, 16)}" if operation.node else ""
    return f"process {operation.process}{at}"


def _drawn_box(text: str, y: float, class_: str, where: str) -> Markup:
    width = text_width(text, TEXT_SIZE) + 20
    return joined(
        (
            element("rect", class_=class_, x=LEFT, y=y, width=width, height=BOX_HEIGHT, rx=4),
            element("text", text, class_="op-label", x=LEFT + 10, y=y + 17),
            element("text", where, class_="tick", x=LEFT + width + 10, y=y + 17),
        )
    )


def _arrow(edge: Json, y: float) -> Markup:
    x, end = LEFT + 16.0, y + ARROW_HEIGHT - 2
    return joined(
        (
            element("path", class_="arrow", d=f"M{x} {y}V{end - 6}"),
            element("path", class_="arrow-head", d=f"M{x - 4} {end - 7}l4 7l4 -7z"),
            element("text", _meaning(edge), class_="op-label", x=x + 14, y=y + ARROW_HEIGHT / 2 + 3),
        )
    )


def _meaning(edge: Json) -> str:
    kind, key = as_text(edge.get("kind"), 12), as_text(edge.get("key"), 30)
    words = MEANINGS.get(kind, "comes before").replace("{}", key)
    return f"{kind}: {words}"


def picture_of(check: Json, rule: str) -> object:
    """The part of the check's details about the anomaly that `rule` names."""
    return as_mapping(as_mapping(check.get("details")).get("anomalies")).get(rule)
