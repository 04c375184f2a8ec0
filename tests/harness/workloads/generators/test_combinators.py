"""Generators: the law of each combinator, and that asking changes nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from harness.workloads.generators import (
    Context,
    Draft,
    Each,
    Generator,
    Later,
    Mix,
    Stagger,
    Until,
)
from harness.workloads.generators.generator import Answer, Next

END_NS = 100


def each(name: str) -> Each:
    """Drafts named after their maker, numbered."""
    return Each(lambda context, count: Draft(name, str(count)))


def drafts(name: str, *counts: int) -> list[Draft]:
    return [Draft(name, str(count)) for count in counts]


@dataclass(frozen=True)
class Limit:
    """So many operations of what is inside, and then none."""

    inner: Generator
    count: int

    def next(self, context: Context) -> Next:
        if self.count <= 0:
            return None, self
        answer, after = self.inner.next(context)
        return answer, Limit(after, self.count - isinstance(answer, Draft))


def asked(
    generator: Generator, times: int = 1_000, *, seed: int = 1, worker: int = 0, time_ns: int = 0
) -> list[tuple[int, Answer]]:
    """Ask as the drawing of a plan does: after `Later` at that time. Ends with the first None."""
    chance = random.Random(seed)
    answers: list[tuple[int, Answer]] = []
    for _ in range(times):
        answer, generator = generator.next(Context(worker, time_ns, chance))
        answers.append((time_ns, answer))
        match answer:
            case None:
                break
            case Later(later_ns):
                assert later_ns >= time_ns
                time_ns = later_ns
    return answers


def operations(answers: Sequence[tuple[int, Answer]]) -> list[Draft]:
    return [answer for _, answer in answers if isinstance(answer, Draft)]


def test_each_makes_for_ever_and_counts() -> None:
    """If it failed, written values would repeat, and a read would not tell which write it saw."""
    assert operations(asked(each("a"), 4)) == drafts("a", 0, 1, 2, 3)


@given(st.integers(1, 1_000), st.integers(1, 300))
def test_until_gives_nothing_from_its_time_on(time_ns: int, mean_ns: int) -> None:
    """If it failed, operations would begin after the load's time, or a phase would last beyond its end."""
    answers = asked(Until(Stagger(each("a"), mean_ns), time_ns), 5_000)
    assert all(when_ns < time_ns for when_ns, answer in answers if isinstance(answer, Draft))
    assert answers[-1] == (time_ns, None), "the next phase begins late"


@given(st.integers(0, 1 << 32))
def test_stagger_keeps_its_mean(seed: int) -> None:
    """If it failed, the rate of a run would not be the one that was asked for."""
    answers = asked(Until(Stagger(each("a"), 1_000), 1_000_000), 5_000, seed=seed)
    assert 800 < len(operations(answers)) < 1_200


def test_stagger_spreads_the_beginnings() -> None:
    """If it failed, all workers would begin at once and march in step."""
    firsts = [asked(Stagger(each("a"), 1_000_000), 2, seed=seed)[1][0] for seed in range(50)]
    assert len(set(firsts)) == 50
    assert max(firsts) < 1_000_000


@dataclass(frozen=True)
class Waits:
    """Nothing before a time, then what is inside."""

    inner: Generator
    until_ns: int

    def next(self, context: Context) -> Next:
        if context.time_ns < self.until_ns:
            return Later(self.until_ns), self
        return self.inner.next(context)


def test_stagger_pauses_for_operations_only() -> None:
    """If it failed, a generator that itself waits would be slowed down for waiting."""
    staggered = Stagger(Waits(each("a"), 500), 10, due_ns=20)
    answer, after = staggered.next(Context(0, 20, random.Random(1)))
    assert answer == Later(500)
    assert after == staggered


def test_mix_draws_in_proportion() -> None:
    """If it failed, a load of mostly reads could be one of mostly writes."""
    found = Counter(draft.f for draft in operations(asked(Mix(((3, each("a")), (1, each("b")))), 2_000)))
    assert 1_350 < found["a"] < 1_650
    assert found["a"] + found["b"] == 2_000


def test_mix_loses_nothing_of_its_parts() -> None:
    """If it failed, a part that is spent would end the others, or operations would be skipped or repeated."""
    found = operations(asked(Mix(((1, Limit(each("a"), 3)), (5, Limit(each("b"), 7))))))
    assert [draft for draft in found if draft.f == "a"] == drafts("a", *range(3))
    assert [draft for draft in found if draft.f == "b"] == drafts("b", *range(7))


def generators() -> st.SearchStrategy[Generator]:
    """Any combination of any depth."""
    leaf: st.SearchStrategy[Generator] = st.sampled_from([each("a"), each("b"), Limit(each("c"), 2)])

    def wider(inner: st.SearchStrategy[Generator]) -> st.SearchStrategy[Generator]:
        return st.one_of(
            st.builds(Limit, inner, st.integers(0, 5)),
            st.builds(Until, inner, st.integers(0, END_NS)),
            st.builds(Stagger, inner, st.integers(1, 50)),
            st.lists(st.tuples(st.floats(0.1, 9), inner), max_size=3).map(lambda parts: Mix(tuple(parts))),
        )

    return st.recursive(leaf, wider, max_leaves=8)


@given(generators(), st.integers(0, 1 << 32), st.integers(0, 3))
def test_asking_changes_nothing(generator: Generator, seed: int, worker: int) -> None:
    """If it failed, a plan could not be drawn twice, and the drawn-out form would differ from the run."""
    shown = repr(generator)
    first = asked(generator, 40, seed=seed, worker=worker)
    assert asked(generator, 40, seed=seed, worker=worker) == first
    assert repr(generator) == shown


@given(generators(), st.integers(0, 1 << 32))
def test_every_combination_comes_to_something(generator: Generator, seed: int) -> None:
    """If it failed, drawing a plan could hang, or go on beyond its time."""
    answers = asked(Until(generator, END_NS), 200, seed=seed)
    assert all(when_ns < END_NS for when_ns, answer in answers if isinstance(answer, Draft))
    pauses = [when_ns for when_ns, answer in answers if isinstance(answer, Later)]
    assert all(pauses.count(when_ns) < 20 for when_ns in pauses), "put off again and again to the same time"
