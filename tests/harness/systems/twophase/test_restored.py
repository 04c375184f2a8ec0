"""Second clusters that begin from cuts: whole simulated runs, and the judgement of what they show."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.history import History
from checkers.history.history import Header
from checkers.history.operation import Event
from checkers.verdict import Verdict
from harness.campaigns.hunt.seeds import try_seed
from harness.errors import WrongUse
from harness.run.assemble import parts_of
from harness.systems.plans import planned
from harness.systems.twophase.judging import checks_of_cuts
from harness.systems.twophase.restored import drawn_cuts, judged
from harness.workloads import WORKLOADS
from harness.workloads.restore import NAME as TOTAL
from harness.workloads.restore import check as check_total
from harness.workloads.restoring import AGAIN, ASKED, BROKE, CUT, DUMP, FIRST, LAST, READ, REFUSED
from nodes.records import framed
from nodes.twophase.data import partition_of
from tests.harness.systems.twophase.test_twophase import kept, plan


def restoring(**fields: Any) -> Any:
    return plan(**{"workload": "restore", **fields})


@pytest.mark.parametrize(
    ("fields", "unfinished"),
    [
        ({"faults": ("none",), "nodes": 3, "time_limit_s": 3, "seed": 1}, 0),
        pytest.param({"faults": ("all",), "nodes": 5, "seed": 5}, 1, marks=pytest.mark.long),
    ],
    ids=["quiet", "under faults"],
)
def test_second_clusters_of_a_correct_store_hold(
    fields: dict[str, Any], unfinished: int, tmp_path: Path
) -> None:
    """If it failed, a right store would be blamed for its restores, or none of them would be judged."""
    verdict, history = kept(restoring(restores=2, **fields), tmp_path)
    assert verdict["violations"] == []
    found = {check["checker"]: check for check in verdict["checks"]}
    assert (found["cuts-restored"]["result"], found[TOTAL]["result"]) == ("valid", "valid")
    cuts = found["cuts-restored"]["details"]["cuts"]
    assert [each["summary"].split(":")[0] for each in cuts].count("refused") == unfinished
    assert len(cuts) == 2 + unfinished
    assert found[TOTAL]["details"]["reads"] == 2 * 2 * fields["nodes"], "two clusters, read first and last"
    further = [event.value for event in history.events if event.f == CUT]
    assert all(each["state"] == "ok" and each["writes"] > 10 for each in further)
    begun = sorted(each.name for each in (tmp_path / "latest" / "restored").iterdir())
    assert begun == sorted(each["cut"] for each in cuts if not each["summary"].startswith("refused"))


@pytest.mark.nightly
def test_twenty_cuts_under_load_are_restored() -> None:
    """If it failed, cuts that were never restored would pass for ones that can be."""
    tried = try_seed(restoring(faults=("none",), restores=20, cut_every_s=0.4, time_limit_s=10))
    assert (tried.outcome, tried.violated) == ("valid", ())


@pytest.mark.parametrize(
    ("bug", "fields"),
    [
        ("restore-by-start", {"seed": 1, "nodes": 3, "time_limit_s": 3}),
        pytest.param("restore-by-start", {"seed": 2}, marks=pytest.mark.long),
        pytest.param("restore-of-unfinished", {"faults": ("all",)}, marks=pytest.mark.long),
    ],
)
def test_a_wrong_restore_is_found(bug: str, fields: dict[str, Any]) -> None:
    """If it failed, cuts could be right and what comes of them wrong."""
    tried = try_seed(restoring(**{"faults": ("none",), **fields}, bugs=(bug,)))
    assert "cuts-restored" in tried.violated, tried.sentence
    assert {*tried.violated} <= {"cuts-restored", "cuts-state"}, "the cuts themselves are right"


@pytest.mark.long
def test_a_wrong_cut_shows_in_its_restore() -> None:
    """If it failed, second clusters would be compared with nothing that a torn transaction changes."""
    size = {"nodes": 3, "time_limit_s": 4}
    tried = try_seed(restoring(faults=("none",), bugs=("finish-without-sign",), **size))
    assert {"cuts-transactions", "cuts-restored"} <= set(tried.violated), tried.sentence


@pytest.mark.parametrize("system", ["qsync", "tarantool"])
def test_a_store_without_cuts_is_refused(system: str) -> None:
    """If it failed, a run would end where its second clusters should begin."""
    with pytest.raises(WrongUse, match=r"asks for RestoredCut, which .* does not speak; try: --workload "):
        parts_of(planned(system=system, workload="restore", cluster="docker"))


# ---- the judgement, by hand: two servers, one partition of which both have a copy

SMALL = planned(
    system="twophase", nodes=2, partitions=1, backups=1, workload="restore", cluster="sim", seed=3
)
LAYOUT = [1, 1, "n1", "n2"]
COMMITTED = ["committed", "t1", None, False, [[0, ["n1", "n2"]]], [["bank", "a1", 200, 1]]]


def log(*cuts: str) -> dict[str, bytes]:
    records: list[list[Any]] = [COMMITTED]
    for number, cut in enumerate(cuts, 1):
        records += [["start", cut, number, 0, LAYOUT], ["finish", cut, [], []]]
    return {"wal-000001.log": b"".join(map(framed, records))}


BOTH = {"n1": log("k"), "n2": log("k")}
ROWS: list[Any] = [["bank", "a1", 200]]
OTHER: list[Any] = [["bank", "a1", 199]]
ASKS: tuple[Any, ...] = (ASKED, None, {})
RIGHT: tuple[tuple[Any, ...], ...] = (
    ASKS,
    *(
        (what, node, {"when": when, "rows": ROWS})
        for when in (FIRST, LAST)
        for what in (READ, DUMP)
        for node in BOTH
    ),
    (CUT, None, {"named": "k-again", "state": "ok", "why": "", "writes": 9}),
    *((AGAIN, node, {"rows": ROWS}) for node in BOTH),
)


def changed(what: str, value: Mapping[str, Any]) -> tuple[tuple[Any, ...], ...]:
    """The right lines, with other values in the last one of this kind."""
    place = max(number for number, line in enumerate(RIGHT) if line[0] == what)
    line = RIGHT[place]
    return (*RIGHT[:place], (line[0], line[1], {**line[2], **value}), *RIGHT[place + 1 :])


def history(lines: Sequence[tuple[Any, ...]]) -> History:
    events = tuple(
        Event(
            index=place,
            time_ns=place,
            type="info",
            process="operator",
            f=f,
            node=node,
            value={"cut": "k", **value},
        )
        for place, (f, node, value) in enumerate(lines)
    )
    header = Header(
        system="twophase", cluster="sim", workload="restore", nodes=("n1", "n2"), quorum=2, owner=None
    )
    return History.of(header, events)


def verdict(lines: Sequence[tuple[Any, ...]], files: Mapping[str, Mapping[str, bytes]] = BOTH) -> Verdict:
    return judged(SMALL, files, history(lines))


def test_what_the_cut_has_is_right() -> None:
    """If it failed, no restore would ever be right."""
    assert verdict(RIGHT).result == "valid"


WRONG = {
    "refused": (ASKS, (REFUSED, None, {"why": "no reason"})),
    "ended": (ASKS, (BROKE, None, {"why": "n2 ended", "ended": ["n2"]})),
    "no-further-cut": changed(CUT, {"state": "failed", "why": "n2"}),
    "copies-differ": changed(AGAIN, {"rows": OTHER}),
}


@pytest.mark.parametrize("rule", WRONG)
def test_what_is_wrong_has_its_rule(rule: str) -> None:
    """If it failed, a second cluster could do that unseen."""
    assert [each.rule for each in verdict(WRONG[rule]).witnesses] == [rule]


@pytest.mark.parametrize("what", [READ, DUMP])
@pytest.mark.parametrize("rows", [OTHER, [], [*ROWS, ["bank", "a2", 1]]], ids=["other value", "lost", "more"])
def test_what_the_cut_has_not_is_wrong(what: str, rows: list[Any]) -> None:
    """If it failed, a second cluster could show anything."""
    lines = [
        (f, node, {**value, "rows": rows} if f == what and value["when"] == FIRST else value)
        for f, node, value in RIGHT
    ]
    assert {each.rule for each in verdict(lines).witnesses} == {"differs-from-replay"}


def test_copies_that_differ_in_the_end_are_wrong() -> None:
    """If it failed, a second cluster could lose what is written to it."""
    assert [each.rule for each in verdict(changed(DUMP, {"rows": OTHER})).witnesses] == ["copies-differ"]


def test_a_cut_that_a_server_did_not_finish_must_be_refused() -> None:
    """If it failed, a cluster could be restored by half."""
    half = {"n1": log("k"), "n2": log()}
    assert [each.rule for each in verdict(RIGHT, half).witnesses] == ["not-refused"]
    assert verdict((ASKS,), half).result == "unknown", "the record ends before the answer"
    refused = verdict((ASKS, (REFUSED, None, {"why": "no FINISH on n2"})), half)
    assert (refused.result, refused.details["vacuous"]) == ("unknown", True), (
        "a refusal alone proves no restore"
    )


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (ASKS,),
        RIGHT[:4],
        (ASKS, (BROKE, None, {"why": "late", "ended": []})),
        changed(CUT, {"state": "unknown", "why": "no node reported its end in time"}),
    ],
)
def test_a_second_cluster_without_an_end_is_open(lines: Sequence[tuple[Any, ...]]) -> None:
    """If it failed, a run whose second cluster never came up would pass."""
    assert verdict(lines).result == "unknown"


def test_logs_that_cannot_be_read_prove_nothing() -> None:
    """If it failed, a damaged copy of a run would be a cluster that began from a cut without FINISH."""
    whole = BOTH["n2"]["wal-000001.log"]
    damaged = {"wal-000001.log": whole[:9] + bytes([whole[9] ^ 1]) + whole[10:]}
    unbegun = {"wal-000001.log": b"".join(map(framed, (COMMITTED, ["finish", "k", [], []])))}
    for files, why in (
        ({**BOTH, "n2": damaged}, "n2: .*damaged at byte 0"),
        ({**BOTH, "n2": unbegun}, "n2: the log has a FINISH of the cut k, and no START"),
        ({"n1": BOTH["n1"]}, "n2 left no files"),
    ):
        found = verdict(RIGHT, files)
        assert found.result == "unknown"
        assert re.match(why, found.summary)


def test_cuts_are_drawn_of_those_that_all_have_finished_and_one_more() -> None:
    """If it failed, the same plan would restore other cuts, or no restore would have to be refused."""
    files = {"n1": log(*(f"k{n}" for n in range(9))), "n2": log(*(f"k{n}" for n in range(7)))}
    drawn = drawn_cuts(SMALL, files)
    assert drawn == drawn_cuts(SMALL, dict(files))
    assert len(drawn) == 4
    assert drawn[-1] == "k7"
    assert set(drawn[:-1]) <= {f"k{n}" for n in range(7)}


def test_money_that_is_not_there_is_found() -> None:
    """If it failed, a restored bank could have lost money that no log tells of."""
    assert check_total(history(RIGHT)).result == "valid"
    wrong = check_total(history(changed(READ, {"rows": OTHER})))
    assert [each.rule for each in wrong.witnesses] == ["wrong-total"]
    gone = check_total(history(changed(READ, {"rows": [["bank", "a1", None]]})))
    assert gone.witnesses[0].summary.endswith("shows 0 at n2, not 200: no account")
    nothing = check_total(history((ASKS,)))
    assert (nothing.result, nothing.details["vacuous"]) == ("unknown", True)
    assert WORKLOADS["restore"].spaces == ("bank",)
    assert partition_of(("bank", "a1"), 1) == 0


def test_cuts_are_judged_in_the_order_in_which_they_began() -> None:
    """If it failed, a request that a fault held up would make later cuts go back in time."""
    told = History.of(
        history(()).header,
        tuple(
            Event(
                index=n,
                time_ns=n,
                type="info",
                process="operator",
                f=f,
                node="n1",
                value={"cut": cut, **value},
            )
            for n, (f, cut, value) in enumerate(
                [
                    ("cut-asked", "held-up", {}),
                    ("cut-asked", "never-began", {}),
                    ("cut-asked", "in-time", {}),
                    ("cut-ended", "in-time", {"named": "in-time", "state": "ok", "why": ""}),
                    ("cut-ended", "held-up", {"named": "held-up", "state": "failed", "why": "n2 left"}),
                ]
            )
        ),
    )

    def judged_cuts(files: Mapping[str, Mapping[str, bytes]]) -> dict[str, str]:
        (check,) = (each for each in checks_of_cuts(SMALL, files) if each.name == "cuts-state")
        return {each["cut"]: each["result"] for each in check.run(told).details["cuts"]}

    began = log("in-time", "held-up")
    in_series = {"in-time": "valid", "never-began": "unknown", "held-up": "valid"}
    assert [*judged_cuts({"n1": began, "n2": began}).items()] == [*in_series.items()]
    assert [*judged_cuts({})] == ["held-up", "never-began", "in-time"]


def test_a_cut_whose_end_no_node_reported_is_judged_by_its_logs() -> None:
    """If it failed, a run that ended in the middle of a cut would be inconclusive, or nothing would judge that cut."""
    fields: dict[str, Any] = {"process": 3, "f": "transfer", "value": {}, "node": "n1"}
    events = (
        Event(index=0, time_ns=1, type="invoke", **fields),
        Event(index=1, time_ns=2, type="ok", **fields, transaction="t1"),
        Event(
            index=2, time_ns=3, type="info", process="operator", f="cut-asked", node="n1", value={"cut": "k"}
        ),
        Event(index=3, time_ns=9, type="info", process="harness", f="settled", value=True),
    )
    told = History.of(msgspec.structs.replace(history(()).header, effects={"transfer": "writes"}), events)

    def said(level: str, files: Mapping[str, Mapping[str, bytes]]) -> str:
        (check,) = (each for each in checks_of_cuts(SMALL, files) if each.name == f"cuts-{level}")
        return check.run(told).result

    assert [said(level, BOTH) for level in ("acknowledged", "state", "finish")] == ["valid"] * 3
    bare = {"wal-000001.log": b"".join(map(framed, (["start", "k", 1, 0, LAYOUT], ["finish", "k", [], []])))}
    assert said("acknowledged", {"n1": bare, "n2": bare}) == "invalid", "it is in no log"
    for name in ("k", "1"):  # in some variants a cut's name in logs is its number
        records: list[list[Any]] = [["start", name, 1, 0, LAYOUT], ["finish", name, [], []], COMMITTED]
        late = {"wal-000001.log": b"".join(map(framed, records))}
        assert said("acknowledged", {"n1": late, "n2": late}) == "invalid", (
            "what was acknowledged before it is not in it"
        )
