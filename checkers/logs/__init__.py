"""What nodes wrote, as evidence: `wal` for a log of one writer after the other, `txlog` for a log in rounds.

`log_cuts` compares where each node stood in its own log when it was cut.
"""
