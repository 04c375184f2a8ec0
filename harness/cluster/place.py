"""Where a node is to run, as its own machine sees it; a system says what command that makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from nodes.kernel.outbox import Durability

OUR_CLOCK: Final = "clock.json"
FAKETIME: Final = "faketime"
"""Files of the folder `clock`: for nodes of ours, and for a process under libfaketime."""
DISK_FAULTS: Final = "faults"
"""The folder, in that of a node's data, in which files say what goes wrong with its disk (`nodes.host.medium`)."""
TRACE: Final = "trace"
"""The folder, in that of a node's data, of the record of its messages (`nodes.kernel.trace`)."""
ROOT: Final = Path(__file__).parents[2]
LOOPBACK: Final = "127.0.0.1"


def code_files(root: Path, pattern: str = "**/*") -> list[Path]:
    """The files below a folder that match, sorted, but for what Python keeps beside them."""
    return sorted(path for path in root.glob(pattern) if path.is_file() and "__pycache__" not in path.parts)


Which = Literal["from", "to"]
FROM: Final[Which] = "from"
TO: Final[Which] = "to"
"""The version that nodes start in, and the one that a rolling upgrade brings them to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """`given` is what people call it; either `root`, a folder with the package `nodes`, or `program`, a binary."""

    given: str
    root: Path | None = None
    program: Path | None = None
    is_usual: bool = False
    """Nodes run this version anyway; other machines then take the binary that they have."""

    @property
    def shipped(self) -> Path | None:
        """The binary that another machine is given."""
        return None if self.is_usual else self.program

    @property
    def environment(self) -> dict[str, str]:
        """The environment that makes Python take the nodes of this version, wherever it is started from."""
        return {} if self.root is None else {"PYTHONPATH": str(self.root), "PYTHONSAFEPATH": "1"}

    def is_same(self, other: Version) -> bool:
        return (self.root, self.program) == (other.root, other.program)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Paths and addresses of one node. `epoch_ns` is the monotonic time of its machine at which the run began.

    `python` is the interpreter there, `root` the folder that holds the package `nodes`; `clock` the folder in which
    files say by how much the node's clocks are wrong (`harness.cluster.clock_files`).
    """

    node: str
    config: str
    data: str
    log: str
    listen: str
    peers: Mapping[str, str]
    epoch_ns: int
    clock: str
    python: str = sys.executable
    root: str = str(ROOT)
    programs: Mapping[str, str] | None = None
    """Where "tarantool" and "faketime" lie there, if they do; None: as on this machine, or in the image of nodes."""
    program: str = ""
    """The binary of the version that the node is to run there, if that is another than the usual one."""
    joins: bool = False
    """The node is new and has no data; `peers` are then the members that it joins, if the store needs them."""

    @property
    def is_here(self) -> bool:
        """The node runs as a process of this machine."""
        return self.root == str(ROOT)


Command = Callable[[Place], tuple[str, ...]]


def node_host(
    system: str, durability: Durability, program: tuple[str, ...] = (), *, is_traced: bool = False
) -> Command:
    """The command that starts a node of ours: `python -m nodes.host` with its options.

    `is_traced`: its host records the messages between nodes; hosts of older versions do not know how.
    """

    def command(place: Place) -> tuple[str, ...]:
        return (
            *(program or (place.python, "-m", "nodes.host")),
            *("--system", system),
            *("--config", place.config),
            *("--data", place.data),
            *("--listen", place.listen),
            *(word for peer, address in place.peers.items() for word in ("--peer", f"{peer}={address}")),
            *("--epoch-ns", str(place.epoch_ns)),
            *("--log", place.log),
            *("--durability", durability),
            *("--clock", f"{place.clock}/{OUR_CLOCK}"),
            *("--disk-faults", f"{place.data}/{DISK_FAULTS}"),
            *(("--trace", f"{place.data}/{TRACE}") if is_traced else ()),
            "--stdin-lifeline",
        )

    return command
