"""All domain checkers, in the order of the package's table."""

from checkers.domain import (
    bank,
    causal_reverse,
    counter,
    durability,
    etcd_kv,
    etcd_watch,
    long_fork,
    monotonic,
    offsets,
    queue_order,
    queues,
    rollback_honesty,
    set_full,
    unique_ids,
    write_once,
)

CHECKERS = (
    bank,
    set_full,
    counter,
    unique_ids,
    monotonic,
    long_fork,
    causal_reverse,
    queues,
    offsets,
    durability,
    rollback_honesty,
    queue_order,
    write_once,
    etcd_kv,
    etcd_watch,
)
