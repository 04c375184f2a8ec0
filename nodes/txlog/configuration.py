"""A master's configuration: itself and its cluster. A plan gives every master its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

MILLISECOND = 1_000_000

Strategy = Literal["none", "simple", "smart"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """Times are nanoseconds on the monotonic clock."""

    name: str
    masters: tuple[str, ...]
    """All masters, this one included. A master talks to no other node."""
    strategy: Strategy = "none"
    """The way back to one log when a split is over; in capital or small letters."""
    split_ns: int = 0
    """After this time without progress, silent masters are left out; 0: never."""
    max_peer_lag_ns: int = 2_000 * MILLISECOND
    """How long a split cluster executes no transaction (`simple` and `smart`)."""
    busy_ns: int = 20 * MILLISECOND
    """From one round to the next while transactions wait to be synchronised."""
    idle_ns: int = 500 * MILLISECOND
    """The same while no transaction waits."""
    round_ns: int = 150 * MILLISECOND
    """How long a round waits for the masters that have not posted."""
    execute_ns: int = MILLISECOND // 2
    """How long the workers take for one transaction."""
    workers: int = 2
    """The workers of this master. All execute every transaction."""
    worker_loss: int = 0
    """A worker ends after one in `worker_loss` transactions on average; 0: never."""
    worker_ns: int = 100 * MILLISECOND
    """How long a master waits for the answer of a worker that has ended."""
    backup_ns: int = 20 * MILLISECOND
    """How long it takes to back a worker up, to restore the workers, or to start one."""
    spurious: int = 0
    """One in `spurious` transactions fails on this master alone; 0: none."""
    batch: int = 32
    """The number of transactions in one request for updates."""
    bugs: tuple[str, ...] = ()
    """Names of files in `nodes.txlog.bugs`."""
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "strategy", self.strategy.lower())
        if self.strategy not in get_args(Strategy):
            raise ValueError(f"expected a strategy of {', '.join(get_args(Strategy))}, got {self.strategy!r}")
        if len(set(self.masters)) < len(self.masters):
            raise ValueError(f"expected every master once, got {', '.join(self.masters)}")
        if self.name not in self.masters:
            raise ValueError(f"expected a master named {self.name!r} among {', '.join(self.masters)}")
        for name in ("busy_ns", "idle_ns", "round_ns", "batch", "workers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"expected {name} above 0, got {getattr(self, name)}")
        if 0 < self.split_ns <= 2 * self.idle_ns:
            raise ValueError(
                f"expected a split time-out above two idle rounds ({2 * self.idle_ns} ns), or 0, got {self.split_ns} ns"
            )

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Configuration:
        """Raises ValueError, with one sentence, if the configuration is invalid."""
        try:
            document = json.loads(data)
            kinds = {field.name: KINDS[field.type] for field in fields(cls)}  # type: ignore[index]  # types are texts here
            for name, value in document.items():
                if name not in kinds:
                    raise ValueError(f"there is no option {name!r}")
                if not kinds[name](value):
                    raise ValueError(f"{name!r} cannot be {value!r}")
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in document.items()
            }
            return cls(**values)
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise ValueError(f"not a configuration of a TxLog master: {error}") from error


KINDS: Mapping[str, Callable[[object], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: type(value) is int and value >= 0,
    "tuple[str, ...]": lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
    "Strategy": lambda value: isinstance(value, str) and value.lower() in get_args(Strategy),
}
"""The type of a field, as it is written above → whether a JSON value is of that type."""
