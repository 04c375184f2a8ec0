"""The systems under test: reference stores that are told what happened and say what they want (sans-IO)."""
