"""Verdicts on parts come to the verdict on all."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from checkers.history import Header, History
from checkers.history.history import by_key
from checkers.history.operation import Operation
from checkers.linearizable import check
from checkers.linearizable.merging import merged, of_segments
from checkers.linearizable.segments import segments
from tests.checkers.linearizable.test_segments import simulated


def history(operations: list[Operation]) -> History:
    return History(header=Header(), events=(), operations=tuple(operations))


def several_keys(lies: tuple[int, ...]) -> History:
    """Six keys, of which those in `lies` show values that never were there."""
    found: list[Operation] = []
    for number in range(6):
        found += [
            structs.replace(each, key=f"k{number}") for each in simulated(number + 1, 30, lie=number in lies)
        ]
    return history(sorted(found, key=lambda each: each.invoke_index))


def telling(verdict: Any) -> dict[str, Any]:
    fields = verdict.to_json()
    del fields["seconds"]
    return fields


@pytest.mark.parametrize("lies", [(), (2,), (1, 4, 5)])
def test_parts_by_key_come_to_the_verdict_on_all(lies: tuple[int, ...]) -> None:
    """If it failed, a check on Spark would say something else than one in process, or show other witnesses."""
    whole = several_keys(lies)
    parts = [check(history(operations)) for operations in by_key(whole.operations).values()]
    fine = [part for part in parts if part.result != "invalid"]
    again = {key for part in parts for key in part.details["keys_invalid"]}
    rest = check(history([each for each in whole.operations if each.key in again])) if again else None
    assert telling(merged(fine, rest)) == telling(check(whole))
    assert bool(lies) == bool(rest)


def test_segments_of_a_key_count_as_the_key() -> None:
    """If it failed, a spread check would count operations that nobody did."""

    for seed in range(50):
        operations = simulated(seed, 60, lie=False)
        parts = segments(operations, 5)
        if len(parts) > 1:
            break
    assert len(parts) > 1
    together = of_segments([check(history(list(part.operations))) for part in parts])
    whole = check(history(operations))
    for name in ("keys", "operations", "observations", "keys_invalid", "keys_undecided"):
        assert together.details[name] == whole.details[name]
    assert (together.result, together.summary) == (whole.result, whole.summary)


def test_a_part_that_is_not_fine_is_not_added_up() -> None:
    """If it failed, an anomaly could be counted away."""
    wrong = check(several_keys((2,)))
    assert wrong.result == "invalid"
    with pytest.raises(AssertionError, match="not fine"):
        merged([wrong], None)
