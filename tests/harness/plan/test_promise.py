"""What follows from the models of a promise."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plan.promise import STRICT, promised

NOTHING: dict[str, Any] = {"writes": "", "owner_reads": "", "linearizable_reads": ""}
LINEARIZABLE: dict[str, Any] = dict.fromkeys(NOTHING, "linearizable")
SNAPSHOTS = {"transactions": "snapshot-isolation"}


@pytest.mark.parametrize(
    ("models", "of_all", "of_plain"),
    [
        (LINEARIZABLE, STRICT, STRICT),
        (NOTHING, "", ""),
        ({**LINEARIZABLE, "transactions": ""}, "", ""),
        ({**LINEARIZABLE, **SNAPSHOTS}, "snapshot-isolation", "snapshot-isolation"),
        ({**NOTHING, **SNAPSHOTS}, "", ""),
        ({**NOTHING, **SNAPSHOTS, "plain_writes": "linearizable"}, "", "snapshot-isolation"),
    ],
)
def test_transactions_keep_no_more_than_their_writes(
    models: dict[str, Any], of_all: str, of_plain: str
) -> None:
    """If it failed, transactions of a store would be judged by what it does not promise, or by nothing."""
    promise = promised("a row", "why", **models)
    assert [promise.isolation(are_plain=are_plain) for are_plain in (False, True)] == [of_all, of_plain]


def test_what_hangs_on_writes_is_promised_with_them_alone() -> None:
    """If it failed, a store that promises nothing of writes would be accused of the order of submitted ones."""
    row, nothing = promised("a row", "why", **LINEARIZABLE), promised("a row", "why", **NOTHING)
    plain = nothing.but(plain_writes="linearizable")
    assert (row.submitted, row.answers, row.of_plain_writes) == (
        "in-turn",
        "answered when it is confirmed",
        "linearizable",
    )
    assert (nothing.submitted, nothing.answers, nothing.of_plain_writes) == ("", "", "")
    assert (plain.submitted, plain.answers, plain.of_plain_writes) == ("", "", "linearizable")


def test_one_class_of_fresh_reads_is_enough() -> None:
    """If it failed, a workload that only fresh reads judge would be refused, or run where none are promised."""
    nothing = promised("a row", "why", **NOTHING)
    assert not nothing.has_fresh_reads
    assert nothing.but(owner_reads="linearizable").has_fresh_reads
    assert nothing.but(linearizable_reads="linearizable").has_fresh_reads
    assert not nothing.but(owner_reads="stale").has_fresh_reads
