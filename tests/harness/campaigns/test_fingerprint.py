"""When two anomalies are the same."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.history import Event, Header, History
from harness.campaigns.fingerprint import causes, sightings


def history(value: int, at_ns: int, *, role: str = "owner", owners: tuple[int, ...] = (1, 1)) -> History:
    state = {"type": "info", "process": "monitor", "f": "state", "node": "n1"}
    rows: list[dict[str, Any]] = [
        {**state, "value": {"owner": owners[0]}, "time_ns": 0},
        {"type": "invoke", "process": 1, "f": "write", "key": "k", "value": value, "time_ns": at_ns},
        {"type": "ok", "process": 1, "f": "write", "key": "k", "role": role, "time_ns": at_ns + 5},
        {**state, "value": {"owner": owners[1]}, "time_ns": at_ns + 6},
        {"type": "invoke", "process": 2, "f": "read", "key": "k", "time_ns": at_ns + 7},
        {"type": "ok", "process": 2, "f": "read", "key": "k", "role": role, "time_ns": at_ns + 9},
    ]
    return History.of(Header(), [Event(index=index, **row) for index, row in enumerate(rows)])


def verdict(at_ns: int, *checks: tuple[str, str]) -> dict[str, Any]:
    def witness(rule: str) -> dict[str, Any]:
        return {
            "rule": rule,
            "summary": f"at {at_ns}",
            "events": [1, 2, 4, 5],
            "start_ns": at_ns,
            "end_ns": at_ns + 9,
        }

    return {
        "checks": [{"checker": "crash", "result": "valid", "witnesses": []}]
        + [{"checker": name, "result": "invalid", "witnesses": [witness(rule)]} for name, rule in checks]
    }


STALE = ("linearizable", "stale-read")


def fingerprint(at_ns: int = 10, check: tuple[str, str] = STALE, **more: Any) -> str:
    (found,) = sightings(verdict(at_ns, check), history(at_ns, at_ns, **more))
    return found.fingerprint


def test_values_times_and_owners_do_not_matter_and_rule_and_role_do() -> None:
    """If it failed, every night would bring new fingerprints, or two bugs would share one."""
    assert fingerprint(10) == fingerprint(99_000) == fingerprint(owners=(1, 2))
    others = [
        fingerprint(check=("linearizable", "lost-write")),
        fingerprint(check=("prefix", "stale-read")),
        fingerprint(role="replica"),
    ]
    assert len({fingerprint(), *others}) == 4


def shapes(*checks: tuple[str, dict[str, Any]]) -> list[str]:
    by_check: dict[str, list[dict[str, Any]]] = {}
    for name, witness in checks:
        told = {"summary": "", "events": [], "start_ns": None, "end_ns": None, **witness}
        by_check.setdefault(name, []).append(told)
    listed = [
        {"checker": name, "result": "invalid", "witnesses": witnesses} for name, witnesses in by_check.items()
    ]
    return [each.shape for each in causes({"checks": listed}, history(1, 1))]


def at(rule: str, time_ns: int, **more: str) -> dict[str, Any]:
    return {"rule": rule, "start_ns": time_ns, "end_ns": time_ns, **more}


def test_a_consequence_has_no_fingerprint() -> None:
    """If it failed, a known anomaly would be new whenever it leads to a different symptom."""
    cause = ("audit", at("confirmed-order", 5))
    for later in (("linearizable", at("stale-read", 9)), ("leadership", at("no-leader", 9))):
        assert shapes(cause, later) == ["audit: confirmed-order"]


def test_a_second_cause_has_one_of_its_own() -> None:
    """If it failed, an accepted anomaly would hide a different bug."""
    cause = ("audit", at("confirmed-order", 5))
    state = ("node-state", at("state-term", 5))
    crash = at("crash", 9, summary="n1 ended: exit 1")
    assert shapes(state, ("crash", crash)) == ["node-state: state-term", "crash: crash, exit 1"]
    other = at("crash", 10, summary="n2 ended: signal 11")
    both = shapes(state, ("crash", crash), ("crash", other))
    assert both[1:] == ["crash: crash, exit 1", "crash: crash, signal 11"]
    assert shapes(cause, ("linearizable", at("stale-read", 3)))[1:] == ["linearizable: stale-read"]
    term = ("leadership", at("runaway-term", 5))
    assert shapes(term, ("linearizable", at("stale-read", 9)))[1:] == ["linearizable: stale-read"]
    assert shapes(term, ("leadership", at("no-leader", 9)))[1:] == []
    cut = ("cuts-form", at("second-start", 5))
    assert shapes(cut, ("bank", at("wrong-total", 9)))[1:] == ["bank: wrong-total"]
    assert shapes(cut, ("cuts-state", at("half-restored", 9)))[1:] == []


def test_how_a_rule_was_broken_tells_causes_apart_whichever_came_first() -> None:
    """If it failed, two bugs would share a group, or the group would depend on the seed."""
    one, two = at("state-queue", 1, how="more"), at("state-queue", 2, how="fewer")
    assert shapes(("node-state", one)) == ["node-state: state-queue, more"]
    assert shapes(("node-state", one), ("node-state", two)) == ["node-state: state-queue, fewer"]
    silent = at("state-queue", 3)
    assert shapes(("node-state", silent), ("node-state", one)) == ["node-state: state-queue, more"]
    later = at("state-queue", 3, how="fewer")
    assert shapes(("node-state", later), ("node-state", one)) == ["node-state: state-queue, fewer"]


def test_what_is_nearest_to_the_cause_leads() -> None:
    """If it failed, runs of one bug would be grouped by whichever symptom came up."""
    found = sightings(
        verdict(5, STALE, ("domain-x", "a"), ("quorum", "acknowledged-without-quorum")), history(5, 5)
    )
    assert found[0].checker == "quorum"


def shape_of_crash(how: str, *printed: str) -> str:
    crash = {"rule": "crash", "summary": f"n2 ended although no fault ended it: {how}", "events": [3]}
    told = {"checker": "crash", "result": "invalid", "witnesses": [crash | {"explanation": list(printed)}]}
    (found,) = sightings({"checks": [told]}, history(1, 1))
    return found.shape


def test_two_crashes_are_told_apart() -> None:
    """If it failed, a crash that is known and accepted would hide every other one."""
    stack = (
        "#0  0x59aad9 in print_backtrace+9",
        "#1  0x446a37 in _ZL12sig_fatal_cbiP9siginfo_tPv+c7",
        "#2  0x7ff3ae97a050 in __sigaction+40",
        "#3  0x597d80 in fiber_wakeup+0",
        "#4  0x4571a4 in txn_limbo_ack+114",
        "#5  0x455785 in txn_commit+2b5",
    )
    assert shape_of_crash("signal 6", *stack) == "crash: crash, signal 6, in fiber_wakeup < txn_limbo_ack"
    fatal = "2026-11-21 14:00:57.483 [12082] main/103/node.lua F> can't initialize storage: Unknown request type 40"
    said = shape_of_crash("exit 1", "E> ER_LOADING", fatal)
    assert said == "crash: crash, exit 1, can't initialize storage: Unknown request type N"
    assert said == shape_of_crash("exit 1", fatal.replace("12082", "77").replace(" 40", " 41"))
    replica = "F> Replica 7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7 is at 0x7ffe0a"
    other = "F> Replica 00000000-5a1d-4a0c-a8ae-bbbbbbbbbbbb is at 0x12"
    assert shape_of_crash("exit 1", f" {replica}") == shape_of_crash("exit 1", f" {other}")
    python = shape_of_crash("exit 1", "Traceback (most recent call last):", "KeyError: 'lsn 12'")
    assert python == "crash: crash, exit 1, KeyError: 'lsn N'"
    assert shape_of_crash("signal 9") == "crash: crash, signal 9"


def test_a_function_of_the_store_is_told_whatever_words_its_name_has() -> None:
    """If it failed, two crashes in different functions would be one, and the second never looked at."""
    handler = (
        "print_backtrace",
        "_ZL12sig_fatal_cbiP9siginfo_tPv",
        "sig_fatal_cb",
        "__restore_rt",
        "sigaction",
    )
    c_library = "pthread_kill", "__pthread_kill_implementation", "gsignal", "__GI_raise", "raise", "abort"
    asserts = "__GI_abort", "__assert_fail_base", "__assert_fail", "__GI___assert_fail"
    for own in ("memtx_tx_abort_gap_readers", "txn_raise", "on_sigaction", "sig_fatal_cb_of_mine"):
        names = (*handler, *c_library, *asserts, own, "txn_commit", "main")
        stack = [f"#{number}  0x59aad9 in {name}+9" for number, name in enumerate(names)]
        assert shape_of_crash("signal 6", *stack) == f"crash: crash, signal 6, in {own} < txn_commit"


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("nodes.iproto.errors.XlogError: row 12 is cut", "nodes.iproto.errors.XlogError: row N is cut"),
        (
            "json.decoder.JSONDecodeError: Extra data: line 1",
            "json.decoder.JSONDecodeError: Extra data: line N",
        ),
        ("nodes.kernel.errors.StartRefused: no disk", "nodes.kernel.errors.StartRefused: no disk"),
        ("__main__.f.<locals>.Odd", "__main__.f.<locals>.Odd"),
        ("KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_a_crash_of_python_is_named_by_its_exception(raised: str, said: str) -> None:
    """If it failed, all exceptions that are not built in would be one crash."""
    frame = ('  File "node.py", line 3, in start', "    return", "")
    first = ("Traceback (most recent call last):", *frame, "a.Cause: 1", "", "During handling of ...:", "")
    last = ("Traceback (most recent call last):", *frame, raised, "of its message the second line: more")
    assert shape_of_crash("exit 1", "ready: yes", *first, *last, "done") == f"crash: crash, exit 1, {said}"
    assert shape_of_crash("exit 1", *first[:-1], "done") == "crash: crash, exit 1, a.Cause: N"
    cut = shape_of_crash("exit 1", *frame, "msgspec.DecodeError: at 7", "ready: yes")
    assert cut == "crash: crash, exit 1, msgspec.DecodeError: at N"


def test_what_breaks_a_promise_leads_before_a_finding() -> None:
    """If it failed, what is allowed would give its name to a group of violations."""
    told = verdict(5, ("audit", "confirm-not-increasing"), ("replication", "equal-vclock-different-data"))
    found = sightings(told | {"violations": ["replication"]}, history(5, 5))
    assert [each.checker for each in found] == ["replication", "audit"]


def test_a_witness_without_events_has_a_fingerprint() -> None:
    """If it failed, a finding in the nodes' logs alone would break the campaign."""
    bare = {
        "checks": [
            {
                "checker": "audit",
                "result": "invalid",
                "witnesses": [{"rule": "r", "summary": "", "events": []}],
            }
        ]
    }
    (found,) = sightings(bare, history(1, 1))
    assert found.shape == "audit: r"


def test_the_words_of_a_shape_stay() -> None:
    """If it failed, every entry of known.toml would match nothing, and every accepted anomaly fail the night again."""
    rows = [
        ("invoke", "dump", None), ("ok", "dump", "owner"), ("invoke", "read", None), ("ok", "read", "replica"),
        ("invoke", "add", None), ("ok", "add", None),
    ]  # fmt: skip
    events = [
        Event(index=index, type=type_, process=index // 2, f=f, role=role, value=None, time_ns=index)  # type: ignore[arg-type]
        for index, (type_, f, role) in enumerate(rows)
    ]
    for last, check, shape in (
        (1, "counter", "counter: wrong, dump at owner"),
        (3, "counter", "counter: wrong, read at replica"),
        (3, "bank", "bank: wrong, read"),
        (5, "counter", "counter: wrong, mutation"),
    ):
        checks = [{"checker": check, "witnesses": [{"rule": "wrong", "events": [*range(last + 1)]}]}]
        (found,) = sightings({"checks": checks}, History.of(Header(), events))
        assert found.shape == shape


def test_every_witness_is_a_sighting() -> None:
    """If it failed, the tables of a campaign would lack the checks that say the same of an anomaly."""
    found = sightings(verdict(10, STALE, ("prefix", "stale-read")), history(10, 10))
    assert [each.checker for each in found] == ["linearizable", "prefix"]


def test_a_node_that_claims_rows_as_well_has_a_disk_that_lies() -> None:
    """If it failed, a bug of terms and one of a disk that forgets would share a fingerprint."""
    claims = ("acknowledged-early", at("claimed-before-durable", 5))
    for rule in ("term-not-durable", "vote-not-durable"):
        said = ("acknowledged-early", at(rule, 5))
        assert shapes(said) == [f"acknowledged-early: {rule}"]
        assert shapes(said, claims)[0] == f"acknowledged-early: {rule}, and rows as well"
    assert shapes(claims) == ["acknowledged-early: claimed-before-durable"]
