"""Traces of random executions: nodes that send, take in any order, restart, and change their colours."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from checkers.cuts.trace import LifeRows

NODES = ("a", "b", "c", "d")
CUTS = ("k1", "k2", "k3")

Step = tuple[int, int, int]  # node, what it does, a choice


def steps(most: int = 40) -> st.SearchStrategy[list[Step]]:
    """What happens, one thing after another."""
    return st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 63)), max_size=most)


def at_random(chance: random.Random, most: int) -> list[Step]:
    """The same without Hypothesis, which takes longer to draw than the checkers to judge."""
    count = chance.randrange(most // 2, most)
    return [(chance.randrange(4), chance.randrange(10), chance.randrange(64)) for _ in range(count)]


def executed(drawn: Sequence[Step], *, nodes: int, honest: bool, quiet: bool = False) -> list[LifeRows]:
    """The lives of an execution. `honest`: a message carries its sender's colours, which its taker has first.

    `quiet`: the last node records no colour change, and the others send to it alone.
    """
    lives: list[list[Any]] = [[1, []] for _ in range(nodes)]
    done: list[list[LifeRows]] = [[] for _ in range(nodes)]
    starts = [0] * nodes
    colours: list[list[str]] = [[] for _ in range(nodes)]
    flying: list[tuple[str, int, int, int, tuple[str, ...]]] = []

    def change(node: int, cut: str, now: int) -> None:
        if cut not in colours[node]:
            colours[node].append(cut)
            if not quiet or node < nodes - 1:
                lives[node][1].append(["mark", "cut", {"cut": cut}, now])

    for now, (which, action, choice) in enumerate(drawn, 1):
        node = which % nodes
        rows = lives[node][1]
        if action <= 3:
            to = (node + 1 + choice % (nodes - 1)) % nodes
            to = nodes - 1 if quiet and node < nodes - 1 else to
            seq = 1 + sum(row[0] == "send" for row in rows)
            rows.append(["send", seq, NODES[to], "prepare", f"t{choice}", now])
            flying.append((NODES[node], lives[node][0], seq, to, tuple(colours[node])))
        elif action <= 7:
            arriving = [each for each in flying if each[3] == node]
            if not arriving:
                continue
            taken = arriving[choice % len(arriving)]
            if choice < 56:  # else the network doubles it
                flying.remove(taken)
            if honest:
                for cut in taken[4]:
                    change(node, cut, now)
            rows.append(["receive", taken[0], taken[1], taken[2], now])
        elif action == 8:
            open_cuts = [cut for cut in CUTS if cut not in colours[node]]
            begun = max((CUTS.index(cut) for each in colours for cut in each), default=-1)
            wanted = [cut for cut in open_cuts if not honest or CUTS.index(cut) in (begun, begun + 1)]
            if wanted:
                change(node, wanted[choice % len(wanted)] if not honest else wanted[0], now)
        elif choice % 4 == 0:
            done[node].append(_life(node, lives[node], starts[node]))
            lives[node], starts[node] = [lives[node][0] + 1, []], now
    return [life for node in range(nodes) for life in (*done[node], _life(node, lives[node], starts[node]))]


def _life(node: int, life: list[Any], start: int) -> LifeRows:
    return LifeRows(node=NODES[node], life=life[0], rows=tuple(life[1]), time_ns=start)
