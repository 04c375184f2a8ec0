"""Faults of real nodes: from when on they are taken to be in effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.faults.fault import Fault
from harness.faults.real import RealFault


@pytest.mark.parametrize(("seen_ns", "in_effect_ns"), [((), None), ((7,), None), ((7, 9), 9)])
def test_a_fault_is_in_effect_when_it_was_seen_at_all_of_its_nodes(
    seen_ns: tuple[int, ...], in_effect_ns: int | None
) -> None:
    """If it failed, answers that a node gave before the fault reached it would count as given under the fault."""
    times = iter((0, *seen_ns, 20))
    hands: Any = SimpleNamespace(now_ns=lambda: next(times), processes=None)
    fault = Fault(id=0, name="pause", does="pause", at_ns=0, until_ns=20, nodes=("n1", "n2"))
    at_work = RealFault(fault, hands)
    for _ in seen_ns:
        at_work.saw()
    evidence = at_work.evidence(at_work.all_seen, [], {})
    assert (evidence.all_in_effect_ns, evidence.first_effect_ns) == (in_effect_ns, min(seen_ns, default=None))
    assert evidence.took_effect == (in_effect_ns is not None)
