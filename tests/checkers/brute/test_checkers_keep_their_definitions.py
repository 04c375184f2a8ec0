"""Every checker against the brute force of its definition, over tiny histories.

`python -m bench.brute_force` prints the same as a table, with the smallest histories on which the two differ.
"""

from __future__ import annotations

import pytest

from tests import examples
from tests.checkers.brute.compare import (
    AGREE_INVALID,
    AGREE_VALID,
    WRONG,
    Comparison,
    compared,
    smallest,
    why,
)
from tests.checkers.brute.found import FOUND
from tests.checkers.brute.histories import pasteable
from tests.checkers.brute.rows import ROWS

HISTORIES = 20
HISTORIES_LONG = 100
HISTORIES_NIGHTLY = 10_000


@pytest.mark.parametrize("count", [HISTORIES, pytest.param(HISTORIES_LONG, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", ROWS)
def test_a_checker_says_what_its_definition_says(name: str, count: int) -> None:
    """If this fails, a checker calls something valid that its model forbids, or invalid that it allows."""
    comparison = compared(ROWS[name], range(count))
    assert not comparison.wrong, told(comparison)


@pytest.mark.parametrize(("name", "row"), [(name, row) for name, (rows, _) in FOUND.items() for row in rows])
def test_what_was_wrong_once_stays_right(name: str, row: str) -> None:
    """If this fails, a wrong verdict that a brute force had found is back."""
    _, lines = FOUND[name]
    assert ROWS[row].outcome(lines) not in WRONG, why(ROWS[row], lines)


@pytest.mark.nightly
@pytest.mark.parametrize("name", ROWS)
def test_a_checker_says_what_its_definition_says_of_many_histories(name: str) -> None:
    """The same for what is rare; and both answers must come, or nothing was tried."""
    comparison = compared(ROWS[name], examples.tonight(HISTORIES_NIGHTLY))
    assert not comparison.wrong, told(comparison)
    assert comparison.outcomes[AGREE_VALID] > 10 and comparison.outcomes[AGREE_INVALID] > 10, (
        comparison.outcomes
    )


def told(comparison: Comparison) -> str:
    """The smallest history of each kind of disagreement."""
    row = ROWS[comparison.name]
    words = []
    for outcome, seeds in comparison.wrong.items():
        least = smallest(row, row.draw(seeds[0]))
        words.append(f"{len(seeds)} times {outcome}, such as ({why(row, least)})\n{pasteable(least)}")
    return "\n".join(words)
