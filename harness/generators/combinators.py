"""Generators made of generators.

| name | operations |
|---|---|
| `Each(make)` | `make(context, count)`, without end |
| `Mix(parts)` | of a random part, in proportion to the weights |
| `Limit(inner, count)` | at most `count` operations |
| `Until(inner, time_ns)` | until a time, then nothing |
| `Stagger(inner, mean_ns)` | with random pauses around a mean, so that workers do not march in step |
| `Phases(parts)` | part by part, each when the previous one has ended |
| `Reserve(groups, rest)` | the first workers to one generator, the next to another, the rest to a third |
| `per_worker(make, workers)` | a generator of its own for each worker |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.generators.generator import Context, Draft, Generator, Later, Next


@dataclass(frozen=True, slots=True)
class Each:
    make: Callable[[Context, int], Draft]
    count: int = 0

    def next(self, context: Context) -> Next:
        return self.make(context, self.count), Each(self.make, self.count + 1)


@dataclass(frozen=True, slots=True)
class Mix:
    """`parts` are (weight, generator); a part that has ended is skipped from then on."""

    parts: tuple[tuple[float, Generator], ...]

    def next(self, context: Context) -> Next:
        parts = self.parts
        while parts:
            place = _draw(parts, context)
            answer, after = parts[place][1].next(context)
            if answer is not None:
                return answer, Mix((*parts[:place], (parts[place][0], after), *parts[place + 1 :]))
            parts = (*parts[:place], *parts[place + 1 :])
        return None, Mix(())


def _draw(parts: tuple[tuple[float, Generator], ...], context: Context) -> int:
    left = context.chance.random() * sum(weight for weight, _ in parts)
    for place, (weight, _) in enumerate(parts):
        left -= weight
        if left < 0:
            return place
    return len(parts) - 1


@dataclass(frozen=True, slots=True)
class Limit:
    inner: Generator
    count: int

    def next(self, context: Context) -> Next:
        if self.count <= 0:
            return None, self
        answer, after = self.inner.next(context)
        return answer, Limit(after, self.count - isinstance(answer, Draft))


@dataclass(frozen=True, slots=True)
class Until:
    inner: Generator
    time_ns: int

    def next(self, context: Context) -> Next:
        if context.time_ns >= self.time_ns:
            return None, self
        answer, after = self.inner.next(context)
        if isinstance(answer, Later):
            answer = Later(min(answer.time_ns, self.time_ns))  # the next generator does not wait for it
        return answer, Until(after, self.time_ns)


@dataclass(frozen=True, slots=True)
class Stagger:
    inner: Generator
    mean_ns: int
    due_ns: int | None = None

    def next(self, context: Context) -> Next:
        if self.due_ns is None:
            first_ns = context.time_ns + int(context.chance.random() * self.mean_ns)
            return Later(first_ns), replace(self, due_ns=first_ns)
        if context.time_ns < self.due_ns:
            return Later(self.due_ns), self
        answer, after = self.inner.next(context)
        if not isinstance(answer, Draft):
            return answer, replace(self, inner=after)
        pause_ns = int(context.chance.expovariate(1) * self.mean_ns)
        return answer, Stagger(after, self.mean_ns, self.due_ns + pause_ns)


@dataclass(frozen=True, slots=True)
class Phases:
    parts: tuple[Generator, ...]

    def next(self, context: Context) -> Next:
        parts = self.parts
        while parts:
            answer, after = parts[0].next(context)
            if answer is not None:
                return answer, Phases((after, *parts[1:]))
            parts = parts[1:]
        return None, Phases(())


@dataclass(frozen=True, slots=True)
class Reserve:
    """`groups` are (number of workers, generator), in the order of worker numbers."""

    groups: tuple[tuple[int, Generator], ...]
    rest: Generator

    def next(self, context: Context) -> Next:
        first = 0
        for place, (count, inner) in enumerate(self.groups):
            if context.worker < first + count:
                answer, after = inner.next(context)
                return answer, replace(
                    self, groups=(*self.groups[:place], (count, after), *self.groups[place + 1 :])
                )
            first += count
        answer, after = self.rest.next(context)
        return answer, replace(self, rest=after)


def per_worker(make: Callable[[int], Generator], workers: int) -> tuple[Generator, ...]:
    """One generator for each worker, so that the draws of one worker depend on no other worker."""
    return tuple(make(worker) for worker in range(workers))
