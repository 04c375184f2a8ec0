"""Whether the log keeps the order that clients observe: I11.

A transaction that is submitted after the answer to another one sorts behind it, whichever masters the clients asked: a
master executes what is synchronised up to T only after every counter has come to T. In a split a part executes without
the counters of the other masters. Its answers, and those that a restore takes back, are the documented price. With the
strategy `none` the branches stay, and masters take parts of them from each other: there, all answers from the first
entry of a part on are.
"""

from __future__ import annotations

from typing import Any

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.asked import INFO
from checkers.logs.txlog.columns import LogColumns
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.kernels import NEVER
from checkers.logs.txlog.queues import room
from checkers.logs.txlog.records import Split
from checkers.logs.txlog.report import Breach, Report

Array = Any  # numpy's

PRICE = "documented: a part of a split cluster executes without the counters of the others"


def judge(given: Given) -> Report:
    report = Report()
    asked, stamped = given.asked, given.stamped
    operations = asked.last[stamped[asked.transaction[asked.last]] >= 0]
    names = asked.transaction[operations]
    key = given.columns.order[stamped[names]]
    out = numpy.empty((0, kernels.FIELDS), dtype=numpy.int64)
    out, count, behind = given.kernels.swept(
        _slots(given, operations), key, _is_soft(given, operations, names), out
    )
    if len(operations):
        report.count("sessions", transactions=len(operations), with_earlier_ones=behind)
    for _, later, earlier, is_soft, _ in out[:count].tolist():
        price = PRICE if is_soft and given.has_split else ""
        report.breaches.append(_breach(given, int(operations[earlier]), int(operations[later]), price))
    if not report.compared.get("sessions"):
        report.nothing["sessions"] = "no answer named a transaction"
    report.proofs["sessions"] = {"rule": "all in order", **report.compared.get("sessions", {})}
    return report


def _slots(given: Given, operations: Array) -> Array:
    """By event: the operation that begins there (its place in `operations`, and 1) or ends there (below 0), or 0."""
    asked, numbers = given.asked, numpy.arange(1, len(operations) + 1)
    invoke = asked.invoke[operations]
    returned = numpy.where(asked.type[operations] == INFO, -1, asked.complete[operations])
    is_over = returned >= 0
    last = max(int(invoke.max(initial=-1)), int(returned.max(initial=-1)))
    slots = numpy.zeros(last + 1, dtype=numpy.int64)
    slots[invoke] = numbers
    slots[returned[is_over]] = -numbers[is_over]
    return slots


def _is_soft(given: Given, operations: Array, names: Array) -> Array:
    """The operations whose answer came from a part, or from a state that was taken back."""
    asked = given.asked
    parts = {master: Parts(given, log) for master, log in given.columns.logs.items()}
    branches_from = NEVER
    if given.strategy == "none":
        branches_from = min((part.least for part in parts.values()), default=NEVER)
    soft = numpy.zeros(len(operations), dtype=numpy.bool_)
    for master, log in given.columns.logs.items():
        weak = parts[master].weak(given, log, branches_from)
        if weak is not None:
            soft |= asked.on(master)[operations] & weak[names]
    return soft


class Parts:
    """The transactions that a master executed in a split.

    `least`: the first index that came while it had left masters out (NEVER).
    """

    def __init__(self, given: Given, log: LogColumns) -> None:
        self.least = NEVER
        self._of_part: Array | None = None
        if any(isinstance(record, Split) for record in log.rare):
            self._of_part = numpy.zeros(len(log.digest), dtype=numpy.bool_)
            left_out = numpy.zeros(room(log), dtype=numpy.bool_)
            self.least = given.kernels.of_parts(log.rows, left_out, self._of_part)

    def weak(self, given: Given, log: LogColumns, branches_from: int) -> Array | None:
        """By id: the master first executed it in a split, or in a branch, or a restore took it back; None: nothing."""
        restores = log.rows.of_kind(kernels.RESTORED)
        if self._of_part is None and branches_from == NEVER and not len(restores):
            return None
        weak = numpy.zeros(len(given.columns.names), dtype=numpy.bool_)
        rows = log.rows.of_kind(kernels.EXECUTED)
        name, index = log.rows.name[rows], log.rows.number[rows]
        back_to = numpy.minimum.accumulate(log.rows.number[restores][::-1])[::-1]
        back_to = numpy.append(back_to, NEVER)[numpy.searchsorted(restores, rows)]
        weak[name[index > back_to]] = True
        is_first = given.first_two[log.master][0][name] == numpy.arange(len(rows))
        of_branch = index > branches_from
        if self._of_part is not None:
            of_branch |= self._of_part
        weak[name[is_first & of_branch]] = True
        return weak


def _breach(given: Given, earlier: int, later: int, price: str) -> Breach:
    asked, columns = given.asked, given.columns
    first, second = int(asked.transaction[earlier]), int(asked.transaction[later])
    one, other = (columns.ref(int(given.stamped[name])) for name in (first, second))
    return Breach(
        rule="submitted-later-sorts-before",
        summary=f"{other.text} was submitted after {asked.nodes[asked.node[earlier]]} had executed {one.text}, "
        "and sorts before it",
        records=[given.made.place(first), given.made.place(second)],
        events=(*asked.events(earlier), *asked.events(later)),
        facts={"earlier": one.id, "later": other.id},
        price=price,
    )
