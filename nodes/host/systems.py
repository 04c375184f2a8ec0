"""What can be hosted: a system's name → a function from its config's bytes to a node and its codec.

A new system is one function and one line. Each imports what it needs only when it is asked for: a node starts in a
fraction of the time that all of them would take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nodes.host.codec import Codec
from nodes.kernel.node import Node


@dataclass(frozen=True, slots=True)
class Hosted:
    """A node, its own name ("n1"), and how it talks."""

    name: str
    node: Node
    codec: Codec


System = Callable[[bytes], Hosted]


def qsync(config: bytes) -> Hosted:
    from nodes.host.build import version
    from nodes.host.iproto_codec import IprotoCodec
    from nodes.qsync.configuration import Configuration
    from nodes.qsync.replica import Replica

    configuration = Configuration.from_json(config)
    return Hosted(
        configuration.name, Replica(configuration, version()), IprotoCodec(configuration.instance_uuid)
    )


SYSTEMS: dict[str, System] = {"qsync": qsync}
