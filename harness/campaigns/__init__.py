"""Campaigns: a matrix of runs in a file, run night after night, and their results."""
