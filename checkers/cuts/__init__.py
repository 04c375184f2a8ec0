"""Judges consistent cuts: whether the states that the nodes recorded for one cut fit together.

    from checkers.cuts import Cut, Given, check, jsonl, logs_of

    report = check(Given(cuts=[Cut(id="k1")], baseline=["n1", "n2"], trace=jsonl.read(files), logs=logs_of(…)))
    report.of("messages", "k1").result            # "valid", "invalid" or "unknown"
    report.verdict("transactions")                # one level over all cuts

A *cut* divides the events of every node into those before it (inside) and those behind it (outside). Its *frontier* is
the first event of each node behind it. BEFORE are the transactions inside: a restore of the cut brings back these.

| level | module | needs |
|---|---|---|
| messages | `messages`, `recording` | the trace of messages (`trace`; files: `jsonl`, `parquet`) |
| transactions | `transactions`, `membership` | the servers' logs (`logs`) |
| form | `form` | the logs |
| closure | `closure` | the logs, with the versions that transactions wrote |
| external-causality | `closure` | the logs and the clients' operations |
| acknowledged | `acknowledged` | the logs, the operations, `Cut.asked_ns` and `Cut.ended_ns` |
| state | `state` | restored states, and what they are compared with |
| finish | `finish` | the logs, or how nodes report that cuts ended |

A level without its material is unknown, with the standing "lacks material". Levels are never merged: each bug shows on
the level that is responsible for it. `verify` and `verify_logs` accept or refuse the proofs that judgements carry.
`quorum_logs` judges cuts of a replica set with a quorum, which need no colours.
"""

from __future__ import annotations

from checkers.cuts import jsonl, parquet
from checkers.cuts.checker import Given, check
from checkers.cuts.logs import Cut, Logs, NodeLog, Operation, Record, logs_of
from checkers.cuts.report import FINDINGS, LEVELS, Judgement, Level, Report
from checkers.cuts.state import DELETED, Restored, total
from checkers.cuts.trace import LifeRows, Trace, trace_of

__all__ = [
    "DELETED",
    "FINDINGS",
    "LEVELS",
    "Cut",
    "Given",
    "Judgement",
    "Level",
    "LifeRows",
    "Logs",
    "NodeLog",
    "Operation",
    "Record",
    "Report",
    "Restored",
    "Trace",
    "check",
    "jsonl",
    "logs_of",
    "parquet",
    "total",
    "trace_of",
]
