"""Hypothesis strategies: tiny histories of one register as the search sees them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from checkers.linearizable.models import ILLEGAL, Action, Register, State
from checkers.linearizable.search import Call

REGISTER = Register()
VALUES: tuple[State, ...] = (None, 1, 2, 3)

Drawn = tuple[int, int, int, int, int]  # word, value, value, invoked at, for how long (0: it never returns)


def _action(word: int, value: State, other: State) -> Action:
    match word:
        case 0 | 1:
            return Action("observe", "read", (value,))
        case 2 | 3:
            return Action("overwrite", "write", (value,))
        case 4:
            return Action("observe", "is-not", (value,))
    return Action("update", "cas", (value, other)) if value != other else Action("observe", "is", (value,))


def _answered(actions: Sequence[Action], drawn: Sequence[Drawn]) -> list[Action]:
    """The actions as one register would answer them, each in the middle of its time; crashed ones happen too."""
    answered = list(actions)
    state: State = None
    for position in sorted(range(len(drawn)), key=lambda each: 2 * drawn[each][3] + drawn[each][4]):
        action = actions[position]
        result = REGISTER.step(state, action)
        if action.word in ("read", "is"):
            answered[position] = Action("observe", "read", (state,))
        elif result is not ILLEGAL:
            state = result
        elif action.kind == "update":
            answered[position] = Action("observe", "is-not", (action.values[0],))
        else:
            answered[position] = Action("observe", "read", (state,))
    return answered


def _calls(drawn: Sequence[Drawn], *, honest: bool) -> list[Call]:
    actions = [_action(word, VALUES[value], VALUES[other]) for word, value, other, _, _ in drawn]
    if honest:
        actions = _answered(actions, drawn)
    moments = []
    for position, (_, _, _, start, length) in enumerate(drawn):
        moments.append((start, 0, position))
        if length:
            moments.append((start + length, 1, position))
    index = {(which, position): event for event, (_, which, position) in enumerate(sorted(moments))}
    return [
        Call(action, index[0, position], index.get((1, position))) for position, action in enumerate(actions)
    ]


def calls(most: int = 7) -> st.SearchStrategy[list[Call]]:
    """Up to `most` calls: reads, writes, compare-and-sets and failed ones, crashed or not, on four values.

    Half of the histories are answered as a register would answer them, half as it comes.
    """
    one = st.tuples(
        st.integers(0, 6), st.integers(0, 3), st.integers(0, 3), st.integers(0, 9), st.integers(0, 6)
    )
    return st.builds(
        lambda drawn, honest: _calls(drawn, honest=honest), st.lists(one, max_size=most), st.booleans()
    )
