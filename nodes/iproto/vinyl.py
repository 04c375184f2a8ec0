"""The files of Tarantool's vinyl engine: its metadata log (`.vylog`), and for each run the data and the page index.

All are xlogs in form (`nodes.iproto.xlog`). Their rows are a header and a body, and mean something else:

    VYLOG   REPLACE or INSERT rows, each with a record [type, {key: value}] as its tuple
    RUN     statements of an index in the order of its key; behind each page the offsets of its rows
    INDEX   what the run holds (keys, lsns, pages, a bloom filter), then each of its pages

A VYLOG is appended to, as a log is. The other two are written as a whole, so without an end marker they are not whole.
The names are those of `src/box/vy_log.c` and `iproto_constants.h`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from nodes.iproto import xlog
from nodes.iproto.errors import MalformedFrame
from nodes.iproto.messages import Key, Type
from nodes.iproto.packing import in_json, unpack_some

KINDS: Final = ("VYLOG", "RUN", "INDEX")
NAMES: Final = {"VYLOG": "vinyl log", "RUN": "vinyl run", "INDEX": "page index of a vinyl run"}
APPENDED: Final = "VYLOG"

Pair = tuple[Mapping[Any, Any], Mapping[Any, Any]]
"""Header and body of a row."""

_RUN_INFO, _PAGE_INFO, _ROW_INDEX = 100, 101, 102
_TYPES: Final = {_RUN_INFO: "RUN_INFO", _PAGE_INFO: "PAGE_INFO", _ROW_INDEX: "ROW_INDEX"}
_KEYS: Final[dict[int, tuple[str, ...]]] = {
    _RUN_INFO: (
        *("", "min_key", "max_key", "min_lsn", "max_lsn", "page_count"),
        *("bloom_filter_legacy", "bloom_filter", "stmt_stat"),
    ),
    _PAGE_INFO: ("", "offset", "size", "unpacked_size", "row_count", "min_key", "row_index_offset"),
    _ROW_INDEX: ("", "data"),
}
_RECORDS: Final = (
    *("create_lsm", "drop_lsm", "insert_range", "delete_range", "prepare_run", "create_run", "drop_run"),
    *("forget_run", "insert_slice", "delete_slice", "dump_lsm", "snapshot", "truncate_lsm", "modify_lsm"),
    *("forget_lsm", "prepare_lsm", "rebootstrap", "abort_rebootstrap"),
)
_FIELDS: Final = (
    *("lsm_id", "range_id", "run_id", "begin", "end", "index_id", "space_id", "key_def", "slice_id"),
    *(
        "dump_lsn",
        "gc_lsn",
        "truncate_count",
        "create_lsn",
        "modify_lsn",
        "drop_lsn",
        "group_id",
        "dump_count",
    ),
)


def is_vinyl(data: bytes) -> bool:
    """Whether a file begins as one of these."""
    return data.startswith(tuple(f"{kind}\n".encode() for kind in KINDS))


def decode(data: bytes) -> xlog.Xlog[Pair]:
    """The content of such a file. Raises XlogError if it has a bad header."""
    return xlog.decode(data, _pairs, kinds=KINDS)


def _pairs(payload: bytes) -> list[Pair]:
    values = unpack_some(payload, usual=2)
    pairs = list(zip(values[::2], values[1::2], strict=False))
    if len(values) % 2 or not all(isinstance(value, dict) for value in values):
        raise MalformedFrame("expected rows of a header and a body")
    return pairs  # type: ignore[return-value]  # all are dicts


def as_json(pair: Pair) -> dict[str, Any]:
    """The row with the names of what it holds. Keys that have no name stay numbers; values are those of `in_json`."""
    header, body = pair
    type_ = header.get(Key.REQUEST_TYPE.value)
    type_ = type_ if isinstance(type_, int) else str(in_json(type_))
    known = {kind.value: kind.name for kind in Type}
    return {
        "type": _TYPES.get(type_, known.get(type_, type_)),  # type: ignore[arg-type]  # any other has no name
        "lsn": in_json(header.get(Key.LSN.value, 0)),
        **({"timestamp": in_json(header[Key.TIMESTAMP.value])} if Key.TIMESTAMP.value in header else {}),
        "body": in_json(_named(type_, body)),
    }


def _named(type_: Any, body: Mapping[Any, Any]) -> dict[Any, Any]:
    match body:
        case {Key.TUPLE.value: [int(number), dict(fields)]} if 0 <= number < len(_RECORDS) and len(body) == 1:
            return {
                "record": _RECORDS[number],
                **{_name(_FIELDS, key): value for key, value in fields.items()},
            }
    if type_ in _KEYS:
        return {_name(_KEYS[type_], key): value for key, value in body.items()}
    keys = {key.value: key.name.lower() for key in Key}
    return {keys.get(key, key): value for key, value in body.items()}


def _name(names: tuple[str, ...], key: Any) -> Any:
    return names[key] if type(key) is int and 0 <= key < len(names) and names[key] else key
