"""Linearizability: the meaning of operations, the algorithms that decide, and the proofs of their answers.

    checkers.linearizable.check(history, model="cas-register", timeout_s=10)     # a Verdict

`models` and `objects` define the meaning of operations; `decide` chooses between `zones`, `search` and its compiled
form `forward`. `shrinking`, `explanation` and `proofs` turn a no into a proof that a person and
`checkers.proofs.verify` can follow.
"""

from checkers.linearizable.checker import NAME, check, promised_linearizable

__all__ = ["NAME", "check", "promised_linearizable"]
