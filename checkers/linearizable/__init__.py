"""Linearizability: `models` (what operations mean), `search`, its slow twin `brute`, and what proves a violation."""

from checkers.linearizable.checker import check, promised_linearizable

__all__ = ["check", "promised_linearizable"]
