"""Variety: the options of `qsync simulate` that the seed draws, if the user did not set them.

| drawn | from |
|---|---|
| cluster | how many nodes, which of them stand for election, fencing, quorum, rollback on timeout, timeouts |
| options | snapshots that throw logs away, queues with a maximum size, MVCC |
| disks | logs of older versions, and of real Tarantool, that the nodes begin with |
| load | workload, rate, wait modes, stray writes, clients that roam, transactions that must fail, keys written once |
| faults | which and how dense, how many at once, members that come and go, scenes of directed faults |

One draw a seed, from a stream of its own; rows that were added later have streams of theirs (`_late`). Only
configurations with a promise are drawn, so that every seed is a claim: C, H and I. If a draw has no room for a fault
or a workload that was asked for by name, it is drawn again.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import WrongUse
from harness.faults.schedule import names_for
from harness.faults.table import HOLDS, MOMENTS, QUORUM, SCENIC
from harness.hunt.bug_plans import bug_plan
from harness.run import node_options as options_of
from harness.run.assemble import parts_of
from harness.run.plan import Plan
from harness.systems import System, system_of
from harness.systems.qsync.configurations import modes_of
from harness.systems.qsync.options import said_of, settings_of
from harness.systems.system import CountsRareTurns, StartsFromLogs
from harness.workloads import WORKLOADS
from harness.workloads.workload import Submits

LIGHT: Mapping[str, Any] = {
    "time_limit_s": 30.0,
    "rate": 40.0,
    "read": "mixed",
    "replica_reads": 0.4,
    "faults": ("all", HOLDS),
}
"""What a seed of a hunt is: long in virtual time, sparse in operations."""

NODES = ((3, 12), (5, 4), (4, 3), (2, 2), (1, 1))
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
RATES = (36.0, 44.0, 60.0)
CALM_S = (1.0, 1.0, 1.5)
SLOW_TO_RECOVER = 1.5
"""How much more load and calm there is where few can lead, all are needed or an operator promotes: they serve for less
of the time."""
NEVER_FATAL = ("clock", "slow")
"""Faults under which every cluster goes on. The next: those under which a cluster goes on most of the time if its
quorum can spare a node and its owner can change."""
SURVIVED_BY_A_QUORUM = (*NEVER_FATAL, "isolate-one", "kill")


WORKLOAD_WEIGHTS: Mapping[str, float] = {
    "register": 5,
    "append": 3,
    "rw-register": 1,
    "mixed-spaces": 1.5,
    "set": 1,
    "bank": 1,
    "counter": 0.5,
    "queue": 0.5,
    "unique-ids": 0.3,
    "long-fork": 0.7,
}
SEARCHED = "rw-register"
"""The workload that makes the checker search for an order among all writes of unknown outcome."""
ALL_NEEDED = 2
"""So many nodes all wait while one is away: what is asked meanwhile has no outcome, and the search finds no end."""
ASYNCHRONOUS_OF_FIXED = 8
"""How much more often asynchronous spaces are drawn where the owner stays: there they are promised the most."""
SHARES = (
    ("stray_writes", 0.4, (0.03, 0.1, 0.25)),
    ("roaming", 0.4, (0.2, 0.5)),
    ("failing", 0.5, (0.05, 0.15)),
    ("write_once", 0.5, (0.1, 0.3)),
)
"""Field, how often it is not 0, what it is then."""
BESIDE = (
    ("rolling-restart", 0.1),
    ("timeouts", 0.08),
    ("quorum", 0.1),
    ("reconfigure", 0.15),
    ("reconfigure-at-a-moment", 0.15),
    ("restart-otherwise", 0.15),
)
"""What an operator does meanwhile, beside the faults that are drawn, and how often."""
LOST_DISK = "replace-node"
MEMBERSHIP = "membership"
LOST_DISKS = 0.15
"""How often nodes lose their disks for good, and new ones join at their addresses."""
MEMBERS_CHANGE = 0.15
"""How often nodes leave and new ones join as well."""
SCENES = (((HOLDS, MOMENTS), 3), ((MOMENTS,), 5), ((HOLDS,), 1), ((), 1))
CALM_BESIDE = 0.25
"""How much longer intervals get for each additional slot, and for scenes."""
GOES_ON_WAITING = 0.3
"""How often nothing is rolled back where the owner stays: then the promise stays whole when elections begin."""
APART = 0.2
"""How often nodes differ in options from the start, and then how many do of each option."""
SIZES_APART = 0.06
"""How often the maximum size of the queue is drawn for each node alone."""
LOG_QUEUES = 0.06
"""How often little may be on its way to the disks."""
STARTS = 0.05
"""How often the nodes begin with stored logs."""
TRIES = 200
"""How often a seed is drawn again for what was asked for by name."""


def hunted(plan: Plan, given: frozenset[str]) -> Plan:
    """One seed's plan: what is `given` stays, the rest comes from the bug that is hunted, or from the seed.

    Raises WrongUse if nothing that could be drawn has room for what is given.
    """
    chance = plan.streams()["variety"]
    refused: WrongUse | ValueError | None = None
    for _ in range(TRIES):
        try:
            varied = _varied(chance, plan, given)
            parts_of(varied)
            return _late(varied, given)
        except (WrongUse, ValueError) as error:  # not with so few nodes, say
            refused = error
    assert refused is not None
    raise refused if isinstance(refused, WrongUse) else WrongUse(str(refused))


def _varied(chance: random.Random, plan: Plan, given: frozenset[str]) -> Plan:
    system = system_of(plan.system)
    if not isinstance(system, CountsRareTurns):
        return _of_any_system(chance, plan, given, system)
    fields: dict[str, Any] = {**LIGHT, **(bug_plan(plan.bugs) if plan.bugs else {})}
    if not plan.bugs and "configuration" not in given:
        fields.update(_drawn(chance, plan, given))
    if not plan.bugs:
        fields.update(_load(chance, plan, given, fields))
    fields = {name: value for name, value in fields.items() if name not in given}
    varied = plan.changed(**fields)
    if "read" not in given and not (varied.has_elections and varied.keeps_versions):
        varied = varied.changed(read=None)
    if "faults" not in given and not plan.bugs:
        varied = varied.changed(faults=_faults(chance, varied))
    if "calm_s" in fields and not plan.bugs:
        varied = varied.changed(calm_s=varied.calm_s * _crowd(varied))
    return varied


def _late(plan: Plan, given: frozenset[str]) -> Plan:
    """What has a stream of its own, so that the rest of a seed stays as it was before this could be drawn."""
    system = system_of(plan.system)
    if plan.bugs or "configuration" in given or not isinstance(system, CountsRareTurns):
        return plan
    streams = plan.streams()
    sizes, logs, start = (streams[f"variety: {name}"] for name in ("queue sizes", "log queues", "start"))
    if "queue_max_size" not in given and plan.nodes > 1 and sizes.random() < SIZES_APART:
        chosen = [sizes.choice(("0", "40", "150", "600")) for _ in plan.node_names]
        plan = plan.changed(queue_max_size=",".join(chosen))
    if "node_options" not in given and logs.random() < LOG_QUEUES:
        chosen = [f"{node}:{options_of.LOG_QUEUE}={logs.choice((60, 200, 600))}" for node in plan.node_names]
        plan = plan.changed(node_options=(*said_of(plan).node_options, *chosen))
    if "start" not in given and isinstance(system, StartsFromLogs) and start.random() < STARTS:
        plan = plan.changed(start=system.start_for(plan, start))
    parts_of(plan)
    return plan


def _of_any_system(chance: random.Random, plan: Plan, given: frozenset[str], system: System) -> Plan:
    """What can be drawn of a system of which only its client and its abilities are known."""
    completed = system.completed(plan)
    workloads = [name for name, each in WORKLOADS.items() if each.uses <= system.client.speaks]
    fields: dict[str, Any] = {
        "nodes": chance.choice((3, 3, 5)),
        "rate": chance.choice(RATES),
        "calm_s": chance.choice(CALM_S),
        "overlap": _weighted(chance, ((1, 6), (2, 3), (3, 1))),
        "workload": chance.choice(workloads or [plan.workload]),
    }
    fields = {name: value for name, value in fields.items() if name not in given}
    varied = plan.changed(**fields)
    if "faults" not in given:
        possible = names_for(varied.changed(faults=("all",), leader=completed.leader), system.abilities)
        few = tuple(chance.sample(possible, min(3, len(possible))))
        varied = varied.changed(faults=chance.choice((("all",), few)))
    return varied


def _crowd(plan: Plan) -> float:
    """How much more calm there is where faults come upon each other, so that the cluster serves all the same."""
    beside = {*SCENIC, *(name for name, _ in BESIDE)}
    return 1 + CALM_BESIDE * (plan.overlap - 1 + sum(name in beside for name in plan.faults))


def _load(
    chance: random.Random, plan: Plan, given: frozenset[str], drawn: Mapping[str, Any]
) -> dict[str, Any]:
    """What clients do, and how they are answered."""
    weights = dict(WORKLOAD_WEIGHTS)
    if settings_of(plan).named.protocol == "2.6":
        del weights["mixed-spaces"]  # its nodes do not say which rows wait
    elif drawn.get("configuration") == "C":
        weights["mixed-spaces"] *= ASYNCHRONOUS_OF_FIXED
    if drawn.get("nodes", plan.nodes) == ALL_NEEDED:
        del weights[SEARCHED]
    workload = plan.workload if "workload" in given else _weighted(chance, tuple(weights.items()))
    load: dict[str, Any] = {"workload": workload}
    for field, often, values in SHARES:
        if chance.random() < often:
            load[field] = chance.choice(values)
    if isinstance(WORKLOADS.get(workload), Submits) and chance.random() < 0.2:
        load["commit_wait"] = "mixed"
    return load


def _drawn(chance: random.Random, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
    nodes = plan.nodes if "nodes" in given else _weighted(chance, NODES)
    mode = _modes(chance, _weighted(chance, MODES), nodes)
    if "election_mode" in given:
        mode = said_of(plan).election_mode or mode
    drawn: dict[str, Any] = {
        "nodes": nodes,
        "election_mode": mode,
        "election_fencing": _weighted(chance, FENCING),
        "rate": chance.choice(RATES),
        "calm_s": chance.choice(CALM_S),
        "least_ok": 0 if {"rate", "time_limit_s"} & given else LEAST_OK,
        "synchro_timeout_s": chance.choice((0.3, 0.6, 0.6, 1.5)),
        "election_timeout_s": chance.choice((0.3, 0.5, 0.5, 0.8)),
        "overlap": _weighted(chance, ((1, 6), (2, 3), (3, 1))),
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
    """What single nodes are set to; a quorum apart needs one that is a number."""
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


def _faults(chance: random.Random, plan: Plan) -> tuple[str, ...]:
    """All, or a few of them, among which one that leaves the cluster in service; holds beside them more often than not.

    A run in which every fault stops everything shows nothing of what is acknowledged under faults.
    """
    possible = names_for(plan.changed(faults=("all",)))
    names: tuple[str, ...] = ("all",)
    if chance.random() < 0.4:
        names = tuple(chance.sample(possible, chance.randrange(1, 1 + min(4, len(possible)))))
        survived = survived_by(plan)
        if survived == NEVER_FATAL:  # else it serves under hardly any: both of these, and at most two more
            names = tuple(dict.fromkeys((*names[:2], *(name for name in possible if name in survived))))
        elif not set(names) & set(survived):
            names = (*names, chance.choice([name for name in possible if name in survived]))
    scenes = _weighted(chance, SCENES)
    if plan.nodes < 2:
        scenes = tuple(name for name in scenes if name != HOLDS)
    return (*names, *_members(chance, plan), *_operated(chance, plan), *scenes)


def _members(chance: random.Random, plan: Plan) -> tuple[str, ...]:
    """Nodes that leave and come."""
    draw = chance.random()
    counts_apart = any(f":{options_of.QUORUM}=" in each for each in said_of(plan).node_options)
    if plan.nodes < 3 or draw >= LOST_DISKS + MEMBERS_CHANGE or counts_apart:
        return ()
    return (LOST_DISK,) if draw < LOST_DISKS else (MEMBERSHIP,)


def _operated(chance: random.Random, plan: Plan) -> Iterator[str]:
    """Restarts in turn and options that change."""
    for name, often in BESIDE:
        has_room = name != QUORUM or (
            plan.nodes >= 3 and plan.quorum_size < plan.nodes and plan.has_elections
        )
        if chance.random() < often and has_room:
            yield name


def survived_by(plan: Plan) -> tuple[str, ...]:
    """The faults under which the plan's cluster stays in service."""
    leaders = sum(mode in ("candidate", "manual") for mode in settings_of(plan).election_modes)
    return SURVIVED_BY_A_QUORUM if plan.nodes >= 3 and leaders > 1 else NEVER_FATAL


def _weighted(chance: random.Random, table: tuple[tuple[Any, float], ...]) -> Any:
    values, weights = zip(*table, strict=True)
    return chance.choices(values, weights)[0]
