"""The verifier of the TxLog's verdicts: what these records do not show is no proof."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from checkers.logs.txlog import verify
from checkers.logs.txlog.report import RULES
from checkers.verdict import RefusedError
from tests.checkers.logs.txlog.scripts import acquired, added, caught_up, executed, life, made, ref
from tests.checkers.logs.txlog.tiny_cluster import Cluster

A, B, C = ref(1, "n1-1"), ref(2, "n2-1"), ref(3, "n1-2")
BACKUP = [0, b"", []]
RECOVERED = ["recovered", 1, 0, "n1", {"n1": 2, "n2": 2}, [A], [], 1, {}]
ROUND = [life(), made(1, "n1-1"), added(0, 1, ["n2"], [], A)]

FORGED: dict[str, tuple[dict[str, list[Any]], dict[str, Any]]] = {
    "two epochs": (
        {"n1": [life(), added(0, 1, [], [], A), RECOVERED], "n2": [life(), added(0, 1, [], [], B)]},
        {"rule": "diverged", "records": [["n1", 3], ["n2", 2]], "index": 0, "epoch": 1},
    ),
    "updates of another round": (
        {"n1": ROUND, "n2": [life(), acquired("n1-1")]},
        {"rule": "poster-lacked", "records": [["n1", 3]], "poster": "n2", "id": "n1-2"},
    ),
    "a base that it never had": (
        {"n1": [*ROUND, added(1, 3, ["n2"], [], C)], "n2": [life()]},
        {"rule": "poster-lacked", "records": [["n1", 4]], "poster": "n2", "id": "n1-2"},
    ),
    "a poster without a log": (
        {"n1": [*ROUND, added(1, 3, ["n2"], [], C)], "n2": []},
        {"rule": "poster-elsewhere", "records": [["n1", 4]], "poster": "n2"},
    ),
    "lost by a master without a log": (
        {"n1": ROUND, "n2": []},
        {"rule": "lost", "records": [["n1", 2]], "id": "n1-1", "lacking": ["n2"]},
    ),
    "a digest that may be in a missing log": (
        {"n1": [life(), ["recovering", 0, BACKUP], RECOVERED], "n2": []},
        {"rule": "voted-without-digest", "records": [["n1", 3]]},
    ),
    "a split without a backup": (
        {"n1": [life(), ["split", ["n2"], None]], "n2": [life()]},
        {"rule": "acted-without-strategy", "records": [["n1", 2]]},
    ),
    "the backup of the split before": (
        {
            "n1": [life(1, "simple"), ["split", ["n2"], BACKUP], ["split", ["n2", "n3"], None]],
            "n2": [life()],
            "n3": [life()],
        },
        {"rule": "split-without-backup", "records": [["n1", 3]]},
    ),
    "a place before all records": (
        {"n1": [*ROUND, executed(1, "n1-1")], "n2": [life()]},
        {"rule": "executed-another", "records": [["n1", 0]]},
    ),
    "the last entries of queues that go on": (
        {"n1": [life(), added(0, 1, [], [], A)], "n2": [life(), added(0, 2, [], [], A, B)]},
        {"rule": "diverged", "records": [["n1", 2], ["n2", 2]], "index": -1, "epoch": 0},
    ),
    "a base behind entries that a record left out": (
        {
            "n1": [life(), caught_up(0, "n2", A, B), added(2, 1, ["n2"], [], C)],
            "n2": [life(), caught_up(1, "n1", A, B)],
        },
        {"rule": "poster-elsewhere", "records": [["n1", 3]], "poster": "n2"},
    ),
    "that all is well": (
        {"n1": ROUND},
        {"rule": "agree", "records": [["n1", 1]], "lengths": {"n1": 1}},
    ),
}
DOUBLED = {"n1": [life(), added(0, 1, [], [], A, A), executed(1, "n1-1")], "n2": [life()]}


@pytest.mark.parametrize("name", FORGED)
def test_what_records_do_not_show_is_refused(name: str) -> None:
    """If it failed, the verifier would accept a violation of masters that did nothing wrong."""
    logs, proof = FORGED[name]
    with pytest.raises(RefusedError):
        verify.check(tuple(logs), logs, {"result": "invalid", "details": {"proofs": [proof]}})


@pytest.mark.parametrize(
    ("check", "proof"),
    [
        ("once", {"rule": "all once", "lengths": {}}),
        ("once", {"rule": "all once", "lengths": {"n2": 0}}),
        ("once", {"rule": "all votes"}),
        ("executed", {"rule": "all in turn", "executed": {"n2": 0}}),
    ],
)
def test_that_all_holds_is_shown_of_every_master(check: str, proof: dict[str, Any]) -> None:
    """If it failed, a green light would stand on a proof of another check, or of some masters alone."""
    verdict = {"checker": f"txlog-{check}", "result": "valid", "details": {"proofs": [proof]}}
    with pytest.raises(RefusedError):
        verify.check(tuple(DOUBLED), DOUBLED, verdict)


@pytest.mark.parametrize(
    ("logs", "check", "figures"),
    [
        ({"n1": ROUND}, "order", {"lengths": {"n1": 2}}),
        ({"n1": ROUND, "n2": [life(), added(0, 2, [], [], B)]}, "order", {"lengths": {"n1": 1, "n2": 1}}),
        ({"n1": [life(), added(0, 2, [], [], B, A)]}, "order", {"lengths": {"n1": 2}}),
        ({"n1": ROUND}, "kept", {"transactions": 2}),
        ({"n1": ROUND}, "acquired", {"rounds": 0}),
        ({"n1": ROUND}, "counters", {"timestamps": 1, "rounds": 0}),
        ({"n1": [life(), ["split", ["n2"], BACKUP]]}, "policy", {}),
        ({"n1": [life(), RECOVERED]}, "vote", {"recoveries": 0}),
        ({"n1": [*ROUND, executed(1, "n1-1")]}, "executed", {"executed": {"n1": 0}}),
    ],
)
def test_that_all_holds_is_not_shown_by_wrong_figures(
    logs: dict[str, list[Any]], check: str, figures: dict[str, Any]
) -> None:
    """If it failed, a green light would stand on a comparison that was never made."""
    proof = {"rule": "all holds", **figures}
    verdict = {"checker": f"txlog-{check}", "result": "valid", "details": {"proofs": [proof]}}
    with pytest.raises(RefusedError):
        verify.check(tuple(logs), logs, verdict)


def test_a_master_that_came_twice_is_counted_from_the_first_time_on() -> None:
    """If it failed, a round without the counter of a master would be excused by a record behind it."""
    logs = {"n1": [life(), ["peer", "n2"], added(0, 1, [], [], A), ["peer", "n2"]], "n2": [life()]}
    proof = {"rule": "master-not-counted", "records": [["n1", 3]]}
    assert verify.check(tuple(logs), logs, {"result": "invalid", "details": {"proofs": [proof]}}) == 1
    logs["n1"] = [life(), added(0, 1, [], [], A), ["peer", "n2"]]
    proof["records"] = [["n1", 2]]
    with pytest.raises(RefusedError):
        verify.check(tuple(logs), logs, {"result": "invalid", "details": {"proofs": [proof]}})


def test_whether_masters_can_split_no_record_says() -> None:
    """If it failed, every restore at all would be proved to be one too many."""
    proof = {"rule": "restored-without-split", "records": [["n1", 2]]}
    logs = {"n1": [life(), ["restored", 0, b""]]}
    assert verify.check(("n1",), logs, {"result": "invalid", "details": {"proofs": [proof]}}) == 0


OF_TWO = ("diverged", "not-a-prefix", "out-of-order", "state-differs", "two-winners")
"""Rules that two records break."""


@pytest.mark.parametrize("seed", range(6))
def test_right_masters_break_no_rule_whatever_is_claimed(seed: int) -> None:
    """If it failed, a forged proof would be accepted: of a rule, records and names drawn by chance."""
    chance = Random(seed)
    digits = [chance.randint(0, 9) for _ in range(160)]
    script = [*zip(digits[::4], digits[1::4], digits[2::4], digits[3::4], strict=True)]
    logs = Cluster(chance.choice(("none", "simple"))).run(script).drain().logs
    places = [(name, at) for name in logs for at in range(1, len(logs[name]) + 1)]
    ids = [record[3] for log in logs.values() for record in log if record[0] == "made"]
    for rule in sorted(RULES.keys() - verify.NOT_SHOWN):
        for _ in range(40):
            proof = {
                "rule": rule,
                "records": [chance.choice(places) for _ in range(2 if rule in OF_TWO else 1)],
                **{name: chance.choice(ids) for name in ("id", "before", "above")},
                **{name: chance.choice(list(logs)) for name in ("poster", "by")},
                "lacking": chance.sample(list(logs), 2),
                "index": chance.randint(0, 4),
                "epoch": 0,
            }
            if rule == "poster-elsewhere":
                del proof["id"]
            with pytest.raises(RefusedError):
                verify.check(tuple(logs), logs, {"result": "invalid", "details": {"proofs": [proof]}})
