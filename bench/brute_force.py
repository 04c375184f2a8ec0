"""Every checker against a brute force of its definition, over tiny histories.

    python -m bench.brute_force [--histories N] [--seed S] [--only NAME] [--examples N]

The brute forces are those of tests/checkers/brute. A row is right if its last four numbers are 0. For each kind of
disagreement the smallest histories are printed as Python; `--examples` says how many. Exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import re
import sys
from fnmatch import fnmatch

from bench.table import print_table
from tests.checkers.brute.compare import OUTCOMES, WRONG, Comparison, Row, compared, smallest, why
from tests.checkers.brute.histories import Line, pasteable
from tests.checkers.brute.rows import ROWS


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=1_000, help="histories for each row")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", default="*", help="rows whose name fits, as in 'append *'")
    parser.add_argument(
        "--examples", type=int, default=3, help="smallest histories for each kind of disagreement"
    )
    asked = parser.parse_args(arguments)
    rows = [row for name, row in ROWS.items() if fnmatch(name, asked.only)]
    if not rows:
        parser.error(f"expected one of {', '.join(ROWS)}, got {asked.only!r}")
    comparisons = []
    for row in rows:
        comparisons.append(compared(row, range(asked.seed, asked.seed + asked.histories)))
        print(row.name, dict(comparisons[-1].outcomes), file=sys.stderr, flush=True)
    print_table(
        ("model", "histories", *OUTCOMES),
        [
            (each.name, f"{each.histories:,}", *(f"{each.outcomes[outcome]:,}" for outcome in OUTCOMES))
            for each in comparisons
        ],
    )
    for row, comparison in zip(rows, comparisons, strict=True):
        _print_examples(row, comparison, asked.examples)
    return int(any(each.wrong for each in comparisons))


def _print_examples(row: Row, comparison: Comparison, count: int) -> None:
    for outcome in WRONG:
        known: set[str] = set()
        for seed in comparison.wrong.get(outcome, [])[: 20 * count]:
            least = smallest(row, row.draw(seed))
            reason = why(row, least)
            shape = _shape(reason, least)
            if len(known) < count and shape not in known:
                known.add(shape)
                print(f"\n# {row.name}: {outcome}, seed {seed}; {reason}\n{pasteable(least)}")


def _shape(reason: str, lines: list[Line]) -> str:
    """The same for histories that differ in names and numbers alone."""
    asked = sorted(
        "-".join(sorted(re.findall("[a-z]+", f"{line.type} {line.f} {line.value}"))) for line in lines
    )
    return re.sub(r"[xyz0-9]", "", f"{reason} {asked}")


if __name__ == "__main__":
    sys.exit(main())
