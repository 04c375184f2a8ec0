"""The systems that can be hosted: a system's name → a function from its config's bytes to a node and its codec.

A new system is one function and one line. Each function imports its modules when it is called: a node starts in a
fraction of the time that importing all systems would take.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from nodes.host.codec import Codec
from nodes.kernel.node import Node
from nodes.kernel.trace import Described


@dataclass(frozen=True, slots=True)
class Hosted:
    """A node, its own name ("n1"), and its codec. `described`: as in `nodes.kernel.trace`, for a host that records
    messages to peers; None: none is recorded."""

    name: str
    node: Node
    codec: Codec
    described: Described | None = None


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


def twophase(config: bytes) -> Hosted:
    from nodes.framed import FramedCodec
    from nodes.twophase.configuration import Configuration
    from nodes.twophase.dispatch import described
    from nodes.twophase.node import TwoPhase

    configuration = Configuration.from_json(config)
    return Hosted(configuration.name, TwoPhase(configuration), FramedCodec(), described)


def txlog(config: bytes) -> Hosted:
    from nodes.framed import FramedCodec
    from nodes.txlog.configuration import Configuration
    from nodes.txlog.links import described
    from nodes.txlog.node import TxLog

    configuration = Configuration.from_json(config)
    return Hosted(configuration.name, TxLog(configuration), FramedCodec(), described)


SYSTEMS: dict[str, System] = {"qsync": qsync, "twophase": twophase, "txlog": txlog}


class NoSystem(Exception):
    """The message is one sentence."""


def system_of(name: str, systems: Mapping[str, System]) -> System:
    """The system with this name in the table, or of "module:function" or "file.py:function". Raises NoSystem."""
    if name in systems:
        return systems[name]
    module, _, function = name.rpartition(":")
    try:
        code = of_file(module) if module.endswith(".py") else importlib.import_module(module)
        system: System = getattr(code, function)
    except (Exception, SystemExit) as error:  # the code is somebody else's: it may raise anything
        raise NoSystem(f"the system {name} cannot be hosted: {type(error).__name__}: {error}") from error
    return system


def of_file(path: str) -> ModuleType:
    path = str(Path(path).absolute())  # as `__file__` is: else each node would have a module of its own
    name = f"hosted_{Path(path).stem}"
    if name in sys.modules and sys.modules[name].__file__ == path:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None, path
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
