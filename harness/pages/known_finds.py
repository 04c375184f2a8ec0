"""The seeded bugs that the checks of a run are known to find.

A passing check rules out only what it can find. `bench.known_bugs` measures the finds beforehand, in the simulator; a
real system has those of its reference node.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.pages.first_screen import run_value
from harness.pages.json_door import as_mapping, as_mappings, as_text
from harness.pages.material import Material
from harness.systems import SYSTEMS
from harness.systems.finds import Find, finds_of


@dataclass(frozen=True, slots=True)
class KnownFinds:
    """`rows`: (check that judged something in this run, seeded bugs that it found). `elsewhere`: (bug, the checks that
    find it, none of which judged anything here). `missed`: bugs that no hunt found. `note`: which reference node the
    bugs are of; "" for the run's own system."""

    rows: tuple[tuple[str, str], ...]
    elsewhere: tuple[tuple[str, str], ...]
    missed: tuple[str, ...]
    sentence: str
    note: str


def known_finds(material: Material) -> KnownFinds | None:
    """None without measured finds: for a user's own system, or a history that names none of ours.

    None for an anomaly, too, because its reader needs the witness and not the abilities of checks.
    """
    name = run_value(material, "system")  # a history may name any file: it is not loaded for this
    if material.verdict.get("outcome") == "anomaly" or name not in SYSTEMS:
        return None
    measured = SYSTEMS[name].variety.reference or name
    finds = finds_of(measured)
    if not finds:
        return None
    checks = [
        as_text(check.get("checker"), 60)
        for check in as_mappings(material.verdict.get("checks"))
        if check.get("result") != "unknown" and not as_mapping(check.get("details")).get("vacuous")
    ]
    here = {bug: find for bug, find in finds.items() if any(by in checks for by in find.by)}
    rows = ((check, ", ".join(bug for bug, find in here.items() if check in find.by)) for check in checks)
    return KnownFinds(
        rows=tuple(row for row in rows if row[1]),
        elsewhere=tuple(
            (bug, ", ".join(find.by)) for bug, find in finds.items() if find.by and bug not in here
        ),
        missed=tuple(bug for bug, find in finds.items() if not find.by),
        sentence=_sentence(len(here), finds),
        note="" if measured == name else f"They are bugs of the reference node {measured}, not of {name}.",
    )


def _sentence(here: int, finds: Mapping[str, Find]) -> str:
    needed = sorted(find.seeds for find in finds.values() if find.by)
    if not needed:
        return f"Hunts in the simulator found none of {len(finds)} seeded bugs."
    half = needed[(len(needed) - 1) // 2]
    return (
        "Hunts in the simulator, each for one seeded bug with faults that suit it, found "
        f"{len(needed)} of {len(finds)}: half of them within {half} {'seed' if half == 1 else 'seeds'}, "
        f"the last after {needed[-1]}. "
        f"Checks of this run found {here} of them."
    )
