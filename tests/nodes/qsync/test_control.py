"""What an operator asks of a node, and each way in which it is refused; the long stories are conversations."""

from __future__ import annotations

import pytest

from nodes.iproto.codes import Code
from tests.nodes.qsync.conversation import Conversation

CLUSTER = ("n2 answers", "n3 answers", "n2 subscribes", "n3 subscribes")
FROZEN = ("n2 answers", "n2 is follower in term 3", "written all")


def answers(*script: str) -> list[str]:
    """What clients are told in a conversation: `c1: ok []`, `c1: error 78 …`, in order."""
    conversation = Conversation()
    told = [effect for line in script for effect in conversation.happen(line)]
    return [effect.removeprefix("send ") for effect in told if effect.startswith("send c")]


def error(client: str, code: Code, *arguments: object) -> str:
    return f"{client}: error {code.value} {code.text(*arguments)}"


OK = "c1: ok []"


SIMULTANEOUS = ("box.ctl.promote/demote", "simultaneous invocations")


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (("owner n1", "c1 promote"), [OK]),
        (("leader n1 elections=manual", "c1 promote"), [OK]),
        (("owner n1", "c1 call box.ctl.clear_synchro_queue"), [OK]),
        (("node n1", "c1 call box.ctl.demote"), [OK]),
        (("owner n1", "c1 call box.ctl.demote", "written all", "c1 call box.ctl.demote"), [OK, OK]),
        (("replica n2", "c1 call box.ctl.demote"), [OK]),
        (("leader n1 elections=manual", "c1 call box.ctl.demote"), [OK]),
    ],
    ids=["owner", "leader", "old name", "of nobody", "twice", "of another", "leader steps down"],
)
def test_what_is_so_already_is_answered_at_once(script: tuple[str, ...], told: list[str]) -> None:
    """Broken, an operator who asks twice, or asks the right node, waits or is refused."""
    assert answers(*script) == told


def test_a_leader_that_is_demoted_leads_no_more() -> None:
    """Broken, DEMOTE is answered and the leader goes on writing."""
    conversation = Conversation()
    conversation.happen("leader n1 elections=manual")
    effects = [*conversation.happen("c1 call box.ctl.demote"), *conversation.happen("written all")]
    assert not conversation.node.election.is_leader
    assert not conversation.node.commits.is_writable
    assert not any("DEMOTE" in effect for effect in effects)
    assert conversation.node.commits.limbo.owner_id == 1, "it has resigned, and keeps the queue"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            ("node n1", "c1 promote", "c2 promote"),
            error("c2", Code.IN_ANOTHER_PROMOTE),
        ),
        (
            ("node n1", "c1 promote", "c2 call box.ctl.demote"),
            error("c2", Code.UNSUPPORTED, *SIMULTANEOUS),
        ),
        (("node n1 elections=manual", "c1 promote"), error("c1", Code.NO_ELECTION_QUORUM, 1, 2)),
        (
            ("node n1 elections=manual", *CLUSTER, "c1 promote", "n2 is leader in term 2"),
            error("c1", Code.INTERFERING_PROMOTE, 2),
        ),
        (
            ("node n1 elections=manual", *CLUSTER, "c1 promote", "n2 is candidate in term 3"),
            error("c1", Code.OLD_TERM, 2, 3),
        ),
        (
            ("node n1 elections=manual", *CLUSTER, "c1 promote", "wait 1100ms"),
            error("c1", Code.TIMEOUT),
        ),
        (
            (
                "node n1 elections=manual",
                *CLUSTER,
                "c1 promote",
                'c2 call box.cfg {"election_mode":"off"}',
            ),
            error("c1", Code.ELECTION_DISABLED),
        ),
        (
            (
                "replica n2",
                "n1 rows 1/2 REPLACE register r1 1 wait-sync wait-ack",
                "written all",
                "c1 promote",
                "wait 2000ms",
                "written",
                "wait 1000ms",
            ),
            error("c1", Code.QUORUM_WAIT, 2, "timed out"),
        ),
        (
            (
                "replica n2",
                "n1 rows 1/2 REPLACE register r1 1 wait-sync wait-ack",
                "written all",
                "c1 promote",
                "n3 rows 3/1 PROMOTE 3 n1 2",
                "written all",
            ),
            error("c1", Code.INTERFERING_PROMOTE, 3),
        ),
        (
            (
                "owner n1",
                "n2 answers",
                "c3 replace register r1 1",
                "written",
                "c1 call box.ctl.demote",
                "n2 is follower in term 9",
            ),
            error("c1", Code.INTERFERING_ELECTIONS),
        ),
        (("node n1", "c1 promote", "written", "disk fails"), error("c1", Code.WAL_IO)),
    ],
    ids=[
        "promote during promote",
        "demote during promote",
        "too few peers",
        "another won",
        "a newer election",
        "nobody voted",
        "elections turned off",
        "no quorum has what waits",
        "another was promoted",
        "a term begins during demote",
        "disk",
    ],
)
def test_a_promotion_that_cannot_be_had(script: tuple[str, ...], told: str) -> None:
    """Broken, an operator is told that the queue is ours, or nothing, or the wrong reason."""
    found = [answer for answer in answers(*script) if not answer.startswith("c2: ok")]
    assert found[-1] == told
    assert OK not in found


def test_after_a_promotion_that_failed_another_one_can_be_asked_for() -> None:
    """Broken, one failed promote makes all later ones fail with "already running"."""
    told = answers("node n1", "c1 promote", "written", "disk fails", "c1 promote", "written all")
    assert told == [error("c1", Code.WAL_IO), OK]


def test_a_promotion_goes_on_when_its_term_could_not_be_written_at_once() -> None:
    """Broken, a PROMOTE stands in a log before the term that it is in, or its caller hears nothing."""
    told = answers("node n1", "c1 promote", "disk fails", "written all")
    assert told == [OK]


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (("owner n1", "c1 call box.ctl.wait_rw"), [OK]),
        (("replica n2", "c1 call box.ctl.wait_ro"), [OK]),
        (("owner n1", *FROZEN, "c1 call box.ctl.wait_rw 0"), [error("c1", Code.TIMEOUT)]),
        (("owner n1", "c1 call box.ctl.wait_ro 0.5", "wait 499ms"), []),
        (("owner n1", "c1 call box.ctl.wait_ro 0.5", "wait 500ms"), [error("c1", Code.TIMEOUT)]),
        (("owner n1", "c1 call box.ctl.wait_ro", "wait 5000ms", *FROZEN), [OK]),
        (("owner n1", "c1 call box.ctl.wait_ro null", *FROZEN), [OK]),
        (("replica n2", "c1 call box.ctl.wait_rw 9", "c2 promote", "written all"), ["c2: ok []", OK]),
    ],
)
def test_waiting_for_a_mode(script: tuple[str, ...], told: list[str]) -> None:
    """Broken, whoever waits for a writable node goes on too early, too late, or never."""
    assert answers(*script) == told


@pytest.mark.parametrize("given", ["-1", '"soon"', "true", "NaN"])
def test_a_timeout_that_is_none_is_refused(given: str) -> None:
    """Broken, a mistaken argument is taken for some time, or ends the node."""
    for function in ("box.ctl.wait_rw", "box.ctl.wait_ro"):
        (told,) = answers("node n1 elections=manual", f"c1 call {function} {given}")
        assert told.startswith("c1: error 1 Illegal parameters, expected a timeout in seconds")


def test_elections_are_told_by_their_number() -> None:
    """Broken, who watches elections misses one between two questions, or is told of the same one for ever."""
    start = ("node n1 elections=manual", *CLUSTER, "c1 call qsync.on_election 0, 5")
    assert answers(*start) == []
    election = answers(*start, "n2 is leader in term 2")
    assert election == ['c1: ok [{"number": 1, "state": "follower", "term": 2, "leader": 2}]']
    again = (*start, "n2 is leader in term 2", "c2 call qsync.on_election 0")
    assert answers(*again)[-1] == election[0].replace("c1", "c2")
    assert answers(*again, "c3 call qsync.on_election 1, 1", "wait 1000ms")[-1] == error("c3", Code.TIMEOUT)


@pytest.mark.parametrize("given", ["true", '"1"', "1.5", "[]"])
def test_a_number_of_elections_that_is_none_is_refused(given: str) -> None:
    """Broken, who watches elections from a mistaken number waits for the next one, and misses those before it."""
    (told,) = answers("node n1 elections=manual", f"c1 call qsync.on_election {given}")
    assert told.startswith("c1: error 1 Illegal parameters, expected a number of elections")


def test_who_hangs_up_waits_no_more() -> None:
    """Broken, a node remembers for ever everybody who ever waited for it to be writable and went away."""
    conversation = Conversation()
    for line in ("replica n2", "c1 call box.ctl.wait_rw", "c1 hangs up", "c2 promote"):
        conversation.happen(line)
    assert not any("c1" in effect for effect in conversation.happen("written all"))


def test_box_cfg_takes_a_map_or_nothing() -> None:
    """Broken, options are taken from what is not a map of them, or cannot be read."""
    (told,) = answers("owner n1", "c1 call box.cfg 5")
    assert told == error("c1", Code.ILLEGAL_PARAMS, "cfg should be a table")
    (told,) = answers("owner n1", "c1 call box.cfg")
    assert '"replication_synchro_quorum": 2' in told


def test_a_quorum_that_is_lowered_ends_an_election() -> None:
    """Broken, a candidate that has enough votes under the new quorum waits for more."""
    script = ("node n1 elections=manual quorum=3", *CLUSTER, "c1 promote", "n2 is follower in term 2 for n1")
    assert answers(*script) == []
    told = answers(*script, 'c2 call box.cfg {"replication_synchro_quorum":2}')
    assert sorted(told) == [OK, "c2: ok []"]


def test_a_promote_that_a_newer_one_overtook_waits_no_more() -> None:
    """Broken, a node that has seen two PROMOTEs of one owner's queue never takes a snapshot again."""
    script = (
        "replica n4 elections=candidate nodes=5 quorum=3",
        "n1 rows 1/2 CONFIRM 1 n1",
        "written all",
        "n2 rows 2/1 PROMOTE 3 n1 1",
        "written all",
        "n3 rows 3/1 PROMOTE 4 n1 1",
        "written all",
        "n3 rows 3/2 CONFIRM 1 n3",
        "written all",
        "c1 snapshot",
        "written all",
    )
    assert answers(*script) == ['c1: ok ["ok"]']
