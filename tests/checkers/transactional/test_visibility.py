"""The search for an order of versions that fits what reads see, against all orders there are."""

from __future__ import annotations

import random
from collections import Counter
from itertools import permutations

import pytest

from checkers.transactional import visibility
from checkers.transactional.sight import NO_WRITER
from checkers.transactional.visibility import Circle, Look, Visible, mask_of, past_of
from tests import examples


def drawn(chance: random.Random) -> Visible:
    """Some transactions, of which a few surely come first, and reads that see some or all of those before them."""
    members = list(range(chance.randint(2, 5)))
    line = chance.sample(members, len(members))
    pairs = [(one, other) for at, one in enumerate(line) for other in line[at + 1 :] if chance.random() < 0.2]
    writers = {
        key: [each for each in members if chance.random() < 0.7] for key in range(chance.randint(1, 2))
    }
    looks, comes_first = [], chance.random() < 0.3
    for _ in range(chance.randint(1, 4)):
        reader, key = chance.choice(members), chance.choice(list(writers))
        writer = chance.choice([NO_WRITER, *(each for each in writers[key] if each != reader)])
        if writer != NO_WRITER:
            pairs.append((writer, reader))
        sure = mask_of(one for one, other in pairs if other == reader and chance.random() < 0.5)
        earlier = chance.choice([0, -1, chance.getrandbits(5)])
        looks.append(Look(reader, key, writer, sure, earlier, chance.random() < 0.5, comes_first))
    return Visible(members=members, pairs=list(dict.fromkeys(pairs)), looks=looks, writers=writers)


def fits(visible: Visible, order: tuple[int, ...]) -> bool:
    """By definition: with the writers of each key in this order no read shows an older version than it sees."""
    place = {member: at for at, member in enumerate(order)} | {NO_WRITER: -1}
    pairs = set(visible.pairs)
    for those in visible.writers.values():
        pairs |= {(one, other) for one in those for other in those if place[one] < place[other]}
    for look in visible.looks:
        later = {each for each in visible.writers[look.key] if place[each] > place[look.writer]}
        pairs |= {(look.reader, each) for each in later - {look.reader} if look.comes_first}
    if any(place[one] >= place[other] for one, other in pairs):
        return False
    past: dict[int, set[int]] = {}
    for member in order:
        direct = {one for one, other in pairs if other == member}
        past[member] = direct.union(*(past[each] for each in direct))
    for look in visible.looks:
        seen = {each for each in order if look.sure >> each & 1}
        seen |= {each for each in past[look.reader] if look.earlier >> each & 1}
        seen |= {each for one in seen for each in past[one] if look.closed}
        seen &= {*visible.writers[look.key]} - {look.reader}
        if any(place[each] > place[look.writer] for each in seen):
            return False
    return True


def compare(seed: int) -> str:
    visible = drawn(random.Random(seed))
    try:
        result, order = visibility.order_of(visible)
    except Circle:
        pytest.fail(f"seed {seed}: a circle got out of the search")
    assert result == (
        "found" if any(fits(visible, each) for each in permutations(visible.members)) else "none"
    ), (
        seed,
        visible,
    )
    assert order is None or fits(visible, tuple(order.tolist())), (seed, visible)
    other = tuple(random.Random(-seed).sample(visible.members, len(visible.members)))
    assert replays(visible, other) == fits(visible, other), (seed, visible, other)
    return result


def replays(visible: Visible, order: tuple[int, ...]) -> bool:
    """As the prover looks at an order that was found."""
    places = [order.index(member) for member in visible.members]
    chained = visible.chained(places)
    if any(places[one] >= places[other] for one, other in chained):
        return False
    return visible.fits(past_of(visible.members, chained), places)


def test_an_order_is_found_if_and_only_if_there_is_one() -> None:
    """If this fails, a history is called parallel snapshot isolated that is not, or one that is, is accused."""
    seen = Counter(compare(seed) for seed in range(1_500))
    assert min(seen["found"], seen["none"]) > 300, seen


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(4))
def test_the_same_of_many_more(part: int) -> None:
    """As above."""
    seen = Counter(compare(seed) for seed in examples.tonight(10_000, part))
    assert min(seen["found"], seen["none"]) > 1_000, seen


def test_a_search_whose_steps_are_spent_says_so() -> None:
    """If this fails, a spent budget passes for an order, or for none."""
    seen = Counter(
        visibility.order_of(drawn(random.Random(seed)), visibility.STEPS + 1)[0] for seed in range(50)
    )
    assert seen == {"open": 50}
