"""The transactions that a promise is about: reads at replicas, and dirty ones, are promised less than all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from checkers.history.history import History

Reads = Callable[[str | None, str | None], bool]


def selected(history: History, reads: Reads) -> History:
    """The transactions that write, and each answered one that only reads, if `reads` takes its role and mode."""
    operations = tuple(
        each
        for each in history.operations
        if each.f == "txn" and (not each.only_reads or (each.type == "ok" and reads(each.role, each.mode)))
    )
    return replace(history, operations=operations)


def left_out(history: History, chosen: History) -> list[str]:
    """The classes of reads that were answered and were not chosen, in words."""
    kept = {each.invoke_index for each in chosen.operations}
    return sorted(
        {
            f"{each.mode or 'no mode'} at {each.role or 'unknown role'}"
            for each in history.select(f="txn", outcome="ok")
            if each.invoke_index not in kept
        }
    )
