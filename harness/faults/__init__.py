"""Faults: what is done to a cluster, drawn from the plan's seed; carried out by `harness.cluster`."""
