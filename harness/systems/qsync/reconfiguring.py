"""Options that change in the course of a run: which, on which nodes, how, and what was in force as a result.

| fault | what |
|---|---|
| `timeouts` | one timeout is changed on all nodes, and changed back |
| `quorum` | the same of the quorum, which is greater for a while |
| `reconfigure` | `box.cfg` on one node, or on all of them one after the other; later changed back |
| `reconfigure-at-a-moment` | the same on one node, in the middle of an election, a promotion, a join or a read |
| `restart-otherwise` | all nodes restarted with another option, in turn or at once; later with the old one |

Where there are no elections they can be switched on once, for good. No node is promoted by hand while a node takes no
part in elections: such a PROMOTE takes effect at once, without a vote, and nothing is promised then (configuration D).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.faults.action import MILLISECOND_NS
from harness.faults.fault import Fault, Moment
from harness.faults.membership import Membership
from harness.faults.node_options import Value
from harness.faults.options import OTHERWISE, RECONFIGURE, RECONFIGURE_AT, TIMEOUTS
from harness.faults.options import QUORUM as RAISED_QUORUM
from harness.plan.plan import Plan
from harness.systems.qsync.node_options import (
    AT_START,
    BEAT,
    CHECKPOINTS,
    CLEANUP_DELAY,
    ELECTION_TIMEOUT,
    FENCING,
    GOES_ON,
    MODE,
    MVCC,
    QUEUE_SIZE,
    QUORUM,
    ROLLS_BACK,
    SYNCHRO_TIMEOUT,
    SYNCHRONOUS_PROMOTE,
    TIMEOUT_BEHAVIOUR,
    WHILE_RUNNING,
)
from harness.systems.qsync.options import CLEANUP_DELAY_S, changeable, said_of

WEIGHTS: Mapping[str, float] = {
    MODE: 5,
    FENCING: 2,
    ELECTION_TIMEOUT: 1,
    SYNCHRO_TIMEOUT: 1,
    BEAT: 1,
    QUORUM: 1,
    QUEUE_SIZE: 1,
    TIMEOUT_BEHAVIOUR: 0.7,
    CHECKPOINTS: 1,
    MVCC: 1.5,
    SYNCHRONOUS_PROMOTE: 0.4,
}
"""The weights of options that can change. The last one weakens the promise the most, so it is drawn rarely."""
FACTORS = (0.5, 0.7, 1.5, 2.0)
"""The factors of changed timeouts."""
ONE_NODE = 0.5
"""How often `reconfigure` is for a single node."""
AT_ONCE = 0.5
"""How often all nodes stop before the first of them starts."""
PAUSES_MS = (0, 0, 30, 200, 500, 900, 1_800)
"""Between one node and the next: long enough for an election or none."""
ALL_PAUSES_MS = 3_600
MOMENTS: tuple[tuple[str, str], ...] = (
    *(("wrote", what) for what in ("promote", "promote", "raft", "raft", "confirm", "row", "rollback")),
    *(("gets", what) for what in ("candidate", "vote", "leader", "promote", "join", "subscribe", "ack")),
    *(("sends", what) for what in ("candidate", "joined", "heartbeat")),
)
"""When a node's options change in the middle of something."""
OF_JOINS = 6 * (("gets", "join"), ("sends", "join"))
"""More of them where followers join anew: such a join waits for the queue."""


def draw_options(
    name: str, plan: Plan, members: Membership, owner: str, chance: random.Random, before: Iterable[Fault]
) -> dict[str, Any] | None:
    """As `harness.systems.parts.Settings.drawn`."""
    if name == RAISED_QUORUM:
        return _raised_quorum(members, chance)
    if name == TIMEOUTS:
        return _other_timeout(plan, members.present, chance)
    return _reconfigured(name, plan, members.present, owner, chance, before)


def _reconfigured(
    name: str, plan: Plan, nodes: Sequence[str], owner: str, chance: random.Random, before: Iterable[Fault]
) -> dict[str, Any] | None:
    if not plan.has_elections and chance.random() < 0.5 and not _forgets_followers(plan):
        return _switched_on(name, nodes, chance, before)
    options = _options(plan, AT_START if name == OTHERWISE else WHILE_RUNNING)
    if not options:
        return None
    weights = [WEIGHTS[option] for option in options]
    option = chance.choices(options, weights)[0]
    if name == RECONFIGURE_AT:
        does, what = chance.choice((*MOMENTS, *OF_JOINS) if _forgets_followers(plan) else MOMENTS)
        target = chance.choice(("@it", "@it", "@owner", "@next"))
        value = _other(option, plan, (owner,) if option != MODE else (), chance)
        moment = Moment(
            does=does,  # type: ignore[arg-type]  # of the table above
            what=what,
            nth=chance.choice((1, 1, 1, 2, 3)),
            after_ns=chance.choice((0, 0, 1, 5)) * MILLISECOND_NS,
        )
        return {"nodes": (target,), "options": {option: value}, "on": moment}
    is_one = name == RECONFIGURE and chance.random() < ONE_NODE
    targets = (chance.choice(list(nodes)),) if is_one else tuple(chance.sample(list(nodes), len(nodes)))
    fields: dict[str, Any] = {
        "nodes": targets,
        "options": {option: _other(option, plan, targets, chance)},
    }
    return fields | _one_by_one(name, chance, len(targets))


def _raised_quorum(members: Membership, chance: random.Random) -> dict[str, Any] | None:
    """A quorum above the present one, at most N. Writes that were confirmed earlier had fewer acknowledgements.

    Where the plan asks for more than N / 2 + 1, the drawn number may be too small: then it is the next one.
    """
    nodes = members.present
    if members.quorum >= len(nodes):
        return None
    drawn = chance.randrange(len(nodes) // 2 + 2, len(nodes) + 1)
    return {"nodes": tuple(nodes), "options": {QUORUM: max(drawn, members.quorum + 1)}}


def _other_timeout(plan: Plan, nodes: Sequence[str], chance: random.Random) -> dict[str, Any]:
    """One timeout, times a factor; without elections there is one timeout less."""
    said = said_of(plan)
    usual = {SYNCHRO_TIMEOUT: said.synchro_timeout_s, BEAT: said.replication_timeout_s}
    usual |= {ELECTION_TIMEOUT: said.election_timeout_s} if plan.has_elections else {}
    name, factor = chance.choice((SYNCHRO_TIMEOUT, ELECTION_TIMEOUT, BEAT)), chance.choice(FACTORS)
    name = name if name in usual else BEAT
    return {"nodes": tuple(nodes), "options": {name: round(usual[name] * factor, 3)}}


def _one_by_one(name: str, chance: random.Random, nodes: int) -> dict[str, Any]:
    """The pause between two nodes, or all nodes at once."""
    if name == OTHERWISE:
        return {"at_once": chance.random() < AT_ONCE}
    pause_ms = min(chance.choice(PAUSES_MS), ALL_PAUSES_MS // (nodes - 1)) if nodes > 1 else 0
    return {"delay_ns": pause_ms * MILLISECOND_NS}


def _switched_on(
    name: str, nodes: Sequence[str], chance: random.Random, before: Iterable[Fault]
) -> dict[str, Any] | None:
    """Switch elections on, on all nodes, once."""
    if name == RECONFIGURE_AT or any(MODE in fault.options for fault in before):
        return None
    targets = tuple(chance.sample(list(nodes), len(nodes)))
    fields: dict[str, Any] = {"nodes": targets, "options": {MODE: "candidate"}, "stays": True}
    return fields | _one_by_one(name, chance, len(targets))


def _forgets_followers(plan: Plan) -> bool:
    """A follower may have to join anew, and its join waits for the queue: time-outs must go on emptying the queue.

    So neither `GOES_ON` nor elections may come: a PROMOTE waits without a time-out.
    """
    return any(plan.options_of(node)[CLEANUP_DELAY] != CLEANUP_DELAY_S for node in plan.node_names)


def _options(plan: Plan, among: Sequence[str]) -> list[str]:
    """The options that have a meaning in this plan, and that a fault may change."""
    of_elections = {MODE, FENCING, ELECTION_TIMEOUT, SYNCHRONOUS_PROMOTE}
    options = [option for option in among if plan.has_elections or option not in of_elections]
    if _forgets_followers(plan):
        options.remove(TIMEOUT_BEHAVIOUR)
    if plan.needs_operator and MODE in options:
        options.remove(MODE)  # the operator would promote by hand
    has_room = plan.nodes >= 3 and plan.quorum_size < plan.nodes
    if not has_room or isinstance(plan.quorum, str) or plan.changes_members:
        options.remove(QUORUM)
    return [option for option in options if option in changeable(plan)]


def _other(option: str, plan: Plan, nodes: Sequence[str], chance: random.Random) -> Value:
    """A value that none of these nodes has. If there is none, and for modes: one that not all of them have."""
    now = [plan.options_of(node)[option] for node in nodes]
    usual = now[0] if now else plan.options_of(plan.node_names[0])[option]
    match option:
        case "election_mode":
            modes = ("off", "off", "voter", "manual", "candidate")
            return chance.choice([mode for mode in modes if now != [mode] * len(nodes) or not now])
        case "election_fencing_mode":
            return chance.choice(_new(("off", "soft", "strict"), now))
        case "box_cfg_replication_synchro_timeout":
            return GOES_ON if usual == ROLLS_BACK else ROLLS_BACK
        case "memtx_use_mvcc_engine" | "synchronous_promote":
            return not usual
        case "replication_synchro_quorum":
            return chance.randrange(plan.quorum_size + 1, plan.nodes + 1)
        case "replication_synchro_queue_max_size":
            return chance.choice(_new((0, 40, 150, 600), now))
        case "checkpoint_interval":
            return chance.choice(_new((0.3, 0.7, 1.3), now))
    assert isinstance(usual, int | float), option
    return chance.choice(_new([round(usual * factor, 3) for factor in FACTORS], now))


def _new(values: Sequence[Value], now: Sequence[Value]) -> list[Value]:
    """The values that no node has; if nodes that differ have them all, those that not all nodes have."""
    return [value for value in values if value not in now] or [
        value for value in values if any(value != held for held in now)
    ]


def in_force(plan: Plan, option: str, faults: Iterable[Fault]) -> tuple[Value, ...]:
    """Every value that any node had at any time of a run with these faults; the plan's own first."""
    values = [plan.options_of(node)[option] for node in plan.node_names]
    values += [fault.options[option] for fault in faults if option in fault.options]
    return tuple(dict.fromkeys(values))


def switches_on(plan: Plan, faults: Iterable[Fault]) -> bool:
    """Elections begin in the middle of the run."""
    return not plan.has_elections and any(mode != "off" for mode in in_force(plan, MODE, faults))
