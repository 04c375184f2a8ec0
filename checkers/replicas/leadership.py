"""Leadership: what the nodes reported of their elections, against what an election promises.

| rule | violated when |
|---|---|
| two-leaders | two nodes reported that they lead the same term |
| idle-promote | a leader reported for long that its PROMOTE has all acknowledgements it needs, and owned nothing yet |
| unfenced | a node that heard no quorum for long reported that it still owns the queue, although fencing is on |
| runaway-term | a node that heard no other node stood for election all the same: its term rose (no pre-vote) |
| deposed | a follower became a candidate against a living leader after its election mode was changed |
| stopped | nodes stopped following each other before anything was done to them |
| no-leader | after the last fault had healed, no node owned the queue in time |
| not-converged | after the last fault had healed, the nodes did not become quiet and equal in time |

The nodes' reports are the monitor's lines. Only verified cuts show which node heard no quorum. The last three rules,
idle-promote and deposed are judged only where the header gives a time limit (`leader_within_ns`). Only the simulator
gives one: its time does not depend on how busy a machine is. If nodes may stop for good (`converges` is false),
not-converged and stopped are not judged; nor is no-leader, if the nodes that stopped following each other leave no
quorum (`details` says so). Neither is judged where a change of members left a dead one behind. runaway-term is not
judged while an operator fails over. `unfenced` needs the header's `fencing` to be soft or strict.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from checkers.history.faults import HOLDS_UP_NOBODY, LOSES_TIME, SETS_CLOCKS, Cut, FaultSpan
from checkers.history.history import History, State
from checkers.history.members import at_the_end, counts
from checkers.history.spans import Spans, of_faults
from checkers.history.values import many, vclock_words
from checkers.verdict import Verdict, Witness, concluded

NAME = "leadership"
MODEL = "one leader a term, fenced without a quorum, there again after healing"
FENCED_BEATS = 8
"""After so many heartbeats without a quorum a leader must have resigned: twice the death timeout."""
IDLE_BEATS = 4
"""So many heartbeats after its quorum a PROMOTE must have taken effect."""
MODE = "election_mode"
CALM_BEATS = 6
"""After a cut of so many heartbeats a node knows that it hears no other node."""


def check(history: History) -> Verdict:
    """Whether elections kept what they promise. `details` counts what could be judged."""
    witnesses = [
        *_two_leaders(history),
        *_idle_promotes(history),
        *_deaf(history),
        *_deposed(history),
        *_stopped_unharmed(history),
        *_after_healing(history),
    ]
    terms = {state.status.get("election_term") for state in history.states}
    details: dict[str, Any] = {
        "terms": len(terms - {None}),
        "violations": len(witnesses),
        "deaf_ms": sum((end - start) // 1_000_000 for *_, start, end in _deaf_times(history)),
    }
    if _may_be_leaderless(history):
        details["split_for_good"] = True
    summary = ", and ".join(_kept(history, details))
    if not summary:
        summary = "nothing to judge: no node tells of elections"
        details |= {"vacuous": True, "opportunities": 0}
    return concluded(NAME, witnesses, summary, model=MODEL, details=details)


def _kept(history: History, details: dict[str, Any]) -> list[str]:
    """The rules that were judged, in words, if they hold."""
    kept = [f"one leader a term ({many(details['terms'], 'term')})"] if details["terms"] else []
    if "split_for_good" in details:
        kept.append("nodes that stopped following each other may have no leader")
    elif (after := _after(history)) is not None and after.led:
        kept.append("one was there when it had to be")
    return kept


@dataclass(frozen=True, slots=True)
class _After:
    """What the reports say of the time after the last fault had healed."""

    within_ns: int
    """The time in which a node must own the queue again."""
    led: bool
    """One did."""
    is_over: bool
    """The last report is behind that time."""


def _after(history: History) -> _After | None:
    """None where that cannot be judged."""
    within_ns = history.header.extra.get("leader_within_ns")
    if not isinstance(within_ns, int) or history.settled is None or not history.states:
        return None
    if any(_left_a_member_dead(fault) for fault in history.faults):
        return None
    healed_ns = max((fault.end_ns or fault.start_ns for fault in history.faults), default=0)
    led = [s for s in history.states if s.time_ns >= healed_ns and s.status.get("role") == "owner"]
    return _After(
        within_ns,
        led=bool(led) and led[0].time_ns <= healed_ns + within_ns,
        is_over=history.states[-1].time_ns > healed_ns + within_ns,
    )


def _two_leaders(history: History) -> Iterator[Witness]:
    leaders: dict[object, State] = {}
    for state in history.states:
        if state.status.get("election") != "leader":
            continue
        term = state.status.get("election_term")
        if term is None:
            continue
        first = leaders.setdefault(term, state)
        if first.node != state.node:
            yield _witness("two-leaders", f"{first.node} and {state.node} both led term {term}", first, state)
            return


def _idle_promotes(history: History) -> Iterator[Witness]:
    """By the leader's own reports, so cuts do not matter; only a fault of a disk or a process may delay a PROMOTE."""
    beat_ns = history.header.heartbeat_ns
    if not beat_ns or not _is_timed(history):
        return
    faults = of_faults(history.faults)
    for node in history.header.nodes:
        first: State | None = None
        for state in (report for report in history.states if report.node == node):
            if not _has_idle_promote(state):
                first = None
            elif first is None or not _goes_on(faults, first, state):
                first = state
            elif state.time_ns - first.time_ns > IDLE_BEATS * beat_ns:
                waits_s, limit_s = (state.time_ns - first.time_ns) / 1e9, IDLE_BEATS * beat_ns / 1e9
                words = (
                    f"{node} had a quorum for its PROMOTE and still waited {waits_s:.1f} s later; "
                    f"{limit_s:.1f} s ({IDLE_BEATS} heartbeats) must do"
                )
                yield _witness("idle-promote", words, first, state)
                break


def _goes_on(faults: Spans[FaultSpan], first: State, state: State) -> bool:
    """Whether it is the same wait, and no fault on the node holds it up."""
    is_same = first.status.get("election_term") == state.status.get("election_term")
    return is_same and not any(
        state.node in fault.nodes and fault.does not in HOLDS_UP_NOBODY
        for fault in faults.touching(first.time_ns, state.time_ns)
    )


def _has_idle_promote(state: State) -> bool:
    match state.status:
        case {"election": "leader", "role": "replica", "promote": {"acks": int(acks), "quorum": int(quorum)}}:
            return acks >= quorum
    return False


def _deaf_times(history: History) -> list[tuple[str, bool, int, int]]:
    """(node, whether it heard no node at all, from, to): times in which the node surely heard too few for a quorum."""
    faults = of_faults(history.faults)
    return [
        time for fault in history.faults for cut in fault.cuts for time in _deaf_while(history, faults, cut)
    ]


def _deaf_while(history: History, faults: Spans[FaultSpan], cut: Cut) -> Iterator[tuple[str, bool, int, int]]:
    header = history.header
    if header.quorum is None:
        return
    counted = counts(history, cut.sure)
    if any(other.does == "options" or other.asked.get("options") for other in faults.touching(*cut.sure)):
        return  # how soon it must know is not what the header says
    for node in header.nodes:
        silent = {source for source, target in cut.links if target == node}
        heard = [{*count.nodes} - silent - {node} for count in counted]
        if all(
            count.quorum is not None and node in count.nodes and 1 + len(others) < count.quorum
            for count, others in zip(counted, heard, strict=True)
        ):
            yield node, not any(heard), *cut.sure


def _deaf(history: History) -> Iterator[Witness]:
    beat_ns = history.header.heartbeat_ns
    if not beat_ns:  # limits count in heartbeats
        return
    extra = history.header.extra
    faults, reports = of_faults(history.faults), _reports(history)
    for node, hears_nobody, cut, end in _deaf_times(history):
        start = _awake(faults, node, cut, end)
        states = reports.get(node, [])
        if extra.get("fencing") in ("soft", "strict"):
            set_before = (f for f in history.faults if f.does in SETS_CLOCKS and f.start_ns <= end)
            how = "its clock had been set" if any(node in fault.nodes for fault in set_before) else ""
            yield from _unfenced(node, states, start, FENCED_BEATS * beat_ns, end, how)
        is_asked = extra.get("operated") or any(f.does == "failover" for f in faults.touching(start, end))
        if hears_nobody and not is_asked:
            yield from _runaway(node, states, start + CALM_BEATS * beat_ns, end)


def _reports(history: History) -> dict[str, list[State]]:
    """By node its reports while it was up, in the order of time."""
    reports: dict[str, list[State]] = {}
    for state in sorted(history.states, key=_time_of):
        if state.status.get("up"):
            reports.setdefault(state.node, []).append(state)
    return reports


def _time_of(state: State) -> int:
    return state.time_ns


def _between(states: Sequence[State], start: int, end: int) -> Sequence[State]:
    """The states in the order of time after `start` and before `end`."""
    return states[bisect_right(states, start, key=_time_of) : bisect_left(states, end, key=_time_of)]


def _awake(faults: Spans[FaultSpan], node: str, start: int, end: int) -> int:
    """When the node could first notice the silence: a node that sleeps counts no time, and wakes to old news."""
    slept = [
        end if fault.end_ns is None else fault.end_ns
        for fault in faults.touching(start, end)
        if fault.does in LOSES_TIME and node in fault.nodes
    ]
    return max([start, *slept])


def _unfenced(
    node: str, states: Sequence[State], heard_ns: int, limit_ns: int, end: int, how: str
) -> Iterator[Witness]:
    late = [s for s in _between(states, heard_ns + limit_ns, end) if s.status.get("role") == "owner"]
    if late:
        words = (
            f"{node} still owned the queue {(late[0].time_ns - heard_ns) / 1e9:.1f} s after it had last heard "
            f"a quorum; it must give it up within {limit_ns / 1e9:.1f} s ({FENCED_BEATS} heartbeats)"
        )
        yield replace(_witness("unfenced", words, late[0], late[-1]), how=how)


def _runaway(node: str, states: Sequence[State], start: int, end: int) -> Iterator[Witness]:
    reports = [s for s in _between(states, start, end) if isinstance(s.status.get("election_term"), int)]
    if reports:
        first, last = reports[0].status["election_term"], reports[-1].status["election_term"]
        if last > first:
            words = f"{node} went from term {first} to term {last} while it heard no other node"
            yield _witness("runaway-term", words, reports[0], reports[-1])


def _stopped_unharmed(history: History) -> Iterator[Witness]:
    """Where nodes must converge: a node that stopped following another one before the first fault."""
    if _is_timed(history) and not _may_stop(history):
        first_ns = min((fault.start_ns for fault in history.faults), default=None)
        for state in history.states:
            if first_ns is not None and state.time_ns >= first_ns:
                return
            for peer, reason in (state.status.get("stopped") or {}).items():
                yield _witness("stopped", f"{state.node} stopped following {peer}: {reason}", state, state)
                return


def _is_timed(history: History) -> bool:
    return isinstance(history.header.extra.get("leader_within_ns"), int)


def _deposed(history: History) -> Iterator[Witness]:
    """Only where no other fault touched the cluster, from some heartbeats before the change until a term began."""
    if not _is_timed(history):
        return
    calm_ns = CALM_BEATS * (history.header.heartbeat_ns or 0)
    faults, states = of_faults(history.faults), sorted(history.states, key=_time_of)
    for fault in history.faults:
        if fault.does != "options" or MODE not in fault.asked.get("options", {}):
            continue
        start, end = fault.start_ns - calm_ns, (fault.end_ns or fault.start_ns) + calm_ns
        others = [other for other in faults.touching(start, end) if other is not fault]
        end = min([end, *(other.start_ns for other in others if other.start_ns >= fault.start_ns)])
        if any(other.start_ns <= fault.start_ns for other in others):
            continue  # not alone
        before = _between(states, start - 1, fault.start_ns + 1)
        led = [state for state in before if state.status.get("role") == "owner"]
        terms = {state.status.get("election_term") for state in before}
        if len(fault.nodes) != 1 or not led or led[-1].node in fault.nodes or len(terms) != 1:
            continue
        after = _between(states, fault.start_ns, end + 1)
        late = next(
            (state for state in after if state.status.get("election_term") not in (*terms, None)), None
        )
        if late is not None:
            words = f"{led[-1].node} led, and {fault.nodes[0]} began another term when its election mode was changed"
            yield _witness("deposed", words, led[-1], late)


def _after_healing(history: History) -> Iterator[Witness]:
    after = _after(history)
    if after is None:
        return
    last = history.states[-1]
    if after.is_over and not after.led and not _may_be_leaderless(history):
        words = f"no node owned the queue within {after.within_ns / 1e9:g} s after the last fault had healed"
        yield _witness("no-leader", words, last, last)
    elif history.settled is False and not _may_stop(history):
        words = "after healing the nodes did not become quiet and equal: " + _differences(history)
        yield replace(_witness("not-converged", words, last, last), how=_stops(history))


def _left_a_member_dead(fault: FaultSpan) -> bool:
    """Whether a node was stopped so that it leaves, and the other nodes still count it.

    Then nothing has healed. Of two remaining nodes one may have to join anew; it waits for the queue of the other one,
    which waits for a quorum.
    """
    return fault.does in ("remove", "replace") and fault.healed is False


def _may_stop(history: History) -> bool:
    return not history.header.extra.get("converges", True)


def _may_be_leaderless(history: History) -> bool:
    """Whether no leader may be possible. Either the nodes that stopped following each other leave no quorum; or
    (`elects_when_split` in the header is false) a node has rows that the rest will never take, and its candidacies
    keep them from electing a leader."""
    if not history.header.extra.get("elects_when_split", True):
        return any(state.status.get("stopped") for state in history.states)
    return _may_stop(history) and is_split_for_good(history)


def is_split_for_good(history: History) -> bool:
    """Whether, by the last reports, there is no node that a quorum follows and that follows it: votes need both.

    Nodes that were removed, or have lost their disk, are not counted; the quorum in the reports may still count them.
    """
    members = at_the_end(history)
    newest = {state.node: state.status for state in history.states if state.node in members}
    stopped = {node: {*(status.get("stopped") or ())} for node, status in newest.items()}
    quorums = [quorum for report in newest.values() if isinstance(quorum := report.get("quorum"), int)]
    quorum = min(quorums, default=history.header.quorum)
    if quorum is None or not any(stopped.values()):
        return False
    return all(
        sum(other not in stopped[node] and node not in stopped[other] for other in newest) < quorum
        for node in newest
    )


def _stops(history: History) -> str:
    """Why nodes stopped following each other, by their last reports."""
    newest = {state.node: state.status for state in history.states}
    reasons = {
        str(reason).partition(":")[0]
        for status in newest.values()
        for reason in (status.get("stopped") or {}).values()
    }
    return "; ".join(sorted(reasons)) or "none stopped following another one"


def _differences(history: History) -> str:
    newest = {state.node: state.status for state in history.states}
    sentences = []
    for node in sorted(newest):
        status = newest[node]
        stopped = status.get("stopped")
        why = "".join(f", stopped following {other} ({reason})" for other, reason in (stopped or {}).items())
        sentences.append(
            f"{node} is {status.get('role', 'silent')} at {vclock_words(status.get('vclock') or {})}{why}"
        )
    return "; ".join(sentences)


def _witness(rule: str, summary: str, first: State, last: State) -> Witness:
    return Witness(
        rule=rule,
        summary=summary,
        events=tuple(sorted({first.index, last.index})),
        key=None,
        node=last.node,
        start_ns=first.time_ns,
        end_ns=last.time_ns,
    )
