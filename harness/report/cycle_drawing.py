"""The cycle of transactions that proves an anomaly: a box for each, an arrow for each "must come before".

The first box stands once more at the end, dashed, because it would have to precede itself. The checker's details have
the data: {"transactions": [{"name", "events", "operations"}], "edges": [{"from", "to", "kind", "key"}]}.
"""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from checkers.history import Operation
from harness.report.json_door import Json, as_list, as_mapping, as_mappings, as_text, clipped
from harness.report.operation_rows import WIDTH
from harness.report.operation_words import transaction_words
from harness.report.svg import element, joined, text_width

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


def cycle_drawing(picture: object, operations: Mapping[int, Operation]) -> Markup:
    """The drawing; empty without a cycle. `operations` by their events give process and node."""
    transactions = as_mappings(as_mapping(picture).get("transactions"))
    edges = as_mappings(as_mapping(picture).get("edges"))
    if len(edges) < 2 or len(edges) != len(transactions) or len(edges) > BOXES_MAX:
        return Markup("")
    parts: list[str] = []
    y = 4.0
    for transaction, edge in zip(transactions, edges, strict=True):
        parts += [_box(transaction, operations, y), _arrow(edge, y + BOX_HEIGHT)]
        y += BOX_HEIGHT + ARROW_HEIGHT
    parts.append(_box_again(as_text(transactions[0].get("name"), 10), y))
    height = y + BOX_HEIGHT + 6
    return element(
        "svg",
        joined(parts),
        viewBox=f"0 0 {WIDTH} {height:g}",
        class_="cycle",
        role="img",
        aria_label="The transactions that would each have to come before themselves",
    )


def _box(transaction: Json, operations: Mapping[int, Operation], y: float) -> Markup:
    name = as_text(transaction.get("name"), 10)
    words = transaction_words(as_list(transaction.get("operations")), WORDS_MAX)
    return _drawn_box(f"{name}  {words}", y, "box", _where(transaction, operations))


def _where(transaction: Json, operations: Mapping[int, Operation]) -> str:
    """The process and the node, which only the history has."""
    found = (operations.get(index) for index in as_list(transaction.get("events")) if isinstance(index, int))
    operation = next((each for each in found if each is not None), None)
    if operation is None:
        return ""
    at = f" at {clipped(operation.node, 16)}" if operation.node else ""
    return f"process {operation.process}{at}"


def _box_again(name: str, y: float) -> Markup:
    return _drawn_box(f"{name}  again: it would have to come before itself", y, "box again", "")


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
    kind, key = as_text(edge.get("kind"), 12), as_text(edge.get("key"), 30)
    words = MEANINGS.get(kind, "comes before").format(key)
    return joined(
        (
            element("path", class_="arrow", d=f"M{x} {y}V{end - 6}"),
            element("path", class_="arrow-head", d=f"M{x - 4} {end - 7}l4 7l4 -7z"),
            element("text", f"{kind}: {words}", class_="op-label", x=x + 14, y=y + ARROW_HEIGHT / 2 + 3),
        )
    )


def picture_of(check: Json, rule: str) -> object:
    """The part of the check's details about the anomaly of the witness."""
    return as_mapping(as_mapping(check.get("details")).get("anomalies")).get(rule)
