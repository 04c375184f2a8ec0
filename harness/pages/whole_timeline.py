"""The whole run for the page's canvas: packed operations, densities, faults, node states and the witnesses' windows.

The page may be opened years later and far away, so all data stand in it. `kept_operations` has the rule that chooses
what fits; densities count all operations. timeline_data.js reads the data, and timeline.js draws them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy
from numpy.typing import NDArray

from checkers.history import Operation
from harness.judge.causes import ranked
from harness.pages.fault_bands import FaultBand
from harness.pages.json_door import Json, as_list, as_mapping, as_text, as_time_ns, clipped
from harness.pages.kept_operations import Kept, kept
from harness.pages.material import Material, witness_indexes
from harness.pages.node_states import story_of
from harness.pages.packing import Coded, Whole, differences, packed, with_sign_last
from harness.pages.process_rows import process_rows
from harness.pages.run_columns import OUTCOMES, RunColumns, operations_at, parts, slices_of
from harness.pages.visible import visible

ROOM = 100_000
"""How many operations the page has one by one, at most."""
BYTES_MAX = 3_000_000
"""Of the packed data: with all other parts the page stays below 5 MB."""
TEXT_MAX = 200
AT_ONCE = 1_000
"""Operations that are in memory as objects at a time."""
SLICES, SLICES_IN_ALL = 4096, 250_000
WINDOWS_MAX = 60
STRETCHES_MAX = 2_000
FAULTS_MAX = 500
KEYS_LISTED = 500


@dataclass(frozen=True, slots=True)
class WholeTimeline:
    """`data` for the canvas; `captions` are sentences on what was left out."""

    data: str
    operations: int
    kept: int
    captions: tuple[str, ...]
    nodes: tuple[str, ...]
    faults: tuple[tuple[int, str], ...]
    keys: tuple[str, ...]


def whole_timeline(
    material: Material, bands: Sequence[FaultBand], folder: str, orders: Sequence[Mapping[str, Any]] = ()
) -> WholeTimeline:
    """`folder`: the run's name in `qsync serve`. `orders`: those that a reader can step through."""
    columns = material.columns
    witnesses = [sighted.witness for sighted in ranked(material.verdict, once=False)]
    named = {index for witness in witnesses for index in witness_indexes(witness)}
    keys = {witness["key"] for witness in witnesses if isinstance(witness.get("key"), str)}
    edges_ns = [ns for band in bands for ns in (band.start_ns, band.end_ns)]
    head = _head(material, bands, folder) | {"orders": list(orders)}
    room = ROOM
    while True:
        chosen = kept(columns, named, keys, edges_ns, room)
        data = _packed(material, chosen, head)
        if len(data) <= BYTES_MAX or room < 1_000:
            break
        room = int(min(room, len(chosen.rows)) * BYTES_MAX / len(data) * 0.9)
    return WholeTimeline(
        data,
        len(columns),
        len(chosen.rows),
        _captions(chosen, len(columns)),
        tuple(clipped(name, TEXT_MAX) for name in sorted(columns.nodes) if name)[:200],
        tuple((band.id, clipped(band.name, 40)) for band in bands[:FAULTS_MAX]),
        tuple(clipped(key, TEXT_MAX) for key in columns.keys[:KEYS_LISTED]),
    )


def _captions(chosen: Kept, there: int) -> tuple[str, ...]:
    if not chosen.left_out:
        return ()
    groups = "; ".join(
        f"{share.words}: {'all ' if share.kept == share.there else f'{share.kept:,} of '}{share.there:,}"
        for share in chosen.shares
    )
    sentence = f"{len(chosen.rows):,} of {there:,} operations are on this page one by one ({groups})."
    return (sentence, "A group that did not fit is thinned out evenly. Densities count all operations.")


def _head(material: Material, bands: Sequence[FaultBand], folder: str) -> dict[str, Any]:
    end_ns = max([material.end_ns, 1, *(band.end_ns for band in bands)])
    return {
        "folder": folder,
        "unit_ns": 1_000 if material.has_times else 1,
        "has_times": material.has_times,
        "end_ns": end_ns,
        "faults": [_fault(band) for band in bands[:FAULTS_MAX]],
        "states": [
            {"node": clipped(node, TEXT_MAX), "stretches": _stretches(material, node, bands, end_ns)}
            for node in material.nodes[:200]
        ],
        "witnesses": [
            window
            for sighted in ranked(material.verdict)[:WINDOWS_MAX]
            if (window := _window(sighted.check, sighted.witness)) is not None
        ],
    }


def _fault(band: FaultBand) -> dict[str, Any]:
    return {
        "id": band.id,
        "name": clipped(band.name, 60),
        "start_ns": band.start_ns,
        "end_ns": band.end_ns,
        "sure": list(band.sure) if band.sure else None,
        "idle": band.took_effect is False,
        "title": clipped(band.title, 600),
    }


def _stretches(material: Material, node: str, bands: Sequence[FaultBand], end_ns: int) -> list[list[Any]]:
    """[from, to, kind, words, cut off] of each; above STRETCHES_MAX the shortest are left out."""
    stretches = story_of(material, node, bands).stretches(0, end_ns)
    if len(stretches) > STRETCHES_MAX:
        longest = sorted(stretches, key=lambda stretch: stretch.start_ns - stretch.end_ns)[:STRETCHES_MAX]
        stretches = sorted(longest, key=lambda stretch: stretch.start_ns)
    return [
        [stretch.start_ns, stretch.end_ns, stretch.kind, clipped(stretch.words, TEXT_MAX), stretch.cut]
        for stretch in stretches
    ]


def _window(check: Json, witness: Json) -> dict[str, Any] | None:
    start_ns, end_ns = as_time_ns(witness.get("start_ns")), as_time_ns(witness.get("end_ns"))
    if start_ns is None or end_ns is None:
        return None
    return {
        "start_ns": start_ns,
        "end_ns": max(start_ns, end_ns),
        "words": clipped(f"{as_text(witness.get('rule'), 60)}: {as_text(witness.get('summary'))}", 300),
        "checker": as_text(check.get("checker"), 60),
        "events": list(witness_indexes(witness)[:500]),
    }


def _packed(material: Material, chosen: Kept, head: Mapping[str, Any]) -> str:
    columns, unit_ns = material.columns, head["unit_ns"]
    rows_of, row_names = process_rows(columns)
    texts = {name: Coded() for name in ("kinds", "nodes", "keys", "values", "errors", "transactions")}
    rows: list[int] = []
    pairs = operations_at(material.folder / "history.jsonl", columns, chosen.rows)
    while chunk := list(islice(pairs, AT_ONCE)):
        rows += (row for row, _ in chunk)
        _add_texts(texts, [operation for _, operation in chunk])
    at = numpy.array(rows, dtype=numpy.int64)
    complete, end_ns = columns.complete[at], columns.end_ns[at]
    start = columns.start_ns[at] // unit_ns
    whole: dict[str, Whole | Iterable[int]] = {
        "index": differences(columns.index[at]),
        "gap": numpy.where(complete < 0, 0, with_sign_last(complete - columns.index[at]) + 1),
        "start": differences(start),
        "took": numpy.where(end_ns < 0, 0, end_ns // unit_ns - start + 1),
        "process": differences(columns.process[at]),
        "row": rows_of[at].astype(numpy.int64),
        "outcome": columns.outcome[at].astype(numpy.int64),
        **{name: each.codes for name, each in texts.items()},
    }
    order = sorted(range(len(columns.nodes)), key=lambda node: columns.nodes[node])
    slices = 0
    if chosen.left_out:
        slices = max(256, min(SLICES, SLICES_IN_ALL // max(len(row_names), 1)))
        lane_of = numpy.argsort(numpy.array(order)).astype(numpy.int32)[columns.node]
        lanes = {"row_density": (rows_of, len(row_names)), "node_density": (lane_of, len(order))}
        whole |= {
            name: _density(columns, lane, count, head["end_ns"], slices)
            for name, (lane, count) in lanes.items()
        }
    tables = {name: each.table for name, each in texts.items()}
    more = {
        "there": len(columns),
        "slices": slices,
        "rows": row_names,
        "all_nodes": [clipped(columns.nodes[each], TEXT_MAX) for each in order],
        "tables": tables,
    }
    return packed({**head, **more}, whole)


def _density(columns: RunColumns, lane: NDArray[numpy.int32], lanes: int, end_ns: int, slices: int) -> Whole:
    """How many operations began in each slice of time, by lane and outcome."""
    kinds = len(OUTCOMES)
    counts = numpy.zeros(lanes * kinds * slices, dtype=numpy.int64)
    for rows in parts(len(columns)):
        slice_of = slices_of(columns.start_ns[rows], end_ns, slices)
        kind = lane[rows].astype(numpy.int64) * kinds + columns.outcome[rows]
        counts += numpy.bincount(kind * slices + slice_of, minlength=len(counts))
    return counts


def _add_texts(texts: Mapping[str, Coded], operations: Sequence[Operation]) -> None:
    kind_of = lru_cache(maxsize=256)(_kind)  # there are few, and each has many operations
    texts["kinds"].add(kind_of(op.f, op.role, op.mode, op.wait, op.phase) for op in operations)
    texts["nodes"].add(clipped(op.node or "", TEXT_MAX) for op in operations)
    texts["keys"].add(_keys(op) for op in operations)
    texts["values"].add(_value(op.value) for op in operations)
    texts["errors"].add(_short(op.error) if op.error else None for op in operations)
    texts["transactions"].add(_short(op.transaction) if op.transaction else None for op in operations)


def _kind(*words: str | None) -> tuple[str | None, ...]:
    return tuple(None if word is None else _short(word) for word in words)


def _keys(operation: Operation) -> str | tuple[str, ...] | None:
    """The operation's key, or those of its steps or of the two accounts of a transfer."""
    if operation.key is not None:
        return _short(operation.key)
    value = operation.value
    steps = [step[1] for step in map(as_list, as_list(value)) if len(step) == 3]
    if operation.f == "transfer":
        steps = [as_mapping(value).get(name) for name in ("from", "to")]
    met = tuple(dict.fromkeys(_short(as_text(key, TEXT_MAX + 1)) for key in steps if key is not None))
    return met or None


def _value(value: object) -> str | None:
    """As JSON; a text stands for itself."""
    if value is None:
        return None
    return _short(as_text(value, 2**31))


def _short(text: str) -> str:
    """The text; a clipped one says so, with its length."""
    text = visible(text)
    if len(text) <= TEXT_MAX:
        return text
    return f"{text[:TEXT_MAX]}… (clipped: {len(text):,} characters)"
