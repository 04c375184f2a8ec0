"""The worker: executes synchronised transactions in their order, one at a time; each takes `execute_ns`."""

from __future__ import annotations

from collections.abc import Callable

from nodes.txlog.evaluation import Told
from nodes.txlog.journal import Journal
from nodes.txlog.site import Site

TIMER = "execute"


class Executing:
    def __init__(
        self,
        site: Site,
        journal: Journal,
        may_execute: Callable[[], bool],
        executed: Callable[[str, Told], None],
    ) -> None:
        """`executed` gets the id of a transaction, and its answer."""
        self._site = site
        self._journal = journal
        self._may_execute = may_execute
        self._executed = executed
        self._is_at_work = False

    def look(self) -> None:
        """Begin with the next transaction, if there is one, and it may be executed."""
        if not self._is_at_work and self._is_due():
            self._is_at_work = True
            self._site.after(TIMER, self._site.configuration.execute_ns, self._finish)

    def _is_due(self) -> bool:
        journal = self._journal
        return (
            journal.executed < len(journal.synced)
            and journal.is_acquired(journal.synced[journal.executed])
            and self._may_execute()
        )

    def _finish(self) -> None:
        """A split, or a recovery, may have begun meanwhile."""
        self._is_at_work = False
        if self._is_due():
            name = self._journal.synced[self._journal.executed].id
            self._executed(name, self._journal.execute())
        self.look()
