"""A bar: the evidence that a certificate requires, by name.

| bar | for | requires |
|---|---|---|
| `release` | the default | half an hour of load, 60 runs, ten kinds of faults, most seeded bugs found |
| `unmeasured` | a store that has no seeded bugs | the same without the seeded bugs |
| `trial` | trying the command | a run with an operation |

A plan names another one in its table [certificate], or has a bar of its own there. The first line of a certificate
names every bar that requires less than `release`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Requires(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The least evidence for a certificate. The defaults are those of `release`."""

    runs: Annotated[int, msgspec.Meta(ge=1)] = 60
    hours: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """Hours of load, over all runs; simulated hours count."""
    operations: Annotated[int, msgspec.Meta(ge=1)] = 50_000
    """Operations that succeeded."""
    kinds_of_faults: Count = 10
    """Different faults of the table that took effect; the steps of a directed schedule are none of them."""
    faults: Count = 200
    """How often faults took effect."""
    seeded_bugs: Share = 0.6
    """Share of the seeded bugs that this plan finds."""
    runs_per_bug: Count = 8
    """Runs in which each seeded bug may show."""


RELEASE, UNMEASURED, TRIAL = "release", "unmeasured", "trial"
BARS: Mapping[str, Requires] = {
    RELEASE: Requires(),
    UNMEASURED: Requires(seeded_bugs=0.0, runs_per_bug=0),
    TRIAL: Requires(
        runs=1, hours=0.0, operations=1, kinds_of_faults=0, faults=0, seeded_bugs=0.0, runs_per_bug=0
    ),
}
WORDS = {
    "runs": "runs",
    "hours": "hours of load",
    "operations": "operations that succeeded",
    "kinds_of_faults": "kinds of faults in effect",
    "faults": "faults in effect",
    "seeded_bugs": "of the seeded bugs found",
    "runs_per_bug": "runs for each seeded bug",
}


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar and its name."""

    name: str = RELEASE
    requires: Requires = Requires()

    @property
    def lower(self) -> str:
        """The numbers that are lower than in `release`, in words; empty for a bar that is as high."""
        numbers = [
            (getattr(self.requires, name), getattr(BARS[RELEASE], name), WORDS[name])
            for name in Requires.__struct_fields__
        ]
        return ", ".join(
            f"{one:,.10g} instead of {least:,.10g} {word}" for one, least, word in numbers if one < least
        )

    @property
    def sentence(self) -> str:
        """The name and all requirements but those of nothing, in words."""
        asked = {WORDS[name]: getattr(self.requires, name) for name in Requires.__struct_fields__}
        return (
            f"{self.name}: {', '.join(f'{word} ≥ {least:,.10g}' for word, least in asked.items() if least)}"
        )


class Certifying(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table [certificate] of a plan: what the certificate is about, and its bar."""

    product: Text | None = None
    """Default: the names of the systems."""
    version: Text | None = None
    """Default: what the nodes say."""
    maker: Text | None = None
    valid_days: Annotated[int, msgspec.Meta(ge=1, le=3660)] = 90
    bar: Text = RELEASE
    requires: Requires | None = None
    """A bar of the plan's own, under the name `bar`."""

    def __post_init__(self) -> None:
        if self.requires is None and self.bar not in BARS:
            raise ValueError(
                f"expected one of the bars {', '.join(BARS)}, got {self.bar!r}; "
                "another one needs [certificate.requires]"
            )
        if self.requires is not None and self.bar in BARS:
            raise ValueError(
                f'a bar of one\'s own needs a name of its own, got {self.bar!r}; try: bar = "pre-merge"'
            )

    def asks(self, name: str | None = None) -> Bar:
        """The bar of this plan, or a known one by its name (KeyError)."""
        if name is None or name == self.bar:
            return Bar(name=self.bar, requires=self.requires or BARS[self.bar])
        return Bar(name=name, requires=BARS[name])
