"""The words every node is written in: events, effects, the order promise, vector clocks."""
