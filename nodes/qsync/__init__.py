"""Quorum-based synchronous replication, after Tarantool: the limbo, its owner, appliers and relays."""
