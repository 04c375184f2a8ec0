"""Accepts or refuses the proofs in a verdict. It shares no code with the searches: trust this, not those.

`verify` is for orders of single operations, `verify_isolation` for transactions. `meaning` and `transactions` say
anew what operations mean; `isolation` has the models by their definitions.
"""
