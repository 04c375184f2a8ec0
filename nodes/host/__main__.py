"""`python -m nodes.host --system qsync --config FILE --data DIR --listen HOST:PORT …`: one node, one process."""

from __future__ import annotations

import sys

from nodes.host import lifeline


def main() -> int:
    lifeline.die_with_parent()  # before the other imports: they are most of the time that starting takes
    from nodes.host import process
    from nodes.host.systems import SYSTEMS

    return process.main(sys.argv[1:], SYSTEMS)


if __name__ == "__main__":
    sys.exit(main())
