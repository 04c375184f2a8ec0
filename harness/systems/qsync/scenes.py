"""The ready-made scenes of qsync: promotions, votes, rows and CONFIRMs that are late, and nodes that die around them.

`harness.faults.directed` says what a scene is. `drawn_scenes.py` has those of which everything is drawn.
"""

from __future__ import annotations

from typing import Any

from harness.faults.directed import MILLISECOND_NS, Scene, Scenes
from harness.faults.fault import Link, Moment


def _lonely_promote(scene: Scene) -> None:
    """A PROMOTE reaches no node or few, its node dies; perhaps the next leader dies around its own PROMOTE, too."""
    first = scene.chance.choice((1, 1, 2))
    links: tuple[Link, ...] = (("@it", "@others"),)
    if scene.chance.random() < 0.3:
        links = (("@it", scene.chance.choice(list(scene.nodes))),)
    hold = Moment(does="writes", what="promote", nth=first)
    scene.add("hold-promote", "hold", scene.lasts(300, 3_000), hold, links=links, kinds=("promote",))
    end = Moment(
        does=scene.chance.choice(("writes", "wrote", "wrote")),
        what="promote",
        nth=first,
        after_ns=scene.chance.choice((0, 0, 1, 20, 200)) * MILLISECOND_NS,
    )
    scene.add("kill-at-promote", scene.death(), scene.lasts(300, 2_500), end, nodes=("@it",))
    if scene.chance.random() < 0.7:
        after_ns = scene.chance.choice((0, 1, 5, 50, 300)) * MILLISECOND_NS
        again = Moment(
            does=scene.chance.choice(("wrote", "sends", "gets")),
            what=scene.chance.choice(("promote", "confirm")),
            nth=first + 1,
            after_ns=after_ns,
        )
        scene.add("kill-at-promote", scene.death(), scene.lasts(300, 2_000), again, nodes=("@it",))


def _revived_promote(scene: Scene) -> None:
    """Two leaders die around PROMOTEs that reached no node, and the first comes back (Tarantool's issue 9376).

    The owner's newest rows are late. Meanwhile another node is promoted without them, and dies with a PROMOTE that
    discards them. The old owner leads again, its rows arrive, and it dies behind a PROMOTE that confirms them. The
    remaining nodes meet the node with the first PROMOTE.
    """
    late_ns = scene.lasts(60, 400)
    asked = soon(scene.chance.randrange(5, 60) * MILLISECOND_NS)
    links: tuple[Link, ...] = (("@owner", "@others"),)
    scene.add("hold-row", "hold", late_ns, links=links, kinds=("row", "confirm"))
    scene.add("promote-next", "failover", scene.lasts(100, 500), asked, nodes=("@next",))
    died = Moment(does="wrote", what="promote", nth=1)
    scene.add("kill-at-promote", scene.death(), scene.lasts(600, 2_000), died, nodes=("@it",))
    back = Moment(does="wrote", what="promote", nth=1, after_ns=scene.lasts(1, 200))
    scene.add("promote-owner", "failover", scene.lasts(500, 1_500), back, nodes=("@owner",))
    second = Moment(does="writes", what="promote", nth=2)
    scene.add(
        "hold-promote",
        "hold",
        scene.lasts(300, 3_000),
        second,
        links=(("@it", "@others"),),
        kinds=("promote",),
    )
    wrote_again = Moment(does="wrote", what="promote", nth=2, after_ns=scene.lasts(1, 100))
    scene.add("kill-at-promote", scene.death(), scene.lasts(1_000, 4_000), wrote_again, nodes=("@it",))


def _dies_leading(scene: Scene) -> None:
    """The owner dies while something of it is held up: CONFIRM, rows, acknowledgements."""
    kind = scene.chance.choice(("confirm", "confirm", "row", "ack", "promote"))
    links: tuple[Link, ...] = (("*", "@owner"),) if kind == "ack" else (("@owner", "*"),)
    if scene.chance.random() < 0.4:
        node = scene.chance.choice(list(scene.nodes))
        links = ((node, "@owner"),) if kind == "ack" else (("@owner", node),)
    scene.add("hold-" + kind, "hold", scene.lasts(200, 2_500), links=links, kinds=(kind,))
    moment = Moment(
        does="wrote",
        what=scene.chance.choice(("row", "confirm")),
        nth=scene.chance.randrange(1, 30),
        after_ns=scene.chance.choice((0, 0, 1, 10, 100)) * MILLISECOND_NS,
    )
    scene.add("kill-at-record", scene.death(), scene.lasts(300, 2_500), moment, nodes=("@it",))


def _held_votes(scene: Scene) -> None:
    """An election in which votes, candidacies or the news of the leader are late; the owner fails, so one begins."""
    moment = Moment(does="sends", what="candidate", nth=scene.chance.randrange(1, 4))
    kinds = scene.chance.choice((("vote",), ("leader",), ("candidate",), ("raft",), ("ack",), ("promote",)))
    scene.add("hold-votes", "hold", scene.lasts(100, 2_000), moment, links=scene.some_links(), kinds=kinds)
    how = scene.chance.random()
    if how < 0.4:
        scene.add("kill-owner", scene.death(), scene.lasts(500, 2_500), soon(), nodes=("@owner",))
    elif how < 0.7:
        links: tuple[Link, ...] = (("@owner", "@others"), ("@others", "@owner"))
        scene.add("cut-owner", "hold", scene.lasts(1_000, 3_000), links=links)
    else:
        scene.add("pause-owner", "pause", scene.lasts(1_000, 3_000), soon(), nodes=("@owner",))


def _held_messages(scene: Scene) -> None:
    """Messages of one kind are late on some links."""
    kind = scene.chance.choice(("promote", "confirm", "rollback", "ack", "vote", "raft", "row", "heartbeat"))
    scene.add("hold-" + kind, "hold", scene.lasts(50, 2_000), links=scene.some_links(), kinds=(kind,))


def _slow_disk(scene: Scene) -> None:
    """A node's disk takes its time, with all records or those of a kind."""
    kinds = scene.chance.choice(((), (), ("row",), ("raft",), ("promote",), ("confirm",)))
    node = scene.chance.choice(["@owner", *scene.nodes])
    scene.add("slow-disk", "slow-disk", scene.lasts(50, 1_500), nodes=(node,), kinds=kinds)
    if scene.chance.random() < 0.5:
        scene.add("kill-owner", scene.death(), scene.lasts(500, 2_000), soon(), nodes=("@owner",))


def _dies_at_a_moment(scene: Scene) -> None:
    """A node dies, stops or is cut off in the middle of something."""
    on_disk = scene.chance.random() < 0.6
    moment = Moment(
        does=scene.chance.choice(("writes", "wrote", "wrote") if on_disk else ("sends", "gets")),
        what=scene.chance.choice(
            ("row", "confirm", "promote", "raft")
            if on_disk
            else ("row", "confirm", "promote", "vote", "candidate", "leader", "ack")
        ),
        nth=scene.chance.choice((1, 1, 2, 3, 10, 40)),
    )
    does = scene.chance.choice(("kill", "power", "power", "pause", "hold"))
    target: dict[str, Any] = {"nodes": ("@it",)}
    if does == "hold":
        target = {"links": (("@it", "@others"), ("@others", "@it"))}
    scene.add(f"{does}-at-{moment.what}", does, scene.lasts(300, 2_500), moment, **target)


def _comes_back_behind(scene: Scene) -> None:
    """A node dies and comes back, and for a while gets no news of what it has missed."""
    node = scene.chance.choice(["@next", "@after", "@owner"])
    dead_ns = scene.lasts(100, 600)
    after_ns = scene.chance.randrange(0, 300) * MILLISECOND_NS
    moment = Moment(does="wrote", what="row", nth=scene.chance.randrange(1, 20), after_ns=after_ns)
    scene.add("kill-and-forget", scene.death(), dead_ns, moment, nodes=(node,))
    scene.add("hold-news", "hold", dead_ns + scene.lasts(300, 1_500), moment, links=(("*", node),))


def _rolled_back_alone(scene: Scene) -> None:
    """The owner gets no acknowledgements, and no node learns of its rollbacks: another leader may confirm the rows."""
    lasts_ns = scene.lasts(1_500, 4_000)
    scene.add("hold-ack", "hold", lasts_ns, links=(("@others", "@owner"),), kinds=("ack",))
    scene.add("hold-rollback", "hold", lasts_ns, links=(("@owner", "@others"),), kinds=("rollback",))
    late = soon(scene.lasts(300, 1_500))
    if scene.chance.random() < 0.5:
        scene.add("promote-next", "failover", scene.lasts(800, 1_500), late, nodes=("@next",))


def _vote_in_flight(scene: Scene) -> None:
    """A candidate lacks the last rows; a voter has them on the way to its disk when it is asked for its vote."""
    lasts_ns = scene.lasts(800, 2_000)
    asked = soon(scene.chance.randrange(20, 300) * MILLISECOND_NS)
    scene.add("hold-row", "hold", lasts_ns, links=(("@owner", "@next"),), kinds=("row", "confirm"))
    scene.add("hold-row", "hold", lasts_ns, links=(("@after", "@next"),), kinds=("row", "confirm"))
    scene.add("hold-raft", "hold", lasts_ns, links=(("@next", "@owner"),), kinds=("raft",))
    scene.add("slow-disk", "slow-disk", scene.lasts(300, 700), nodes=("@after",), kinds=("row",))
    scene.add("promote-next", "failover", lasts_ns, asked, nodes=("@next",))


def _reader_left_behind(scene: Scene) -> None:
    """One node gets no rows, the next one no CONFIRMs: a read at the first must ask for what is written."""
    lasts_ns = scene.lasts(300, 1_500)
    scene.add("hold-row", "hold", lasts_ns, links=(("@owner", "@next"),))
    scene.add("hold-row", "hold", lasts_ns, links=(("@after", "@next"),), kinds=("row",))
    scene.add("hold-confirm", "hold", lasts_ns, links=(("@owner", "@after"),), kinds=("confirm",))


def _deaf_owner(scene: Scene) -> None:
    """An owner hears acknowledgements alone while another one is elected behind its back."""
    lasts_ns = scene.lasts(1_000, 3_000)
    kinds = ("raft", "promote", "confirm", "row")
    scene.add("hold-news", "hold", lasts_ns, links=(("@others", "@owner"),), kinds=kinds)
    scene.add("hold-next", "hold", lasts_ns, links=(("@owner", "@next"), ("@next", "@owner")))
    asked = soon(scene.chance.randrange(0, 300) * MILLISECOND_NS)
    scene.add("promote-next", "failover", lasts_ns, asked, nodes=("@next",))


def _promote_that_one_misses(scene: Scene) -> None:
    """A leader's PROMOTE reaches all but one node: enough where a quorum is less than all, whatever it was before."""
    lasts_ns = scene.lasts(2_000, 4_000)
    scene.add("hold-promote", "hold", lasts_ns, links=(("*", "@after"),), kinds=("promote",))
    asked = soon(scene.chance.randrange(0, 300) * MILLISECOND_NS)
    scene.add("promote-next", "failover", lasts_ns, asked, nodes=("@next",))


def soon(after_ns: int = 0) -> Moment:
    """The next heartbeat: as good as now."""
    return Moment(does="sends", what="heartbeat", after_ns=after_ns)


READY_MADE: Scenes = (
    (_lonely_promote, 3),
    (_revived_promote, 2),
    (_dies_leading, 3),
    (_held_votes, 2),
    (_held_messages, 3),
    (_slow_disk, 2),
    (_dies_at_a_moment, 3),
    (_comes_back_behind, 2),
    (_rolled_back_alone, 1),
    (_vote_in_flight, 2),
    (_reader_left_behind, 1),
    (_deaf_owner, 2),
    (_promote_that_one_misses, 1),
)
"""With how often each is drawn."""
