"""Generators made of generators.

| name | operations |
|---|---|
| `Each(make)` | `make(context, count)`, without end |
| `Mix(parts)` | of a random part, in proportion to the weights |
| `Until(inner, time_ns)` | until a time, then nothing |
| `Stagger(inner, mean_ns)` | with random pauses around a mean, so that workers do not march in step |
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from harness.workloads.generators.generator import Context, Draft, Generator, Later, Next


class Each(msgspec.Struct, frozen=True):
    make: Callable[[Context, int], Draft]
    count: int = 0

    def next(self, context: Context) -> Next:
        return self.make(context, self.count), Each(self.make, self.count + 1)


class Mix(msgspec.Struct, frozen=True):
    """`parts` are (weight, generator); a part that has ended is skipped from then on."""

    parts: tuple[tuple[float, Generator], ...]
    weight: float | None = None
    """Of all parts together; None: not added up yet."""

    def next(self, context: Context) -> Next:
        parts, weight = self.parts, self.weight
        while parts:
            if weight is None:
                weight = sum(each for each, _ in parts)
            place = _draw(parts, weight, context)
            share, inner = parts[place]
            answer, after = inner.next(context)
            if answer is not None:
                return answer, Mix((*parts[:place], (share, after), *parts[place + 1 :]), weight)
            parts, weight = (*parts[:place], *parts[place + 1 :]), None
        return None, Mix(())


def _draw(parts: tuple[tuple[float, Generator], ...], weight: float, context: Context) -> int:
    left = context.chance.random() * weight
    for place, (share, _) in enumerate(parts):
        left -= share
        if left < 0:
            return place
    return len(parts) - 1


class Until(msgspec.Struct, frozen=True):
    inner: Generator
    time_ns: int

    def next(self, context: Context) -> Next:
        if context.time_ns >= self.time_ns:
            return None, self
        answer, after = self.inner.next(context)
        if isinstance(answer, Later) and answer.time_ns > self.time_ns:
            answer = Later(self.time_ns)
        return answer, self if after is self.inner else Until(after, self.time_ns)


class Stagger(msgspec.Struct, frozen=True):
    inner: Generator
    mean_ns: int
    due_ns: int | None = None

    def next(self, context: Context) -> Next:
        mean_ns, due_ns = self.mean_ns, self.due_ns
        if due_ns is None:
            first_ns = context.time_ns + int(context.chance.random() * mean_ns)
            return Later(first_ns), Stagger(self.inner, mean_ns, first_ns)
        if context.time_ns < due_ns:
            return Later(due_ns), self
        answer, after = self.inner.next(context)
        if not isinstance(answer, Draft):
            return answer, Stagger(after, mean_ns, due_ns)
        pause_ns = int(context.chance.expovariate(1) * mean_ns)
        return answer, Stagger(after, mean_ns, due_ns + pause_ns)
