"""The systems under test: reference stores that take events and return effects (sans-IO)."""
