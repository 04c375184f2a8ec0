"""What etcd's robustness tests record of a client: requests, answers, watches.

The names of the fields are those of the files (`tests/robustness/model/types.go` and `watch.go` of etcd). A history has
each request as an operation (`f`: "etcd-" and its type) with the value {"request": …, "response": …}, and each watch as
an operation `etcd-watch`. A value of twenty bytes or more is recorded as its hash (FNV-1a, 32 bits).

A request with a field or a type of step that is not known here is refused, because it may change what the request does.
An answer may have more fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, TypeVar

import msgspec

from checkers.history.errors import ModelError
from checkers.history.history import History
from checkers.history.operation import Operation

TYPES: Final = ("range", "txn", "leaseGrant", "leaseRevoke", "defragment", "compact")
PREFIX: Final = "etcd-"
WATCH: Final = "etcd-watch"
NAMES: Final = frozenset({*(PREFIX + name for name in TYPES), WATCH})
ALL_CLIENTS: Final = "all-clients"
"""In the header of a history that has the operations of all clients: no other client wrote."""
HASHED_BYTES: Final = 20
EVERYTHING: Final = "\0"
"""The end of a range that has none."""

Kind = TypeVar("Kind")
Value = str | int
"""A text, or the hash of a longer one."""


def has_all_clients(history: History) -> bool:
    """Whether no other client wrote. A record that was torn may have lost a request."""
    return ALL_CLIENTS in history.header.extra and history.torn is None


class Text(msgspec.Struct, frozen=True, rename="pascal"):
    value: str = ""
    hash: int = 0

    @property
    def identity(self) -> Value:
        if self.hash:
            return self.hash
        return self.value if len(self.value) < HASHED_BYTES // 4 else _short(self.value)


@cache
def _short(text: str) -> Value:
    data = text.encode()
    return text if len(data) < HASHED_BYTES else fnv_1a(data)


def fnv_1a(data: bytes) -> int:
    """Fowler, Noll and Vo's hash of 32 bits, as Go's `fnv.New32a`."""
    hashed = 2166136261
    for byte in data:
        hashed = (hashed ^ byte) * 16777619 & 0xFFFFFFFF
    return hashed


class Range(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    start: str = ""
    end: str = ""
    limit: int = 0
    keys_only: bool = False
    revision: int = 0

    def holds(self, key: str) -> bool:
        if not self.end:
            return key == self.start
        return self.start <= key and (self.end == EVERYTHING or key < self.end)


class Put(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    key: str = ""
    value: Text = Text()
    lease: int = msgspec.field(default=0, name="LeaseID")


class Delete(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    key: str = ""


class Step(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    """One operation of a transaction."""

    type: Literal["range-operation", "put-operation", "delete-operation"]
    range: Range = Range()
    put: Put = Put()
    delete: Delete = Delete()


class Condition(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    """The version is compared if it is given, else the revision (0: there is no such key)."""

    key: str = ""
    expected_revision: int = 0
    expected_version: int = 0


class Txn(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    conditions: list[Condition] | None = None
    operations_on_success: list[Step] | None = None
    operations_on_failure: list[Step] | None = None

    def branch(self, failure: bool) -> list[Step]:
        return (self.operations_on_failure if failure else self.operations_on_success) or []

    @property
    def changes(self) -> Iterator[tuple[str, Value | None, int]]:
        """Key, value (None: a deletion) and lease of each step, in both branches, that writes."""
        for step in (*self.branch(False), *self.branch(True)):
            if step.type == "put-operation":
                yield step.put.key, step.put.value.identity, step.put.lease
            elif step.type == "delete-operation":
                yield step.delete.key, None, 0

    @property
    def writes(self) -> bool:
        return any(True for _ in self.changes)


class Lease(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    id: int = msgspec.field(default=0, name="LeaseID")


class Compact(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    revision: int = 0


class Request(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    type: str
    range: Range | None = None
    txn: Txn | None = None
    lease_grant: Lease | None = None
    lease_revoke: Lease | None = None
    defragment: dict[str, Any] | None = None
    compact: Compact | None = None


class Row(msgspec.Struct, frozen=True, rename="pascal"):
    """A key as an answer shows it."""

    key: str = ""
    value: Text = Text()
    mod_revision: int = 0
    version: int = 0


class Rows(msgspec.Struct, frozen=True, rename="pascal"):
    kvs: list[Row] | None = msgspec.field(default=None, name="KVs")
    count: int = 0


class Result(Rows, frozen=True, rename="pascal"):
    deleted: int = 0


class TxnResponse(msgspec.Struct, frozen=True, rename="pascal"):
    failure: bool = False
    results: list[Result] | None = None


class Response(msgspec.Struct, frozen=True, rename="pascal"):
    range: Rows | None = None
    txn: TxnResponse | None = None
    client_error: str = ""
    revision: int = 0
    persisted: bool = False
    error: str = ""


class WatchRequest(msgspec.Struct, frozen=True, rename="pascal", forbid_unknown_fields=True):
    key: str = ""
    revision: int = 0
    with_prefix: bool = False
    with_progress_notify: bool = False
    with_prev_kv: bool = msgspec.field(default=False, name="WithPrevKV")

    def matches(self, key: str) -> bool:
        return key.startswith(self.key) if self.with_prefix else key == self.key


class WatchEvent(msgspec.Struct, frozen=True, rename="pascal"):
    type: Literal["put-operation", "delete-operation"]
    key: str = ""
    value: Text = Text()
    revision: int = 0
    is_create: bool = False
    prev_value: Row | None = None

    @property
    def left(self) -> Value | None:
        """What the key held from then on; None: nothing."""
        return self.value.identity if self.type == "put-operation" else None


class WatchResponse(msgspec.Struct, frozen=True, rename="pascal"):
    events: list[WatchEvent] | None = None
    is_progress_notify: bool = False
    revision: int = 0


class Watch(msgspec.Struct, frozen=True, rename="pascal"):
    request: WatchRequest
    responses: list[WatchResponse] | None = None


class Record(msgspec.Struct, frozen=True):
    """The value of an operation that is no watch; `response` is None if no answer came."""

    request: Request
    response: Response | None = None


def wrong_record(value: Mapping[str, Any]) -> str:
    """Why this is no record of a request; "" if it is one."""
    try:
        request = msgspec.convert(value, Record).request
    except msgspec.ValidationError as error:
        return str(error)
    part = getattr(request, _FIELDS.get(request.type, ""), None)
    if request.type not in TYPES:
        return f"a request of type {request.type!r}"
    return "" if part is not None or request.type == "defragment" else f"a {request.type} without its content"


_FIELDS = {
    "range": "range",
    "txn": "txn",
    "leaseGrant": "lease_grant",
    "leaseRevoke": "lease_revoke",
    "compact": "compact",
}


def record_of(operation: Operation) -> Record:
    """The request and the answer of an operation. Raises ModelError."""
    return _converted(operation, Record)


def watch_of(operation: Operation) -> Watch:
    """The watch of an operation. Raises ModelError."""
    return _converted(operation, Watch)


def _converted(operation: Operation, kind: type[Kind]) -> Kind:
    try:
        return msgspec.convert(operation.value, kind)
    except msgspec.ValidationError as error:
        raise ModelError(
            expected=f"a value as etcd's tests record it ({operation.f})",
            came=str(error),
            index=operation.invoke_index,
        ) from error
