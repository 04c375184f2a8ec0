"""Scenes with everything drawn: the trigger, the role, the message, which node is slow or full, which dies and returns.

The ready-made scenes (`scenes.py`) are special cases. A scene here is a *cause* (another node is
promoted, the owner dies, stops or is cut off, acknowledgements are missing so that the queue fills, a node lags behind
while another turn comes, or nothing) and one to three *hindrances* beside it. A hindrance mostly begins at a moment,
and how long it lasts is drawn evenly over orders of magnitude, so that one ends in the middle of another.

| it reaches | by |
|---|---|
| a slow disk while the live old leader writes the PROMOTE of another | promotion; slow disk at the owner |
| acknowledgements that arrive while a ROLLBACK is being written | held acknowledgements; slow disk for "rollback" |
| a voter that dies between its vote and the next candidate | rivals that stand in one term; their voter dies |
| a disk that fills with a CONFIRM under way | a full disk when a CONFIRM is handed to it |
| a newer PROMOTE, or a leader, that lacks rows a voter has | a node that lags and is promoted, or its owner dies |
| linearizable reads at a node that lacks rows; answers that are late or lack rows, too | several nodes that lag |
| a node that must join anew | it is away while the others restart and remove their logs |
| a torn end of a log, or rows that a restart reads and a power loss takes | a node that dies while its disk is slow |
| a crash in the middle of a join | death of the joiner or its host when it asks, or is sent rows |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.faults.directed import MILLISECOND_NS, Scene, Scenes
from harness.faults.fault import Link, Moment
from harness.systems.qsync.scenes import soon

RECORDS = ("row", "row", "confirm", "confirm", "rollback", "promote", "promote", "raft", "")
"""Kinds of records for which a disk may be slow; "" is any."""
WRITTEN = ("row", "row", "confirm", "rollback", "promote", "promote", "raft")
MESSAGES = (
    "row",
    "confirm",
    "rollback",
    "promote",
    "ack",
    "ack",
    "raft",
    "vote",
    "candidate",
    "leader",
    "heartbeat",
    "subscribe",
    "join",
    "joined",
)
ROLES = ("@owner", "@owner", "@next", "@next", "@after", "@old")
NTH = (1, 1, 1, 1, 2, 3, 10, 40)
AFTER_MS = (0, 0, 0, 1, 5, 20, 100)
LATE = (("row",), ("row",), ("row", "confirm"), ("row", "confirm"), ("confirm",), ("promote", "confirm"), ())
"""Messages withheld from a lagging node; those behind them on a stream wait too, until the link is given up."""


def _moment(scene: Scene) -> Moment:
    return scene.moment(WRITTEN, MESSAGES, NTH, AFTER_MS)


def _role(scene: Scene) -> str:
    return scene.chance.choice((*ROLES, *scene.nodes))


def _begins(scene: Scene) -> Moment:
    """At a moment, or soon."""
    return _moment(scene) if scene.chance.random() < 0.5 else soon(scene.lasts(0, 600))


# ---- causes


def _promotes(scene: Scene) -> None:
    node = scene.chance.choice(("@next", "@next", "@after", "@old", *scene.nodes))
    scene.add("promote", "failover", scene.lasting(200, 3_000), _begins(scene), nodes=(node,))


def _owner_dies(scene: Scene) -> None:
    scene.add("kill-owner", scene.death(), scene.lasting(100, 1_500), _begins(scene), nodes=("@owner",))


def _owner_stops(scene: Scene) -> None:
    scene.add("pause-owner", "pause", scene.lasting(100, 3_000), _begins(scene), nodes=("@owner",))


def _owner_is_cut_off(scene: Scene) -> None:
    ways: tuple[tuple[Link, ...], ...] = (
        (("@owner", "@others"), ("@others", "@owner")),
        (("@owner", "@others"),),
        (("@others", "@owner"),),
    )
    links = scene.chance.choice(ways)
    scene.add("cut-owner", "hold", scene.lasting(300, 3_000), _begins(scene), links=links)


def _queue_fills(scene: Scene) -> None:
    """Acknowledgements are late: all that is written waits in the queue, and may be too old when they come.

    Mostly a node starts again in the middle of it, or the ROLLBACK takes its time.
    """
    links: tuple[Link, ...] = (("@others", "@owner"),)
    full_ns = scene.lasting(400, 3_000)
    scene.add("hold-ack", "hold", full_ns, links=links, kinds=("ack",))
    if scene.chance.random() < 0.6:
        dies = soon(int(scene.chance.uniform(0.05, 0.7) * full_ns))
        node = scene.chance.choice(("@owner", "@next", "@after"))
        lasts_ns = int(scene.chance.uniform(0.05, 0.4) * full_ns)
        scene.add("kill-in-queue", scene.death(), lasts_ns, dies, nodes=(node,))
    if scene.chance.random() < 0.4:
        lasts_ns = scene.lasting(400, 4_000)
        if scene.chance.random() < 0.5:  # the acknowledgements arrive meanwhile
            lasts_ns = full_ns + scene.lasting(50, 800)
        scene.add("slow-disk", "slow-disk", lasts_ns, nodes=("@owner",), kinds=("rollback",))
    if scene.chance.random() < 0.2:
        written = Moment(does="writes", what="rollback")
        scene.add("full-disk", "disk-error", scene.lasting(20, 600), written, nodes=("@it",), error="ENOSPC")


def _node_lags(scene: Scene) -> None:
    """One node, or as many as a quorum can do without, hears too little for long.

    Meanwhile it, or the node whose rows it lacks, fails or is promoted, or its peers' answers to it are late. The held
    messages arrive after a promotion, a death or a restart.
    """
    chance = scene.chance
    late = chance.choice(("@next", "@next", "@after", *scene.nodes))
    kinds = chance.choice(LATE)
    lasts_ns = scene.lasting(400, 4_000)
    name = "hold-" + (kinds or ("all",))[0]
    scene.add(name, "hold", lasts_ns, links=(("*", late),), kinds=kinds)
    if len(scene.nodes) > 4 and chance.random() < 0.5:
        second = chance.choice([node for node in ("@next", "@after", *scene.nodes) if node != late])
        scene.add(name, "hold", int(chance.uniform(0.3, 1.0) * lasts_ns), links=(("*", second),), kinds=kinds)
    if chance.random() < 0.3:
        at = soon(int(chance.uniform(0.0, 0.7) * lasts_ns))
        scene.add("hold-ack", "hold", scene.lasting(50, 800), at, links=(("@others", late),), kinds=("ack",))
    middle = soon(int(chance.uniform(0.1, 0.9) * lasts_ns))
    turn = chance.random()
    if turn < 0.4:
        node = chance.choice((late, late, "@after", "@next"))
        scene.add("promote", "failover", scene.lasting(200, 3_000), middle, nodes=(node,))
    elif turn < 0.7:
        scene.add("kill-owner", scene.death(), scene.lasting(100, 3_000), middle, nodes=("@owner",))
    elif turn < 0.9:
        scene.add("kill-late", scene.death(), scene.lasting(20, 1_000), middle, nodes=(late,))


def _joins_anew(scene: Scene) -> None:
    """A node is away while the others restart, one by one: they forget that it needs their logs, and remove them.

    Rows that it lacks are gone then where snapshots are frequent. It comes back in the middle of a promotion or death.
    """
    chance = scene.chance
    away = chance.choice(scene.nodes)
    away_ns = scene.lasts(2_000, 5_000)
    scene.add("kill-for-long", scene.death(), away_ns, soon(), nodes=(away,))
    after_ns = scene.lasts(20, 300)
    for node in chance.sample([node for node in scene.nodes if node != away], len(scene.nodes) - 1):
        dead_ns = scene.lasting(20, 150)
        scene.add("kill-in-turn", scene.death(), dead_ns, soon(after_ns), nodes=(node,))
        after_ns += dead_ns + scene.lasts(150, 400)
    if chance.random() < 0.5:
        turn = soon(away_ns - scene.lasts(0, 100) + scene.lasts(0, 300))
        if chance.random() < 0.5:
            scene.add(
                "promote", "failover", scene.lasting(200, 2_000), turn, nodes=(chance.choice(scene.nodes),)
            )
        else:
            scene.add("kill-owner", scene.death(), scene.lasting(50, 1_500), turn, nodes=("@owner",))


def _rivals_stand(scene: Scene) -> None:
    """Two nodes that do not hear each other are promoted in one term; their voter dies between their candidacies."""
    chance = scene.chance
    lasts_ns = scene.lasts(1_000, 2_500)
    links: tuple[Link, ...] = (("@next", "@after"), ("@after", "@next"))
    scene.add("cut-rivals", "hold", lasts_ns, links=links)
    asked_ns = scene.lasts(20, 300)
    scene.add("promote", "failover", lasts_ns, soon(asked_ns), nodes=("@next",))
    later_ns = asked_ns + chance.choice((0, 0, 1, 5, 30)) * MILLISECOND_NS
    scene.add("promote", "failover", lasts_ns, soon(later_ns), nodes=("@after",))
    dies, target = soon(asked_ns + scene.lasts(1, 120)), "@owner"
    if chance.random() < 0.5:  # with its vote on disk, and not sent yet
        dies, target = Moment(does="wrote", what="raft", nth=chance.choice((1, 2, 3))), "@it"
    scene.add("kill-voter", scene.death(), scene.lasts(20, 200), dies, nodes=(target,))


def _nothing(scene: Scene) -> None:
    """The hindrances alone."""


CAUSES: tuple[tuple[Callable[[Scene], None], int], ...] = (
    (_promotes, 4),
    (_owner_dies, 2),
    (_owner_stops, 1),
    (_owner_is_cut_off, 2),
    (_queue_fills, 3),
    (_node_lags, 5),
    (_joins_anew, 3),
    (_rivals_stand, 4),
    (_nothing, 3),
)


# ---- hindrances


def _late_messages(scene: Scene) -> None:
    """Messages of a kind or two, over some links."""
    chance = scene.chance
    kinds = tuple(dict.fromkeys(chance.choices(MESSAGES[:11], k=chance.choice((1, 1, 2)))))
    begin, end = _role(scene), chance.choice(("@others", "@owner", "@next", "*", *scene.nodes))
    links: tuple[Link, ...] = chance.choice((((begin, end),), ((end, begin),)))
    on = _moment(scene) if chance.random() < 0.3 else None
    scene.add("hold-" + kinds[0], "hold", scene.lasting(50, 3_000), on, links=links, kinds=kinds)


def _slow(scene: Scene) -> None:
    """A disk takes its time with records of a kind, or with all."""
    kind = scene.chance.choice(RECORDS)
    lasts_ns = scene.lasting(50, 2_500)
    scene.add("slow-disk", "slow-disk", lasts_ns, nodes=(_role(scene),), kinds=(kind,) if kind else ())


def _full(scene: Scene) -> None:
    """A disk fills, mostly with a record under way that is slow."""
    chance = scene.chance
    what = chance.choice(WRITTEN)
    target = "@it"
    if chance.random() < 0.5:
        target = "@owner"
        scene.add("slow-disk", "slow-disk", scene.lasting(50, 600), nodes=(target,), kinds=(what,))
    moment = Moment(
        does="writes",
        what=what,
        nth=chance.choice(NTH),
        after_ns=chance.choice(AFTER_MS) * MILLISECOND_NS,
    )
    scene.add("full-disk", "disk-error", scene.lasting(20, 1_000), moment, nodes=(target,), error="ENOSPC")


def _death(scene: Scene) -> None:
    """A node dies at a moment, its own or that of another, and comes back soon or late."""
    node = "@it" if scene.chance.random() < 0.7 else _role(scene)
    moment = _moment(scene)
    lasts_ns = scene.lasting(50, 1_500)
    scene.add(f"kill-at-{moment.what}", scene.death(), lasts_ns, moment, nodes=(node,))


def _dies_writing(scene: Scene) -> None:
    """A node dies with records that are written and not synced; often again, as soon as it has read them."""
    chance, node = scene.chance, scene.chance.choice(list(scene.nodes))
    lasts_ns = scene.lasting(50, 1_000)
    scene.add("slow-disk", "slow-disk", lasts_ns, nodes=(node,))
    dies_ns, dead_ns = int(chance.uniform(0.2, 0.9) * lasts_ns), scene.lasting(20, 400)
    scene.add("kill-writing", scene.death(), dead_ns, soon(dies_ns), nodes=(node,))
    if chance.random() < 0.5:
        again_ns = dies_ns + dead_ns + scene.lasting(1, 300)
        scene.add("power-again", "power", scene.lasting(50, 800), soon(again_ns), nodes=(node,))


def _stop(scene: Scene) -> None:
    """A node stops in the middle of something."""
    moment = _moment(scene)
    scene.add(f"pause-at-{moment.what}", "pause", scene.lasting(50, 1_500), moment, nodes=("@it",))


HINDRANCES: tuple[tuple[Callable[[Scene], None], int], ...] = (
    (_late_messages, 4),
    (_slow, 4),
    (_full, 2),
    (_death, 4),
    (_dies_writing, 3),
    (_stop, 1),
)


def _drawn(scene: Scene) -> None:
    """A cause, and one to three hindrances."""
    _one_of(scene, CAUSES)
    for _ in range(scene.chance.choice((1, 1, 2, 2, 3))):
        _one_of(scene, HINDRANCES)


def _one_of(scene: Scene, table: tuple[tuple[Callable[[Scene], Any], int], ...]) -> None:
    draws, weights = zip(*table, strict=True)
    scene.chance.choices(draws, weights)[0](scene)


DRAWN: Scenes = ((_drawn, 1),)
