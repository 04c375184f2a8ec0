"""The workers of a master: they execute synchronised transactions in their order, one at a time.

All workers of one master agree, so the master has one state. An update goes to all of them, and takes `execute_ns`.
A master detects that a worker has ended when the next update goes to that worker: this update takes `worker_ns`, and a
new worker starts `backup_ns` later. A master without workers executes no transaction.

Taking or restoring a backup takes `backup_ns`; no transaction is begun meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from nodes.txlog.evaluation import Told
from nodes.txlog.journal import Journal
from nodes.txlog.site import Site
from nodes.txlog.sometimes import WORKER_LOST

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
        self._occupied_until_ns = 0
        self._ended: list[int] = []
        """Workers that have ended, which the master has not detected yet."""
        self._chance = random.Random()

    def begin(self) -> None:
        """Begin after a start."""
        conf = self._site.configuration
        self._chance.seed(f"{conf.seed}/workers of {conf.name} in life {self._journal.life}")

    def occupy(self) -> None:
        """Take a backup: no transaction is begun meanwhile."""
        self._occupied_until_ns = self._site.now.monotonic_ns + self._site.configuration.backup_ns

    def look(self) -> None:
        """Begin with the next transaction, if there is one that may be executed."""
        conf = self._site.configuration
        if not self._is_at_work and self._is_due():
            self._is_at_work = True
            waits_ns = max(0, self._occupied_until_ns - self._site.now.monotonic_ns)
            takes_ns = conf.worker_ns if self._ended else conf.execute_ns
            self._site.after(TIMER, waits_ns + takes_ns, self._finish)

    def _is_due(self) -> bool:
        journal = self._journal
        return (
            journal.executed < len(journal.synced)
            and bool(journal.workers)
            and journal.is_acquired(journal.synced[journal.executed])
            and self._may_execute()
        )

    def _finish(self) -> None:
        """End the execution of a transaction; a split, or a recovery, may have begun meanwhile."""
        self._is_at_work = False
        if self._is_due():
            self._replace_ended()
            if self._journal.workers:
                name = self._journal.synced[self._journal.executed].id
                self._executed(name, self._journal.execute())
                self._end_one()
        self.look()

    # ---- workers that end

    def _end_one(self) -> None:
        """End a worker every `worker_loss`th time, on average."""
        loss = self._site.configuration.worker_loss
        if loss and not self._ended and not self._chance.randrange(loss):
            self._ended.append(self._chance.choice(self._journal.workers))

    def _replace_ended(self) -> None:
        for worker in self._ended:
            self._journal.write(["worker-lost", worker])
            self._site.sometimes[WORKER_LOST] += 1
            self._site.after(
                f"worker {worker}", self._site.configuration.backup_ns, partial(self._back, worker)
            )
        self._ended.clear()

    def _back(self, worker: int) -> None:
        self._journal.write(["worker-back", worker])
        self.look()
