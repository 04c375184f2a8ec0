"""Linearizability: what operations mean, which algorithm looks at them, and what proves the answer.

    checkers.linearizable.check(history, model="cas-register", timeout_s=10)     # a Verdict

`models` and `objects` say what operations mean; `decide` chooses between `zones`, `search` and its compiled form
`forward`. `shrinking`, `explanation` and `proofs` make of a no what a person and
`checkers.proofs.verify` can follow.
"""

from checkers.linearizable.checker import NAME, check, promised_linearizable

__all__ = ["NAME", "check", "promised_linearizable"]
