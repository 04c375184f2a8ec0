"""Wires: how messages of clients become bytes, one file a protocol."""
