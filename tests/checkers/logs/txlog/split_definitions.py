"""Policy, votes and liveness from the design alone: slow, and plain to see. Shares nothing with `checkers.logs.txlog`.

Each function returns the names of the rules that are broken. Times are tenths of a second, and every one is looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Logs = Mapping[str, list[list[Any]]]
Span = tuple[int, int]
TENTH_NS = 100_000_000


# ---- votes


def synced(records: list[list[Any]]) -> list[list[Any]]:
    """The synchronised queue behind these records."""
    queue: list[list[Any]] = []
    for record in records:
        match record:
            case ["added" | "caught-up", index, refs, *_]:
                queue = queue[:index] + refs
            case ["recovered", _, common, _, _, refs, *_]:
                queue = queue[:common] + refs
    return queue


def vote(logs: Logs) -> set[str]:
    """Every master froze its queue; most masters on one branch win, then the longer branch, then the smaller name."""
    broken = set[str]()
    over = [
        (master, at, record)
        for master, records in logs.items()
        for at, record in enumerate(records)
        if record[0] == "recovered"
    ]
    for epoch in {record[1] for _, _, record in over}:
        frozen = {
            master: synced(records[:at])
            for master, records in logs.items()
            for at, record in enumerate(records)
            if record[:2] == ["recovering", epoch - 1]
        }
        here = [each for each in over if each[2][1] == epoch]
        if len({record[3] for _, _, record in here}) > 1:
            broken.add("two-winners")
        for master, at, record in here:
            if {*record[4]} != {*logs}:
                broken.add("partial-vote")
            if {*frozen} != {*logs}:
                broken.add("voted-without-digest")
                continue
            on_branch = {
                one: len([1 for theirs in frozen.values() if theirs == branch[: len(theirs)]])
                for one, branch in frozen.items()
            }
            best = [one for one in sorted(frozen) if on_branch[one] == max(on_branch.values())]
            best = [one for one in best if len(frozen[one]) == max(len(frozen[each]) for each in best)]
            if record[3] != best[0] or record[4] != on_branch:
                broken.add("wrong-winner")
            keeps = list(frozen[best[0]])
            if logs[master][0][2] == "simple":
                while any(queue[: len(keeps)] != keeps for queue in frozen.values()):
                    keeps.pop()
            if synced(logs[master][: at + 1]) != keeps:
                broken.add("wrong-branch")
    return broken


# ---- policy


def policy(records: list[list[Any]]) -> set[str]:
    """What a master may do in a split and in a recovery, without any times."""
    broken = set[str]()
    for at, record in enumerate(records):
        before = records[:at]
        strategy = [each[-1] for each in before if each[0] in ("life", "strategy")][-1:]
        left_out = is_frozen = waits = False
        for each in before:
            if each[0] == "split":
                left_out = True
            elif each[0] == "recovering":
                is_frozen = waits = True
            elif each[0] == "thawed":
                is_frozen = False
            elif each[0] == "recovered":
                left_out = is_frozen = waits = False
            elif each[0] == "rejoined":
                left_out = False
        kind = record[0]
        if kind in ("life", "strategy") and (left_out or waits) and [record[-1]] != strategy:
            broken.add("strategy-changed")
        takes_backup = kind == "split" and record[2] is not None
        if strategy == ["none"] and (takes_backup or kind in ("recovering", "restored")):
            broken.add("acted-without-strategy")
        if kind == "split" and not takes_backup and not left_out and strategy != ["none"]:
            broken.add("split-without-backup")
        if kind == "executed" and is_frozen:
            broken.add("executed-in-recovery")
    return broken


def lost(cuts: Mapping[str, Sequence[Span]], timeout: int, by: int, slack: int) -> bool:
    """At some time until `by`, all links to the master were cut for the time-out. They stand again after `slack`."""
    return any(
        all(
            any(begin <= moment < end + slack for begin, end in spans)
            for spans in cuts.values()
            for moment in range(now - timeout, now)
        )
        for now in range(timeout, by + 1)
    )


# ---- liveness


def waits(invoke: int, complete: int, spans: Sequence[Span]) -> int:
    """The longest time in one piece, between these two, in which nothing was disturbed."""
    longest = calm = 0
    for moment in range(invoke, complete):
        is_calm = not any(begin <= moment < end for begin, end in spans)
        calm = calm + 1 if is_calm else 0
        longest = max(longest, calm)
    return longest


def drained(
    logs: Logs, asked: Sequence[Span], spans: Sequence[Span], gave_up: int | None, bound: int
) -> set[str]:
    """`gave_up`: when the harness no longer waited for quiet masters; None: they were quiet."""
    broken = set[str]()
    if any(waits(invoke, complete, spans) > bound for invoke, complete in asked):
        broken.add("stalled")
    over = [0, *(end for _, end in spans), *(invoke for invoke, _ in asked if gave_up and invoke < gave_up)]
    if gave_up is not None and gave_up - max(over) >= bound:
        made = {record[3] for records in logs.values() for record in records if record[0] == "made"}
        for records in logs.values():
            if not made <= {name for _, name, _ in synced(records)}:
                broken.add("never-drained")
    return broken
