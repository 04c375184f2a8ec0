"""Second clusters of the two-phase store: which cuts they begin from, with which files, and whether that was right.

A cut with a FINISH on every server must be restorable; any other must be refused, before any node has anything of it.
The logs of the first cluster decide which one a cut is, and a replay of them says what a second cluster has to show.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from checkers.check import Check
from checkers.history.history import History
from checkers.history.operation import Event
from checkers.verdict import WITNESSES_MAX, Verdict, Witness
from harness.plan.plan import Plan
from harness.systems.parts import NodeFiles, Rows
from harness.systems.twophase.cut_operator import UNKNOWN
from harness.systems.twophase.logs import Records, damage_in, finished_in, records_in, replayed
from harness.systems.twophase.options import said_of, servers_of
from harness.workloads.restoring import AGAIN, ASKED, BROKE, CUT, DUMP, FIRST, NAME, READ, REFUSED, RULE
from nodes.kernel.errors import StartRefused
from nodes.twophase import bugs
from nodes.twophase.data import partition_of
from nodes.twophase.restore import NotRestorable, restore, restored_files


def drawn_cuts(plan: Plan, files: NodeFiles) -> Sequence[str]:
    """Some cuts that every server finished, and one, if any, that only some did: it must be refused."""
    servers = servers_of(plan)
    finished = finished_in(records_in(files, servers))
    good = [cut for cut, on in finished.items() if len(on) == len(servers)]
    rest = [cut for cut, on in finished.items() if len(on) < len(servers)]
    chance = random.Random(f"{plan.seed}/restored")
    drawn = set(chance.sample(good, min(said_of(plan).restores, len(good))))
    return [*(cut for cut in good if cut in drawn), *rest[:1]]


def files_restored(plan: Plan, files: NodeFiles, cut: str) -> NodeFiles | str:
    said, servers = said_of(plan), servers_of(plan)
    logs = {server: files.get(server, {}) for server in servers}
    layout = [said.partitions, said.backups, *servers]
    try:
        return restored_files(logs, cut, layout, bugs.decisions_with(plan.bugs))
    except NotRestorable as refused:
        return str(refused)


def rows_of(plan: Plan, files: NodeFiles, cut: str) -> Mapping[str, Rows] | str:
    decisions = bugs.decisions_with(plan.bugs)
    try:
        return {
            server: [row[:3] for row in restore(files.get(server, {}), cut, decisions).rows]
            for server in servers_of(plan)
        }
    except (NotRestorable, StartRefused) as refused:
        return str(refused)


# ---- the judgement


def check_of_restored(plan: Plan, files: NodeFiles) -> Check:
    return Check(NAME, RULE, RULE, lambda history: judged(plan, files, history), is_of_nodes=True)


def judged(plan: Plan, files: NodeFiles, history: History) -> Verdict:
    """Unknown if a log cannot be read, if no second cluster came to its end, or if one broke off and no node reports
    why."""
    if damage := damage_in(files, servers_of(plan)):
        return Verdict(checker=NAME, result="unknown", summary=damage, model=RULE)
    by_cut: dict[str, list[Event]] = {}
    for event in history.told("operator", ASKED, REFUSED, BROKE, READ, DUMP, CUT, AGAIN):
        by_cut.setdefault(event.value["cut"], []).append(event)
    records = records_in(files, servers_of(plan))
    finished = finished_in(records)
    witnesses: list[Witness] = []
    outcomes: list[dict[str, str]] = []
    for cut, events in by_cut.items():
        missing = [server for server in servers_of(plan) if server not in finished.get(cut, ())]
        wrong = [*(_of_unfinished(events, missing) if missing else _of_finished(plan, records, cut, events))]
        witnesses += wrong
        result, summary = _result(events, wrong, is_finished=not missing)
        outcomes.append({"cut": cut, "result": result, "summary": summary})
    results = [outcome["result"] for outcome in outcomes]
    result = "invalid" if witnesses else "valid" if results and set(results) == {"valid"} else "unknown"
    summary = f"{len(outcomes)} cuts given to restore, {results.count('invalid')} wrong"
    if "unknown" in results:
        open_one = outcomes[results.index("unknown")]
        summary += f"; {open_one['cut']}: {open_one['summary']}"
    details: dict[str, Any] = {"cuts": outcomes}
    if not any(event.f == READ for events in by_cut.values() for event in events):
        details["vacuous"] = True
        result = "unknown" if result == "valid" else result
    return Verdict(
        checker=NAME,
        result=result,  # type: ignore[arg-type]  # three words of Result
        summary=summary if outcomes else "no cut was given to restore",
        model=RULE,
        witnesses=tuple(witnesses[:WITNESSES_MAX]),
        details=details,
    )


def _result(events: Sequence[Event], wrong: Sequence[Witness], *, is_finished: bool) -> tuple[str, str]:
    """The result and its sentence, for one cut."""
    if wrong:
        return "invalid", wrong[0].summary
    of = {event.f: event for event in events}
    if REFUSED in of:
        return "valid", f"refused: {of[REFUSED].value['why']}"
    if BROKE in of:
        return "unknown", of[BROKE].value["why"]
    if CUT not in of or of[CUT].value["state"] != "ok" or AGAIN not in of:
        return "unknown", "the second cluster did not come to its end"
    assert is_finished, "a second cluster from a cut that was not finished is wrong"
    return "valid", "the second cluster has what the cut has, and went on"


def _witness(rule: str, event: Event, summary: str) -> Witness:
    return Witness(
        rule=rule,
        summary=summary,
        events=(event.index,),
        node=event.node,
        start_ns=event.time_ns,
        end_ns=event.time_ns,
    )


def _of_unfinished(events: Sequence[Event], missing: Sequence[str]) -> Iterator[Witness]:
    """The restore of an unfinished cut must be refused as a whole.

    A record may end between the request and the refusal: only what follows a refused request shows a second cluster.
    """
    if any(event.f not in (ASKED, REFUSED) for event in events):
        cut = events[0].value["cut"]
        summary = f"the cut {cut} has no FINISH on {', '.join(missing)}, and a cluster began from it"
        yield _witness("not-refused", events[0], summary)


def _of_finished(plan: Plan, records: Records, cut: str, events: Sequence[Event]) -> Iterator[Witness]:
    servers = servers_of(plan)
    expected = {key: value for key, (value, _) in replayed(records, cut).items()}
    for event in events:
        match event.f:
            case "restore-refused":
                yield _witness(
                    "refused",
                    event,
                    f"every server has finished {cut}, and its restore was refused: {event.value['why']}",
                )
            case "restore-broke" if event.value["ended"]:
                yield _witness(
                    "ended", event, f"of the cluster restored to {cut}, nodes ended: {event.value['why']}"
                )
            case "restored-read" if event.value["when"] == FIRST:
                yield from _differing(event, expected, _rows(event), "shows")
            case "restored-dump" if event.value["when"] == FIRST and event.node in servers:
                yield from _differing(event, _owned(plan, event.node or "", expected), _rows(event), "holds")
            # Of an unknown end no node has said that it is a bad one: the second cluster did not come to its end.
            case "restored-cut" if event.value["state"] not in ("ok", UNKNOWN):
                summary = (
                    f"the cluster restored to {cut} takes no cut: {event.value['state']} {event.value['why']}"
                )
                yield _witness("no-further-cut", event, summary)
    yield from _unlike(
        plan, [line for line in events if line.f == DUMP and line.value["when"] != FIRST], "holds"
    )
    yield from _unlike(plan, [line for line in events if line.f == AGAIN], "restores")


def _rows(event: Event) -> dict[tuple[Any, Any], Any]:
    return {(space, key): value for space, key, value in event.value["rows"] if value is not None}


def _owned(plan: Plan, node: str, rows: Mapping[tuple[Any, Any], Any]) -> dict[tuple[Any, Any], Any]:
    """The rows of a node's own partitions."""
    said, servers = said_of(plan), servers_of(plan)
    place = servers.index(node)
    return {
        key: value
        for key, value in rows.items()
        if (place - partition_of(key, said.partitions)) % len(servers) <= said.backups
    }


def _differing(
    event: Event, expected: Mapping[tuple[Any, Any], Any], shown: Mapping[tuple[Any, Any], Any], does: str
) -> Iterator[Witness]:
    wrong = [key for key in dict.fromkeys((*expected, *shown)) if expected.get(key) != shown.get(key)]
    if wrong:
        space, key = wrong[0]
        there, due = shown.get((space, key)), expected.get((space, key))
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        yield _witness(
            "differs-from-replay",
            event,
            f"{event.node} of the cluster restored to {event.value['cut']} {does} {there!r} as {space} {key!r}, "
            f"and a replay of the logs comes to {due!r}{more}",
        )


def _unlike(plan: Plan, events: Sequence[Event], does: str) -> Iterator[Witness]:
    """All owners of a row must have the same value of it."""
    known: dict[tuple[Any, Any], Any] = {}
    for event in events:
        known.update({key: value for key, value in _rows(event).items() if key not in known})
    for event in events:
        if event.node in servers_of(plan):
            owned = _owned(plan, event.node, known)
            shown = _owned(plan, event.node, _rows(event))
            wrong = [key for key, value in owned.items() if shown.get(key) != value]
            if wrong:
                yield _witness(
                    "copies-differ",
                    event,
                    f"{event.node} of the cluster restored to {event.value['cut']} {does} "
                    f"{shown.get(wrong[0])!r} as {wrong[0][0]} {wrong[0][1]!r}, a different owner {owned[wrong[0]]!r}",
                )
