"""Traces and logs as text: a line of words for each node.

Traces: `+a>n2` sends message a to n2, `-a` takes it, `*k1` changes the colour for k1, `|` ends a life and begins the
next. Logs: `t1` commits t1 (`t1!` by recovery, `t1@n1,n2` with these participants, else all logs), `p:t1` prepares it,
`r:t1` rolls it back, `S:k1` is START, `F:k1+t2-t1` is FINISH that includes t2 and excludes t1, `B:b1` is a base, `R`
rebalanced. A commit of tN writes version N of key x.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from checkers.cuts.logs import Logs, NodeLog, Record, logs_of
from checkers.cuts.trace import LifeRows, Trace, trace_of


def trace(script: Mapping[str, str], torn: Mapping[tuple[str, int], str] | None = None) -> Trace:
    """Words of all nodes happen one after another: row i of a line at time i × 10, lives begin just before."""
    return trace_of(lives(script, torn or {}))


def lives(script: Mapping[str, str], torn: Mapping[tuple[str, int], str]) -> list[LifeRows]:
    """The rows of each life."""
    named: dict[str, tuple[str, int, int]] = {}
    for node, line in script.items():
        for number, words in enumerate(line.split("|"), 1):
            for seq, word in enumerate([each for each in words.split() if each[0] == "+"], 1):
                named[word[1:].split(">")[0]] = (node, number, seq)
    found = []
    for node, line in script.items():
        now = 0
        for number, words in enumerate(line.split("|"), 1):
            began, rows = now, []
            for word in words.split():
                now += 10
                rows.append(_row(word, named, now))
            why = torn.get((node, number), "")
            found.append(
                LifeRows(node=node, life=number, rows=rows, time_ns=began + 1 if number > 1 else 0, torn=why)
            )
    return found


def _row(word: str, named: Mapping[str, tuple[str, int, int]], now: int) -> list[object]:
    name, _, to = word[1:].partition(">")
    if word[0] == "+":
        return ["send", named[name][2], to, "finish", None, now]
    if word[0] == "-":
        return ["receive", *named.get(name, ("nowhere", 1, 1)), now]
    return ["mark", "cut", {"cut": name}, now]


def node_logs(script: Mapping[str, str]) -> list[NodeLog]:
    """The logs; a line that begins with … has lost its beginning, one that ends with … its end."""
    return [
        NodeLog(
            node=node,
            records=[_record(word, list(script)) for word in line.split() if word != "…"],
            damage=f"the log of {node} is torn" if line.endswith("…") else "",
            is_whole=not line.startswith("…"),
        )
        for node, line in script.items()
    ]


def logs(script: Mapping[str, str]) -> Logs:
    """Their columns."""
    return logs_of(node_logs(script))


def _record(word: str, nodes: list[str]) -> Record:
    kind, _, rest = word.rpartition(":")
    match kind:
        case "S":
            return Record(kind="start", cut=rest)
        case "B":
            return Record(kind="base", cut=rest)
        case "F":
            cut, *names = re.split(r"(?=[+-])", rest)
            sets = {sign: [name[1:] for name in names if name[0] == sign] for sign in "+-"}
            return Record(kind="finish", cut=cut, included=sets["+"], excluded=sets["-"])
        case "r":
            return Record(kind="rolled-back", xid=rest)
    if word == "R":
        return Record(kind="rebalanced")
    name, _, takers = rest.partition("@")
    participants = takers.split(",") if takers else nodes
    if kind == "p":
        return Record(kind="prepared", xid=name, participants=participants)
    xid = name.rstrip("!")
    by = "recovery" if name.endswith("!") else ""
    version = int(xid.lstrip("t"))
    return Record(kind="committed", xid=xid, participants=participants, writes=[("x", version)], by=by)
