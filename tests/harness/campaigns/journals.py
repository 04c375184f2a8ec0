"""Ended runs for tests of what is made of them."""

from __future__ import annotations

from typing import Any

from harness.campaigns.journal import Ended


def ended(cell: str, seed: int = 1, outcome: str = "valid", *fingerprints: str, **more: Any) -> Ended:
    codes = {"valid": 0, "anomaly": 1, "unknown": 2, "inconclusive": 3, "broken": 70}
    fields: dict[str, Any] = {
        "exit_code": codes[outcome],
        "sentence": f"it is {outcome}",
        "at": "2026-11-21T03:00:00+00:00",
        "seconds": 2.5,
        "run": f"nightly/{cell}-{seed}",
        "shapes": tuple(f"shape of {each}" for each in fingerprints),
    }
    return Ended(cell=cell, seed=seed, outcome=outcome, fingerprints=fingerprints, **{**fields, **more})
