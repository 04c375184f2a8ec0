"""The comparison of ratios; what is measured has no place in a test."""

from __future__ import annotations

import msgspec

from bench.regressions import KEPT_ELSEWHERE, STORED, Stored, lost, sentences

BEFORE = {"recorder": 0.06, "simulator": 0.3, "api": 0.01}


def test_a_third_less_is_still_noise() -> None:
    assert lost(BEFORE, {name: value * 0.67 for name, value in BEFORE.items()}) == []


def test_a_ratio_that_lost_more_is_named_in_one_line() -> None:
    """As the recorder from 60,000 to 24,000 operations a second, unnoticed."""
    now = {**BEFORE, "recorder": 0.024}
    assert lost(BEFORE, now) == ["recorder"]
    assert [*sentences(BEFORE, now, ["recorder"])] == [
        "slower: recorder, 0.0240 of its floor's speed, was 0.0600 (60% lost)"
    ]


def test_another_machine_may_differ_by_more() -> None:
    now = {**BEFORE, "recorder": 0.033, "api": 0.0049}
    assert lost(BEFORE, now, KEPT_ELSEWHERE) == ["api"]


def test_what_one_side_does_not_have_is_not_compared() -> None:
    assert lost(BEFORE, {"simulator": 0.3, "new": 1.0}) == []


def test_there_are_stored_ratios() -> None:
    stored = msgspec.json.decode(STORED.read_bytes(), type=Stored)
    assert stored.machine and stored.ratios and all(value > 0 for value in stored.ratios.values())
