"""Elections: one leader a term, whatever is lost, late or restarted; and when nodes begin, vote and give up."""

from __future__ import annotations

import random

import pytest

from nodes.iproto.messages import RaftState
from nodes.qsync.decisions import Decisions
from nodes.qsync.election import CANDIDATE, FOLLOWER, LEADER, Election, Fencing, Mode
from nodes.qsync.exact_election import ExactElection

SECOND = 1_000_000_000
DEATH = SECOND


def election(
    me: int = 1,
    *,
    mode: Mode = "candidate",
    fencing: Fencing = "soft",
    members: int = 3,
    seed: int = 0,
    now_ns: int = 0,
    term: int = 1,
    vote: int = 0,
    is_exact: bool = False,
) -> Election:
    kind = ExactElection if is_exact else Election
    made = kind(
        me=me,
        mode=mode,
        fencing=fencing,
        quorum=members // 2 + 1,
        members=members,
        election_timeout_ns=SECOND // 2,
        death_timeout_ns=DEATH,
        chance=random.Random(f"{seed}/{me}"),
        decisions=Decisions(),
    )
    made.started(term, vote, now_ns)
    made.note_health(members, now_ns)
    return made


def candidate_says(source: int, term: int, vclock: dict[int, int]) -> RaftState:
    return RaftState(source, term, source, CANDIDATE, 0, False, vclock)


def test_one_vote_a_term() -> None:
    """Broken, two candidates of one term may both win."""
    voter = election(3)
    voter.receive(candidate_says(1, 2, {1: 5}), {1: 5}, 0)
    voter.receive(candidate_says(2, 2, {1: 9}), {1: 5}, 0)
    assert (voter.term, voter.vote) == (2, 1)


@pytest.mark.parametrize(
    ("theirs", "votes"), [({1: 5}, True), ({1: 6, 2: 1}, True), ({1: 4}, False), ({2: 9}, False), ({}, False)]
)
def test_a_vote_is_for_a_vclock_that_covers_ours(theirs: dict[int, int], votes: bool) -> None:
    """Broken, a leader may lack what a quorum has acknowledged. Our local rows (0) are nobody's business."""
    voter = election(3)
    voter.receive(candidate_says(1, 2, theirs), {0: 7, 1: 5}, 0)
    assert voter.vote == (1 if votes else 0)


def test_a_restarted_node_remembers_its_vote() -> None:
    """Broken, a node votes twice in a term, once before and once after a crash."""
    voter = election(3, term=4, vote=1)
    voter.receive(candidate_says(2, 4, {1: 9}), {}, 0)
    assert (voter.state, voter.vote) == (FOLLOWER, 1)


def test_a_candidate_wins_with_a_quorum_and_steps_down_for_a_higher_term() -> None:
    """Broken, there is no leader, or an old one goes on beside the new one."""
    node = election(1)
    node.tick(2 * SECOND, connected=3, followers=1)
    assert (node.state, node.term, node.vote, node.must_write) == (CANDIDATE, 2, 1, True)
    node.receive(RaftState(2, 2, 1, FOLLOWER, 0, False), {}, 2 * SECOND)
    assert node.state == LEADER
    assert node.leader_id == 1
    assert node.see_term(3, 2 * SECOND)
    assert (node.state, node.term, node.vote, node.leader_id) == (FOLLOWER, 3, 0, 0)


def test_a_quorum_that_the_cluster_does_not_have_is_no_split_vote() -> None:
    """Broken, a candidate runs through terms at ten times the speed until the other members have joined."""
    alone = election(1, members=2)
    alone.set_quorum(3, 0)
    alone.campaign(0)
    alone.receive(RaftState(2, 2, 1, FOLLOWER, 0, False), {}, 0)
    assert (alone.state, alone.deadline_ns >= SECOND // 2) == (CANDIDATE, True)


def test_a_vote_of_before_the_restart_counts() -> None:
    """Broken, who voted is unknown after a restart, and a vote that is split then is waited out."""
    again = election(1, term=4, vote=3)
    assert again.votes == {1: 3}
    assert election(1, term=4).votes == {}


def test_a_split_vote_goes_on_in_the_next_term_soon() -> None:
    """Broken, a cluster waits a whole election timeout for a winner that cannot come."""
    node = election(1)
    node.tick(2 * SECOND, connected=3, followers=1)
    node.receive(RaftState(2, 2, 2, CANDIDATE, 0, False, {}), {}, 2 * SECOND)
    assert node.deadline_ns > 2 * SECOND + SECOND // 4
    node.receive(RaftState(3, 2, 3, CANDIDATE, 0, False, {}), {}, 2 * SECOND)
    assert node.deadline_ns <= 2 * SECOND + SECOND // 20
    node.tick(node.deadline_ns, connected=3, followers=1)
    assert (node.state, node.term) == (CANDIDATE, 3)


def test_old_news_is_answered_by_nobody() -> None:
    """Broken, each message of a term that is over makes one to every peer: in split votes of five nodes these grow
    from term to term without end (seed 799 of `simulate` did)."""
    node = election(1)
    node.receive(candidate_says(2, 5, {}), {}, 0)
    assert node.must_tell
    node.said_to_all({}, 0)
    node.receive(candidate_says(3, 4, {}), {}, 0)
    assert (node.term, node.must_tell) == (5, False)


def test_nobody_disturbs_a_leader_that_somebody_sees() -> None:
    """Broken (no pre-vote), a node that alone lost the leader raises the term again and again."""
    node = election(1)
    node.receive(RaftState(2, 1, 0, FOLLOWER, 3, True), {}, 0)
    node.tick(5 * SECOND, connected=3, followers=1)
    assert (node.state, node.term) == (FOLLOWER, 1)
    node.receive(RaftState(2, 1, 0, FOLLOWER, 3, False), {}, 5 * SECOND)
    node.tick(7 * SECOND, connected=3, followers=1)
    assert node.state == CANDIDATE


def test_a_candidate_that_is_held_back_is_none() -> None:
    """Broken, who asked for this election waits for ever, as long as another sees a leader (gh-10836)."""
    node = election(1)
    node.campaign(0)
    assert node.state == CANDIDATE
    node.receive(RaftState(2, 2, 0, FOLLOWER, 3, True), {}, 0)
    node.must_tell = False
    node.tick(node.deadline_ns, connected=3, followers=1)
    assert (node.state, node.term, node.must_tell) == (FOLLOWER, 2, True)


def test_what_one_newcomer_heard_all_others_are_told_too() -> None:
    """Broken, they believe for ever that somebody still sees the old leader, and nobody stands for election."""
    node = election(2, mode="voter")
    node.receive(RaftState(1, 2, 1, LEADER, 1, True), {}, SECOND)
    assert node.said_to_all({}, SECOND).is_leader_seen
    assert not node.said({}, 3 * SECOND).is_leader_seen  # to one that subscribes in this moment
    node.tick(3 * SECOND, connected=3, followers=1)
    assert node.must_tell


def test_what_one_newcomer_heard_is_told_anew_when_it_is_over() -> None:
    """Broken, a leader that resigned and comes back believes for ever that a voter sees a leader, which was itself:
    nobody stands for election (seed 1875 of `simulate` did not)."""
    node = election(4, mode="voter")
    node.receive(RaftState(2, 2, 2, LEADER, 2, True), {}, SECOND)
    node.said_to_all({}, SECOND)
    node.tick(3 * SECOND, connected=3, followers=1)
    assert not node.said_to_all({}, 3 * SECOND).is_leader_seen
    node.heard(2, 4 * SECOND)  # it is back, and has not said yet what it is
    assert node.said({}, 4 * SECOND).is_leader_seen
    node.receive(RaftState(2, 2, 2, FOLLOWER, 0, False), {}, 4 * SECOND)
    node.tick(4 * SECOND, connected=3, followers=1)
    assert node.must_tell and not node.said_to_all({}, 4 * SECOND).is_leader_seen
    node.tick(4 * SECOND, connected=3, followers=1)
    assert not node.must_tell


def test_without_a_quorum_connected_nobody_begins() -> None:
    """Broken, an isolated node comes back with a term that throws the leader out."""
    node = election(1)
    node.tick(9 * SECOND, connected=1, followers=1)
    assert (node.state, node.term) == (FOLLOWER, 1)


@pytest.mark.parametrize(("fencing", "leads"), [("soft", False), ("strict", False), ("off", True)])
def test_a_leader_without_followers_is_fenced(fencing: Fencing, leads: bool) -> None:
    """Broken, an isolated leader stays writable (or, with fencing off, is fenced all the same)."""
    node = election(1, fencing=fencing)
    node.tick(2 * SECOND, connected=3, followers=1)
    node.receive(RaftState(2, 2, 1, FOLLOWER, 0, False), {}, 2 * SECOND)
    node.tick(4 * SECOND, connected=1, followers=1)
    assert node.is_leader is leads
    assert node.term == 2


@pytest.mark.parametrize("is_exact", [False, True], ids=["", "exact"])
def test_a_raised_quorum_fences_only_a_leader_that_has_had_it(is_exact: bool) -> None:
    """Broken, an operator who raises the quorum takes the leader away; or no leader is fenced any more from then on."""
    node = election(1, is_exact=is_exact)
    node.campaign(0)
    node.must_write = False
    node.written(0)
    node.receive(RaftState(2, 2, 1, FOLLOWER, 0, False), {}, 0)
    node.set_quorum(3, 0)
    for followers, leads in ((2, True), (3, True), (2, False)):
        node.tick(SECOND, connected=3, followers=followers)
        assert node.is_leader is leads


@pytest.mark.parametrize("mode", ["voter", "manual", "off"])
def test_only_candidates_begin_by_themselves(mode: Mode) -> None:
    """Broken, a node that was told not to lead does; a voter still votes, a node with elections off does not."""
    node = election(1, mode=mode)
    node.tick(9 * SECOND, connected=3, followers=1)
    assert node.state == FOLLOWER
    node.receive(candidate_says(2, 2, {}), {}, 9 * SECOND)
    assert node.vote == (0 if mode == "off" else 2)


def test_a_leader_that_resigns_is_told_from_one_that_leads() -> None:
    """Broken, followers wait for a leader that has stepped off."""
    follower = election(2)
    follower.receive(RaftState(1, 2, 1, LEADER, 1, True), {}, 0)
    assert follower.sees_leader(SECOND // 2)
    follower.receive(RaftState(1, 2, 1, FOLLOWER, 0, False), {}, SECOND // 2)
    assert not follower.sees_leader(SECOND // 2)


@pytest.mark.parametrize("is_exact", [False, True], ids=["", "exact"])
@pytest.mark.parametrize("members", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(40))
def test_at_most_one_leader_a_term(members: int, seed: int, is_exact: bool) -> None:
    """Broken, two nodes own the queue at once. Messages are lost, late and out of date; nodes restart with what they
    wrote; and with everybody connected there is a leader in the end."""
    chance = random.Random(f"{seed}/{members}")
    nodes = {me: election(me, members=members, seed=seed, is_exact=is_exact) for me in range(1, members + 1)}
    leaders: dict[int, int] = {}
    flying: list[tuple[int, RaftState]] = []
    now_ns = 0

    def look(me: int) -> None:
        node = nodes[me]
        while node.must_write:
            node.must_write = False
            node.written(now_ns)
        if node.is_leader:
            assert leaders.setdefault(node.term, me) == me
        if node.must_tell:
            said = node.said_to_all({1: 1}, now_ns)
            flying.extend((other, said) for other in nodes if other != me)

    for _ in range(600):
        now_ns += chance.randrange(SECOND // 10)
        me = chance.randrange(1, members + 1)
        match chance.choice(("tick", "tick", "message", "message", "message", "lose", "restart")):
            case "tick":
                nodes[me].tick(now_ns, members, chance.choice((1, members)))
            case "message" if flying:
                me, message = flying.pop(chance.randrange(len(flying)))
                nodes[me].receive(message, {1: 1}, now_ns)
            case "lose" if flying:
                flying.pop(chance.randrange(len(flying)))
            case "restart" if chance.random() < 0.1:
                old = nodes[me]
                nodes[me] = election(
                    me, members=members, now_ns=now_ns, term=old.term, vote=old.vote, is_exact=is_exact
                )
        look(me)
    for node in nodes.values():
        node.must_tell = True  # links are made anew, and a new link begins with the state
    for _ in range(1_000):
        now_ns += SECOND // 200
        for me, node in nodes.items():
            node.tick(now_ns, members, members)
            look(me)
        while flying:
            me, message = flying.pop(0)
            nodes[me].heard(message.replica_id, now_ns)
            nodes[me].receive(message, {1: 1}, now_ns)
            look(me)
        for node in nodes.values():
            for other in nodes:
                node.heard(other, now_ns)
    assert any(node.is_leader for node in nodes.values())
