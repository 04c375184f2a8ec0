"""Patience for clusters of real processes on a machine that has much else to do."""

from __future__ import annotations

import pytest

from harness.cluster import family, network_faults, real_cluster
from harness.cluster.local import cluster as local_cluster
from tests.harness.processes import PATIENCE_S

PATIENCE_NS = PATIENCE_S * 1_000_000_000


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is slow to come up, to answer or to stop is no failure: what is tested is not how fast they are."""
    monkeypatch.setattr(family, "STOPPED_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr(real_cluster.RealCluster, "ready_within_ns", PATIENCE_NS)
    monkeypatch.setattr(network_faults, "_FRESH_WITHIN_S", PATIENCE_S)
    monkeypatch.setattr(real_cluster, "STATUS_WITHIN_NS", PATIENCE_NS)
    monkeypatch.setattr(local_cluster, "STATUS_WITHIN_NS", PATIENCE_NS)
