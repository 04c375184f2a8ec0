"""Logs of nodes, as evidence: `wal` for a log of one writer after the other, `txlog` for a log in rounds.

`log_cuts` compares the places in the logs at which the nodes were cut.
"""
