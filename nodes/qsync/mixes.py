"""Nodes of two protocols in one cluster: neither understands the rows of the other.

2.6 knows no PROMOTE, and a later protocol takes no synchronous row without a PROMOTE before it. A node learns from
SUBSCRIBE as which version of Tarantool a member writes. It refuses a member of the other protocol in one line. If most
members are of the other protocol, this node is the one that breaks the cluster: it stops with one line. Of two halves
the later protocol stops, because it cannot go on in a cluster of 2.6 (decision 25). A JOIN of the other protocol is
refused before it gets an id, and the newcomer stops with that line; a JOIN that names no version (before 2.9) is let
in, and its SUBSCRIBE is judged.
"""

from __future__ import annotations

from collections.abc import Collection

from nodes.iproto.greeting import version_number
from nodes.kernel.errors import StartRefused
from nodes.qsync.configuration import Protocol

LATER_THAN_2_6 = version_number("2.7.0")


def is_foreign(own: Protocol, version: int) -> bool:
    """Whether a node of this version is of the other protocol; a node that named none (0) is not."""
    return bool(version) and (version < LATER_THAN_2_6) != (own == "2.6")


def refusal_of_join(own: Protocol, version: int) -> str | None:
    """Why a node of this version cannot join one of protocol `own`; None if it can."""
    if not is_foreign(own, version):
        return None
    return f"a node of protocol {_words(version)} cannot join one of {own}; start it with protocol {own}"


class Mixes:
    """The members that write as the other protocol."""

    def __init__(self, own: Protocol) -> None:
        self._own = own
        self._others: dict[int, str] = {}
        """Member → the version that it named."""

    def hear(self, member: int, version: int, members: Collection[int]) -> str | None:
        """A member names its version. Returns why it cannot follow this node; None if it can.

        Raises StartRefused if this node is the one that must stop.
        """
        if not is_foreign(self._own, version):
            self._others.pop(member, None)
            return None
        self._others[member] = _words(version)
        others = {replica_id: named for replica_id, named in self._others.items() if replica_id in members}
        if 2 * len(others) + (self._own != "2.6") > len(members):
            named = ", ".join(f"replica {replica_id}: {others[replica_id]}" for replica_id in sorted(others))
            raise StartRefused(
                f"this node is of protocol {self._own}, and {len(others)} of {len(members)} members are not ({named}): "
                "no node can read the rows of both; start it with their protocol"
            )
        return f"replica {member} is of protocol {self._others[member]}, and this node of {self._own}"


def _words(version: int) -> str:
    return f"{version >> 16}.{version >> 8 & 255}"
