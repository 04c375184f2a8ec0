"""Options of nodes, by the names of `box.cfg`: which can change, and the values that single nodes have.

| option | can change |
|---|---|
| those of `box.cfg` that a running node takes (`WHILE_RUNNING`) | while the node runs, and by a restart |
| `memtx_use_mvcc_engine`, and our own `synchronous_promote` | by a restart |
| `wal_queue_max_size`, `wal_cleanup_delay` | never: they are set from the start |

A plan sets all nodes alike; `--node-option n2:election_timeout=0.8` sets one apart. Modes and queue sizes have lists of
their own in the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.faults.node_options import Value

MODE = "election_mode"
FENCING = "election_fencing_mode"
ELECTION_TIMEOUT = "election_timeout"
SYNCHRO_TIMEOUT = "replication_synchro_timeout"
BEAT = "replication_timeout"
QUORUM = "replication_synchro_quorum"
QUEUE_SIZE = "replication_synchro_queue_max_size"
LOG_QUEUE = "wal_queue_max_size"
CLEANUP_DELAY = "wal_cleanup_delay"
TIMEOUT_BEHAVIOUR = "box_cfg_replication_synchro_timeout"
CHECKPOINTS = "checkpoint_interval"
MVCC = "memtx_use_mvcc_engine"
SYNCHRONOUS_PROMOTE = "synchronous_promote"

WHILE_RUNNING = (
    MODE,
    FENCING,
    ELECTION_TIMEOUT,
    SYNCHRO_TIMEOUT,
    BEAT,
    QUORUM,
    QUEUE_SIZE,
    TIMEOUT_BEHAVIOUR,
    CHECKPOINTS,
)
AT_START = (*WHILE_RUNNING, MVCC, SYNCHRONOUS_PROMOTE)
APART = (
    FENCING,
    ELECTION_TIMEOUT,
    SYNCHRO_TIMEOUT,
    BEAT,
    QUORUM,
    TIMEOUT_BEHAVIOUR,
    CHECKPOINTS,
    *AT_START[-2:],
    LOG_QUEUE,
    CLEANUP_DELAY,
)
"""The values that `--node-option` takes."""
ROLLS_BACK, GOES_ON = "old", "new"
"""Values of `TIMEOUT_BEHAVIOUR`: a transaction that waits too long is rolled back, or only its client gets an error."""
_WORDS: Mapping[str, tuple[Value, ...]] = {
    FENCING: ("off", "soft", "strict"),
    TIMEOUT_BEHAVIOUR: (ROLLS_BACK, GOES_ON),
    MVCC: (True, False),
    SYNCHRONOUS_PROMOTE: (True, False),
}
_WHOLE: Mapping[str, tuple[str, int]] = {
    QUORUM: ("a number of nodes", 31),
    LOG_QUEUE: ("a number of bytes", 10**15),
}
"""Option whose value is a whole number → what is expected, and the greatest value."""


def parsed(given: Iterable[str], nodes: Iterable[str]) -> dict[str, dict[str, Value]]:
    """Node → option → value, of words like `n2:election_timeout=0.8`; ValueError says what is wrong with one."""
    known, options = tuple(nodes), dict[str, dict[str, Value]]()
    for words in given:
        node, _, setting = words.partition(":")
        name, _, text = setting.partition("=")
        if node not in known:
            raise ValueError(f"option of a node: no node is called {node!r} in {words!r}; try {known[0]}:…")
        if name not in APART:
            raise ValueError(f"unknown option {name!r} in {words!r}; try one of: {', '.join(APART)}")
        options.setdefault(node, {})[name] = _value(name, text, words)
    return options


def _value(name: str, text: str, words: str) -> Value:
    if name in _WORDS:
        value = {"true": True, "false": False}.get(text, text)
        if value not in _WORDS[name]:
            raise ValueError(
                f"{words!r}: expected one of {', '.join(map(_written, _WORDS[name]))}, got {text!r}"
            )
        return value
    kind, most = _WHOLE.get(name, ("seconds above 0", 86_400))
    try:
        number = int(text) if name in _WHOLE else float(text)
    except ValueError:
        number = 0
    if not 0 < number <= most:
        up_to = f" up to {most}" if number > most else ""
        raise ValueError(f"{words!r}: expected {kind}{up_to}, got {text!r}")
    return number


def _written(value: Value) -> str:
    """A value as the command line has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
