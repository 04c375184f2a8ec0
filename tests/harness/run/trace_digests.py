"""A program: prints what identifies simulated runs, for a test that starts it under several PYTHONHASHSEEDs.

`python -m tests.harness.run.trace_digests first count [field=value …]`: one line a seed, with the seed, SHA-256 of the
trace of all events of all nodes and of the network, SHA-256 of the record, and the names of the faults.
"""

from __future__ import annotations

import hashlib
import sys

import msgspec

from harness.systems.plans import planned
from tests.harness.runs import recorded


def main(first: str, count: str, *fields: str) -> None:
    given = {
        name: msgspec.json.decode(value) for name, _, value in (field.partition("=") for field in fields)
    }
    for seed in range(int(first), int(first) + int(count)):
        run = recorded(planned(**{"cluster": "sim", **given, "seed": seed}), record_trace=True)
        faults = ",".join(sorted({fault.name for fault in run.history.faults}))
        print(seed, run.trace_digest, hashlib.sha256(run.data).hexdigest(), faults, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
