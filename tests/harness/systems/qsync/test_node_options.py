"""Options of single nodes, as the command line has them."""

from __future__ import annotations

import pytest

from harness.systems.qsync.node_options import parsed
from harness.systems.qsync.options import LOG_QUEUE_BYTES


def test_bytes_may_be_as_many_as_the_default() -> None:
    """If it failed, no queue of a log could be longer than a day has seconds."""
    given = [f"n1:wal_queue_max_size={LOG_QUEUE_BYTES}"]
    assert parsed(given, ("n1",)) == {"n1": {"wal_queue_max_size": LOG_QUEUE_BYTES}}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("n1:wal_queue_max_size=0", "expected a number of bytes, got '0'"),
        ("n1:wal_queue_max_size=9999999999999999", "expected a number of bytes up to 1000000000000000, got"),
        ("n1:election_timeout=86401", "expected seconds above 0 up to 86400, got '86401'"),
        ("n1:replication_synchro_quorum=1.5", "expected a number of nodes, got '1.5'"),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_the_range(words: str, told: str) -> None:
    """If it failed, a user would read that a number was expected, and had given one."""
    with pytest.raises(ValueError, match=told):
        parsed([words], ("n1",))
