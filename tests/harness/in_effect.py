"""Runs in real time, again and again until what is asked for was felt in one of them.

A short run promises no single fault: on a machine that has much else to do, healing one may take as long as the next
was to last, and then that one is left out. That no run may show a violation holds of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Verdict = dict[str, Any]
TRIES = 6


def until_in_effect(run: Callable[[], Verdict], *kinds: str, any_of: Iterable[str] = ()) -> list[Verdict]:
    """The verdicts of all runs that it took until each of `kinds`, and one at least of `any_of`, was felt."""
    verdicts: list[Verdict] = []
    affected: set[str] = set()
    one_of = {*any_of}
    while not {*kinds} <= affected or (one_of and not one_of & affected):
        assert len(verdicts) < TRIES, [verdict["sentence"] for verdict in verdicts]
        verdict = run()
        assert verdict["violations"] == [], verdict["sentence"]
        verdicts.append(verdict)
        affected |= set(verdict["evidence"]["kinds_in_effect"])
    return verdicts


def faults_in_effect(lines: Iterable[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """(what was asked for, what is known at its end) of each fault of a record that was felt."""
    asked: dict[int, dict[str, Any]] = {}
    for line in lines:
        if line.get("process") != "nemesis":
            continue
        value = line["value"]
        if line["type"] == "invoke":
            asked[value["id"]] = value
        elif value["took_effect"]:
            yield asked[value["id"]], value
