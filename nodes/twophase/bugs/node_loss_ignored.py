"""A server that joins or leaves does not end the running cut."""

from __future__ import annotations

from nodes.twophase.bugs import Bug
from nodes.twophase.decisions import Decisions


class NodeLossIgnored(Decisions):
    fails_with_servers = False


BUG = Bug(
    decides=NodeLossIgnored,
    does="the loss of a server does not make the running cut fail",
    seen="FINISH is written, and the cut reported as good, without the server that was lost",
    checkers=("cuts-finish",),
)
