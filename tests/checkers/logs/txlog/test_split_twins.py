"""The checks of policy, votes and liveness against their definitions: one errs if they differ."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from checkers.logs.txlog.disturbances import RECONNECT_NS
from tests import examples
from tests.checkers.logs.txlog import split_definitions as definitions
from tests.checkers.logs.txlog.scripts import (
    Records,
    added,
    caught_up,
    cut,
    executed,
    history,
    life,
    made,
    operation,
    ref,
    rules,
    told,
)

NAMES = ("n1", "n2", "n3")
RECONNECT = RECONNECT_NS // definitions.TENTH_NS
SLACK = RECONNECT + 2
"""Of clocks, and of links that stand again: more than the checks allow for."""
CAN: dict[str, Any] = {"split_ns": 2_000_000_000, "max_peer_lag_ns": 2_000_000_000}
AWAY = cut([("n1", "n3"), ("n2", "n3")], 1, 90)

# ---- votes

BRANCHES = st.tuples(st.integers(0, 2), st.lists(st.integers(0, 2), max_size=3))
"""How much of a branch a master has, and which branches it follows."""
WRONG = st.tuples(
    st.sampled_from(["", "", "digest", "winner", "votes", "partial", "branch"]), st.sampled_from(NAMES)
)


def recoveries(strategy: str, choices: list[list[int]], wrongs: list[tuple[str, str]]) -> dict[str, Records]:
    """Right ones, of which some are wronged. A choice: by master the number of its branch, and how long it is."""
    logs: dict[str, Records] = {name: [life(strategy=strategy)] for name in NAMES}
    for epoch, (choice, (wrong, who)) in enumerate(zip(choices, wrongs, strict=False)):
        frozen: dict[str, list[Any]] = {}
        for master, branch, length in zip(NAMES, choice[:3], choice[3:], strict=True):
            base = definitions.synced(logs[master])
            more = [ref(10 * epoch + at + 1, f"n{branch + 1}-{epoch}-{at}") for at in range(length)]
            logs[master].append(caught_up(len(base), "n9", *more))
            frozen[master] = base + more
            if (wrong, who) != ("digest", master):
                logs[master].append(["recovering", epoch, None])
        counts = {one: sum(branch[: len(o)] == o for o in frozen.values()) for one, branch in frozen.items()}
        winner = sorted(NAMES, key=lambda one: (-counts[one], -len(frozen[one]), one))[0]
        kept = frozen[winner]
        while strategy == "simple" and not all(queue[: len(kept)] == kept for queue in frozen.values()):
            kept = kept[:-1]
        for master in NAMES:
            votes = dict(counts)
            elected, common, refs = winner, 0, list(kept)
            if master == who:
                elected = NAMES[(NAMES.index(winner) + 1) % 3] if wrong == "winner" else winner
                votes = {name: count + (wrong == "votes") for name, count in counts.items()}
                if wrong == "partial":
                    del votes[who]
                if wrong == "branch":
                    refs = [*kept[:-1], *([] if kept else [ref(99, "n1-x")])]
            logs[master].append(["recovered", epoch + 1, common, elected, votes, refs, [], 99, {}])
    return logs


CHOICES = st.lists(st.lists(st.integers(0, 2), min_size=6, max_size=6), min_size=1, max_size=3)


@examples.up_to(300)
@given(st.sampled_from(["simple", "smart"]), CHOICES, st.lists(WRONG, min_size=3, max_size=3))
def test_votes_as_the_definition_counts_them(
    strategy: str, choices: list[list[int]], wrongs: list[tuple[str, str]]
) -> None:
    logs = recoveries(strategy, choices, wrongs)
    broken = definitions.vote(logs)
    event(f"broken: {sorted(broken)}")
    assert rules(logs, of=("vote",), strategy=strategy, **CAN) == broken


def test_every_wrong_vote_is_wrong() -> None:
    """If it failed, the planted violations above would be none."""
    expected = {
        "": set[str](),
        "digest": {"voted-without-digest"},
        "winner": {"wrong-winner", "two-winners"},
        "votes": {"wrong-winner"},
        "partial": {"partial-vote", "wrong-winner"},
        "branch": {"wrong-branch"},
    }
    for wrong, broken in expected.items():
        assert definitions.vote(recoveries("simple", [[0, 0, 1, 2, 2, 2]], [(wrong, "n2")])) == broken


# ---- policy

BACKUP = [0, b"", []]
DOES = st.lists(st.sampled_from(["part", "recovery", "rejoined", "strategy", "life", "executes"]), max_size=6)
PLANTED = st.sampled_from(["", "no-backup", "changes", "executes", "acts"])


def phases(strategy: str, does: list[str], planted: str, chance: Any) -> Records:
    """A master that splits and recovers as its strategy says, and one planted wrong."""
    records: Records = [life(strategy=strategy)]
    done = 0
    for what in does:
        if what in ("part", "recovery"):
            backup = None if strategy == "none" or planted == "no-backup" else BACKUP
            records.append(["split", ["n3"], BACKUP if planted == "acts" else backup])
            if chance.random() < 0.5:
                records.append(["split", ["n2", "n3"], None])
            if planted == "changes":
                other = "smart" if strategy == "simple" else "simple"
                records.append(["strategy", other])
                strategy = other
            if strategy == "none":
                records.append(["rejoined"])
                continue
            records.append(["recovering", 0, None])
            if planted == "executes":
                done += 1
                records.append(executed(done, f"n1-{done}"))
            records.append(["recovered", 1, 0, "n1", dict.fromkeys(NAMES, 3), [], [], 0, {}])
        elif what == "rejoined" and strategy == "none":
            records += [["split", ["n3"], None], ["rejoined"]]
        elif what == "strategy":
            strategy = chance.choice(["none", "simple", "smart"])
            records.append(["strategy", strategy])
        elif what == "life":
            records.append(life(2, strategy))
        elif what == "executes":
            done += 1
            records.append(executed(done, f"n1-{done}"))
    return records


@examples.up_to(300)
@given(st.sampled_from(["none", "simple", "smart"]), DOES, PLANTED, st.randoms(use_true_random=False))
def test_phases_as_the_definition_allows_them(
    strategy: str, does: list[str], planted: str, chance: Any
) -> None:
    records = phases(strategy, does, planted, chance)
    logs = {"n1": records, "n2": [life()], "n3": [life()]}
    ring = cut([("n1", "n2"), ("n1", "n3"), ("n2", "n3")], 1, 90)
    broken = definitions.policy(records)
    event(f"broken: {sorted(broken)}")
    found = rules(logs, history(ring), of=("policy",), strategy=strategy, **CAN)
    assert found == broken


def test_every_wrong_phase_is_wrong() -> None:
    from random import Random

    expected = {
        "no-backup": "split-without-backup",
        "changes": "strategy-changed",
        "executes": "executed-in-recovery",
    }
    for planted, rule in expected.items():
        assert rule in definitions.policy(phases("simple", ["part"], planted, Random(1)))
    assert "acted-without-strategy" in definitions.policy(phases("none", ["part"], "acts", Random(1)))


TENTHS = st.integers(0, 80)
CUTS = st.lists(st.tuples(st.sampled_from(["n1", "n2"]), TENTHS, st.integers(1, 50)), min_size=1, max_size=4)


@examples.up_to(300)
@given(CUTS, st.integers(10, 120))
def test_causes_of_splits_at_every_moment(cuts: list[tuple[str, int, int]], answered: int) -> None:
    """Where links that stand again a little later make no difference."""
    links = {
        name: [(begin, begin + length) for one, begin, length in cuts if one == name] for name in ("n1", "n2")
    }
    surely = definitions.lost(links, 20, answered, slack=0)
    perhaps = definitions.lost(links, 18, answered, slack=SLACK)
    assume(surely == perhaps)
    faults = [
        cut([(name, "n3")], begin / 10, (begin + length) / 10, number)
        for number, (name, begin, length) in enumerate(cuts)
    ]
    records = [
        life(strategy="simple"),
        made(1, "n1-1"),
        ["split", ["n3"], BACKUP],
        added(0, 1, ["n2"], [], ref(1, "n1-1")),
    ]
    logs = {"n1": [*records, executed(1, "n1-1")], "n2": [life()], "n3": [life()]}
    asked = operation(0, 0, answered / 10 + 0.001, "n1-1")
    found = rules(logs, history(*faults, asked), of=("policy",), strategy="simple", split_ns=CAN["split_ns"])
    event(f"cause: {surely}")
    assert ("split-without-cause" in found) != surely


@examples.up_to(200)
@given(
    st.integers(0, 60), st.integers(0, 60), st.integers(1, 150), st.sampled_from(["none", "simple", "smart"])
)
def test_executions_before_max_peer_lag(fault: int, asked: int, waited: int, strategy: str) -> None:
    """A split is not before the time-out of its fault, nor before what was submitted before it."""
    answered = asked + waited
    earliest = max(fault + 20, asked)
    assume(not earliest + 17 <= answered <= earliest + 21)
    assume(answered >= fault + 21)
    is_early = strategy != "none" and answered < earliest + 20
    backup = None if strategy == "none" else BACKUP
    records = [
        life(strategy=strategy),
        made(1, "n1-1"),
        ["split", ["n3"], backup],
        added(0, 1, ["n2"], [], ref(1, "n1-1")),
    ]
    logs = {"n1": [*records, executed(1, "n1-1")], "n2": [life()], "n3": [life()]}
    away = cut([("n1", "n3"), ("n2", "n3")], fault / 10, 90)
    found = rules(
        logs,
        history(away, operation(0, asked / 10, answered / 10, "n1-1")),
        of=("policy",),
        strategy=strategy,
        **CAN,
    )
    event(f"early: {is_early}")
    assert found == ({"executed-too-early"} if is_early else set())


# ---- liveness

SPANS = st.lists(st.tuples(TENTHS, st.integers(1, 40)), max_size=3)
WAITS = st.lists(st.tuples(TENTHS, st.integers(1, 90)), max_size=4)


@examples.up_to(300)
@given(SPANS, WAITS, st.integers(0, 3), st.booleans(), st.integers(0, 80))
def test_liveness_at_every_moment(
    faults: list[tuple[int, int]], asked: list[tuple[int, int]], lacking: int, is_quiet: bool, after: int
) -> None:
    """Each transaction is everywhere, but for `lacking` masters that have not the last one."""
    names = [f"n1-{number}" for number in range(len(asked) + 1)]
    refs = [ref(number + 1, name) for number, name in enumerate(names)]
    logs = {
        name: [
            life(),
            *(made(*each[:2]) for each in refs if name == "n1"),
            caught_up(0, "n9", *(refs[:-1] if at < lacking else refs)),
        ]
        for at, name in enumerate(NAMES)
    }
    spans = [(begin, begin + length + RECONNECT) for begin, length in faults]
    gave_up = 200 + after
    lines = [
        operation(number, begin / 10, (begin + length) / 10, names[number])
        for number, (begin, length) in enumerate(asked)
    ]
    lines += [
        cut([("n1", "n2")], begin / 10, (begin + length) / 10, number)
        for number, (begin, length) in enumerate(faults)
    ]
    bound = 30 if after % 2 else 180
    broken = definitions.drained(
        logs,
        [(begin, begin + length) for begin, length in asked],
        spans,
        None if is_quiet else gave_up,
        bound,
    )
    event(f"broken: {sorted(broken)}")
    record = history(*lines, told("settled", gave_up / 10, is_quiet))
    assert rules(logs, record, of=("drained",), agrees_within_ns=bound * definitions.TENTH_NS) == broken
