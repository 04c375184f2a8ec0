"""The reference TxLog: masters that all take writes, and agree in rounds on one order of them.

docs/decisions/0034-txlog-where-the-seed-is-silent.md describes the protocol and the choices that its design leaves
open.
"""
