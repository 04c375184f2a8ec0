"""The virtual world: network, disk and clock for nodes, in simulated time; does for a node what `nodes.host` does."""
