"""A state machine of Hypothesis over a cluster: `./qsync test docs/mymachine.py` (docs/stateful.md)."""

from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from harness.stateful import ClusterMachine


class Replicas(ClusterMachine):
    """Registers of the reference node. The rules of `ClusterMachine` draw operations, faults and time."""

    plan: ClassVar = {"system": "qsync", "workload": "register", "nodes": 3}

    @rule(target=ClusterMachine.started, node=st.sampled_from(("n2", "n3")))
    def promote(self, node):
        """A rule of one's own: an operator fails over to the node."""
        return self.begin("failover", "failover", nodes=(node,))

    @rule(place=st.integers(0, 2))
    def read_at(self, place):
        """The answer is None as long as there is none."""
        done = self.ask("read", key="r0-0", node=self.nodes[place])
        assert done is None or done.type in ("ok", "fail")


TestReplicas = Replicas.TestCase
TestReplicas.settings = settings(
    max_examples=20, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
