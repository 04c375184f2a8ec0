"""One table of nft rules on the host for a run: which packets between its containers pass, with counters.

A bridge-family table sees every packet of the run's bridge, whichever container it is for, so a one-way cut is one
element of a set, and all links of a partition change at one instant. Counters say what was dropped and what passed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterable, Mapping
from typing import Any

from harness.errors import ClusterError
from harness.faults.fault import LOSSES

Pair = tuple[str, str]
"""Addresses of source and target."""

_RULES = """
table bridge {table} {{
  set cuts {{
    type ipv4_addr . ipv4_addr
    counter
  }}
{lossy_sets}  set links {{
    type ipv4_addr . ipv4_addr
    counter
    elements = {{ {links} }}
  }}
  chain judge {{
    ip saddr . ip daddr @cuts drop
{lossy_rules}    ip saddr . ip daddr @links accept
  }}
  chain passing {{
    type filter hook prerouting priority -300
    jump judge
  }}
  chain leaving {{
    type filter hook output priority -300
    jump judge
  }}
}}
"""
_LOSSY_SET = """
  counter {name}_dropped {{
  }}
  set {name} {{
    type ipv4_addr . ipv4_addr
    counter
  }}
"""
_LOSSY_RULE = """
    ip saddr . ip daddr @{name} numgen random mod 100 < {percent} counter name {name}_dropped drop
"""
_WITHIN_S = 10


def lossy(percent: int) -> str:
    """The name of the set of links that lose so many packets."""
    return f"lossy_{percent}"


class PacketFilter:
    """The table of one run; made by `start`, gone after `stop`."""

    def __init__(self, table: str) -> None:
        self._table = table

    async def start(self, links: Iterable[Pair]) -> None:
        rules = _RULES.format(
            table=self._table,
            links=", ".join(map(_element, links)),
            lossy_sets="".join(_LOSSY_SET.format(name=lossy(percent)) for percent in LOSSES),
            lossy_rules="".join(
                _LOSSY_RULE.format(name=lossy(percent), percent=percent) for percent in LOSSES
            ),
        )
        await self._nft(rules)

    async def stop(self) -> None:
        await self._nft(f"add table bridge {self._table}\ndelete table bridge {self._table}")

    async def change(self, which: str, *, add: Iterable[Pair] = (), remove: Iterable[Pair] = ()) -> None:
        """Elements of the set `which` ("cuts" or a lossy one), all at one instant."""
        lines = [
            f"{verb} element bridge {self._table} {which} {{ {_element(pair)} }}"
            for verb, pairs in (("delete", remove), ("add", add))
            for pair in pairs
        ]
        if lines:
            await self._nft("\n".join(lines))

    async def dropped(self, which: str) -> int:
        """How many packets a lossy set has dropped."""
        listing = await self._listing("counter", f"{which}_dropped")
        return sum(int(part["counter"]["packets"]) for part in listing if "counter" in part)

    async def packets(self, which: str) -> dict[Pair, int]:
        """How many packets met each element of a set since it was added."""
        return dict(_counts(await self._listing("set", which)))

    async def _listing(self, kind: str, name: str) -> list[dict[str, Any]]:
        words = ("-j", "list", kind, "bridge", self._table, name)
        listing: dict[str, Any] = json.loads(await asyncio.to_thread(_nft, "", *words))
        return list(listing["nftables"])

    async def _nft(self, rules: str) -> None:
        await asyncio.to_thread(_nft, rules + "\n", "-f", "-")


def _element(pair: Pair) -> str:
    return f"{pair[0]} . {pair[1]}"


def _counts(parts: Iterable[Mapping[str, Any]]) -> Iterable[tuple[Pair, int]]:
    for part in parts:
        for element in part.get("set", {}).get("elem", ()):
            inner = element.get("elem", element) if isinstance(element, dict) else {}
            concat = inner.get("val", {}).get("concat")
            if concat is not None:
                yield (concat[0], concat[1]), int(inner.get("counter", {}).get("packets", 0))


def why_not() -> str:
    """Why this machine, or this user, cannot make such a table; "" if they can."""
    try:
        _nft("add table bridge qsync_try\n", "--check", "-f", "-")
    except ClusterError as error:
        return error.message
    return ""


def _nft(text: str, *words: str) -> str:
    try:
        done = subprocess.run(
            ["nft", *words], input=text, capture_output=True, text=True, timeout=_WITHIN_S, check=False
        )
    except OSError as error:
        raise ClusterError(
            f"partitions between containers need nft: {error}; try: apt-get install nftables"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"nft did not answer within {_WITHIN_S} s, and may not have obeyed") from error
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it gave no reason"])[0]
        hint = "; try: run as root" if "not permitted" in reason else ""
        raise ClusterError(f"nft refuses the rules of this run: {reason}{hint}")
    return done.stdout
