"""The settings of the five nodes of docker-compose.yml, equal to those under `--cluster docker --nodes 5`.

`python -m harness.cli.docker_compose_configs` writes them into compose/, as files that can be read and changed by hand.
"""

from __future__ import annotations

from pathlib import Path

from harness.run.assemble import parts_of
from harness.systems.plans import planned

FOLDER = Path(__file__).parents[2] / "compose"
PLAN = planned(cluster="docker", nodes=5)


def configurations() -> dict[str, bytes]:
    """name of a file in compose/ → its bytes."""
    parts = parts_of(PLAN)
    by_node = parts.system.configurations(parts.plan, parts.workload.spaces)
    return {f"{node}.json": data + b"\n" for node, data in by_node.items()}


if __name__ == "__main__":
    for name, data in configurations().items():
        (FOLDER / name).write_bytes(data)
