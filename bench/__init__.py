"""Benchmarks. Each prints a table and ends; none is a test. `python -m bench` lists them."""
