"""Accepts or refuses proofs about the transactions of a cut. Shares no code with the checker, only the values of logs.

    verify_logs.check(logs, baseline, "k7", level, judgement.result, judgement.proof, operations)

| proof | shows | is checked by |
|---|---|---|
| sides | the level's claim holds; where START and FINISH of every server are | making each BEFORE from them |
| torn | one participant has the transaction in BEFORE, and another has not | the two BEFOREs |
| gap | a BEFORE has the later of two writers of a key, and lacks the earlier one | that BEFORE, and the versions |
| inversion | BEFORE lacks a transaction that a client knew of before one in it was invoked | the BEFOREs, the times |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from checkers.cuts.logs import BASE, COMMITTED, FINISH, REBALANCED, START, Logs, Operation
from checkers.cuts.trace import name_of
from checkers.verdict import RefusedError, need

Befores = dict[str, set[int]]


def check(
    logs: Logs,
    baseline: Sequence[str],
    cut: str,
    level: str,
    result: str,
    proof: Mapping[str, Any],
    operations: Sequence[Operation] = (),
) -> None:
    """Raise RefusedError unless the proof shows what a level says ("valid" or "invalid") of the cut."""
    try:
        before = {node: _before(logs, node, cut) for node in logs.nodes if node in baseline}
        takes = _participants(logs, baseline)
        _copies(logs, cut, before, takes)
        match level, result, proof["kind"]:
            case _, "valid", "sides":
                _sides(logs, baseline, cut, proof["marks"])
                _CHECKS[level](logs, before, takes, operations)
            case "transactions", "invalid", "torn":
                xid = logs.xids.index(proof["xid"])
                need({proof["has"], proof["lacks"]} <= takes[xid], "one of them is no participant")
                need(xid in before[proof["has"]], f"{proof['has']} does not have it")
                need(xid not in before[proof["lacks"]], f"{proof['lacks']} has it")
            case "closure", "invalid", "gap":
                _gap(logs, before, takes, proof)
            case "external-causality", "invalid", "inversion":
                _inversion(logs, before, takes, operations, proof)
            case _:
                raise RefusedError(f"a proof of kind {proof['kind']!r} does not show {level} {result}")
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise RefusedError(f"the proof cannot be read: {error}") from error


def _records(logs: Logs, node: str) -> range:
    place = logs.nodes.index(node)
    return range(int(logs.first[place]), int(logs.first[place + 1]))


def _mark(logs: Logs, node: str, kind: int, cut: str) -> int | None:
    for record in _records(logs, node):
        if logs.kind[record] == kind and logs.cut[record] >= 0 and logs.cuts[logs.cut[record]] == cut:
            return record
    return None


def _before(logs: Logs, node: str, cut: str) -> set[int]:
    """The transactions that a restore of the cut brings back on a node; none if the node has not both records of it."""
    start, finish = _mark(logs, node, START, cut), _mark(logs, node, FINISH, cut)
    if start is None or finish is None:
        return set()
    included = {int(xid) for record, xid in logs.included.tolist() if record == finish}
    excluded = {int(xid) for record, xid in logs.excluded.tolist() if record == finish}
    before: set[int] = set()
    seen: set[int] = set()
    for record in _records(logs, node):
        xid = int(logs.xid[record])
        if logs.kind[record] != COMMITTED or xid < 0 or xid in seen:
            continue
        seen.add(xid)
        if xid in included if record > start else xid not in excluded:
            before.add(xid)
    return before


def _participants(logs: Logs, baseline: Sequence[str]) -> dict[int, set[str]]:
    """By committed transaction the baseline servers that must have it."""
    committed: dict[int, set[str]] = {}
    for node in (name for name in logs.nodes if name in baseline):
        for record in _records(logs, node):
            if logs.kind[record] == COMMITTED and logs.xid[record] >= 0:
                committed.setdefault(int(logs.xid[record]), set()).add(node)
    for record, node_code in logs.taking.tolist():
        xid = int(logs.xid[record])
        if xid in committed and logs.nodes[node_code] in baseline:
            committed[xid].add(logs.nodes[node_code])
    return committed


def _copies(logs: Logs, cut: str, before: Befores, takes: Mapping[int, set[str]]) -> None:
    """Add what a node got as a copy before a base snapshot that precedes the cut.

    Such a node lacks records: its log begins late, or data came as a copy. The first base snapshot after that holds the
    copy.
    """
    for node in before:
        start = _mark(logs, node, START, cut)
        lacks = node in logs.cut_off
        own = {int(logs.xid[row]) for row in _records(logs, node) if logs.kind[row] == COMMITTED}
        for record in _records(logs, node):
            lacks = lacks or logs.kind[record] == REBALANCED
            if logs.kind[record] != BASE or not lacks:
                continue
            lacks = False
            if start is None or record > start:
                continue
            given = {
                xid
                for other in before
                if other != node
                for xid in _committed_before_base(logs, other, int(logs.cut[record]))
            }
            before[node] |= {xid for xid in given - own if node in takes.get(xid, ())}


def _committed_before_base(logs: Logs, node: str, base: int) -> set[int]:
    bases = [
        record for record in _records(logs, node) if logs.kind[record] == BASE and logs.cut[record] == base
    ]
    return {
        int(logs.xid[record])
        for record in _records(logs, node)
        if bases and record < bases[-1] and logs.kind[record] == COMMITTED and logs.xid[record] >= 0
    }


def _sides(logs: Logs, baseline: Sequence[str], cut: str, claimed: Mapping[str, Sequence[int]]) -> None:
    need(bool(baseline) and set(baseline) <= claimed.keys(), "it leaves out a server of the baseline")
    for node, (start, finish) in claimed.items():
        first = _records(logs, node).start
        need(_mark(logs, node, START, cut) == first + start, f"START of {cut} is elsewhere on {node}")
        need(_mark(logs, node, FINISH, cut) == first + finish, f"FINISH of {cut} is elsewhere on {node}")


def _agree(logs: Logs, before: Befores, takes: Mapping[int, set[str]], _: Sequence[Operation]) -> None:
    for xid, nodes in takes.items():
        sides = {xid in before[node] for node in nodes}
        need(len(sides) == 1, f"{logs.xids[xid]} is on both sides")


def _versions(logs: Logs, node: str) -> dict[int, list[tuple[int, int]]]:
    """By key (version, writer) of what a node committed, in order."""
    counts: dict[int, int] = {}
    for record in _records(logs, node):
        if logs.kind[record] == COMMITTED and int(logs.xid[record]) not in counts:
            counts[int(logs.xid[record])] = record
    by_key: dict[int, list[tuple[int, int]]] = {}
    for record, key, version in logs.writes.tolist():
        xid = int(logs.xid[record])
        if counts.get(xid) == record:
            by_key.setdefault(key, []).append((version, xid))
    return {key: sorted(writers) for key, writers in by_key.items()}


def _prefixes(logs: Logs, before: Befores, takes: Mapping[int, set[str]], _: Sequence[Operation]) -> None:
    writers: dict[tuple[int, int], int] = {}
    for node in before:
        for key, versions in _versions(logs, node).items():
            earlier: int | None = None
            for version, xid in versions:
                same = writers.setdefault((key, version), xid)
                need(same == xid, f"a version of {logs.keys[key]} has two writers")
                is_gap = earlier is not None and xid in before[node] and earlier not in before[node]
                # A gap beside a torn writer is a violation of the level "transactions", and not of this one.
                is_torn = earlier is not None and any(_is_torn(one, before, takes) for one in (earlier, xid))
                need(not is_gap or is_torn, f"{node} lacks a version of {logs.keys[key]}")
                earlier = xid


def _is_torn(xid: int, before: Befores, takes: Mapping[int, set[str]]) -> bool:
    return len({xid in before[taker] for taker in takes.get(xid, ())}) > 1


def _gap(logs: Logs, before: Befores, takes: Mapping[int, set[str]], proof: Mapping[str, Any]) -> None:
    earlier, later = logs.xids.index(proof["earlier"]), logs.xids.index(proof["later"])
    versions = _versions(logs, proof["node"])[logs.keys.index(proof["key"])]
    firsts = [version for version, xid in versions if xid == earlier]
    thens = [version for version, xid in versions if xid == later]
    need(min(firsts) < max(thens), "the writers have the other order")
    need(later in before[proof["node"]] and earlier not in before[proof["node"]], "BEFORE is not so")
    need(not any(_is_torn(one, before, takes) for one in (earlier, later)), "one of them is torn")


def _known(
    logs: Logs, takes: Mapping[int, set[str]], operations: Sequence[Operation]
) -> list[tuple[int, Operation]]:
    codes = {name: code for code, name in enumerate(logs.xids)}
    named = [(codes.get(name_of(operation.xid), -1), operation) for operation in operations]
    return [(xid, operation) for xid, operation in named if xid in takes]


def _ordered(
    logs: Logs, before: Befores, takes: Mapping[int, set[str]], operations: Sequence[Operation]
) -> None:
    known = _known(logs, takes, operations)
    has = [
        operation.invoked_ns for xid, operation in known if all(xid in before[node] for node in takes[xid])
    ]
    lacks = [
        time_ns
        for xid, time_ns in _learned(logs, operations)
        if xid in takes and not any(xid in before[node] for node in takes[xid])
    ]
    need(not has or not lacks or min(lacks) >= max(has), "a transaction that a client knew of is missing")


def _learned(logs: Logs, operations: Sequence[Operation]) -> list[tuple[int, int]]:
    """(transaction, when a client had an answer to it, or an answer that shows it)."""
    codes = {name: code for code, name in enumerate(logs.xids)}
    learned: list[tuple[int, int]] = []
    for operation in operations:
        shown = [*operation.saw, operation.xid] if operation.ok else operation.saw
        if operation.completed_ns >= 0:
            learned += [(codes.get(name_of(xid), -1), operation.completed_ns) for xid in shown]
    return learned


def _inversion(
    logs: Logs,
    before: Befores,
    takes: Mapping[int, set[str]],
    operations: Sequence[Operation],
    proof: Mapping[str, Any],
) -> None:
    known = _known(logs, takes, operations)
    earlier, later = logs.xids.index(proof["earlier"]), logs.xids.index(proof["later"])
    need(not any(earlier in before[node] for node in takes[earlier]), "the earlier one is in BEFORE")
    need(all(later in before[node] for node in takes[later]), "the later one is not in BEFORE")
    done = [time_ns for xid, time_ns in _learned(logs, operations) if xid == earlier]
    asked = [operation.invoked_ns for xid, operation in known if xid == later]
    need(min(done) < max(asked), "no client knew of it before the other was invoked")


_CHECKS = {"transactions": _agree, "closure": _prefixes, "external-causality": _ordered}
