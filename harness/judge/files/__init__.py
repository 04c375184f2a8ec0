"""A history file judged by itself: a record of another tool, or ours outside of a run's folder.

judged           file → verdict.json's content, by a named model and promise
verified         the proofs of the verdict, accepted or refused
second_opinion   another tool's checker over the same history, its verdict beside ours
"""
