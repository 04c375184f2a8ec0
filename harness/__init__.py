"""The harness: runs a cluster, loads it, injects faults, records what clients saw, and judges it."""
