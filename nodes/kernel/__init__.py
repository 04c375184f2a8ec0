"""The types that all nodes use: events, effects, the order promise, vector clocks."""
