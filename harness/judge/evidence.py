"""Whether a run is conclusive: what it shows, and what it lacks.

A run must show load that succeeded, of every kind and also under faults; faults that took effect and healed; and final
reads that had to be fresh. A workload may need more (`Workload.missing`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from checkers.history.columns import TYPES
from checkers.history.faults import CUTS, FaultSpan
from checkers.history.history import History
from checkers.history.line_kernels import FAIL, INFO, OK
from checkers.history.members import is_settled_at_the_end
from checkers.history.operation import Event
from checkers.history.rest import Rest, at_rest
from checkers.history.spans import NEVER, Spans, of_faults, united
from checkers.replicas.availability import Asked
from harness.faults.node_options import Decisive
from harness.faults.overlap import hinders_no_owner
from harness.faults.table import DIRECTED
from harness.judge.asked_faults import asked_in_effect, never_in_effect
from harness.judge.effects import Attempts, attempts_of, missing_effects
from harness.judge.load import Quiet, answers_of, missing_load, wanted_under_faults
from harness.judge.rare_turns import rare_turns_of
from harness.judge.versions import missing_steps, was_refused
from harness.plan.plan import SECOND_NS, Plan
from harness.systems import system_of
from harness.systems.promise import Promise
from harness.systems.system import TellsMore
from harness.workloads.workload import Workload

MANY_SKIPPED = 1 / 4
"""If a larger share of the faults of a schedule was skipped, that is reported."""
STALLED_MS_MAX = 1_000.0


def evidence_of(
    plan: Plan,
    workload: Workload,
    history: History,
    interrupted: bool,
    failure: str | None,
    *,
    promise: Promise,
    may_differ: bool = False,
) -> dict[str, Any]:
    """`may_differ`: nodes stopped for good, and may do so here: that they differ in the end then hides nothing."""
    load = Asked.of_load(history)
    spans = united(sure for fault in history.faults if (sure := fault.sure) is not None)
    evidence: dict[str, Any] = {
        "asked": _asked(plan),
        **{TYPES[how]: load.count(how) for how in (OK, FAIL, INFO)},
        "ok_under_fault": int((load.under(spans) & (load.type == OK)).sum()),
        **(_of_submitted(load, spans) if plan.submits else {}),
        "skipped": _skipped(history),
        "rollbacks": _rollbacks(plan, history),
        "faults": [
            {
                "id": fault.id,
                "name": fault.name,
                "took_effect": fault.took_effect,
                "healed": fault.healed,
                "ended": fault.end_index is not None,
            }
            for fault in history.faults
        ],
        "attempts": [kind.to_json() for kind in attempts(history)],
        "skipped_faults": skipped_faults(history),
        "kinds_in_effect": sorted({fault.name for fault in history.faults if fault.took_effect}),
        "observed": asked_in_effect(plan, history),
        "not_observed": never_in_effect(plan, history),
        "not_here": [event.value for event in _of_harness(history, "not-here")],
        "orphans": [
            {"node": event.node, "what": event.value.get("what")} for event in _of_harness(history, "orphans")
        ],
        "rare_turns": rare_turns_of(plan, history),
        "stalls": len(history.stalls),
        "torn": history.torn,
    }
    evidence["missing"] = _missing(
        plan, workload, history, evidence, interrupted, failure, may_differ, promise
    )
    rest = at_rest(history)
    if failure is None and not interrupted and not may_differ and not history.settled and not rest.is_quiet:
        evidence["missing"].append(_unrest(rest))
    return evidence


def _unrest(rest: Rest) -> str:
    told = [*rest.awaited, *([f"{', '.join(rest.untold)}: no position is known"] if rest.untold else [])]
    why = f": {'; '.join(told)}" if told else ""
    return (
        f"the nodes were not quiet and equal in time for the final reads (--settle-timeout waits longer){why}"
    )


def quiet_in_words(history: History) -> Iterator[str]:
    """A sentence if the harness waited in vain for nodes that stood still: they will never be equal and at rest."""
    rest = at_rest(history)
    if rest.is_quiet and rest.still_ns is not None:
        last = {state.node: state.status.get("vclock") for state in history.states}
        where = ", ".join(f"{node} {last[node]}" for node in sorted(last) if last[node] is not None)
        yield f"nothing moved for {rest.still_ns / 1e9:.0f} s, and the nodes had not settled: positions {where}"


def _of_submitted(load: Asked, spans: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Operations that were answered, but not acknowledged: load all the same."""
    submitted = load.is_served & (load.type == INFO)
    return {
        "submitted": int(submitted.sum()),
        "submitted_under_fault": int((submitted & load.under(spans)).sum()),
    }


def _asked(plan: Plan) -> int:
    """How many operations the plan asks for."""
    return int(plan.rate * plan.time_limit_s) if plan.drawn is None else len(plan.drawn.operations)


def was_interrupted(history: History) -> bool:
    """Whether a person ended the run. It stands in the record, so a later judgement sees it too."""
    return any(True for _ in history.told("harness", "interrupted"))


def _ended_by(history: History) -> str:
    """In words: a person, or the first violation of a run that fails fast."""
    found = any(event.value for event in history.told("harness", "interrupted"))
    return "the run was ended at its first violation" if found else "the run was interrupted"


def stopped_for_good(plan: Plan, history: History) -> tuple[str, ...]:
    """A sentence for each node that in the end follows a peer no more, because its history contradicts its own."""
    system = _tells_more(plan)
    if system is None:
        return ()
    newest = {state.node: state.status for state in history.states}
    return tuple(
        f"{node} stopped following {peer}: {why}"
        for node, status in sorted(newest.items())
        for peer, why in sorted(system.stopped(status).items())
    )


def _tells_more(plan: Plan) -> TellsMore | None:
    system = system_of(plan.system)
    return system if isinstance(system, TellsMore) else None


def skipped_faults(history: History) -> list[dict[str, Any]]:
    """Faults that the schedule had and that never began, and why."""
    return [
        {
            "id": event.value["fault"].get("id"),
            "name": event.value["fault"].get("name"),
            "why": event.value["why"],
        }
        for event in (*_of_harness(history, "skipped-fault"), *_of_harness(history, "left-out"))
    ]


def _of_harness(history: History, f: str) -> list[Event]:
    """Lines of the harness with this f and an object as value."""
    return [event for event in history.told("harness", f) if isinstance(event.value, dict)]


def _skipped(history: History) -> int:
    """Operations that were skipped because their worker was late. Records of before have no such lines."""
    told = (event.value for event in history.told("harness", "skipped"))
    return sum(int(value.get("count", 0)) for value in told if isinstance(value, dict))


def orphans_in_words(evidence: dict[str, Any]) -> Iterator[str]:
    """A sentence for each node that left processes behind."""
    for each in evidence["orphans"]:
        yield f"processes of {each['node']} outlived the one that was started, and were killed: {each['what']}"


def skipped_in_words(evidence: dict[str, Any]) -> Iterator[str]:
    """A sentence if so many faults were skipped, or all of a name, that a reader would think of another run."""
    absent = Counter(each["name"] for each in evidence["skipped_faults"])
    begun = Counter(fault["name"] for fault in evidence["faults"])
    many = absent.total() > MANY_SKIPPED * (absent.total() + begun.total())
    never = [name for name in sorted(absent) if not begun[name]]
    if many or never:
        most, times = Counter(each["why"] for each in evidence["skipped_faults"]).most_common(1)[0]
        text = f"{absent.total()} of {absent.total() + begun.total()} faults of the schedule were skipped"
        nothing = f"; nothing happened of: {', '.join(never)}" if never else ""
        yield f"{text} ({times} times because {most}){nothing}"


def _rollbacks(plan: Plan, history: History) -> int | None:
    """Transactions that were rolled back, as the nodes counted them; a restart begins to count anew.

    None: the store does not count them.
    """
    system = _tells_more(plan)
    if system is None:
        return None
    told = (system.rollbacks(state.status) for state in history.states)
    return max((count for count in told if count is not None), default=None)


def _missing(
    plan: Plan,
    workload: Workload,
    history: History,
    evidence: dict[str, Any],
    interrupted: bool,
    failure: str | None,
    may_differ: bool,
    promise: Promise,
) -> list[str]:
    missing: list[str] = []
    if failure is not None:
        missing.append(failure)
    if interrupted:
        missing.append(_ended_by(history))
    if history.torn is not None:
        missing.append(f"the record is torn: {history.torn}")
    ok, submitted = evidence["ok"], evidence.get("submitted", 0)
    answers = answers_of(workload, history, plan)
    quiet = Quiet.of(answers, history.faults)
    evidence["quiet"] = quiet.to_json()
    missing.extend(missing_load(plan, history, answers, quiet, ok, submitted, evidence["asked"]))
    if evidence.get("submitted") == 0:
        missing.append("no write was answered as submitted, although some were to be")
    missing.extend(missing_steps(plan, history))
    missing.extend(_missing_of_faults(plan, history, evidence, promise, quiet, may_differ))
    if not is_settled_at_the_end(history):
        missing.append("not all nodes were seen to agree on the members in the end")
    worst_ms = max((stall.stalled_ms for stall in history.stalls), default=0.0)
    if worst_ms > STALLED_MS_MAX:
        missing.append(f"the harness itself stood still for {worst_ms:.0f} ms")
    if failure is None and not interrupted:
        missing.extend(workload.missing(history))
    return missing


def _asks_for_faults(plan: Plan) -> bool:
    if plan.drawn is not None:
        return bool(plan.drawn.faults)
    return any(name != "none" for name in plan.faults)


def _is_steered(fault: FaultSpan, others: Spans[FaultSpan]) -> bool:
    """A directed fault need not take effect; nor one that a directed fault got in the way of."""
    return any(map(_is_directed, (fault, *_beside(fault, others))))


def _is_directed(fault: FaultSpan) -> bool:
    return fault.asked.get("on") is not None or fault.does in DIRECTED


def _beside(fault: FaultSpan, others: Spans[FaultSpan]) -> Iterator[FaultSpan]:
    """The faults that were active at the same time: they may have kept this one from taking effect."""
    at_once = others.touching(fault.start_ns, fault.end_ns or fault.start_ns)
    return (other for other in at_once if other is not fault)


def _was_hidden(fault: FaultSpan, others: Sequence[FaultSpan], decisive: Decisive) -> bool:
    """Whether it healed could not even be tried, because of another fault that was at work when it was to heal."""
    return fault.healed is None and any(
        other is not fault and _hides(other, fault, decisive) for other in others
    )


def _hides(other: FaultSpan, fault: FaultSpan, decisive: Decisive) -> bool:
    """Whether `other` was active while `fault` healed. A removed node never returns; an added one is not up yet."""
    since_ns = fault.start_ns if fault.heal_asked_ns is None else fault.heal_asked_ns
    whom: Sequence[Sequence[str]] = fault.links or tuple((node,) for node in fault.nodes)
    are_absent = other.does in ("remove", "add") and all({*each} & {*other.nodes} for each in whom)
    if hinders_no_owner(other.does, other.asked.get("options", {}), decisive) and not are_absent:
        return False
    until_ns = NEVER if other.does == "remove" and are_absent else other.end_ns or NEVER
    return other.start_ns <= (fault.end_ns or NEVER) and until_ns >= since_ns


def _is_of_stopped(plan: Plan, fault: FaultSpan, history: History) -> bool:
    """A cut between nodes of which one has stopped following the other: nothing need come through it again."""
    links = {frozenset(link) for link in fault.links} if fault.does in CUTS else set()
    system = _tells_more(plan)
    return system is not None and any(
        frozenset((state.node, peer)) in links
        for state in history.states
        for peer in system.stopped(state.status)
    )


def attempts(history: History) -> tuple[Attempts, ...]:
    """The faults that have to take effect, by kind."""
    every = of_faults(history.faults)
    faults = [
        fault
        for fault in history.faults
        if fault.end_index is not None and not _is_steered(fault, every) and not was_refused(fault)
    ]
    return attempts_of(faults, lambda fault: any(_beside(fault, every)))


def _missing_of_faults(
    plan: Plan,
    history: History,
    evidence: dict[str, Any],
    promise: Promise,
    quiet: Quiet,
    may_differ: bool = False,
) -> list[str]:
    missing: list[str] = []
    decisive = plan.expectations.decisive
    if not history.faults:
        return ["faults were asked for, but there was no time for one"] if _asks_for_faults(plan) else []
    every = of_faults(history.faults)
    for fault in history.faults:
        if _is_steered(fault, every) or was_refused(fault):
            continue
        if fault.end_index is None:
            missing.append(f"fault {fault.id} ({fault.name}) never ended")
        elif (may_differ and _is_of_stopped(plan, fault, history)) or fault.healed:
            continue
        elif not fault.took_effect and any(_beside(fault, every)):
            continue  # it took none, maybe because of another: there was nothing to heal
        elif not _was_hidden(fault, history.faults, decisive):
            missing.append(f"fault {fault.id} ({fault.name}) was not seen to heal")
    missing += missing_effects(attempts(history))
    least = 1 if plan.drawn is None else 0  # a plan that was cut down to a few operations may have none
    if all(map(_is_directed, history.faults)):
        wanted = least
    else:
        wanted = wanted_under_faults(plan, history, quiet, evidence["asked"], least=least)
    if evidence["ok_under_fault"] + evidence.get("submitted_under_fault", 0) < wanted:
        missing.append(
            f"too little load under faults: {evidence['ok_under_fault']} operations succeeded while one was active, "
            f"expected at least {wanted}"
        )
    longest_ns = max(
        (
            fault.heal_asked_ns - fault.all_in_effect_ns
            for fault in history.faults
            if fault.name == "isolate-owner"
            and fault.took_effect
            and fault.heal_asked_ns
            and fault.all_in_effect_ns
        ),
        default=0,
    )
    waited = longest_ns > 2 * plan.expectations.rolls_back_after_s * SECOND_NS and plan.quorum_size > 1
    waited &= not plan.submits  # what is only submitted has no time-out, and may have filled the queue
    if promise.isolated_owner_rolls_back and waited and not evidence["rollbacks"]:
        missing.append("the owner was isolated, and yet nothing was ever rolled back")
    return missing
