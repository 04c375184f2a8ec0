"""A restored cluster: every owner of a partition has the same rows, and the accounts sum up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodes.twophase.agreed import Agreed
from nodes.twophase.data import partition_of
from nodes.twophase.decisions import Decisions
from nodes.twophase.restore import check_restorable, restore
from tests.nodes.twophase.random_run import TOTAL


def check_restored(
    files: Mapping[str, Mapping[str, bytes]], cut: str, agreed: Agreed, decisions: Decisions | None = None
) -> dict[tuple[str, Any], Any]:
    """The rows of the whole cluster as of a cut."""
    check_restorable(files, cut, list(files), decisions)
    partitions = agreed.configuration.partitions
    by_server = {server: restore(its_files, cut, decisions).rows for server, its_files in files.items()}
    rows: dict[tuple[str, Any], Any] = {}
    for partition in range(partitions):
        copies = [
            [row for row in by_server[owner] if partition_of((row[0], row[1]), partitions) == partition]
            for owner in agreed.owners(partition)
        ]
        assert all(copy == copies[0] for copy in copies), (cut, partition, copies)
        rows |= {(space, key): value for space, key, value, _ in copies[0]}
    accounts = [value for (space, _), value in rows.items() if space == "bank"]
    assert not accounts or sum(accounts) == TOTAL, (cut, accounts)
    return rows
