"""Columns against the checks over objects (`plain`): the same verdicts, witnesses, proofs and counts on any logs."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any
from unittest import mock

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from checkers.history.history import History
from checkers.logs.txlog import Given, check, columns, log_of
from tests import examples
from tests.checkers.logs.txlog.plain.checker import check as plain_check
from tests.checkers.logs.txlog.plain.given import Given as PlainGiven
from tests.checkers.logs.txlog.plain.records import log_of as plain_log_of
from tests.checkers.logs.txlog.random_logs import RandomLogs
from tests.checkers.logs.txlog.scripts import Records


def said(
    logs: Mapping[str, Records], told: History, masters: tuple[str, ...], **fields: Any
) -> dict[str, Any]:
    found = {master: log_of(master, records) for master, records in logs.items()}
    judged = check(Given(masters=masters, logs=found, history=told, **fields))
    return {name: verdict.to_json() for name, verdict in judged.items()}


def said_plainly(
    logs: Mapping[str, Records], told: History, masters: tuple[str, ...], **fields: Any
) -> dict[str, Any]:
    found = {master: plain_log_of(master, records) for master, records in logs.items()}
    judged = plain_check(PlainGiven(masters=masters, logs=found, history=told, **fields))
    return {name: verdict.to_json() for name, verdict in judged.items()}


def same(seed: int, ids: int) -> set[str]:
    """Compare both on the logs of a seed; returns the rules that were broken."""
    random = Random(seed)
    made = RandomLogs(random, ids)
    told, fields = made.history(), made.configured()
    masters = random.choice((("n1", "n2", "n3"), ("n3", "n1", "n2"), ("n1", "n2", "n3", "n4")))
    logs = {name: log for name, log in made.logs.items() if random.random() < 0.95}
    if random.random() < 0.05 and logs:
        logs["n2"] = [*logs.get("n2", []), ["nonsense"]]
    ours, plainly = (each(logs, told, masters, **fields) for each in (said, said_plainly))
    for name, verdict in plainly.items():
        assert ours[name] == verdict, (seed, ids, name)
        assert [*ours[name]["details"]["compared"]] == [*verdict["details"]["compared"]]
    return {
        proof["rule"]
        for verdict in plainly.values()
        for key in ("proofs", "documented")
        for proof in verdict["details"][key]
        if proof.get("records")
    }


@examples.up_to(400)
@given(st.integers(0, 1 << 48), st.integers(1, 9))
def test_columns_say_what_objects_say(seed: int, ids: int) -> None:
    for rule in sorted(same(seed, ids)):
        event(rule)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))  # each may have a process of its own
@examples.up_to(2_500)
@given(seed=st.integers(0, 1 << 48), ids=st.integers(1, 12))
def test_columns_say_what_objects_say_on_many_logs(part: int, seed: int, ids: int) -> None:
    same(seed + part, ids)


@pytest.mark.nightly  # compiling takes a minute; the benchmark calls the same code
def test_compiled_columns_say_what_objects_say() -> None:
    """The same logs with the kernels that long logs are judged by."""
    with mock.patch.object(columns, "FEW", -1):
        for seed in range(150):
            same(seed, 8)


@pytest.mark.parametrize("count", [80, pytest.param(150, marks=pytest.mark.long)])
def test_random_logs_break_every_rule_that_records_can_break(count: int) -> None:
    """If it failed, the comparison above would say nothing of a rule."""
    broken = set[str]()
    for seed in range(count):
        broken |= same(seed, 6)
    from checkers.logs.txlog.report import RULES

    assert set(RULES) - broken <= NO_RECORDS, set(RULES) - broken


NO_RECORDS = {"unrecorded", "answered-unexecuted", "stalled"}
"""Rules whose proofs name no record."""
