"""Linearizability: models, the search, its slow twin, and what proves a violation."""
