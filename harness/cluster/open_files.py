"""How many files a local run opens at once, and whether this machine allows them.

Each client has a connection to each node, all of them through the relay: two sockets a connection there, one in the
harness, one in the node. Limits are inherited, so raising them here counts for the relay and the nodes, too.
"""

from __future__ import annotations

import resource
from typing import Final

BESIDE: Final = 300
"""Files that are open whatever the number of clients: libraries, logs, links between nodes."""
SOCKETS: Final = 2
"""Of a connection, in the relay."""


def needed(clients: int, nodes: int) -> int:
    """Files that the relay has open if every client asks every node."""
    return SOCKETS * clients * nodes + BESIDE


def allow(clients: int, nodes: int) -> str:
    """Raise the limit of this process for so many clients; why that cannot be, "" if it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed(clients, nodes)
    if hard != resource.RLIM_INFINITY and wanted > hard:
        most = max(0, hard - BESIDE) // (SOCKETS * nodes)
        return (
            f"--workers {clients}: their connections to {nodes} nodes take {wanted:,} open files, and this machine "
            f"allows {hard:,}; try: --workers {most}, or a higher hard limit (ulimit -Hn)"
        )
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return ""
