"""Clients: what turns operations into requests of a store, and its answers into outcomes."""
