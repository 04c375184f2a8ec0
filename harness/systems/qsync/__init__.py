"""The reference qsync, and what real Tarantool shares with it: its calls, errors, operator, promises and logs."""
