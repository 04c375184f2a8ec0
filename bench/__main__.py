"""`python -m bench`: the tables of docs/benchmarks.md that a bare machine can make, one after the other.

`--list` names all benchmarks. The others need Docker, Spark, real Tarantool, Porcupine or hours; they run by their
names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
TABLES = ("recording", "simulation", "check", "transactions", "writes", "failover", "report_page")
"""In the order of the document."""


def benchmarks() -> Iterator[tuple[str, str]]:
    """Name and first line of what it says of itself, of each that can be called."""
    for path in sorted(HERE.glob("*.py")):
        text = path.read_text("utf-8")
        if '__name__ == "__main__"' in text and path.stem != "__main__":
            yield path.stem, text.removeprefix('"""').partition("\n")[0]


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--list", action="store_true", help="name the benchmarks, and run none")
    if arguments.parse_args().list:
        for name, summary in benchmarks():
            print(f"{name:<22}{summary}")
        return 0
    failed = []
    for name in TABLES:
        print(f"\n## bench.{name}\n", flush=True)
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode:
            failed.append(name)
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
