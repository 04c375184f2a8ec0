"""Runs that begin with stored logs: what those held is judged with the rest, and who cannot read them says so."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from harness.campaigns.hunt import try_seed
from harness.errors import WrongUse
from harness.judge.words import repeat_line
from harness.plan.plan import Plan
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from harness.systems.qsync import starts
from harness.systems.qsync.variety import start_for
from nodes.iproto import xlog
from tests.suites import mostly_long

FROM_3_2 = [name for name in starts.names() if name.startswith("unmarked-")]
REAL = "tarantool-2.6.0"


def begun(start: str, **fields: object) -> Plan:
    """A short run from these logs."""
    usual = {
        "cluster": "sim",
        "time_limit_s": 2.0,
        "rate": 60.0,
        "faults": ("none",),
        "start": start,
        "seed": 5,
    }
    return planned(**(usual | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", starts.names())
def test_every_cut_is_of_whole_records(name: str) -> None:
    """Broken, a run begins with torn logs, which prove nothing."""
    protocol = starts.start_of(name).protocol
    cuts = starts.cuts_for(name, protocol, 3)
    assert len(cuts) > 10
    for cut in cuts:
        start = starts.start_of(f"{name}@{cut}")
        for log in start.logs:
            found = xlog.decode(log)
            assert found.meta is not None and found.damage is None, cut
    whole = starts.start_of(name)
    assert len(whole.answered) >= 13
    assert whole == starts.start_of(f"{name}@{cuts[-1]}")


BEGINS = [(name, configuration) for name in FROM_3_2 for configuration in "CHI"]
QUICK = [("unmarked-by-hand", "C"), ("unmarked-at-once", "I")]


@pytest.mark.parametrize("begins", mostly_long(BEGINS, quick=QUICK), ids="-".join)
def test_a_run_begins_with_the_logs_of_an_older_version(begins: tuple[str, str]) -> None:
    """Broken, a cluster that is upgraded loses what it acknowledged, or does not come up."""
    name, configuration = begins
    numbers = starts.cuts_for(name, "3.2", 3)
    for nodes, cut in zip((3, 4), random.Random(f"{name} {configuration}").sample(numbers, 2), strict=True):
        found = try_seed(begun(f"{name}@{cut}", configuration=configuration, nodes=nodes))
        assert (found.outcome, found.violated) == ("valid", ()), (cut, nodes, found.sentence)


@pytest.mark.parametrize("configuration", ["A", "C", "H"])
@pytest.mark.parametrize("nodes", mostly_long([1, 3], quick=[3]))
def test_a_run_begins_with_the_logs_of_real_tarantool(configuration: str, nodes: int) -> None:
    """Broken, what real 2.6.0 confirmed is not there: its queue has no PROMOTE."""
    found = try_seed(begun(REAL, configuration=configuration, nodes=nodes))
    assert (found.outcome, found.violated) == ("valid", ()), found.sentence


@pytest.mark.parametrize("cut", mostly_long([3, 6, 9], quick=[6]))
def test_protocol_2_6_begins_with_any_cut_of_real_tarantool(cut: int) -> None:
    """Broken, a queue that the log leaves busy is lost, or nobody owns it."""
    found = try_seed(begun(f"{REAL}@{cut}", configuration="A"))
    assert (found.outcome, found.violated) == ("valid", ()), found.sentence


@pytest.mark.parametrize("configuration", mostly_long(["C", "H"], quick=["H"]))
@pytest.mark.parametrize("faults", mostly_long([("none",), ("replace-node", "kill")], quick=[("none",)]))
def test_nodes_join_one_that_begins_with_the_logs(configuration: str, faults: tuple[str, ...]) -> None:
    """Broken, a cluster cannot grow out of a single server of an older version."""
    plan = begun(f"{REAL}+join", configuration=configuration, faults=faults, time_limit_s=8.0)
    found = try_seed(plan, has_drawn_faults=True)
    assert (found.outcome, found.violated) == ("valid", ()), found.sentence


@pytest.mark.nightly
@pytest.mark.parametrize("configuration", ["A", "C", "H"])
@pytest.mark.parametrize("name", starts.names())
def test_a_run_begins_with_any_cut(name: str, configuration: str) -> None:
    """As above, from all of them, with nodes that are killed."""
    protocol = "2.6" if configuration == "A" else "3.2"
    faults = ("none",) if configuration == "A" else ("kill",)
    for cut in starts.cuts_for(name, protocol, 3):  # type: ignore[arg-type]
        found = try_seed(begun(f"{name}@{cut}", configuration=configuration, faults=faults))
        assert found.violated == (), (cut, found.sentence)
        assert found.outcome in ("valid", "inconclusive"), (cut, found.sentence)


def test_what_was_acknowledged_before_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken, a cluster that forgets what stood in its logs is called valid."""
    start = starts.start_of("unmarked-elections")
    more = replace(start, answered=(*start.answered, ("stored-99", 99)))
    monkeypatch.setattr(starts, "start_of", lambda words: more)
    found = try_seed(begun("unmarked-elections"))
    assert (found.outcome, found.violated) == ("anomaly", ("stored-start",))
    assert "['stored-99', 99]" in found.sentence


def test_the_line_that_repeats_a_run_names_its_start() -> None:
    """Broken, the line repeats another run."""
    assert "--start unmarked-by-hand@7" in repeat_line(begun("unmarked-by-hand@7"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"start": "nothing"}, "no stored logs are called 'nothing'; try one of: tarantool-2.6.0, "),
        ({"start": "unmarked-by-hand@0"}, "expected unmarked-by-hand@1 to unmarked-by-hand@122"),
        ({"start": "unmarked-by-hand@x"}, "expected unmarked-by-hand@1 to unmarked-by-hand@122"),
        ({"start": "unmarked-by-hand", "nodes": 2}, "it has the logs of 3 nodes, got --nodes 2"),
        ({"start": "unmarked-by-hand", "configuration": "A"}, "2.6 cannot read the logs of 3.2"),
        (
            {"start": f"{REAL}@5"},
            "later versions begin with its snapshot alone; try: --start tarantool-2.6.0",
        ),
        ({"start": "unmarked-by-hand+join"}, "other nodes can join one of a later protocol than 2.6"),
        ({"start": f"{REAL}+join", "configuration": "A"}, "other nodes can join one of a later protocol"),
        ({"start": f"{REAL}+join", "quorum": 2}, "the quorum follows the members that join"),
        ({"start": REAL, "cluster": "local"}, "--start is for --cluster sim, got --cluster local"),
        ({"start": REAL, "system": "tarantool", "cluster": "docker"}, "no stored logs of --system tarantool"),
    ],
)
def test_what_cannot_begin_so_is_refused(fields: dict[str, object], words: str) -> None:
    """Broken, a run begins with disks that its nodes cannot read, and fails for that."""
    with pytest.raises(WrongUse, match="--start") as refused:
        parts_of(begun(**fields))  # type: ignore[arg-type]
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_start_is_drawn_that_fits_the_plan() -> None:
    """Broken, a hunt draws logs that its cluster refuses."""
    chance = random.Random(3)
    drawn = {
        nodes: {str(start_for(planned(nodes=nodes), chance)).partition("@")[0] for _ in range(50)}
        for nodes in (1, 3)
    }
    assert drawn == {1: {REAL}, 3: set(starts.names())}
