"""Whether counters and timestamps keep the order safe: I9, and the bound of every round.

| rule | a run breaks it if |
|---|---|
| counter-fell | a counter is below an earlier one of the master in any life; a new transaction does not raise it |
| counter-not-raised | a master has a counter below one that it has heard, or below a timestamp of its queues |
| stamped-too-low | a transaction has a timestamp that is not above the counter before it, which may have been posted |
| stamped-too-high | its timestamp is above the counter behind it |
| bound-too-high | the bound of a round is above a counter that counts (see below) |
| above-the-bound | a round adds a transaction above its bound |
| master-not-counted | a round counts a master neither as a poster nor as absent, and it is not left out |

These counters count: the own one; the last known one of an absent master since parts last joined; that of a poster as
long as it had the base of the round. A master's own records lack the counter of a POST whose base became its own only
later.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy

from checkers.logs.txlog import kernels
from checkers.logs.txlog.columns import LogColumns
from checkers.logs.txlog.given import Given
from checkers.logs.txlog.records import Joined
from checkers.logs.txlog.report import Breach, Report

COUNTED = {"timestamps": kernels.MADE, "posts": kernels.HEARD, "rounds": kernels.ADDED}


def judge(given: Given) -> Report:
    report = Report()
    columns = given.columns
    for master, log in columns.logs.items():
        counts = [(log.rows.of_kind(kind), name) for name, kind in COUNTED.items()]
        for rows, name in sorted(
            (entry for entry in counts if len(entry[0])), key=lambda entry: int(entry[0][0])
        ):
            report.count("counters", **{name: len(rows)})
        out = numpy.empty((0, kernels.FIELDS), dtype=numpy.int64)
        out, count = given.kernels.counted(
            log.rows, columns.ts, log.over, log.over_last, columns.peer[master], _counts_from(given, log),
            columns.flags, columns.missing_of, given.bases.counter[master], out,
        )  # fmt: skip
        report.breaches += (_breach(given, log, *entry) for entry in out[:count].tolist())
    if not report.compared:
        report.nothing["counters"] = "no counter was used"
    report.proofs["counters"] = {"rule": "all rise", **report.compared.get("counters", {})}
    return report


def _breach(given: Given, log: LogColumns, rule: int, row: int, one: int, two: int, _: int) -> Breach:
    name, says = _finding(given, log, rule, row, one, two)
    return Breach(rule=name, summary=f"{log.master} {says}", records=[(log.master, row + 1)])


def _finding(given: Given, log: LogColumns, rule: int, row: int, one: int, two: int) -> tuple[str, str]:
    """The rule, and what the master does."""
    columns, rows = given.columns, log.rows
    kind, now = rows.kind[row], int(rows.number[row])
    if kind == kernels.RECOVERED:
        now = int(log.over[rows.name[row], 1])
    if kind == kernels.MADE:
        ref = columns.ref(int(rows.name[row]))
        if rule == kernels.COUNTER_FELL:
            return (
                "counter-fell",
                f"makes transaction {ref.id} at the counter {now}, and its counter had been {one}",
            )
        if rule == kernels.TOO_LOW:
            return (
                "stamped-too-low",
                f"makes transaction {ref.id} with the timestamp {ref.ts}, when its counter is {one}",
            )
        return "stamped-too-high", f"makes {ref.id} with timestamp {ref.ts}, and goes on from {now}"
    if rule == kernels.COUNTER_FELL:
        return "counter-fell", f"has the counter {now}, and had {one} before"
    if rule == kernels.NOT_RAISED:
        says = f"has heard the counter {one}" if kind == kernels.HEARD else f"has a transaction of {one}"
        return "counter-not-raised", f"{says}, and does not raise its own counter of {now}"
    bound = int(rows.other[row])
    if rule == kernels.BOUND_TOO_HIGH:
        return (
            "bound-too-high",
            f"adds transactions up to {bound} in a round, and the counter of {columns.peers[one]} is {two}",
        )
    if rule == kernels.ABOVE_THE_BOUND:
        return "above-the-bound", f"adds a timestamp of {one}, above {bound}"
    forgotten = ", ".join(_forgotten(given, log, row, one))
    return "master-not-counted", f"adds without the counter of {forgotten}"


def _counts_from(given: Given, log: LogColumns) -> numpy.typing.NDArray[numpy.int64]:
    """By master the row from which its rounds count it; NEVER for what is no master."""
    joined = {each.master: each.place for each in reversed(log.rare) if isinstance(each, Joined)}
    late = {each: kernels.NEVER for each in given.late if each != log.master}
    since = {
        **dict.fromkeys(given.masters, 0),
        **{each: joined.get(each, never) for each, never in late.items()},
    }
    return numpy.array([since.get(each, kernels.NEVER) for each in given.columns.peers], dtype=numpy.int64)


def _forgotten(given: Given, log: LogColumns, row: int, split: int) -> Iterator[str]:
    """`split`: the number of the masters that were left out, -1 for none."""
    since = dict(zip(given.columns.peers, _counts_from(given, log).tolist(), strict=True))
    posters, absent = given.columns.groups[log.rows.name[row]]
    counted = {log.master, *posters, *absent, *(given.columns.missing[split] if split >= 0 else ())}
    return (master for master in given.masters if master not in counted and row >= since.get(master, 0))
