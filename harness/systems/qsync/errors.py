"""The table of errors: which refusal surely means "not done", and which leaves it open.

`fail` only where the store surely did nothing; in doubt `info`. A read with any error is `fail`: it had no effect.
The table holds for requests that are one transaction. Sources: Tarantool's `txn_limbo.c` and `errcode.h`; for each
code, where it is raised decides: before the journal was asked it is definite, afterwards it is not.
"""

from __future__ import annotations

from typing import Literal

Meaning = Literal["fail", "info"]

FAIL: dict[int, str] = {
    1: "illegal-parameters",  # rejected before execution
    3: "duplicate-key",
    5: "unsupported",
    7: "read-only",  # at the statement, or aborting when the node became read-only
    18: "wrong-key",
    20: "invalid-msgpack",
    33: "no-such-function",
    35: "no-such-index",
    36: "no-such-space",
    39: "field-missing",
    40: "disk-write",  # the log is cut back before the answer, and no fault of ours gives it back
    42: "access-denied",
    48: "unknown-request",
    69: "missing-field",
    97: "conflict",
    109: "schema-version",
    116: "loading",
    134: "cascade",
    154: "yield",
    214: "foreign-transactions",  # 214, 227, 228: at submission, before the journal
    227: "queue-unclaimed",
    228: "queue-foreign",
    231: "transaction-timeout",
    287: "log-full",
    289: "queue-full",
}

INFO: dict[int, str] = {
    32: "lua",
    115: "system",
    215: "master-mismatch",
    216: "quorum-timeout",  # ROLLBACK guarantees nothing: another leader may still commit it
    217: "rollback",  # one code with four causes, two of them after the write
    295: "detached",
}


def meaning_of(code: int) -> tuple[Meaning, str]:
    """The meaning of an error code for a writing request, and its short name for histories."""
    if code in FAIL:
        return "fail", FAIL[code]
    return "info", INFO.get(code, f"error-{code}")
