"""The models that are defined by what must not be: Adya's phenomena, over every possible order of versions.

Adya, *Weak Consistency*, MIT 1999. A *world* says which transactions committed (each info one did, or not) and, for
each key, in which order their versions came. A history is allowed if some world shows none of the phenomena that the
model proscribes. Dependencies between different transactions of a world:

    ww  installed the version after the other's           before  comes before it (session or real time), if the
    wr  read the version that the other installed                 model is a strong one
    rw  read a version, the other installed the next

| model | proscribes | source |
|---|---|---|
| read-committed | G1a, G1b: a read of no commit, of no last write; G1c: a cycle of ww, wr, before | Adya PL-2 |
| cursor-stability | G1; G-cursor: a cycle of one rw and of ww, all of one key | Adya PL-CS |
| monotonic-atomic-view | G1; OTV: a read older than what one wrote that it or one before was of | Bailis, HAT |
| monotonic-view | G1; G-monotonic: a cycle of one rw, from a read to it or a step before it | Adya PL-2L |
| read-atomic | G1; INT; fractured reads | Bailis et al. (RAMP), SIGMOD 2014; Cerone et al., CONCUR 2015 |
| update-atomic | G1; INT; fractured reads, with earlier writers of one's keys | Cerone et al., CONCUR 2017 |
| causal-cerone | G1; INT; a read older than a write that is before it by wr and before | Cerone et al., CONCUR 2015 |
| prefix | G1; INT; a cycle in which each rw comes after wr or before | Cerone et al., CONCUR 2015 |
| consistent-view | G1; a cycle with at most one rw | Adya PL-2+: the same as the next, see the tests |
| parallel-snapshot-isolation | G1; INT; a cycle with at most one rw | Cerone and Gotsman, J. ACM 2018, PSI; PL-2+ |
| snapshot-isolation | G1; INT; a cycle in which no two rw are neighbours | the same, SI |
| update-serializable | G1; INT; any cycle of those that write and one that only reads | Adya PL-3U |
| repeatable-read | G1; INT; any cycle (all reads are of items) | PL-2.99 |

INT: a read after a read or write of the same key in the same transaction shows the same, with what the transaction
wrote since. Fractured: a transaction that reads one write of another reads none older than its other writes; in the
strong forms also none older than the writes of a transaction that comes before it (axiom SESSION of Cerone et al.).
OTV and G-monotonic look at single steps of a transaction; a read behind an own write of the key shows it (Adya, 4.1.1).

In any history (Adya, 4.1.1) the operations have an order which keeps the program order of each transaction, and in
which a value is read only after it was written.

Lists (Kingsbury and Alvaro, *Elle*, VLDB 2020): every append makes a version, which is the list until then. So a
version that holds an append of a transaction holds its earlier appends to that key, before it. Every read is a
beginning of its key's order. What a transaction appended itself stands at the end of its reads wherever the order has
it in the end: a store may keep writes back until the commit.

Registers: the last write of a transaction to a key makes a version; null comes before all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from tests.checkers.brute.transactions import Order, Txn, worlds

Edge = tuple[int, int]
Edges = frozenset[Edge]
Version = tuple[int, Any]
"""The number of the transaction that made it, and the value or element."""


@dataclass(frozen=True, slots=True)
class Read:
    """What a transaction saw of others: all elements of a list, or the one value of a register (nothing: null)."""

    reader: int
    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dependencies:
    ww: Edges
    wr: Edges
    rw: Edges


WEAK = (
    *("read-committed", "cursor-stability", "monotonic-atomic-view", "monotonic-view"),
    *("read-atomic", "update-atomic", "causal-cerone"),
)
"""The models whose other phenomena have a read in them; a cycle without one is G1c."""
BY_STEPS = ("monotonic-atomic-view", "monotonic-view")
SEE_THEIR_OWN = (*BY_STEPS, "consistent-view")


Allows = Callable[[Sequence[Txn], dict[str, tuple[Version, ...]]], bool]
"""Whether something else that was promised allows the orders of versions."""


def allowed(
    model: str, txns: Sequence[Txn], workload: str, before: Order, allows: Allows = lambda world, order: True
) -> bool:
    """Whether some world shows none of what `model` proscribes."""
    if not _well_formed(txns, workload):
        return False
    if model in SEE_THEIR_OWN:
        if not all(_own_writes(t, workload) for t in txns):
            return False
    elif model not in ("read-committed", "cursor-stability") and not all(
        _internal(t, workload) for t in txns
    ):
        return False
    reads = [read for txn in txns if txn.outcome == "ok" for read in reads_of_others(txn, workload)]
    for world in worlds(txns):
        earlier = frozenset((a.number, b.number) for a in world for b in world if before(a, b))
        good = any(
            allows(world, order)
            and _proscribes_nothing(
                model, order, _dependencies(order, reads, workload), earlier, reads, workload, world
            )
            for order in _orders_read(world, reads, workload)
        )
        if good:
            return True
    return False


def _proscribes_nothing(
    model: str,
    order: dict[str, tuple[Version, ...]],
    found: Dependencies,
    earlier: Edges,
    reads: Sequence[Read],
    workload: str,
    world: Sequence[Txn],
) -> bool:
    forward = found.ww | found.wr | earlier
    if model in WEAK and _has_cycle(forward):
        return False
    if model == "read-committed":
        return True
    if model == "cursor-stability":
        return not any(_cursor(key, order, reads, workload) for key in order)
    if model in BY_STEPS:
        past = _closure(forward) if model == "monotonic-view" else frozenset()
        return not any(_vanishes(txn, order, past, earlier, workload) for txn in world)
    if model == "update-atomic":
        return not _fractured(order, earlier | _closure(_ww(order)), reads, workload)
    if model == "causal-cerone":
        return not _fractured(order, _closure(found.wr | earlier), reads, workload)
    if model == "prefix":
        known = found.wr | earlier
        return not _has_cycle(found.ww | known | _then(known, found.rw))
    if model == "update-serializable":
        updates = {txn.number for txn in world if txn.keys_written}
        every = forward | found.rw
        return not any(
            _has_cycle(frozenset(e for e in every if set(e) <= updates | {txn.number})) for txn in world
        )
    if model == "read-atomic":
        return not _fractured(order, earlier, reads, workload)
    if model in ("parallel-snapshot-isolation", "consistent-view"):
        return _irreflexive(_then(_closure(forward), found.rw)) and not _has_cycle(forward)
    if model == "snapshot-isolation":
        return not _has_cycle(forward | _then(forward, found.rw))
    assert model == "repeatable-read", model
    return not _has_cycle(forward | found.rw)


# ---- what a transaction read


def reads_of_others(txn: Txn, workload: str) -> Iterator[Read]:
    """The reads that show what others wrote, without what the transaction itself had written by then."""
    own: dict[str, list[Any]] = {}
    for word, key, value in txn.micros:
        mine = own.setdefault(key, [])
        if word != "r":
            mine.append(value)
        elif workload == "append":
            shown = list(value or [])
            while shown and shown[-1] in mine:
                shown.pop()
            yield Read(txn.number, key, tuple(shown))
        elif value is None or value not in mine:
            yield Read(txn.number, key, () if value is None else (value,))


def _internal(txn: Txn, workload: str) -> bool:
    """INT."""
    if txn.outcome != "ok":
        return True
    known: dict[str, Any] = {}
    own: dict[str, list[Any]] = {}
    for word, key, value in txn.micros:
        if word == "w":
            known[key] = value
        elif word == "append":
            own[key] = [*own.get(key, []), value]
            if key in known:
                known[key] = [*known[key], value]
        elif workload == "append":
            shown, mine = list(value or []), own.get(key, [])
            if shown != known.get(key, shown) or shown[len(shown) - len(mine) :] != mine:
                return False
            known[key] = shown
        else:
            if value != known.get(key, value):
                return False
            known[key] = value
    return True


def _well_formed(txns: Sequence[Txn], workload: str) -> bool:
    """Whether all that was read was written, and no list shows an element twice or without what came before it."""
    writers = {(key, value): txn for txn in txns for word, key, value in txn.micros if word != "r"}
    for txn in txns:
        for word, key, value in txn.micros:
            if word != "r" or txn.outcome != "ok" or value is None:
                continue
            values = value if workload == "append" else [value]
            if len(set(values)) < len(values) or any((key, each) not in writers for each in values):
                return False
            if workload == "append" and not all(
                _is_whole(values, writers[key, each], key) for each in values
            ):
                return False
    return not _has_cycle(_events(txns, workload))


def _is_whole(values: Sequence[Any], writer: Txn, key: str) -> bool:
    """Whether the elements of `writer` in the list are its first to that key, in its order."""
    made = [value for word, of, value in writer.micros if word != "r" and of == key]
    shown = [value for value in values if value in made]
    return shown == made[: len(shown)]


def _events(txns: Sequence[Txn], workload: str) -> Edges:
    """What comes before what among the operations of all transactions: (earlier, later), numbered through."""
    number = {place: at for at, place in enumerate((t.number, p) for t in txns for p in range(len(t.micros)))}
    written = {
        (key, value): number[txn.number, place]
        for txn in txns
        for place, (word, key, value) in enumerate(txn.micros)
        if word != "r"
    }
    edges: set[Edge] = set()
    for txn in txns:
        for place, (word, key, value) in enumerate(txn.micros):
            here = number[txn.number, place]
            if place:
                edges.add((here - 1, here))
            if word == "r" and txn.outcome == "ok" and value is not None:
                edges |= {(written[key, each], here) for each in (value if workload == "append" else [value])}
    return frozenset(edges)


# ---- orders of versions


def _versions(world: Iterable[Txn], workload: str) -> dict[str, list[Version]]:
    """By key, in the order of the transactions and of each one's own writes."""
    versions: dict[str, list[Version]] = {}
    for txn in world:
        for word, key, value in txn.micros:
            if word == "r":
                continue
            made = versions.setdefault(key, [])
            if workload == "rw-register":
                made[:] = [each for each in made if each[0] != txn.number]  # its last write counts
            made.append((txn.number, value))
    return versions


def _every_order(versions: Sequence[Version]) -> Iterator[tuple[Version, ...]]:
    """All orders in which each transaction's own versions stay as it made them."""
    if not versions:
        yield ()
    for at, first in enumerate(versions):
        if all(maker != first[0] for maker, _ in versions[:at]):
            for rest in _every_order([*versions[:at], *versions[at + 1 :]]):
                yield (first, *rest)


def _orders_read(
    world: Sequence[Txn], reads: Sequence[Read], workload: str
) -> Iterator[dict[str, tuple[Version, ...]]]:
    """The orders under which every read shows a committed version (not G1a, G1b)."""
    versions = _versions(world, workload)
    for read in reads:
        versions.setdefault(read.key, [])
    choices = []
    for key, made in versions.items():
        of_key = [read for read in reads if read.key == key]
        choices.append(
            [order for order in _every_order(made) if all(_shows(order, r, workload) for r in of_key)]
        )
    for chosen in product(*choices):
        yield dict(zip(versions, chosen, strict=True))


def _shows(order: tuple[Version, ...], read: Read, workload: str) -> bool:
    values = [value for _, value in order]
    if workload == "rw-register":
        return not read.values or read.values[0] in values
    if values[: len(read.values)] != list(read.values):
        return False
    if not read.values:
        return True
    last = order[len(read.values) - 1][0]
    return all(maker != last for maker, _ in order[len(read.values) :])


# ---- dependencies


def _ww(order: dict[str, tuple[Version, ...]]) -> Edges:
    return frozenset(
        (first[0], second[0])
        for versions in order.values()
        for first, second in pairwise(versions)
        if first[0] != second[0]
    )


def _place(read: Read, versions: tuple[Version, ...], workload: str) -> int:
    """How many versions had been installed when the read saw the key."""
    if workload == "append" or not read.values:
        return len(read.values)
    return [value for _, value in versions].index(read.values[0]) + 1


def _dependencies(
    order: dict[str, tuple[Version, ...]], reads: Sequence[Read], workload: str
) -> Dependencies:
    wr: set[Edge] = set()
    rw: set[Edge] = set()
    for read in reads:
        versions = order[read.key]
        place = _place(read, versions, workload)
        if place > 0:
            wr.add((versions[place - 1][0], read.reader))
        if place < len(versions):
            rw.add((read.reader, versions[place][0]))
    return Dependencies(
        _ww(order),
        frozenset(edge for edge in wr if edge[0] != edge[1]),
        frozenset(edge for edge in rw if edge[0] != edge[1]),
    )


def _fractured(
    order: dict[str, tuple[Version, ...]], earlier: Edges, reads: Sequence[Read], workload: str
) -> bool:
    """Whether a transaction saw one that it read from, or that comes before it, but in part."""
    for read in reads:
        place = _place(read, order[read.key], workload)
        seen = {maker for maker, reader in earlier if reader == read.reader}
        for other in reads:
            if other.reader == read.reader and other.values:
                versions = order[other.key]
                seen.add(versions[_place(other, versions, workload) - 1][0])
        seen.discard(read.reader)
        if any(maker in seen for maker, _ in order[read.key][place:]):
            return True
    return False


def keeps_each_key(before: Order, world: Sequence[Txn], order: dict[str, tuple[Version, ...]]) -> bool:
    """Whether each register by itself has an order: of two transactions that touch it, none meets an older version than
    one before it left behind."""
    for key, versions in order.items():
        place = {value: 2 * at + 2 for at, (_, value) in enumerate(versions)} | {None: 0}
        made = {maker: 2 * at + 2 for at, (maker, _) in enumerate(versions)}
        met: dict[Txn, tuple[int, int]] = {}
        for txn in world:
            own = made.get(txn.number, 0)
            steps = [
                (own - 1 if word != "r" else place.get(value, own), own or place.get(value, own))
                for word, on, value in txn.micros
                if on == key and (word != "r" or txn.outcome == "ok")
            ]
            if steps:
                met[txn] = steps[0]
        if any(before(a, b) and met[a][1] > met[b][0] for a in met for b in met):
            return False
    return True


def _cursor(key: str, order: dict[str, tuple[Version, ...]], reads: Sequence[Read], workload: str) -> bool:
    """G-cursor: one read a version of the key, and wrote a later one than the next."""
    only = {key: order[key]}
    found = _dependencies(only, [read for read in reads if read.key == key], workload)
    return not _irreflexive(_then(found.rw, _closure(found.ww)))


def _vanishes(
    txn: Txn, order: dict[str, tuple[Version, ...]], past: Edges, earlier: Edges, workload: str
) -> bool:
    """OTV, or G-monotonic if `past` says what comes before what."""
    if txn.outcome != "ok":
        return False
    known = {one for one, other in earlier if other == txn.number}
    for place, (word, key, _) in enumerate(txn.micros):
        versions = order[key]
        if word != "r":
            own = [at for at, (maker, _) in enumerate(versions) if maker == txn.number]
            known |= {maker for maker, _ in versions[: own[0]]} if past and own else set()
            continue
        upto = Txn(txn.number, txn.outcome, txn.process, txn.invoked, txn.completed, txn.micros[: place + 1])
        shown = list(reads_of_others(upto, workload))
        before = list(reads_of_others(_cut(upto), workload))
        if len(shown) == len(before):
            continue  # its own write
        seen = _place(shown[-1], versions, workload)
        known |= {versions[seen - 1][0]} if seen else set()
        everything = known | {one for one, other in past if other in known}
        if any(maker in everything - {txn.number} for maker, _ in versions[seen:]):
            return True
    return False


def _cut(txn: Txn) -> Txn:
    return Txn(txn.number, txn.outcome, txn.process, txn.invoked, txn.completed, txn.micros[:-1])


def _own_writes(txn: Txn, workload: str) -> bool:
    """Whether every read behind own writes of its key shows them."""
    if txn.outcome != "ok":
        return True
    own: dict[str, list[Any]] = {}
    for word, key, value in txn.micros:
        mine = own.setdefault(key, [])
        if word != "r":
            mine.append(value)
        elif mine:
            shown, wanted = ([value], mine[-1:]) if workload == "rw-register" else (list(value or []), mine)
            if shown[-len(wanted) :] != wanted:
                return False
    return True


# ---- relations


def _then(first: Edges, second: Edges) -> Edges:
    return frozenset((a, d) for a, b in first for c, d in second if b == c)


def _closure(edges: Edges) -> Edges:
    while True:
        more = edges | _then(edges, edges)
        if more == edges:
            return edges
        edges = more


def _irreflexive(edges: Edges) -> bool:
    return all(a != b for a, b in edges)


def _has_cycle(edges: Edges) -> bool:
    return not _irreflexive(_closure(edges))
