"""The table of verbs. A new one is a file here, with a click command named `command`, and a line below."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """Where a verb lives, and the sentence that `qsync --help` shows without importing it."""

    module: str
    summary: str


VERBS: dict[str, Verb] = {
    "run": Verb("harness.cli.verbs.run", "one run: cluster, workload, faults → history, verdict, report"),
    "simulate": Verb("harness.cli.verbs.simulate", "many seeds in the simulator"),
    "check": Verb("harness.cli.verbs.check", "judge a stored run again, or a history of another tool"),
    "audit": Verb(
        "harness.cli.verbs.audit", "rules over the nodes' own logs, of a run or of any folder of xlogs"
    ),
    "cut": Verb("harness.cli.verbs.cut", "whether a cut through the logs of stopped nodes is consistent"),
    "xlog": Verb("harness.cli.verbs.xlog", "the contents of xlog and snap files, or their damage"),
    "nightly": Verb("harness.cli.verbs.nightly", "a matrix of runs, resumable, with known anomalies"),
    "certify": Verb(
        "harness.cli.verbs.certify", "a release matrix and its certificate, or whether one holds"
    ),
    "bisect": Verb("harness.cli.verbs.bisect", "the commit of the nodes from which an anomaly shows"),
    "analyze": Verb("harness.cli.verbs.analyze", "the Spark pipeline over results/ → tables"),
    "bundle": Verb("harness.cli.verbs.bundle", "a stored run as one file, to be judged elsewhere"),
    "serve": Verb("harness.cli.verbs.serve", "results/ in a browser: runs, campaigns, tables, live views"),
    "report": Verb("harness.cli.verbs.report", "write the page of a stored run again"),
    "list": Verb(
        "harness.cli.verbs.list", "the tables of systems, clusters, workloads, faults, checkers, bugs"
    ),
    "doctor": Verb("harness.cli.verbs.doctor", "the abilities of this machine, and the missing parts"),
    "test": Verb("harness.cli.verbs.test", "the project's own tests"),
}
