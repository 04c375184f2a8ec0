"""Histories as data frames, out and in: an operation a row, for polars, pandas, DuckDB and every reader of Arrow.

    polars.DataFrame(history)                     # by History.__arrow_c_stream__
    checkers.linearizable(frame)                  # a frame in place of a history
    checkers.read(frame)                          # the history in it

| column | content |
|---|---|
| type | ok, fail or info |
| process, f, key | who asked, for what, about which object |
| value | the answer's if it was ok and had one, else the question's; as JSON text |
| invoke_index, complete_index | places in the order of all events; complete_index is null if no end was recorded |
| invoke_ns, complete_ns | times in nanoseconds |
| node, role, mode, error, phase, wait, transaction | as in `Operation` |
| refusal_observed | whether a refusal observed the state (`History.failed_cas_observes`) |
| real_time | whether the order of events is that of real time (`History.has_real_time`) |

A frame that is given needs type, process, f, value, invoke_index and complete_index; or a row for each event with type,
process, f and value, as `foreign.operation_maps` has them, in their order. A value column of strings is JSON text, any
other is taken as it stands. A frame lacks the objects' initial values (see `History.starting_at`), and the loss of a
torn record (`History.torn`).
`checkers.history.foreign.frames` reads frames. pyarrow is imported only when `reader` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from checkers.history.operation import Operation

Arrow = Any  # pyarrow's
_AT_ONCE = 1 << 15
NUMBERS = ("process", "invoke_index", "complete_index", "invoke_ns", "complete_ns")
_WORDS = ("type", "f", "key", "node", "role", "mode", "error", "phase", "wait", "transaction")
_COLUMNS = (
    *("type", "process", "f", "key", "value", "invoke_index", "complete_index", "invoke_ns", "complete_ns"),
    *("node", "role", "mode", "error", "phase", "wait", "transaction", "refusal_observed", "real_time"),
)


def reader(count: int, at: Callable[[Any], Sequence[Operation]], same: Mapping[str, bool]) -> Arrow:
    """A `pyarrow.RecordBatchReader` over so many operations in order of invocation.

    `at`: those at some places (an array of numpy). `same`: refusal_observed and real_time, the same in all rows.
    """
    import pyarrow

    kinds = dict.fromkeys(NUMBERS, pyarrow.int64()) | dict.fromkeys(same, pyarrow.bool_())
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in _COLUMNS])

    def batches() -> Iterator[Arrow]:
        for operations in _slices(count, at):
            fields = {name: [getattr(row, name) for row in operations] for name in (*NUMBERS, *_WORDS)}
            values = [
                None if row.value is None else msgspec.json.encode(row.value).decode() for row in operations
            ]
            columns = {
                **fields,
                "value": values,
                **{name: [each] * len(values) for name, each in same.items()},
            }
            yield pyarrow.RecordBatch.from_pydict(columns, schema)

    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def _slices(count: int, at: Callable[[Any], Sequence[Operation]]) -> Iterator[Sequence[Operation]]:
    import numpy

    for first in range(0, count, _AT_ONCE):
        yield at(numpy.arange(first, min(first + _AT_ONCE, count)))
