"""Transactions by stores that compare and write in one request, but do not compute: read, decide here, write if
nothing that was read has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.clients.client import NotDone
from harness.clients.operations import Done, Outcome, Read, Step, Write
from harness.clients.operations.evaluate import Evaluated, Place, evaluate, places_of

Versions = Mapping[Place, object]


def is_one_request(steps: Sequence[Step]) -> bool:
    """All steps read, or write given values, and no key is written twice: one request can carry them all."""
    written = [(step.space, step.key) for step in steps if isinstance(step, Write)]
    return all(isinstance(step, Read | Write) for step in steps) and len({*written}) == len(written)


def if_unchanged(
    steps: Sequence[Step],
    read: Callable[[Sequence[Place]], Sequence[tuple[object, object]]],
    write: Callable[[Versions, Mapping[Place, object]], bool],
    role: str | None = None,
    mode: str | None = None,
) -> Outcome:
    """`read` gives the value (None: no value) and the version of each place, all of one moment, and misses no earlier
    acknowledged write. `write` writes these values (None: it deletes the key) if all places still have these
    versions, else it returns False. Steps that change nothing need no `write`: the moment of the read is theirs.
    `role` and `mode` go into the outcome.

    Raises NotDone if the read failed, or if another client was faster: there is no second try.
    """
    places = places_of(steps)
    try:
        rows = read(places)
    except Exception as error:
        raise NotDone(f"nothing was written, the read failed: {type(error).__name__}: {error}") from error
    done = evaluate(steps, {place: value for place, (value, _) in zip(places, rows, strict=True)}, role)
    if not isinstance(done, Evaluated):
        return done
    versions = {place: version for place, (_, version) in zip(places, rows, strict=True)}
    if done.changed and not write(versions, done.changed):
        raise NotDone("outrun: what was read had changed")
    return Done(done.results, role, mode)
