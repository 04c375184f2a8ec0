"""The draws of a hunt for qsync: election modes, fencing, timeouts, the quorum, disks, and nodes that differ.

| drawn | from |
|---|---|
| cluster | which nodes stand for election, fencing, quorum, rollback on timeout, timeouts |
| options | snapshots that throw logs away, queues with a maximum size, MVCC |
| disks | logs of older versions, and of real Tarantool, that the nodes begin with |
| load | read modes, commit wait modes |

Only configurations with a promise are drawn, so that every seed is a claim: C, H and I. Rows that were added later have
streams of their own (`late`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from checkers.history.history import History
from harness.faults.directed import Scenes
from harness.faults.held import HOLDS, MOMENTS
from harness.faults.members import LOST_DISK
from harness.faults.table import MEMBERSHIP
from harness.plan.dice import Dice
from harness.plan.plan import Plan
from harness.systems.parts import Variety
from harness.systems.qsync import node_options as options_of
from harness.systems.qsync import starts
from harness.systems.qsync.bug_plans import BUG_PLANS, ELECTED
from harness.systems.qsync.configurations import modes_of
from harness.systems.qsync.drawn_scenes import DRAWN
from harness.systems.qsync.options import USUAL_READS, protocol_of, quorum_follows, said_of, settings_of
from harness.systems.qsync.rare_turns import RARE_TURNS, counted
from harness.systems.qsync.reconfiguring import in_force
from harness.systems.qsync.scenes import READY_MADE
from harness.workloads import workload_of

READS: Mapping[str, Any] = {"read": "mixed"}
LINEARIZABLE_ALONE = 0.25
"""How often every read is linearizable: a stale one needs a node that lags, and a read there just then."""
MODES = (
    ("candidate", 10),
    ("manual", 3),
    ("off", 4),
    ("one voter", 2),
    ("all but one voters", 1),
    ("mixed", 3),
    ("one without", 1),
)
FENCING = (("soft", 5), ("strict", 3), ("off", 2))
LEAST_OK = 250
"""Operations that must succeed in a seed with a drawn configuration, load and time."""
SLOW_TO_RECOVER = 1.5
"""How much more load and calm there is where few can lead, all are needed or an operator promotes: they serve for less
of the time."""
ASYNCHRONOUS_OF_FIXED = 8
"""How much more often asynchronous spaces are drawn where the owner stays: there they are promised the most."""
SUBMITTED = 0.2
"""How often some writes are answered before they are confirmed, in workloads that may ask for it."""
GOES_ON_WAITING = 0.3
"""How often nothing is rolled back where the owner stays: then the promise stays whole when elections begin."""
APART = 0.2
"""How often nodes differ in options from the start, and then how many do of each option."""
SIZES_APART = 0.06
"""How often the maximum size of the queue is drawn for each node alone."""
LOG_QUEUES = 0.06
"""How often little may be on its way to the disks."""
SHORT_DELAYS = 0.5
"""How often nodes soon forget which logs an absent follower needs, where that cannot stop them for ever."""
STARTS = 0.05
"""How often the nodes begin with stored logs."""
NO_CHANGE_OF_MEMBERS = frozenset((LOST_DISK, MEMBERSHIP))


SCENES: Mapping[str, Scenes] = {HOLDS: READY_MADE, MOMENTS: DRAWN}


class QsyncVariety(Variety):
    has_all_loads = True
    rare_turns = RARE_TURNS
    scenes = SCENES
    bug_plans = BUG_PLANS
    other_bugs = ELECTED

    def rare_turns_of(self, plan: Plan, history: History) -> Mapping[str, int]:
        return counted(plan, history)

    def drawn(self, dice: Dice, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
        if "configuration" in given:
            return {**READS}
        is_alone = plan.streams()["variety: reads"].random() < LINEARIZABLE_ALONE
        return {"read": "linearizable" if is_alone else "mixed", **_drawn(dice, plan, given)}

    def workloads(
        self, plan: Plan, drawn: Mapping[str, Any], weights: Mapping[str, float]
    ) -> dict[str, float]:
        if settings_of(plan).named.protocol == "2.6":  # its nodes do not say which rows wait
            return {name: weight for name, weight in weights.items() if not workload_of(name).asynchronous}
        if drawn.get("configuration") == "C":
            return {
                name: weight * (ASYNCHRONOUS_OF_FIXED if workload_of(name).asynchronous else 1)
                for name, weight in weights.items()
            }
        return dict(weights)

    def submitting(self, dice: Dice) -> dict[str, Any]:
        return {"commit_wait": "mixed"} if dice.chance.random() < SUBMITTED else {}

    def fitted(self, plan: Plan, given: frozenset[str]) -> Plan:
        """Without elections or versions of data every read has the same mode.

        Nodes without versions serve no linearizable reads: workloads that only fresh reads judge do without such nodes.
        """
        options = said_of(plan).node_options
        if workload_of(plan.workload).needs_fresh_reads and "node_options" not in given:
            plan = plan.changed(
                node_options=tuple(option for option in options if f":{options_of.MVCC}=" not in option)
            )
        may_elect = plan.has_elections or said_of(plan).rollback_on_timeout is False
        if "read" in given or (may_elect and plan.keeps_versions):
            return plan
        return plan.changed(read=USUAL_READS)

    def unfit(self, plan: Plan) -> frozenset[str]:
        """A quorum of a node's own is a number, which does not follow the members."""
        counts_apart = any(f":{options_of.QUORUM}=" in option for option in said_of(plan).node_options)
        return NO_CHANGE_OF_MEMBERS if counts_apart else frozenset()

    def varied_late(self, plan: Plan, given: frozenset[str]) -> Plan:
        if "configuration" in given:
            return plan
        streams = plan.streams()
        sizes, logs, delays, start = (
            streams[f"variety: {name}"] for name in ("queue sizes", "log queues", "cleanup delays", "start")
        )
        if "queue_max_size" not in given and plan.nodes > 1 and sizes.random() < SIZES_APART:
            chosen = [sizes.choice(("0", "40", "150", "600")) for _ in plan.node_names]
            plan = plan.changed(queue_max_size=",".join(chosen))
        if "node_options" not in given and logs.random() < LOG_QUEUES:
            chosen = [
                f"{node}:{options_of.LOG_QUEUE}={logs.choice((60, 200, 600))}" for node in plan.node_names
            ]
            plan = plan.changed(node_options=(*said_of(plan).node_options, *chosen))
        if "node_options" not in given and delays.random() < SHORT_DELAYS and _may_join_anew(plan):
            chosen = [
                f"{node}:{options_of.CLEANUP_DELAY}={delays.choice((0.1, 1))}" for node in plan.node_names
            ]
            plan = plan.changed(
                node_options=(*said_of(plan).node_options, *chosen),
                checkpoint_interval_s=said_of(plan).checkpoint_interval_s or 0.3,
            )
        if "start" not in given and start.random() < STARTS:
            plan = plan.changed(start=start_for(plan, start))
        return plan

    def bug_plan(self, bugs: tuple[str, ...]) -> dict[str, Any]:
        return {**READS, **super().bug_plan(bugs)}


def _may_join_anew(plan: Plan) -> bool:
    """A follower whose rows are gone joins anew, which waits for the queue: it must empty without that follower.

    A time-out empties it, but a write that was answered when it was queued has none.
    """
    rolls_back = in_force(plan, options_of.TIMEOUT_BEHAVIOUR, ()) == (options_of.ROLLS_BACK,)
    return rolls_back and not plan.has_elections and not plan.submits


def start_for(plan: Plan, chance: random.Random) -> str | None:
    """Stored logs that fit the plan, for its `start`; None if none do."""
    cuts = {name: starts.cuts_for(name, protocol_of(plan), plan.nodes) for name in starts.names()}
    fitting = [name for name, numbers in cuts.items() if numbers]
    if not fitting:
        return None
    name = chance.choice(fitting)
    words = f"{name}@{chance.choice(cuts[name])}"
    joined = words + starts.JOIN
    may_join = plan.nodes > 1 and quorum_follows(plan)
    if may_join and chance.random() < 0.5 and not starts.fits(joined, protocol_of(plan), plan.nodes):
        return joined
    return words


def _drawn(dice: Dice, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
    chance = dice.chance
    nodes = plan.nodes if "nodes" in given else dice.nodes()
    mode = _modes(chance, dice.weighted(MODES), nodes)
    if "election_mode" in given:
        mode = said_of(plan).election_mode or mode
    drawn: dict[str, Any] = {
        "nodes": nodes,
        "election_mode": mode,
        "election_fencing": dice.weighted(FENCING),
        "rate": dice.rate(),
        "calm_s": dice.calm_s(),
        "least_ok": 0 if {"rate", "time_limit_s"} & given else LEAST_OK,
        "synchro_timeout_s": chance.choice((0.3, 0.6, 0.6, 1.5)),
        "election_timeout_s": chance.choice((0.3, 0.5, 0.5, 0.8)),
        "overlap": dice.overlap(),
    }
    if chance.random() < 0.45:
        drawn["checkpoint_interval_s"] = chance.choice((0.2, 0.2, 0.4, 1.0, 4.0))
    if chance.random() < 0.2:
        drawn["queue_max_size"] = chance.choice(("40", "150", "600"))
    if chance.random() < 0.15:
        drawn["replication_timeout_s"] = chance.choice((0.1, 0.5))
    if chance.random() < 0.04:
        drawn["mvcc"] = False
    if nodes >= 4 and chance.random() < 0.15:
        drawn["quorum"] = chance.randrange(nodes // 2 + 1, nodes)
    if mode == "off":
        drawn.update(configuration="C", election_fencing="soft")
    elif chance.random() < 0.2:
        drawn["configuration"] = "I"
    if mode == "off" and chance.random() < GOES_ON_WAITING:
        drawn["rollback_on_timeout"] = False
    if chance.random() < APART:
        drawn["node_options"] = _apart(chance, drawn)
    few = nodes < 3 or len(_leaders(mode, nodes)) == 1
    if few or mode == "manual" or (mode != "off" and "off" in mode):
        drawn["rate"] *= SLOW_TO_RECOVER
        drawn["calm_s"] *= SLOW_TO_RECOVER
    return drawn


def _leaders(modes: str, nodes: int) -> list[str]:
    """The modes of those that may lead."""
    return [mode for mode in modes_of(modes, nodes) if mode not in ("voter", "off")]


def _modes(chance: random.Random, word: str, nodes: int) -> str:
    """Each node's mode; a single node has no voter but itself."""
    if nodes < 3 and word not in ("candidate", "manual", "off"):
        word = "candidate"
    match word:
        case "one voter":
            modes = ["candidate"] * (nodes - 1) + ["voter"]
        case "all but one voters":
            modes = ["candidate"] + ["voter"] * (nodes - 1)
        case "mixed":
            modes = [chance.choice(("candidate", "manual", "voter")) for _ in range(nodes - 1)] + [
                "candidate"
            ]
        case "one without":
            modes = ["candidate"] * (nodes - 1) + ["off"]
        case same:
            return same
    chance.shuffle(modes)
    return ",".join(modes)


def _apart(chance: random.Random, drawn: Mapping[str, Any]) -> tuple[str, ...]:
    """Options of single nodes; a quorum apart needs one that is a number."""
    nodes, least = drawn["nodes"], drawn["nodes"] // 2 + 1
    options: dict[str, tuple[object, ...]] = {
        options_of.CHECKPOINTS: (0.3, 0.7),
        options_of.BEAT: (0.1, 0.15, 0.4),
        options_of.SYNCHRO_TIMEOUT: (0.3, 0.6, 1.5),
    }
    if drawn["election_mode"] != "off":
        options |= {
            options_of.FENCING: ("off", "soft", "strict"),
            options_of.ELECTION_TIMEOUT: (0.3, 0.5, 0.8),
        }
    if chance.random() < 0.2:
        options[options_of.MVCC] = ("false",)
    if chance.random() < 0.15:
        options[options_of.TIMEOUT_BEHAVIOUR] = ("old", "new")
    if drawn["election_mode"] != "off" and chance.random() < 0.05:
        options[options_of.SYNCHRONOUS_PROMOTE] = ("false",)
    if nodes >= 3 and "quorum" not in drawn and chance.random() < 0.2:
        voting = nodes - modes_of(drawn["election_mode"], nodes).count("off")
        options[options_of.QUORUM] = tuple(range(least, max(voting, least) + 1))
    chosen = chance.sample(list(options), chance.choice((1, 1, 2, 3)))
    return tuple(
        f"n{number}:{name}={chance.choice(options[name])}"
        for number in range(1, nodes + 1)
        for name in chosen
        if chance.random() < 0.5
    )
