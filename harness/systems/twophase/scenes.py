"""The scenes of the two-phase store: late messages, slow disks and deaths around cuts and commits.

`harness.faults.directed` says what a scene is. No node leads, so a scene names the node of its trigger, or any node.

| kinds of messages | |
|---|---|
| the words of `nodes.twophase.dispatch` | lock, prepare, finish, check, copy, … |
| transaction, marked, news of a cut, news of members | classes of them (`wire.py`) |
| append, learn, state, propose, vote? | discovery: entries for servers, for clients, all of them, from all, elections |

Kinds of records: prepared, committed, rolled-back, start, finish, rebalanced, base; entry and term of discovery.
"""

from __future__ import annotations

from msgspec.structs import replace

from harness.faults.directed import MILLISECOND_NS, Scene, Scenes
from harness.faults.fault import Link, Moment
from harness.systems.twophase.wire import MARKED, NEWS_OF_CUT, NEWS_OF_MEMBERS, OF_TRANSACTION

DISCOVERY = ("append", "learn", "state")
MESSAGES = (
    "lock",
    "locked",
    "prepare",
    "backup-prepare",
    "backup-prepared",
    "prepared",
    "finish",
    "finish",
    "finished",
    "backup-finish",
    "backup-finish",
    "backup-finished",
    "check",
    "checked",
    "outcome?",
    "copy?",
    "copy",
    "clear",
    "confirmed",
    "propose",
    MARKED,
    MARKED,
    OF_TRANSACTION,
    NEWS_OF_CUT,
    NEWS_OF_MEMBERS,
)
RECORDS = ("prepared", "prepared", "committed", "committed", "start", "start", "finish", "entry")
NTH = (1, 1, 1, 2, 3, 10, 30)
AFTER_MS = (0, 0, 0, 1, 5, 20)


def _in_cut(scene: Scene) -> Moment:
    """A server writes START or FINISH, or the coordinator hands out the entry of a cut."""
    after_ns = scene.chance.choice(AFTER_MS) * MILLISECOND_NS
    nth = scene.chance.choice((1, 1, 2, 3))
    if scene.chance.random() < 0.2:
        return Moment(does="sends", what=NEWS_OF_CUT, nth=nth, after_ns=after_ns)
    what = scene.chance.choice(("start", "finish"))
    return Moment(does=scene.chance.choice(("writes", "wrote")), what=what, nth=nth, after_ns=after_ns)


# ---- around cuts


def _discovery_is_late(scene: Scene) -> None:
    """One node hears of a cut by marked messages first, or last of all."""
    on = Moment(does="sends", what=NEWS_OF_CUT) if scene.chance.random() < 0.5 else None
    links: tuple[Link, ...] = (("*", scene.one()),)
    scene.add("hold-discovery", "hold", scene.lasting(20, 700), on, links=links, kinds=DISCOVERY)


def _members_are_late(scene: Scene) -> None:
    """One node hears late that another one has left or joined, or that it has joined itself, while cuts begin."""
    on = Moment(does="sends", what=NEWS_OF_MEMBERS, nth=scene.chance.choice((1, 1, 2, 3, 5)))
    node = scene.one()
    if scene.chance.random() < 0.5:
        scene.add("kill-one", scene.death(), scene.lasting(50, 2_000), nodes=(node,))
    links: tuple[Link, ...] = (("*", node),)
    scene.add("hold-members", "hold", scene.lasting(50, 2_500), on, links=links, kinds=DISCOVERY)


def _markers_are_late(scene: Scene) -> None:
    """Marked messages arrive when the cut is over, or when the next one runs."""
    links = ((scene.one(), "*"),) if scene.chance.random() < 0.5 else (("*", scene.one()),)
    scene.add("hold-marked", "hold", scene.lasting(20, 1_200), links=links, kinds=(MARKED,))


def _dies_in_cut(scene: Scene) -> None:
    scene.add("kill-in-cut", scene.death(), scene.lasting(50, 2_500), _in_cut(scene), nodes=("@it",))


def _stops_in_cut(scene: Scene) -> None:
    scene.add("pause-in-cut", "pause", scene.lasting(50, 2_500), _in_cut(scene), nodes=("@it",))


def _coordinator_dies(scene: Scene) -> None:
    """The coordinator dies with the entry of a cut on its way, while the cut cannot end before a new one is there."""
    begun = Moment(does="sends", what=NEWS_OF_CUT, after_ns=scene.chance.choice(AFTER_MS) * MILLISECOND_NS)
    slow = scene.one()
    scene.add("slow-disk", "slow-disk", scene.lasts(300, 1_500), nodes=(slow,), kinds=("start", "finish"))
    does = scene.chance.choice(("kill", "power", "pause"))
    scene.add("kill-coordinator", does, scene.lasting(600, 2_500), begun, nodes=("@it",))


def _cut_is_overtaken(scene: Scene) -> None:
    """A near node dies while its transactions hold up a cut, and their recovery fails it. A participant hears of that
    late, and meets the next cut by a marked message first. The last node is a client, if there is one."""
    chance = scene.chance
    near = chance.choice((scene.nodes[-1], scene.nodes[-1], scene.one()))
    scene.add("hold-finish", "hold", scene.lasts(300, 1_500), links=((near, "*"),), kinds=("finish",))
    died = Moment(does="sends", what="finish", node=near, nth=chance.choice((3, 10)))
    scene.add("kill-near", scene.death(), scene.lasting(100, 3_000), died, nodes=(near,))
    checked = Moment(does="sends", what="checked", nth=chance.choice((1, 1, 2, 3)))
    links: tuple[Link, ...] = (("*", "@it"),)
    scene.add("hold-discovery", "hold", scene.lasts(200, 1_000), checked, links=links, kinds=DISCOVERY)


def _slow_records(scene: Scene) -> None:
    """A disk takes its time: transactions stay between two states while a cut begins."""
    kinds = scene.chance.choice((("committed",), ("prepared",), ("start",), ("finish",), ("entry",), ()))
    scene.add("slow-disk", "slow-disk", scene.lasting(20, 1_200), nodes=(scene.one(),), kinds=kinds)


# ---- around commits


def _messages_are_late(scene: Scene) -> None:
    kind = scene.chance.choice(MESSAGES)
    scene.add("hold-" + kind, "hold", scene.lasting(20, 1_500), links=scene.some_links(), kinds=(kind,))


def _near_dies(scene: Scene) -> None:
    """A near node dies while its participants wait, often with the finish on its way to some of them.

    Where there are clients, the last node is one: its leaving fails no cut.
    """
    chance = scene.chance
    is_held = chance.random() < 0.5
    if is_held:
        links: tuple[Link, ...] = (("*", scene.one()),)
        scene.add("hold-finish", "hold", scene.lasts(300, 2_000), links=links, kinds=("finish",))
    what = chance.choice(("prepare", "finish", "finish"))
    moment = Moment(
        does="sends",
        what=what,
        node=chance.choice(("", scene.nodes[-1])),
        nth=chance.choice(NTH),
        after_ns=chance.choice(AFTER_MS) * MILLISECOND_NS,
    )
    scene.add("kill-near", scene.death(), scene.lasting(100, 3_000), moment, nodes=("@it",))


def _near_dies_in_rollback(scene: Scene) -> None:
    """A near node rolls back, because prepares or confirmations are late, and dies when some have heard of it."""
    chance = scene.chance
    kinds = chance.choice((("prepared",), ("backup-prepared",), ("confirmed",), ("prepare",)))
    links: tuple[Link, ...] = ((scene.one(), "*"),) if chance.random() < 0.5 else (("*", scene.one()),)
    scene.add("hold-prepared", "hold", scene.lasts(1_500, 3_500), links=links, kinds=kinds)
    late: tuple[Link, ...] = (("*", scene.one()),)
    scene.add("hold-finish", "hold", scene.lasts(1_500, 4_000), links=late, kinds=("finish", "backup-finish"))
    if chance.random() < 0.3:
        scene.add(
            "hold-checked", "hold", scene.lasts(2_000, 5_000), links=((scene.one(), "*"),), kinds=("checked",)
        )
    died = Moment(
        does="sends", what="finish", nth=chance.choice(NTH), after_ns=chance.choice(AFTER_MS) * MILLISECOND_NS
    )
    scene.add("kill-near", scene.death(), scene.lasting(100, 3_000), died, nodes=("@it",))


def _near_is_cut_off(scene: Scene) -> None:
    """Participants have prepared, and hear nothing until the near node has left: recovery decides."""
    moment = Moment(does="wrote", what="prepared", nth=scene.chance.choice(NTH))
    links: tuple[Link, ...] = ((scene.one(), "*"),)
    scene.add("cut-near", "hold", scene.lasts(1_600, 3_000), moment, links=links)


def _participant_dies(scene: Scene) -> None:
    chance = scene.chance
    what = chance.choice(("prepared", "prepared", "committed"))
    moment = Moment(does=chance.choice(("writes", "wrote")), what=what, nth=chance.choice(NTH))
    scene.add("kill-participant", scene.death(), scene.lasting(50, 2_500), moment, nodes=("@it",))


def _primary_asks_its_backup(scene: Scene) -> None:
    """A primary starts again in the middle of a commit. Its backup, which is the next node, hears late of all that. It
    commits, perhaps in one phase, and is asked at that moment whether it has."""
    chance = scene.chance
    begun = Moment(does="sends", what="backup-prepare", nth=chance.choice(NTH))
    died = replace(begun, after_ns=chance.choice((1, 1, 5, 20)) * MILLISECOND_NS)
    scene.add("kill-primary", "kill", scene.lasting(20, 200), died, nodes=("@it",))
    lasts_ns = scene.lasts(300, 800)
    links: tuple[Link, ...] = (("@it", "@next"),)
    scene.add("hold-commit", "hold", lasts_ns, begun, links=links, kinds=("backup-prepare",))
    lasts_ns += chance.choice((1, 1, 3, 10)) * MILLISECOND_NS
    scene.add("hold-hello", "hold", lasts_ns, begun, links=links, kinds=("hello",))
    scene.add("hold-discovery", "hold", lasts_ns, begun, links=(("*", "@next"),), kinds=DISCOVERY)


def _copies_are_late(scene: Scene) -> None:
    """A server comes back, and its copies are late or break off."""
    scene.add(
        "kill-one",
        scene.death(),
        scene.lasts(1_600, 2_200),
        Moment(does="sends", what="ping"),
        nodes=("@it",),
    )
    scene.add("hold-copy", "hold", scene.lasts(2_500, 4_000), links=(("*", "*"),), kinds=("copy",))
    if scene.chance.random() < 0.5:
        moment = Moment(does=scene.chance.choice(("gets", "sends")), what="copy")
        scene.add("kill-at-copy", scene.death(), scene.lasting(50, 1_500), moment, nodes=("@it",))


def _primaries_change_under_a_copy(scene: Scene) -> None:
    """Two neighbours are away, and share partitions. One of them is back, and its copies or the news of them are late.
    Meanwhile the other one is back, is perhaps the primary, and leaves again."""
    chance, nodes = scene.chance, scene.nodes
    at = chance.randrange(len(nodes))
    late, other = nodes[at], nodes[(at + chance.choice((1, -1, 2))) % len(nodes)]
    scene.add("kill-late", scene.death(), scene.lasts(700, 1_600), nodes=(late,))
    if chance.random() < 0.7:
        scene.add("kill-other", scene.death(), scene.lasts(700, 2_500), nodes=(other,))
    kind = chance.choice(("copy", "copy", "copy?", "propose", NEWS_OF_MEMBERS))
    into = kind in ("copy", NEWS_OF_MEMBERS)
    links: tuple[Link, ...] = (("*", late),) if into else ((late, "*"),)
    scene.add("hold-" + kind, "hold", scene.lasting(800, 6_000), links=links, kinds=(kind,))
    for _ in range(chance.choice((0, 1, 1, 2))):
        after_ns = chance.choice(AFTER_MS) * MILLISECOND_NS
        nth = chance.choice((1, 2, 3, 4))
        moment = chance.choice(
            (
                Moment(does="sends", what="copy", nth=nth, after_ns=after_ns),
                Moment(does="gets", what="copy", nth=nth, after_ns=after_ns),
                Moment(does="sends", what="copy?", nth=nth, after_ns=after_ns),
                Moment(does="wrote", what="rebalanced", nth=nth, after_ns=after_ns),
            )
        )
        target = chance.choice(("@it", "@next", "@after", other, late))
        scene.add("kill-at-copy", scene.death(), scene.lasting(50, 2_500), moment, nodes=(target,))


READY_MADE: Scenes = (
    (_discovery_is_late, 3),
    (_markers_are_late, 2),
    (_dies_in_cut, 3),
    (_stops_in_cut, 1),
    (_coordinator_dies, 2),
    (_slow_records, 3),
    (_cut_is_overtaken, 3),
    (_messages_are_late, 3),
    (_near_dies, 3),
    (_near_is_cut_off, 1),
    (_participant_dies, 2),
    (_primary_asks_its_backup, 3),
    (_copies_are_late, 1),
    (_members_are_late, 2),
    (_near_dies_in_rollback, 2),
    (_primaries_change_under_a_copy, 2),
)
"""With how often each is drawn."""


# ---- all is drawn


def _drawn(scene: Scene) -> None:
    """One to three hindrances, each at a moment of its own or at once."""
    chance = scene.chance
    for _ in range(chance.choice((1, 1, 2, 3))):
        on = scene.moment(RECORDS, MESSAGES, NTH, AFTER_MS)
        match chance.choice(("hold", "hold", "slow-disk", "death", "pause")):
            case "hold":
                kind = chance.choice((*MESSAGES, *DISCOVERY))
                later = on if chance.random() < 0.5 else None
                links = scene.some_links()
                scene.add("hold-" + kind, "hold", scene.lasting(20, 2_000), later, links=links, kinds=(kind,))
            case hindrance:
                scene.hinder(hindrance, on, RECORDS)


DRAWN: Scenes = ((_drawn, 1),)
