"""Variety: what `qsync simulate` leaves to the seed that nobody asked for by name.

How many nodes, which of them stand for election, fencing, rollback on timeout, snapshots that throw logs away, queues
with a maximum size, which faults and how dense, slow clocks and power losses among them: one draw a seed, from a
stream of its own. Only configurations are drawn that promise something, so that every seed is a claim: C, H and I.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.configurations import modes_of
from harness.faults.schedule import names_for
from harness.faults.table import HOLDS
from harness.hunt.bug_plans import bug_plan
from harness.plan import Plan

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
    ("off", 3),
    ("one voter", 2),
    ("all but one voters", 1),
    ("mixed", 3),
)
FENCING = (("soft", 5), ("strict", 3), ("off", 2))
LEAST_OK = 500
"""Operations that must succeed in a seed whose configuration, load and time were drawn."""
RATES = (72.0, 84.0, 100.0)
CALM_S = (1.0, 1.0, 1.5)
SLOW_TO_RECOVER = 1.5
"""How much more load and calm there is where few can lead or all are needed: they serve for less of the time."""
NEVER_FATAL = ("clock", "slow")
"""Faults under which every cluster goes on; the next, those under which most of the time one does whose quorum can
spare a node and whose owner can be followed by another."""
SURVIVED_BY_A_QUORUM = (*NEVER_FATAL, "isolate-one", "kill")


LOST_DISK = "replace-node"
LOST_DISKS = 0.15
"""How often nodes lose their disks for good, and others join at their addresses."""


def hunted(plan: Plan, given: frozenset[str]) -> Plan:
    """One seed's plan: what is `given` stays, the rest comes from the bug that is hunted, or from the seed."""
    fields: dict[str, Any] = {**LIGHT, **(bug_plan(plan.bugs) if plan.bugs else {})}
    chance = plan.streams()["variety"]
    if not plan.bugs and "configuration" not in given:
        fields.update(_drawn(chance, plan, given))
    fields = {name: value for name, value in fields.items() if name not in given}
    varied = msgspec.structs.replace(plan, **fields)
    if "read" not in given and not varied.has_elections:
        varied = msgspec.structs.replace(varied, read=None)
    if "faults" not in given and not plan.bugs:
        varied = msgspec.structs.replace(varied, faults=_faults(chance, varied))
    return varied


def _drawn(chance: random.Random, plan: Plan, given: frozenset[str]) -> dict[str, Any]:
    nodes = plan.nodes if "nodes" in given else _weighted(chance, NODES)
    mode = _modes(chance, _weighted(chance, MODES), nodes)
    if "election_mode" in given and plan.election_mode is not None:
        mode = plan.election_mode
    drawn: dict[str, Any] = {
        "nodes": nodes,
        "election_mode": mode,
        "election_fencing": _weighted(chance, FENCING),
        "rate": chance.choice(RATES),
        "calm_s": chance.choice(CALM_S),
        "least_ok": 0 if {"rate", "time_limit_s"} & given else LEAST_OK,
        "synchro_timeout_s": chance.choice((0.3, 0.6, 0.6, 1.5)),
        "election_timeout_s": chance.choice((0.3, 0.5, 0.5, 0.8)),
    }
    if chance.random() < 0.25:
        drawn["checkpoint_interval_s"] = chance.choice((0.4, 1.0, 4.0))
    if chance.random() < 0.2:
        drawn["queue_max_size"] = chance.choice(("40", "150", "600"))
    if mode == "off":
        drawn.update(configuration="C", election_fencing="soft")
    elif chance.random() < 0.2:
        drawn["configuration"] = "I"
    if nodes < 3 or len(_leaders(mode, nodes)) == 1:
        drawn["rate"] *= SLOW_TO_RECOVER
        drawn["calm_s"] *= SLOW_TO_RECOVER
    return drawn


def _leaders(modes: str, nodes: int) -> list[str]:
    """The modes of those that may lead."""
    return [mode for mode in modes_of(modes, nodes) if mode != "voter"]


def _modes(chance: random.Random, word: str, nodes: int) -> str:
    """Each node's mode; a single node has nobody to vote for it but itself."""
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
        case same:
            return same
    chance.shuffle(modes)
    return ",".join(modes)


def _faults(chance: random.Random, plan: Plan) -> tuple[str, ...]:
    """All, or a few of them, among which one that leaves the cluster in service; holds beside them more often than not.

    A run in which every fault stops everything shows nothing of what is acknowledged under faults.
    """
    possible = names_for(msgspec.structs.replace(plan, faults=("all",)))
    names: tuple[str, ...] = ("all",)
    if chance.random() < 0.4:
        names = tuple(chance.sample(possible, chance.randrange(1, 1 + min(4, len(possible)))))
        survived = survived_by(plan)
        if survived == NEVER_FATAL:  # else it serves under hardly any: both of these, and two others at most
            names = tuple(dict.fromkeys((*names[:2], *(name for name in possible if name in survived))))
        elif not set(names) & set(survived):
            names = (*names, chance.choice([name for name in possible if name in survived]))
    has_holds = plan.nodes > 1 and chance.random() < 0.7
    is_replaced = plan.nodes >= 3 and plan.has_elections and chance.random() < LOST_DISKS
    return (*names, *((LOST_DISK,) if is_replaced else ()), *((HOLDS,) if has_holds else ()))


def survived_by(plan: Plan) -> tuple[str, ...]:
    """The faults under which the plan's cluster stays in service."""
    leaders = sum(mode in ("candidate", "manual") for mode in plan.election_modes)
    return SURVIVED_BY_A_QUORUM if plan.nodes >= 3 and leaders > 1 else NEVER_FATAL


def _weighted(chance: random.Random, table: tuple[tuple[Any, int], ...]) -> Any:
    values, weights = zip(*table, strict=True)
    return chance.choices(values, weights)[0]
