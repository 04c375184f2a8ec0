"""How many files a process may open at once: what a real run needs, and whether this machine allows it.

Each client has a connection to each node: a socket in the harness, and on the cluster `local` two in the relay and one
in the node. Limits are inherited, so raising them here counts for the relay and the nodes, too.
"""

from __future__ import annotations

import resource
from typing import Final

MANY: Final = 1 << 17
BESIDE: Final = 300
"""Files that are open whatever the number of clients: libraries, logs, links between nodes."""


def allow(clients: int, nodes: int, *, has_relay: bool) -> str:
    """Raise the limit of this process for clients that all ask every node; why that cannot be, "" if it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    sockets = 2 if has_relay else 1
    wanted = sockets * clients * nodes + BESIDE
    if hard != resource.RLIM_INFINITY and wanted > hard:
        most = max(0, hard - BESIDE) // (sockets * nodes)
        return (
            f"--workers {clients}: their connections to {nodes} nodes take {wanted:,} open files, and this machine "
            f"allows {hard:,}; try: {f'--workers {most}, or ' if most else ''}a higher hard limit (ulimit -Hn)"
        )
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return ""


def allow_many() -> None:
    """Raise the limit of this process, which opens files as others ask for it, to `MANY`, or as far as it may go."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY if hard == resource.RLIM_INFINITY else min(MANY, hard)
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
