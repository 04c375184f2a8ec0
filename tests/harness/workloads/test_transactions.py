"""Transactions: what a run must have seen, so that it says something of their order."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.history import foreign
from harness.workloads import WORKLOADS

FEW_SEEN = "too few transactions saw writes of other transactions: 0 did, 1 are needed"


@pytest.mark.parametrize(
    ("workload", "micros", "is_told"),
    [
        ("rw-register", "[:w x 1] [:r x 1] [:r y nil]", False),
        ("rw-register", "[:w x 1] [:r x 1] [:r y 7]", True),
        ("append", "[:append x 1] [:append x 2] [:r x [1 2]] [:r y nil]", False),
        ("append", "[:append x 1] [:r x [1]] [:r y [7]]", False),
        ("append", "[:append x 1] [:r x [7 1]] [:r y nil]", True),
    ],
)
def test_what_a_transaction_wrote_itself_is_no_write_of_another(
    tmp_path: Path, workload: str, micros: str, is_told: bool
) -> None:
    """If it failed, a run in which no transaction saw another one would pass as evidence of their order."""
    file = tmp_path / "history.edn"
    lines = (f"{{:type {kind}, :process 0, :f :txn, :value [{micros}]}}\n" for kind in (":invoke", ":ok"))
    file.write_text("".join(lines))
    assert (FEW_SEEN not in [*WORKLOADS[workload].missing(foreign.read(file))]) is is_told


def test_transactions_over_one_key_say_nothing_of_an_order_between_keys(tmp_path: Path) -> None:
    """If it failed, a run whose transactions all touch a single key would pass as one of transactions."""
    file = tmp_path / "history.edn"
    lines = (f"{{:type {kind}, :process 0, :f :txn, :value [[:r x 7]]}}\n" for kind in (":invoke", ":ok"))
    file.write_text("".join(lines))
    assert next(iter(WORKLOADS["rw-register"].missing(foreign.read(file)))).startswith(
        "too few transactions over several keys: 0 succeeded, 1 are needed"
    )
