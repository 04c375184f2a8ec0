"""Exclusive locks on keys at a primary, first come, first served."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from nodes.twophase.data import Place

Granted = Callable[[], None]


class Locks:
    def __init__(self) -> None:
        self._holders: dict[Place, list[str]] = {}
        """One holder a key, but `hold` adds a transaction with a prepared write even to a held key."""
        self._waiting: dict[Place, deque[tuple[str, Granted]]] = {}

    def acquire(self, place: Place, xid: str, granted: Granted) -> None:
        """Call `granted` when the transaction has the lock: now, or when those before it have left."""
        if self.take(place, xid):
            granted()
        else:
            self._waiting.setdefault(place, deque()).append((xid, granted))

    def take(self, place: Place, xid: str) -> bool:
        """Take the lock, if it is free; False if it is not."""
        holders = self._holders.setdefault(place, [xid])
        return holders == [xid]

    def hold(self, place: Place, xid: str) -> None:
        """Add a holder for a write that its primary has allowed: keys stay locked when a backup becomes primary."""
        holders = self._holders.setdefault(place, [])
        if xid not in holders:
            holders.append(xid)

    def holders(self, place: Place) -> Sequence[str]:
        return self._holders.get(place, ())

    def release(self, xid: str) -> None:
        """Release all locks of a transaction, and its places in queues. The next transactions get the locks."""
        for place in list(self._waiting):
            queue = self._waiting[place] = deque(
                request for request in self._waiting[place] if request[0] != xid
            )
            if not queue:
                del self._waiting[place]
        for place in [place for place, holders in self._holders.items() if xid in holders]:
            self._holders[place].remove(xid)
            if not self._holders[place]:
                del self._holders[place]
                self._grant_next(place)

    def _grant_next(self, place: Place) -> None:
        queue = self._waiting.get(place)
        if queue:
            xid, granted = queue.popleft()
            if not queue:
                del self._waiting[place]
            self._holders[place] = [xid]
            granted()
