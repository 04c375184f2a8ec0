"""When a snapshot is taken, and which older snapshots and logs are removed behind it.

A snapshot is due every `checkpoint_interval_ns`, when the log has grown by `checkpoint_wal_threshold` bytes, and on
request (`box.snapshot`). With it a new log begins. When it is on disk, `checkpoint_count` snapshots are kept, the
logs behind the oldest of them, and the logs needed by followers: by members that have connected in this life of the
process, and by the anonymous replicas that are connected now.

A node that has just started does not know what its followers need. Until every member has connected, or
`wal_cleanup_delay` is over, the node removes nothing: a follower must join anew if its rows are gone, a join waits
for the queue, and the queue may wait for that follower.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from nodes.iproto.messages import Response
from nodes.kernel.effects import Effect, Log, Send
from nodes.kernel.events import Instant
from nodes.kernel.vclock import Vclock, text
from nodes.qsync.checkpoints import Capture, Captures
from nodes.qsync.journal import Journal
from nodes.qsync.options import Options
from nodes.qsync.snapshot import Snapshot


class Retention:
    """The snapshots of one node."""

    def __init__(self, captures: Captures, journal: Journal, options: Options, out: list[Effect]) -> None:
        self._captures = captures
        self._journal = journal
        self._options = options
        self._out = out
        self._capture: Capture | None = None
        self._writing: tuple[int, Snapshot] | None = None
        self._replies: list[tuple[int, Response]] = []
        self._wall_ns = 0
        self._due_ns = 0
        self._interval_ns = options.checkpoint_interval_ns
        self.followers: dict[int, Vclock] = {}
        """Member → its vclock when it was last connected."""
        self._began_ns = 0
        self.is_behind = False
        """Some files could be removed, but not every member has connected yet."""

    def began(self, now: Instant) -> None:
        """The node has its data; no follower has connected yet."""
        self._began_ns = now.monotonic_ns

    def begin(self, now: Instant, reply: tuple[int, Response] | None = None) -> None:
        """Take a snapshot, or wait for the one that is being taken."""
        if reply is not None:
            self._replies.append(reply)
        # One at a time: a caller that comes meanwhile is answered by the snapshot that is under way.
        if not self._is_under_way:
            self._wall_ns = now.wall_ns
            self._capture = self._captures.begin(self._write, begins_file=True)

    @property
    def _is_under_way(self) -> bool:
        return self._capture is not None or self._writing is not None

    def beat(self, now: Instant) -> None:
        interval_ns = self._options.checkpoint_interval_ns
        if not self._due_ns or interval_ns != self._interval_ns:  # another one counts from now
            self._due_ns = now.monotonic_ns + interval_ns
            self._interval_ns = interval_ns
        grown = self._journal.bytes_since_snapshot
        if (
            (interval_ns and now.monotonic_ns >= self._due_ns)
            or grown >= self._options.checkpoint_wal_threshold
            or (self._replies and not self._is_under_way)
        ):
            self._due_ns = now.monotonic_ns + interval_ns
            self.begin(now)

    def _write(self, snapshot: Snapshot) -> None:
        self._capture = None
        persist = self._journal.keep_snapshot(snapshot, self._wall_ns / 1e9)
        self._writing = (persist.token, snapshot)
        self._out.append(persist)

    def persisted(self, token: int) -> bool:
        """True if the record was the snapshot: older ones can be removed now."""
        if self._writing is None or self._writing[0] != token:
            return False
        snapshot = self._writing[1]
        self._writing = None
        # Only now: `collect` removes what is older than the snapshots that are kept.
        self._journal.snapshot_kept(snapshot)
        self._out.append(Log("info", "a snapshot is on disk", {"vclock": text(snapshot.vclock)}))
        self._out += [Send(*reply) for reply in self._replies]
        self._replies.clear()
        return True

    def failed(self) -> None:
        """The snapshot could not be written: the next beat tries another one.

        Without `checkpoint_interval` it does so for waiting callers, or a log that has grown.
        """
        if self._writing is not None:
            self._writing = None
            self._due_ns = 1

    def collect(self, members: Collection[int], anonymous: Sequence[Vclock], now: Instant) -> int:
        """Remove files that neither snapshots nor followers need; returns how many rows the journal dropped.

        `members`: the ids of the other members. `anonymous`: the vclocks of the anonymous followers.
        """
        is_early = now.monotonic_ns - self._began_ns < self._options.wal_cleanup_delay_ns
        self.is_behind = is_early and not self.followers.keys() >= set(members)
        if self.is_behind:
            return 0
        needed = [*(vclock for _, vclock in sorted(self.followers.items())), *anonymous]
        gone, effects = self._journal.collect(self._options.checkpoint_count, needed)
        self._out += effects
        return gone
