"""The effects that a node asks for.

The order promise: *effects are done in order, and nothing after a `Persist` happens until it is on disk.* All
sends, connects, persists and removals of a node stand in one queue (`nodes.kernel.outbox`), a reply to a read
included, so nothing unsynced leaks. Timers and log lines are not visible outside and are done at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodes.kernel.events import Event


@dataclass(frozen=True, slots=True)
class Persist:
    """Append `data` to `file` (made if absent, its directory entry synced too) and sync it.

    `token` comes back in `Persisted` or `PersistFailed`. `record` names the content (such as "row" or "header": the
    journals of the systems have the names) for a host that delays or counts records of one kind. With `is_whole` the
    data is a file of its own, which is there whole or not at all, whatever happens: a host writes it under the name
    with UNFINISHED behind it, syncs and renames it.
    """

    token: int
    file: str
    data: bytes
    record: str
    is_whole: bool = False


UNFINISHED = ".inprogress"
REMOVED = "removed"
"""The folder of the files that a node has removed: an audit reads these older parts of the log, too."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a file, if it exists, to which no record will be written any more; the node does not wait for that."""

    file: str


@dataclass(frozen=True, slots=True)
class Send:
    """Put a message on a link. With `after`, it is dropped if the `Persist` of that token fails."""

    link: int
    message: object
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Connect:
    """Ask for a connection to a peer by name; `Connected` or `ConnectFailed` follows."""

    peer: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """End a link from this node's side. No `Disconnected` follows."""

    link: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire `TimerFired(name)` once, `after_ns` from now on the monotonic clock; replaces one of the same name."""

    name: str
    after_ns: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    name: str


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut a file to `size` bytes and sync it, at once: only before anything else is written, in a node's first step."""

    file: str
    size: int


@dataclass(frozen=True, slots=True)
class Log:
    """One structured line for people. `level` is "info", "warning" or "error"."""

    level: str
    message: str
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Again:
    """Deliver this event once more, behind the events that wait now: the node must do different work first."""

    event: Event


@dataclass(frozen=True, slots=True)
class Mark:
    """A change of the node's state at this place among its messages; `fields` are JSON values. A host that traces
    messages records it (`nodes.kernel.trace`); any other host does nothing."""

    kind: str
    fields: Mapping[str, object] = field(default_factory=dict)


Effect = (
    Persist | Remove | Send | Connect | Disconnect | SetTimer | CancelTimer | Truncate | Log | Again | Mark
)
