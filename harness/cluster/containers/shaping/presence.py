"""Whether this machine can hold packets back: tried in network namespaces that end with the attempt."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from harness.cluster.place import ROOT

_OPEN: Final = "from harness.cluster.containers.shaping.namespace import Queue; Queue(None)"
_RULE: Final = "iptables -t mangle -A INPUT -j NFQUEUE --queue-num 1 --queue-bypass"


def why_not() -> str:
    """Why packets cannot be handed to a program; "" if they can."""
    return _refused(sys.executable, "-c", _OPEN) or _refused(*_RULE.split())


def has_discipline(*words: str) -> bool:
    """Whether the kernel takes this queueing discipline: its name, and the parameters it needs."""
    return not _refused("tc", "qdisc", "add", "dev", "lo", "root", *words)


def _refused(*words: str) -> str:
    try:
        done = subprocess.run(
            ["unshare", "--net", *words], capture_output=True, text=True, timeout=10, check=False, cwd=ROOT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"unshare cannot be run: {error}"
    reason = (done.stderr.strip().splitlines() or [f"{words[0]} gave no reason"])[-1]
    return reason if done.returncode else ""
