"""L2 form: the records of a cut in each log, by themselves.

| rule | breach |
|---|---|
| second-start, second-finish | a log has two START, or two FINISH, of one cut |
| finish-without-start | FINISH of a cut that the log did not start |
| id-mismatch | the last START before a FINISH is of another cut |
| in-both-sets | FINISH includes and excludes one transaction |
| named-but-not-committed | FINISH names a transaction that the log has not committed before it: it did not wait |
| included-before-start, excluded-behind-start | the set names what has its side by position (see `strict_sets`) |
| had-to-fail | FINISH although the cut had to fail: a recovered transaction is in it, or a cause of failure was given |
| not-growing | BEFORE of a cut lacks a transaction that an earlier cut has |
| second-colour-change | a node changed its colour twice for one cut |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy

from checkers.cuts.logs import COMMITTED, FINISH, START, Cut, Logs
from checkers.cuts.membership import Ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """One breach: of which cut, by which records of the logs, in a sentence. `xid` -1: of no single transaction."""

    cut: str
    rule: str
    records: tuple[int, ...]
    summary: str
    xid: int = -1


def breaches(
    logs: Logs, cuts: Sequence[Cut], whole: Sequence[bool], *, strict_sets: bool
) -> Iterator[Breach]:
    """All breaches of single logs, log by log. `whole`: the cut has START and FINISH on every baseline server.

    `strict_sets`: FINISH names only transactions with a side other than that of their position: it includes what was
    committed between START and FINISH, and excludes what was committed before START. A protocol that names all that it
    collected leaves this out; a name that is right by position changes no BEFORE.
    """
    ids = {each.id for each in cuts}
    for node in range(len(logs.nodes)):
        yield from _of_log(logs, node, ids, strict_sets)
    for cut, is_whole in zip(cuts, whole, strict=True):
        if is_whole and cut.had_to_fail:
            finishes = tuple(records[0] for records in logs.of_cut(FINISH, cut.id).values())
            summary = f"every server wrote FINISH of {cut.id}, and it had to fail: {cut.had_to_fail[0]}"
            yield Breach(cut=cut.id, rule="had-to-fail", records=finishes, summary=summary)


def shrinking(logs: Logs, cuts: Sequence[str], of_logs: Ranges) -> Iterator[Breach]:
    """Transactions that a cut lacks on a server although an earlier cut has them there. `cuts`: those of `of_logs`."""
    rows = of_logs.rows
    for node, xid, _, end in rows[rows[:, 3] < len(cuts)].tolist():
        finish = logs.of_cut(FINISH, cuts[end])[logs.nodes[node]][0]
        commits = of_logs.commits
        commit = int(commits[(commits[:, 0] == node) & (commits[:, 1] == xid), 2][0])
        yield Breach(
            cut=cuts[end],
            rule="not-growing",
            records=(commit, finish),
            summary=f"{logs.xids[xid]} is before {cuts[end - 1]} on {logs.nodes[node]}, and not before {cuts[end]}",
            xid=xid,
        )


def _of_log(logs: Logs, node: int, ids: set[str], strict_sets: bool) -> Iterator[Breach]:
    low, high = int(logs.first[node]), int(logs.first[node + 1])
    name, is_late = logs.nodes[node], logs.nodes[node] in logs.cut_off
    started: dict[str, int] = {}
    finished: dict[str, int] = {}
    last = ""
    commits = _commits(logs, low, high)
    marks = low + numpy.flatnonzero(numpy.isin(logs.kind[low:high], (START, FINISH)))
    for record in marks.tolist():
        cut = logs.cuts[logs.cut[record]]
        kind = int(logs.kind[record])
        seen = started if kind == START else finished
        word = "START" if kind == START else "FINISH"
        if cut in ids and cut in seen:
            rule = f"second-{word.lower()}"
            yield Breach(
                cut=cut, rule=rule, records=(seen[cut], record), summary=f"{name} wrote {word} of {cut} twice"
            )
        elif cut in ids and kind == FINISH:
            yield from _finish(logs, record, cut, started, last, is_late)
            yield from _sets(logs, record, cut, started.get(cut), commits, strict_sets)
        seen.setdefault(cut, record)
        last = cut if kind == START else last


def _finish(
    logs: Logs, record: int, cut: str, started: dict[str, int], last: str, is_late: bool
) -> Iterator[Breach]:
    name = logs.nodes[logs.node_of(record)]
    if cut not in started and not is_late:
        summary = f"{name} wrote FINISH of {cut} and no START before it"
        yield Breach(cut=cut, rule="finish-without-start", records=(record,), summary=summary)
    elif cut in started and last != cut:
        summary = f"{name} wrote FINISH of {cut} behind START of {last}"
        yield Breach(cut=cut, rule="id-mismatch", records=(started[last], record), summary=summary)


def _sets(
    logs: Logs, finish: int, cut: str, start: int | None, commits: Mapping[int, int], strict_sets: bool
) -> Iterator[Breach]:
    included = logs.included[logs.included[:, 0] == finish, 1].tolist()
    excluded = logs.excluded[logs.excluded[:, 0] == finish, 1].tolist()
    name = logs.nodes[logs.node_of(finish)]

    def breach(rule: str, xid: int, records: tuple[int, ...], says: str) -> Breach:
        return Breach(
            cut=cut, rule=rule, records=(*records, finish), summary=f"{name}: FINISH of {cut} {says}", xid=xid
        )

    for xid in sorted(set(included) & set(excluded)):
        yield breach("in-both-sets", xid, (), f"includes and excludes {logs.xids[xid]}")
    for word, xids in (("includes", included), ("excludes", excluded)):
        for xid in xids:
            commit = commits.get(xid)
            says = f"{word} {logs.xids[xid]}"
            if commit is None and name in logs.cut_off:
                continue  # the part of the log that is gone may have it
            if commit is None or commit > finish:
                at = () if commit is None else (commit,)
                yield breach("named-but-not-committed", xid, at, f"{says}, which is not committed by then")
                continue
            if logs.recovered[commit]:
                yield breach("had-to-fail", xid, (commit,), f"{says}, which recovery committed")
            if not strict_sets or start is None:
                continue
            if word == "includes" and commit < start:
                yield breach(
                    "included-before-start", xid, (commit,), f"{says}, which is committed before START"
                )
            if word == "excludes" and commit > start:
                yield breach(
                    "excluded-behind-start", xid, (commit,), f"{says}, which is committed behind START"
                )


def _commits(logs: Logs, low: int, high: int) -> dict[int, int]:
    """By transaction where a log commits it first."""
    records = low + numpy.flatnonzero(logs.kind[low:high] == COMMITTED)
    xids, firsts = numpy.unique(logs.xid[records], return_index=True)
    return dict(zip(xids.tolist(), records[firsts].tolist(), strict=True))
