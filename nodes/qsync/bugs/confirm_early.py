"""The client has its answer before a quorum has its row."""

from __future__ import annotations

from collections.abc import Hashable

from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions, Queue
from nodes.qsync.keys import Tuple
from nodes.qsync.limbo import Entry
from nodes.qsync.spaces import Space, Transaction


class EarlyView:
    """The confirmed view of a space, with rows that are not confirmed: they are shown in the order of submission."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.beneath: dict[Hashable, Tuple | None] = {}
        """The values that are committed, of keys that show different ones."""
        self._versions: dict[Hashable, int] = {}
        """How many versions of such a key were prepared when it was looked at last."""
        self._shown: dict[Transaction, None] = {}
        self._on_change, self._on_commit = space.on_change, space.on_commit
        space.on_change, space.on_commit = self._changed, self._committed

    def show(self, transaction: Transaction, key: Hashable) -> None:
        """Let the key show what the transaction made of it."""
        self._shown[transaction] = None
        self.beneath.setdefault(key, self._space.confirmed.get(key))
        self._show_newest(key)

    def _show_newest(self, key: Hashable) -> None:
        versions = self._space.prepared.get(key, [])
        self._versions[key] = len(versions)
        shown = [value for maker, value in versions if maker in self._shown]
        self._space.put(key, shown[-1] if shown else self.beneath.pop(key))
        if not self.beneath:
            self._shown.clear()

    def _changed(self, key: Hashable) -> None:
        """A version was prepared or rolled back."""
        if key in self.beneath:
            self._show_newest(key)
        if self._on_change is not None:
            self._on_change(key)

    def _committed(self) -> None:
        """The oldest version of one key was committed."""
        for key in list(self.beneath):
            if len(self._space.prepared.get(key, ())) < self._versions[key]:
                self.beneath[key] = self._space.confirmed.get(key)
                self._show_newest(key)
        if self._on_commit is not None:
            self._on_commit()


class ConfirmEarly(Decisions):
    def __init__(self) -> None:
        super().__init__()
        self._views: dict[Space, EarlyView] = {}

    def written(self, queue: Queue, entry: Entry) -> None:
        if queue.is_owner and entry.wait_ack:
            for change in entry.transaction.changes:
                if change.space not in self._views:
                    self._views[change.space] = EarlyView(change.space)
                self._views[change.space].show(entry.transaction, change.key)
            queue.answer(entry.transaction)


BUG = Bug(
    decides=ConfirmEarly,
    does="the client is answered and the row shown before the quorum; the entry stays in the limbo",
    seen="a timeout or another leader rolls an acknowledged write back",
    checkers=("linearizable", "quorum", "convergence", "audit"),
)
