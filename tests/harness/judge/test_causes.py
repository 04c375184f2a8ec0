"""Which witness leads, and the sentence that is made of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import CHECKERS
from checkers.cuts.quorum_logs import NAME as CUTS_QUORUM
from checkers.cuts.report import PROMISES
from checkers.logs.txlog import CHECKS, PREFIX
from checkers.logs.txlog.report import RULES as OF_TXLOG
from checkers.logs.wal import CONTRADICTIONS
from checkers.logs.wal import NAME as AUDIT
from checkers.logs.wal.agreement import RULES as OF_LOGS
from checkers.replicas import kept
from checkers.replicas.leadership import NAME as LEADERSHIP
from harness.judge.causes import TABLE, Near, consequences, headline, own_causes, place_of, ranked
from harness.systems import SYSTEMS
from harness.systems.plans import planned
from harness.workloads import WORKLOADS

ROOT = Path(__file__).parents[3]
NODE, LOGS, CLIENTS, END = (
    ("crash", "crash"),
    ("audit", "confirmed-and-rolled-back"),
    ("linearizable", "stale-read"),
    ("leadership", "no-leader"),
)


def witness(rule: str, at_s: float | None = None, summary: str = "", **more: Any) -> dict[str, Any]:
    at_ns = None if at_s is None else int(at_s * 1e9)
    return {
        "rule": rule,
        "summary": summary or f"{rule} was broken",
        "events": [],
        "node": None,
        "start_ns": at_ns,
        "end_ns": at_ns,
        **more,
    }


def verdict(*checks: tuple[str, dict[str, Any]], violations: list[str] | None = None) -> dict[str, Any]:
    by_check: dict[str, list[dict[str, Any]]] = {}
    for name, found in checks:
        by_check.setdefault(name, []).append(found)
    told = [{"checker": name, "result": "invalid", "witnesses": each} for name, each in by_check.items()]
    return {"checks": told, "violations": list(by_check) if violations is None else violations}


def names_of_checks() -> set[str]:
    found = {*CHECKERS, kept.NAME, AUDIT, LEADERSHIP, "transactional", CUTS_QUORUM}
    found |= {f"{PREFIX}{name}" for name in CHECKS}
    found |= {f"cuts-{level}" for level in PROMISES}
    for name, system in SYSTEMS.items():
        plan = system.completed(planned(system=name, cluster="local"))
        promise = system.promise(plan)
        found |= {check.name for check in system.checks(plan)}
        found |= {each.name for load in WORKLOADS.values() for each in load.checks(promise, None)}
        of_nodes = system.logs.checks_of_files(plan, {})
        of_logs = system.logs.checks(plan, ())
        found |= {each.name for each in (*of_nodes, *of_logs)}
    for path in (
        *ROOT.glob("checkers/**/*.py"),
        *ROOT.glob("harness/systems/**/*.py"),
        *ROOT.glob("harness/workloads/*.py"),
    ):
        found |= set(re.findall(r'^NAME = "([a-z-]+)"$', path.read_text(), re.MULTILINE))
    return found - {"monitor"}


def test_every_check_has_a_place() -> None:
    """If it failed, a new check would stand behind all others, whatever it finds."""
    without = {name for name in names_of_checks() if place_of(name, "some-rule") is None}
    assert without == set()
    assert {row.check for row in TABLE} <= names_of_checks() | {"balances", "upgrade", "snapshots"}


def test_every_rule_of_the_table_exists() -> None:
    """If it failed, a rule that was renamed would silently move to the end of its check."""
    texts = "".join(
        path.read_text() for path in (*ROOT.glob("checkers/**/*.py"), *ROOT.glob("harness/systems/**/*.py"))
    )
    known = {*OF_TXLOG, *OF_LOGS, *CONTRADICTIONS}
    for row in TABLE:
        assert all(rule in known or f'"{rule}"' in texts for rule in row.rules), row
    for rule, check in OF_TXLOG.items():
        assert place_of(f"{PREFIX}{check}", rule) is not None
    assert all(place_of(AUDIT, rule) is not None for rule in (*OF_LOGS, *CONTRADICTIONS))


@pytest.mark.parametrize(
    ("nearer", "farther"),
    [(NODE, LOGS), (NODE, CLIENTS), (NODE, END), (LOGS, CLIENTS), (LOGS, END), (CLIENTS, END)],
)
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("seconds", [(1.0, 2.0), (2.0, 1.0), (None, None)])
def test_each_class_leads_those_behind_it(
    nearer: tuple[str, str],
    farther: tuple[str, str],
    is_first: bool,
    seconds: tuple[float | None, float | None],
) -> None:
    """If it failed, a page would begin with a symptom while the cause is folded."""
    pairs = [(nearer, seconds[0]), (farther, seconds[1])]
    found = [(check, witness(rule, at_s)) for (check, rule), at_s in (pairs if is_first else pairs[::-1])]
    assert [each.checker for each in ranked(verdict(*found))] == [nearer[0], farther[0]]


def test_of_invariants_the_earliest_leads() -> None:
    """If it failed, the crash that a wrong state led to would hide that state."""
    found = verdict(("crash", witness("crash", 5.0)), ("node-state", witness("state-queue", 4.0)))
    assert [each.checker for each in ranked(found)] == ["node-state", "crash"]


def test_a_flood_of_one_rule_hides_no_other_rule() -> None:
    """If it failed, twenty copies of one breach would push a different one off the page."""
    many = [("audit", witness("confirmed-order", summary=f"number {n}")) for n in range(20)]
    found = ranked(verdict(*many, ("quorum", witness("acknowledged-without-quorum"))))
    assert [each.checker for each in found[:2]] == ["audit", "quorum"]


def test_a_finding_is_behind_all_violations() -> None:
    """If it failed, allowed behaviour would stand in for what broke a promise."""
    found = verdict(
        ("crash", witness("crash")), ("leadership", witness("no-leader")), violations=["leadership"]
    )
    assert [each.checker for each in ranked(found)] == ["leadership", "crash"]


def test_what_two_checks_say_is_there_once_and_names_both() -> None:
    """If it failed, a reader would take one event for two."""
    same = witness("lost-update", 1.0, "both wrote k", events=[3, 4])
    first, *rest = ranked(verdict(("transactional", same), ("snapshots", same)))
    assert (first.checkers, rest) == (("transactional", "snapshots"), [])


def test_the_headline_says_moment_term_node_and_what_followed() -> None:
    """If it failed, the first sentence would not tell a reader what happened."""
    crash = witness("crash", 12.3, "n1 stopped with an assertion: rollback of what is confirmed", node="n1")
    end = witness("no-leader", 40.0, "no node owned the queue within 5 s", node="n3")
    text = headline(verdict(("crash", crash), ("leadership", end)), lambda node, time_ns: {"n1": 3}.get(node))
    assert text == (
        "At 12.300 s, in term 3, n1 stopped with an assertion: rollback of what is confirmed. "
        "Since then: no node owned the queue within 5 s."
    )


def test_nothing_is_said_to_follow_that_is_not_later() -> None:
    """If it failed, the sentence would invent what caused what."""
    for read_s in (1.0, None):
        read = witness("stale-read", read_s, "process 1 read 3 at n2")
        text = headline(verdict(("crash", witness("crash", 2.0, "n1 ended")), ("linearizable", read)))
        assert text == "At 2.000 s n1 ended. Also: process 1 read 3 at n2."
    assert "Since" not in headline(
        verdict(("audit", witness("confirmed-order")), ("linearizable", witness("x", 1.0)))
    )


def test_estimates_prove_an_order_only_if_they_are_apart() -> None:
    """If it failed, the sentence would say what came first where nothing knows that."""
    fell = ("txlog-counters", witness("counter-fell", 1.0, "n1 makes t1"))
    near, far = (("txlog-order", witness("diverged", at_s, "entry 1 differs")) for at_s in (1.01, 2.0))
    assert headline(verdict(fell, near)) == "At about 1.000 s n1 makes t1. Also: entry 1 differs."
    assert headline(verdict(fell, far)).endswith("Since then, at 2.000 s: entry 1 differs.")


def test_a_crash_is_named_beside_what_clients_saw() -> None:
    """If it failed, the end of a process would be one of many names at the end of the sentence."""
    text = headline(
        verdict(
            ("node-state", witness("state-queue", 1.0, "n1 has 7 transactions in its queue, and its log 0")),
            ("leadership", witness("no-leader", 9.0, "no node owned the queue")),
            ("crash", witness("crash", 2.0, "n1 stopped")),
            ("audit", witness("confirmed-order")),
        )
    )
    assert text == (
        "At 1.000 s n1 has 7 transactions in its queue, and its log 0. Since then, at 2.000 s: n1 stopped. "
        "Since then: no node owned the queue. Violated as well: audit."
    )


def test_without_times_there_are_no_moments() -> None:
    """If it failed, places in a file would be told as seconds."""
    found = verdict(("linearizable", witness("stale-read", 0.000001, "key x: 1", node="n1")))
    assert headline(found, has_times=False) == "Key x: 1 (at n1)."


ANY_CHECK = st.sampled_from([*sorted({row.check for row in TABLE}), "a-check-of-a-stranger"])
ANY_WITNESS = st.builds(
    witness,
    st.sampled_from([*sorted({rule for row in TABLE for rule in row.rules}), "other"]),
    st.none() | st.floats(0, 1_000),
    st.text(min_size=1, max_size=300),
    node=st.none() | st.sampled_from(["n1", "n2"]),
    events=st.lists(st.integers(0, 5), max_size=3),
)


@given(
    st.lists(st.tuples(ANY_CHECK, ANY_WITNESS), min_size=1, max_size=12), st.randoms(use_true_random=False)
)
def test_the_order_does_not_depend_on_the_order_of_checks(found: list[Any], chance: Any) -> None:
    """If it failed, the headline and the fingerprint would change with the order in which checks are listed."""
    told = verdict(*found)
    mixed = {**told, "checks": chance.sample(told["checks"], len(told["checks"]))}
    kinds = [[(each.checkers, each.rule, each.number) for each in ranked(each)] for each in (told, mixed)]
    assert kinds[0] == kinds[1]
    assert headline(told) == headline(mixed)
    assert headline(told).strip(" .")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(
                    ["checks", "violations", "witnesses", "checker", "rule", "events", "summary"]
                ),
                inner,
            )
        ),
    )
)
def test_odd_verdicts_have_a_headline(odd: Any) -> None:
    """If it failed, a page of a damaged verdict would not open."""
    assert headline({"checks": odd, "violations": odd})
    assert headline({"checks": [{"witnesses": odd}]})


def test_a_time_that_is_no_time_is_none() -> None:
    """If it failed, a page of a verdict with a number of 400 digits would not open."""
    assert headline(verdict((CLIENTS[0], witness("stale", summary="stale", end_ns=10**400)))) == "Stale."


def test_a_wrong_cut_explains_no_breach_of_another_kind() -> None:
    """If it failed, an anomaly beside a wrong cut would have no fingerprint of its own."""
    found = verdict(("cuts-closure", witness("torn", 2.0)), ("txlog-once", witness("twice", 1.0)))
    assert [cause.checker for cause in own_causes(found)] == ["cuts-closure", "txlog-once"]


def test_a_cause_explains_only_what_it_can() -> None:
    """If it failed, two defects of one run would have one fingerprint, or one defect two."""
    idle = ("leadership", witness("idle-promote", 1.0))
    logs, stale = (LOGS[0], witness(LOGS[1], 5.0)), (CLIENTS[0], witness("stale-read", 2.0))
    late = (CLIENTS[0], witness("stale-read", 5.0))
    assert [cause.rule for cause in own_causes(verdict(idle, stale))] == ["idle-promote", "stale-read"]
    assert [cause.rule for cause in own_causes(verdict(idle, (END[0], witness(END[1], 9.0))))] == [
        "idle-promote"
    ]
    assert [cause.rule for cause in own_causes(verdict(logs, stale))] == [LOGS[1], "stale-read"], (
        "it was over before"
    )
    assert [cause.rule for cause in own_causes(verdict(logs, late))] == [LOGS[1]]


@pytest.mark.parametrize(
    ("check", "rule", "moment"),
    [(*NODE, "At 1.000 s"), ("acknowledged-early", "read-behind", "At 3.000 s"), (*CLIENTS, "At 3.000 s")],
)
def test_the_moment_of_a_node_is_its_first_and_that_of_an_answer_its_last(
    check: str, rule: str, moment: str
) -> None:
    """If it failed, a reader would look for a breach where it had only been asked for, or had been there for long."""
    lasting = witness(rule, start_ns=1_000_000_000, end_ns=3_000_000_000)
    assert headline(verdict((check, lasting))).startswith(moment)


def test_a_finding_is_no_consequence() -> None:
    """If it failed, the sentence or the picture of an anomaly would name what the promise allows."""
    told = verdict(
        (LOGS[0], witness(LOGS[1], 1.0)), (CLIENTS[0], witness("stale-read", 2.0)), violations=[LOGS[0]]
    )
    assert "stale-read" not in headline(told)
    assert consequences(ranked(told)) == []
    found = verdict((LOGS[0], witness(LOGS[1], 1.0)), (CLIENTS[0], witness("stale-read", 2.0)))
    assert [each.rule for each in consequences(ranked(found))] == ["stale-read"]


def test_the_classes_are_in_their_order() -> None:
    """If it failed, the table would contradict its own description."""
    assert [row.near for row in TABLE] == sorted(row.near for row in TABLE)
    assert sorted(Near) == list(Near)
