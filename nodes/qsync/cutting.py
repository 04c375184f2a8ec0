"""The commands with which an administrator takes a consistent cut (`nodes.qsync.markers`).

| function | answer |
|---|---|
| `qsync.cut` | writes a marker; when it is on disk, a map: origin, lsn, and vclock: the place of this node |
| `qsync.cut_places` | a list of maps with the same keys: the places of this node at the markers in its log |

`qsync.cut` needs a writable node. The cut is finished when `qsync.cut_places` of every member has the marker, with the
vclock that `qsync.cut` answered. A different vclock means that a second node has written rows, as in a failover:
acknowledgements of those rows may have passed the marker, so the cut has failed.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodes.iproto.messages import Type
from nodes.kernel.effects import Effect, Send
from nodes.kernel.events import Instant
from nodes.kernel.vclock import Vclock
from nodes.qsync.commits import Commits
from nodes.qsync.journal import Draft, public
from nodes.qsync.keys import Tuple
from nodes.qsync.markers import Marker
from nodes.qsync.service import Caller, Function


class Cutting:
    """The cut commands of one node; `functions` has them by name."""

    def __init__(self, commits: Commits, out: list[Effect]) -> None:
        self._commits = commits
        self._out = out
        self.functions: dict[str, Function] = {"qsync.cut": self._cut, "qsync.cut_places": self._cut_places}

    def _cut(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        commits = self._commits
        if not commits.is_writable:
            raise commits.read_only_error()
        write = commits.journal.write_own((Draft(Type.NOP.value, {}),), now.wall_ns / 1e9)
        # Only now: the place of this node at its marker is behind the marker.
        place = public(commits.journal.promised)
        reply = caller.link, caller.answer(_as_map((write.origin, write.lsn), place))
        commits.records.write(write, None, reply)

    def _cut_places(self, caller: Caller, arguments: Tuple, now: Instant) -> None:
        commits = self._commits
        places = [
            _as_map(marker, public(commits.decisions.told_place(place, commits.journal)))
            for marker, place in commits.markers.places.items()
        ]
        self._out.append(Send(caller.link, caller.answer(places)))


def _as_map(marker: Marker, place: Vclock) -> Mapping[str, object]:
    return {"origin": marker[0], "lsn": marker[1], "vclock": place}
