"""A timeout is answered with an error that says too much."""

from __future__ import annotations

from nodes.iproto.codes import Code
from nodes.qsync.bugs import Bug
from nodes.qsync.decisions import Decisions


class DefiniteTimeout(Decisions):
    code_of_timeout = Code.TRANSACTION_CONFLICT


BUG = Bug(
    decides=DefiniteTimeout,
    does="a transaction that waited for too long is refused with an error that says it surely was not done (97)",
    seen="a failed write is committed: another leader confirms it",
    checkers=("linearizable", "convergence", "prefix", "dirty", "audit"),
)
