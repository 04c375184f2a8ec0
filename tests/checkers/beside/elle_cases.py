"""What Elle's own tests claim, in short: the histories and what Elle says of each.

Source: `list_append_test.clj`, `rw_register_test.clj`, `closed_predicate_test.clj` and `consistency_model_test.clj` of
https://github.com/jepsen-io/elle at ccdee6fa (July 2026). The histories are written anew in the notation of
`tests.checkers.transactional.txns`: `;` parts transactions that run beside each other, and `|` those that run one
after the other. `3: ` names the process (else each has its own), `!` a failed transaction, `?` one of unknown outcome.

A predicate names the version of each row that it saw, as Elle concludes it from the answer; the version of a deleted
row is 9 or 8. Elle's names of anomalies are translated (`ours`), and left out where they say that Elle did not search
to the end (empty-transaction-graph, …-cycle-exists, cycle-search-timeout).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from checkers.history import History
from checkers.transactional.columns import Workload
from tests.checkers.transactional import txns

NAMES = {"G-single-item": "G-single", "G-nonadjacent-item": "G-nonadjacent", "G-single": "G-single-predicate"}
"""Elle marks a cycle without predicates, we one with."""


def ours(anomaly: str) -> str:
    """Our name of an anomaly of Elle's."""
    plain = anomaly.removesuffix("-process").removesuffix("-realtime")
    return NAMES.get(plain, plain) + anomaly.removeprefix(plain)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """`says`: Elle's verdict by model. `shows`: the anomalies that Elle names. `out`: the weakest models that it rules
    out. `absent`: anomalies that it was asked for and did not find."""

    name: str
    text: str
    workload: Workload
    says: dict[str, str] = field(default_factory=dict)
    shows: str = ""
    out: str = ""
    absent: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    def history(self) -> History:
        phases = enumerate(self.text.split("|"))
        return txns.history(
            *(
                _txn(words, self.workload, place, number)
                for number, (place, words) in enumerate(
                    (place, words) for place, phase in phases for words in phase.split(";")
                )
            )
        )


def _txn(words: str, workload: Workload, place: int, number: int) -> txns.Txn:
    process, colon, rest = words.rpartition(":")
    rest = rest.strip()
    type_ = {"!": "fail", "?": "info"}.get(rest[0], "ok")
    return txns.Txn(
        type=type_,
        process=int(process) if colon else 100 + number,
        micros=[txns.micro(word, workload) for word in rest.lstrip("!?").split()],
        begin=2 * place,
        end=2 * place + 1,
    )


def lists(name: str, text: str, **known: Any) -> Case:
    return Case(name=name, text=text, workload="append", **known)


def registers(name: str, text: str, **known: Any) -> Case:
    return Case(name=name, text=text, workload="rw-register", **known)


YES, NO, REFUSED = "valid", "invalid", "refused"
SERIALIZABLE = {"serializable": YES}
STRICT, RC, RR, SI = "strict-serializable", "read-committed", "repeatable-read", "snapshot-isolation"
SESSION_SI = "strong-session-snapshot-isolation"

LISTS = (
    # graph-test: a graph with or without a cycle
    lists("append, append, read", "ax2 ; ax1 ; rx12", says=SERIALIZABLE),
    lists("read, append, read", "rx ; ax1 ; rx1", says=SERIALIZABLE),
    lists("figure 3 of Adya", "az1 ax1 ay1 ; rx1 ay2 ; ry12 az3 ; rz13", says=SERIALIZABLE),
    lists("graph of G0", "ax1 ay1 ; ax2 ay2 ; rx12 ry21", says={"serializable": NO}),
    lists("graph of G1c", "ax1 ry1 ; ax2 ay1 ; rx12", says={"serializable": NO}),
    lists("graph of G2", "rx ay1 ; ry ax1 ; rx1 ry1", says={"serializable": NO}),
    lists("read without an answer", "? ax2 ry ; ax1 ay1 ; rx12 ry1", says=SERIALIZABLE),
    lists("single append without a read", "rx ; ax1", says=SERIALIZABLE),
    lists("appends without reads", "rx ; ax1 ; ax2", says=SERIALIZABLE),
    lists("element appended twice", "ax1 ry ; ay2 ax1", says={"serializable": REFUSED}),
    # g1a-cases-test, g1b-cases-test, internal-cases-test
    lists("G1a, alone", "rx1 ax2 ; rx12 ry3 ; ! ax1", shows="G1a"),
    lists("G1b, alone", "rx1 ; rx12 ry3 ; ax1 ax2 ; rx123", shows="G1b"),
    lists("own intermediate read", "ax1 rx1 ax2", absent="G1b"),
    lists("internal, good", "ry56 ax3 rx123 ax4 rx1234", absent="internal"),
    lists("nothing, then something", "rx rx2", shows="internal"),
    lists("own append not read", "rx12 ax3 rx12", shows="internal"),
    lists("another beginning", "rx12 ax3 rx023", shows="internal"),
    lists("longer than own append", "rx12 ax3 rx1234", shows="internal"),
    lists("shorter read", "rx12 ax3 rx1", shows="internal"),
    lists("append, then longer", "ax3 rx1234", shows="internal"),
    lists("append, then nothing", "ax3 rx", shows="internal"),
    lists("FaunaDB", "ax6 rx", shows="internal"),
    lists("future read, external", "rx012 ax1", shows="future-read"),
    lists("future read, internal", "ax1 rx01 ax0 ax3", shows="future-read"),
    # checker-test
    lists("G0", "ax1 ay1 ; ax2 ay2 ; rx12 ry21", shows="G0", out="read-uncommitted", absent="G2-item"),
    lists("G1a", "! ax1 ; rx1", says={RC: NO, RR: NO}, shows="G1a", out=RC),
    lists(
        "G1b",
        "0: ax1 ax2 | 0: rx1",
        says={STRICT: NO},
        shows="G1b G-single-item",
        out=RC,
        absent="G0",
    ),
    lists("G1c", "ax1 ry1 ; ax2 ay1 ; rx12 ry1", shows="G1c", out=RC, absent="G0 G2-item"),
    lists(
        "G-single",
        "ax1 ay1 ; ax2 ry ; rx12",
        shows="G-single-item",
        out=f"consistent-view {RR}",
        absent="G0 G1c",
    ),
    lists(
        "G2",
        "ax1 ry ; ay1 rx",
        says={RC: YES, RR: NO, "serializable": NO},
        shows="G2-item",
        out=RR,
        absent="G0 G1c",
    ),
    lists(
        "strong snapshot isolation",
        "0: ax1 | 1: ax2 | 2: rx1 | 3: rx12",
        says={"serializable": YES, STRICT: NO},
        shows="G-single-item-realtime",
        out="strong-snapshot-isolation",
        absent="G2-item",
    ),
    lists(
        "strong session snapshot isolation",
        "0: ax1 | 1: ax2 | 1: rx1 | 2: rx12",
        says={"serializable": YES, SESSION_SI: NO},
        shows="G-single-item-process",
        out=SESSION_SI,
    ),
    lists(
        "G-nonadjacent-process",
        "0: rx rz1 | 1: ax1 | 1: rz | 2: az1",
        says={"serializable": YES, SESSION_SI: NO},
        shows="G-nonadjacent-item-process",
        out=SESSION_SI,
    ),
    lists(
        "contradictory orders of reads",
        "ax1 ry1 ; ax2 ; ax3 ay1 ; rx13 ; rx123",
        shows="G1c incompatible-order",
        out=RC,
    ),
    lists("dirty update, none", "! ax1", absent="dirty-update"),
    lists("dirty update, direct", "! ax1 ; ax2 ; rx12", shows="dirty-update", out=RC),
    lists("dirty update, indirect", "! ax1 ; ? ax2 ; ax3 ; rx123", shows="dirty-update", out=RC),
    lists(
        "duplicated elements",
        "ax1 ry1 ; ax2 ay1 ; rx121",
        says={RC: NO},
        shows="G1c duplicate-elements",
        out="read-uncommitted",
    ),
    lists("internal", "ax1 ax2 ax4 ; ax3 rx1234", shows="internal", out="read-uncommitted"),
    # the other tests
    lists(
        "unobserved write",
        "ax1 ay1 ; ax2 ay2 ; ax3 ay3 ; rx12 ; ry2",
        says={"serializable": NO},
        shows="G0 G-single-item",
        out="read-uncommitted",
    ),
    lists("repeatable read", "rx ay1 ; ry ax1", says={RC: YES, RR: NO}, shows="G2-item", out=RR),
    lists(
        "G-nonadjacent",
        "0: ax1 | 0: rx1 ry | 0: ay1 | 0: ry1 rx",
        says={STRICT: NO},
        shows="G-nonadjacent-item",
        out=f"{SI} {RR}",
    ),
    lists("two rw in a row", "0: rx5 ay1 | 0: ry az2 | 0: rz at3 | 0: rt3 au4 | 0: ru ax5", says={SI: YES}),
    lists(
        "lost update",
        "0: ax0 | 0: rx0 ax1 | 0: rx0 ax2",
        says={STRICT: NO},
        shows="lost-update G2-item",
        out="update-atomic cursor-stability",
    ),
    lists("one transaction writes twice", "0: rx ax1 ax2 | 0: rx12", says={STRICT: YES}),
    lists(
        "wr and process",
        "1: rx1 ay1 | 2: ry1 | 2: ax1",
        says={SESSION_SI: NO},
        shows="G1c-process",
        out="strong-session-read-committed",
    ),
    lists(
        "G-single of repeatable read",
        "0: ax1 ay1 | 0: rx1 ry",
        says={RR: NO},
        shows="G-single-item",
        out=f"consistent-view {RR}",
    ),
    lists(
        "G-nonadjacent of repeatable read",
        "0: ax1 at1 | 0: rx1 ry | 0: ay1 az2 | 0: rz2 rt",
        says={RR: NO},
        shows="G-nonadjacent-item",
        out=f"{SI} {RR}",
    ),
    lists("future read", "0: rx1 ax1", says={RC: NO}, shows="future-read", out=RC),
    lists(
        "snapshot isolation without G-single",
        "ax2 | ay1 rx | rz ry ax5 | az2 rx2",
        says={SI: YES, RR: NO},
        shows="G2-item",
        out=RR,
    ),
)

INITIAL = {"initial": 1}

REGISTERS = (
    # internal-cases-test, g1a-cases-test, g1b-cases-test, wr-graph-test
    registers("internal, good", "ry2 wx2 rx2 wx1 rx1", absent="internal"),
    registers("internal, stale", "rx1 wx2 rx1", shows="internal"),
    registers("internal, nothing", "rx rx2", shows="internal"),
    registers("G1a, good", "wx1 ; rx1", absent="G1a"),
    registers("G1a, bad", "rx2 ; ! wx2", shows="G1a"),
    registers("G1b, good", "wx1 wx2 ; rx rx2", absent="G1b"),
    registers("G1b, bad", "rx2 ; wx2 wx1", shows="G1b"),
    registers("value written twice", "wx0 | wx0", says=SERIALIZABLE),
    registers("chain on one register", "rx0 wx1 ; rx1 wx0", says={"serializable": NO}),
    registers("chain across two registers", "rx0 wy1 ; ry1 wx0", says={"serializable": NO}),
    registers("write skew", "rx0 ry0 wx1 ; rx0 ry0 wy1", says={RC: YES}, options={"initial": 0}),
    # checker-test
    registers(
        "a value from nowhere",
        "0: wx1 | 0: rx2",
        says={STRICT: YES},
        options={"linearizable_keys": True},
    ),
    registers(
        "a value from nowhere, then the written one",
        "0: wx1 | 0: rx2 | 0: rx1",
        says={STRICT: NO},
        shows="cyclic-versions",
        out="read-uncommitted",
        options={"linearizable_keys": True},
    ),
    registers("G0, unseen", "0: wx1 wy2 ; 1: wx2 wy1", absent="G0"),
    registers(
        "G0, by the order of sessions",
        "0: wx1 wy2 | 1: wx2 wy1 | 0: rx2 | 1: ry2",
        shows="G0",
        out="read-uncommitted",
        options={"sequential_keys": True},
    ),
    registers("G1a", "rx1 ; ! wx1", shows="G1a", out=RC),
    registers("G1b", "wx1 wx2 ; rx1", says={RR: NO}, shows="G1b", out=RC, absent="G0"),
    registers("G-single, no order of transactions", "rx wy2 ; wx3 wy4", says=SERIALIZABLE),
    registers(
        "G-single, by the order of transactions",
        "rx wy2 ; wx3 wy4",
        says={"serializable": NO},
        shows="G-single-item",
        out=f"consistent-view {RR}",
        options={"transaction_order": {0: 2, 1: 1}},
    ),
    registers(
        "G2-item, no order of transactions", "wx1 wy2 wz3 ; rx1 wy5 ; rz3 wx4 ; wz7 wy8", says=SERIALIZABLE
    ),
    registers(
        "G2-item, by the order of transactions",
        "wx1 wy2 wz3 ; rx1 wy5 ; rz3 wx4 ; wz7 wy8",
        says={"serializable": NO},
        shows="G2-item",
        out=RR,
        options={"transaction_order": {0: 1, 1: 4, 2: 2, 3: 3}},
    ),
    registers(
        "G1c",
        "wx1 ry1 ; wy1 rx1",
        says={RC: NO, "serializable": NO},
        shows="G1c",
        out=RC,
        absent="G0 G2-item",
    ),
    registers(
        "G2-item",
        "0: rx1 ry1 | 1: rx1 wy2 ; 2: ry1 wx2",
        says={RC: YES},
        shows="G2-item",
        options={"linearizable_keys": True, "initial": 1},
    ),
    registers("internal", "rx1 rx2", shows="internal", out="read-atomic", options=INITIAL),
    registers(
        "initial state",
        "rx ry1 ; wy1 wx2",
        says={"serializable": NO},
        shows="G-single-item",
        out=f"consistent-view {RR}",
    ),
    registers(
        "writes follow reads",
        "ry1 wx1 wy2 ; rx1 ry1",
        says={"serializable": NO},
        shows="G-single-item",
        out=f"consistent-view {RR}",
    ),
    registers(
        "cyclic order of versions",
        "0: wx1 | 0: wx2 | 0: rx1",
        says={STRICT: NO},
        shows="cyclic-versions",
        out="read-uncommitted",
        options={"sequential_keys": True},
    ),
    # the other tests
    registers(
        "lost update",
        "0: rx0 wx1 | 1: rx0 wx2",
        says={STRICT: NO},
        shows="lost-update",
        out="update-atomic cursor-stability",
        options={"initial": 0},
    ),
    registers(
        "components out of order",
        "0: rx1 | 0: rx | 0: rx4 wx3 | 0: wx4",
        says={STRICT: NO},
        shows="G1c-realtime cyclic-versions",
        out="read-uncommitted",
        options={"linearizable_keys": True},
    ),
    registers(
        "no cyclic versions",
        "0: rx ; 1: wx4 | 0: rx4",
        says=SERIALIZABLE,
        options={"linearizable_keys": True},
    ),
)

PREDICATES = (
    # closed_predicate_test.clj
    registers("rows that are found", "0: wx1 py2 | 1: wy2 px1", shows="G1c"),
    registers(
        "rows that are not found", "0: wx1 py | 1: wy2 px", shows="G2", out="strong-snapshot-isolation"
    ),
    registers("rows that were deleted", "0: wx1 wy1 | 0: wx9 py8 | 1: wy8 px9", shows="G1c"),
    registers("rows that fit no longer", "0: wx0 wy0 | 0: px0 py1 wx1 | 1: py0 px1 wy1", shows="G1c"),
    registers(
        "rows that do not fit yet",
        "0: wx0 wy0 | 0: px0 py0 wx1 | 1: px0 py0 wy1",
        shows="G2",
        out="strong-snapshot-isolation",
    ),
    registers("wr alone", "0: wx1 wz1 | 0: rz3 wx9 | 1: rx9 wy2 | 2: ry2 wz3", shows="G1c", out=RC),
    registers(
        "ww, wr and rw",
        "0: wx1 wz1 | 0: wx9 wy1 | 1: ry1 rz",
        shows="G-single-item",
        out=f"consistent-view {RR}",
        options={"sequential_keys": True},
    ),
    registers(
        "found, then not read", "4: wx1 | 7: px1 rx", shows="G-single-item", out=f"consistent-view {RR}"
    ),
    registers(
        "one of two deletions",
        "2: wa1 wb1 wc1 | 2: wc9 wb8 wa9 wd9 | 3: pb1 pc1 pa9 pd",
        shows="G-single",
        out="consistent-view",
        options={"sequential_keys": True},
    ),
)

CASES = (*LISTS, *REGISTERS, *PREDICATES)

ALL = (
    "read-committed cursor-stability monotonic-atomic-view monotonic-view read-atomic update-atomic causal-cerone "
    "prefix consistent-view forward-consistent-view parallel-snapshot-isolation update-serializable repeatable-read "
    "snapshot-isolation serializable strong-session-read-committed strong-session-snapshot-isolation "
    "strong-session-serializable strong-read-committed strong-snapshot-isolation strong-serializable"
)
"""The models in Elle's tests that we judge."""
SNAPSHOTS = (
    "snapshot-isolation serializable strong-session-snapshot-isolation strong-session-serializable "
    "strong-snapshot-isolation strong-serializable"
)
ATOMIC = f"read-atomic update-atomic causal-cerone prefix parallel-snapshot-isolation {SNAPSHOTS}"
BOUNDARIES = {
    # consistency_model_test.clj: these anomalies rule out these models
    "cyclic-versions": ALL,
    "G1a": ALL,
    "dirty-update": ALL,
    "internal": ATOMIC,
    "internal G2": ATOMIC,
    "G-single": f"consistent-view forward-consistent-view update-serializable {SNAPSHOTS}",
    "G-single-realtime": "strong-snapshot-isolation strong-serializable",
}
READ_COMMITTED = (
    "dirty-update G1a G1b G1c G0 cyclic-versions duplicate-elements incompatible-order future-read"
)
"""What read committed forbids, by Elle's table."""


def needle_in_cycles(ring: int, chain: int) -> History:
    """`unfindable-g-single`: one G-single of `ring` transactions, and `ring - 2` chains that each close many a G2-item.

    The first transaction writes what the last one does not read. Each chain hangs on a transaction of the ring, and
    ends in a read of the ring from before its first one.
    """
    told: list[tuple[int, list[list[Any]]]] = []
    for number in range(ring):
        other: list[Any] = ["append", str(number), 0]
        other = ["append", "anti", 0] if number == 0 else ["r", "anti", None] if number == ring - 1 else other
        told.append((0, [["append", "ring", number], other]))
    told.append((1, [["r", "ring", list(range(ring))]]))
    for number in range(1, ring - 1):
        told += [(2, [["append", str(number), link]]) for link in range(1, chain - 2)]
        told.append((2, [["r", str(number), list(range(chain - 2))], ["r", f"anti {number}", None]]))
        told.append((2, [["append", f"anti {number}", 0], ["r", "ring", None]]))
    return txns.history(*(txns.Txn(type="ok", process=process, micros=micros) for process, micros in told))
