"""Restore, on logs written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.kernel.effects import Persist, Send
from nodes.kernel.errors import StartRefused
from nodes.kernel.events import Instant, Started
from nodes.records import framed, records_of
from nodes.twophase.agreed import Agreed
from nodes.twophase.configuration import Configuration
from nodes.twophase.cut_index import FILE as INDEX
from nodes.twophase.node import TwoPhase
from nodes.twophase.restore import NotRestorable, Restored, check_restorable, cut_at, restore, restored_files
from nodes.twophase.wal import read_log
from tests.nodes.twophase.test_cuts import cut_run, good_cuts


def committed(xid: str, key: str, version: int) -> list[Any]:
    return ["committed", xid, None, False, [], [["r", key, f"{xid}'s", version]]]


def log(*records: list[Any], **more: bytes) -> dict[str, bytes]:
    return {"wal-000001.log": b"".join(map(framed, records)), **more}


START, FINISH = ["start", "k", 1, 0], ["finish", "k", ["t3"], ["t2"]]
WHOLE = [
    committed("t1", "a", 1),
    committed("t2", "b", 1),
    START,
    committed("t3", "c", 1),
    committed("t4", "d", 1),
    FINISH,
    committed("t5", "e", 1),
]


def keys(restored: Restored) -> list[str]:
    return [key for _, key, _, _ in restored.rows]


def test_the_sets_correct_what_start_divides() -> None:
    """If it failed, a restored state would have transactions of the other side."""
    restored = restore(log(*WHOLE), "k")
    assert restored.before == {"t1", "t3"}
    assert keys(restored) == ["a", "c"]


def test_a_failed_cut_before_it_does_not_matter() -> None:
    """If it failed, a cut could not be restored after one that has failed."""
    assert restore(log(["start", "j", 0, 0], *WHOLE[:2], ["start", "x", 0, 0], *WHOLE[2:]), "k").before == {
        "t1",
        "t3",
    }


def test_it_begins_with_the_last_base_that_all_have_finished() -> None:
    """If it failed, restore would begin with a base that only one node has, or read too much."""
    base = {"base-000001.snap": framed(["s", [["r", "z", "old", 4], ["r", "a", "of base", 7]]])}
    done: list[list[Any]] = [["base", "s", "base-000001.snap"], ["base-done", "s"]]
    rebalanced = ["rebalanced", [], []]
    restored = restore(log(committed("t0", "y", 1), rebalanced, *done, *WHOLE, **base), "k")
    assert keys(restored) == ["a", "c", "z"]
    assert restored.rows[0][2] == "of base"  # its version is newer than t1's
    assert keys(restore(log(committed("t0", "y", 1), done[0], *WHOLE, **base), "k")) == ["a", "c", "y"]
    with pytest.raises(NotRestorable, match=r"the file base-000001\.snap of the base snapshot s is missing"):
        restore(log(*done, *WHOLE), "k")


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (WHOLE[3:], "the cut k has no START in this log"),
        (WHOLE[:5], "the cut k has no FINISH in this log"),
        ([START, *WHOLE], "the cut k has more than one START in this log"),
        ([FINISH, START], "the cut k has its FINISH before its START"),
        (
            [["rebalanced", [], []], *WHOLE],
            "a partition was rebalanced between the last base snapshot and the cut k",
        ),
        ([START, FINISH], "the cut k includes t3, which the log does not hold"),
    ],
)
def test_what_cannot_be_restored_is_refused(records: list[list[Any]], why: str) -> None:
    """If it failed, a state would be made up."""
    with pytest.raises(NotRestorable, match=rf"^{why}$"):
        restore(log(*records), "k")


def test_all_servers_must_have_finished() -> None:
    """If it failed, a cluster would be restored to a cut that has failed."""
    files = {"n1": log(*WHOLE), "n2": log(*WHOLE[:4]), "n3": log(*WHOLE)}
    with pytest.raises(NotRestorable, match=r"^the cut k has no FINISH on n2, n4$"):
        check_restorable(files, "k", ["n1", "n2", "n3", "n4"])
    check_restorable(files, "k", ["n1", "n3"])


def test_the_end_of_a_base_belongs_to_the_base_before_it() -> None:
    """If it failed, a base snapshot of a name that comes again would cost all rows."""
    base = framed(["s", [["r", "z", "old", 1]]])
    again = [["base", "s", "base-000002.snap"], START, ["base-done", "s"], FINISH]
    records = [
        ["base", "s", "base-000001.snap"],
        ["base-done", "s"],
        *WHOLE[:2],
        committed("t3", "c", 1),
        *again,
    ]
    segments = {f"wal-{number:06}.log": framed(record) for number, record in enumerate(records, 1)}
    index = [
        framed([record[0], record[1], number])
        for number, record in enumerate(records, 1)
        if record[0] != "committed"
    ]
    files = {**segments, "base-000001.snap": base, "base-000002.snap": framed(["s", []])}
    for indexed in (files, {**files, INDEX: b"".join(index)}):
        assert keys(restore(indexed, "k")) == ["a", "c", "z"]


@pytest.mark.parametrize("damaged", ["wal-000002.log", "base-000001.snap", INDEX])
def test_damage_is_refused_in_a_sentence(damaged: str) -> None:
    """If it failed, a restore would lack a transaction, or end in a traceback."""
    run = cut_run(2, 150, segment_bytes=3_000)
    cluster = run.cluster
    cluster.client.ask("n1", "snapshot", "s")
    cluster.run(300)
    run.load(60)
    cluster.client.ask("n1", "cut", "k")
    cluster.run(300)
    run.load(60)
    files, layout = cluster.files(), cluster.configurations["n1"].layout
    cut = good_cuts(run)[-1]
    restored_files(files, cut, layout)
    if damaged.startswith("wal-"):  # the one before that of FINISH
        numbers = [
            entry[2] for entry in records_of(INDEX, files["n2"][INDEX])[0] if entry[:2] == ["finish", cut]
        ]
        damaged = f"wal-{numbers[0] - 1:06}.log"
        assert f"wal-{numbers[0]:06}.log" in files["n2"]
    data = files["n2"][damaged]
    files["n2"][damaged] = data[:-1] + bytes([data[-1] ^ 1])
    if damaged == INDEX:
        files["n2"][INDEX] = bytes([*data[:9], data[9] ^ 1, *data[10:]])
    with pytest.raises(NotRestorable, match=r"^n2: .*damaged"):
        restored_files(files, cut, layout)
    with pytest.raises((NotRestorable, StartRefused), match="damaged"):
        restore(files["n2"], cut)


def test_a_cut_that_was_taken_back_in_the_index_alone_is_not_restored() -> None:
    """If it failed, a bit that flips at the end of a log would bring a failed cut back."""
    whole, taken_back = log(*OF_TWO), log(*OF_TWO, ["void", "k"])
    index = b"".join(framed([kind, "k", 1]) for kind in ("start", "finish", "void"))
    with pytest.raises(NotRestorable, match="has failed"):
        restored_files({"n1": whole, "n2": {**taken_back, INDEX: index}}, "k", LAYOUT)
    data = taken_back["wal-000001.log"]
    flipped = {"wal-000001.log": data[:-1] + bytes([data[-1] ^ 1]), INDEX: index}
    with pytest.raises(
        NotRestorable, match=r"^n2: cuts\.index names cuts that the log does not hold: .*damaged"
    ):
        restored_files({"n1": whole, "n2": flipped}, "k", LAYOUT)


def test_the_index_finds_what_the_whole_log_has() -> None:
    """If it failed, a restore by the index would differ from one by the whole log."""
    run = cut_run(2, segment_bytes=3_000)
    files = run.cluster.files()["n2"]
    assert len([name for name in files if name.startswith("wal-")]) > 5
    cuts = good_cuts(run)
    assert cuts
    for cut in cuts:
        expected = restore({name: data for name, data in files.items() if name != INDEX}, cut)
        assert restore(files, cut) == expected
        torn = {**files, INDEX: files[INDEX][:-3]}
        assert restore(torn, cut) == expected


def test_what_was_read_is_synced_before_anything_else() -> None:
    """If it failed, a power loss soon after a restart would take a record that the node has answered by, or leave its
    entry of the index alone."""
    run = cut_run(2, 150, segment_bytes=3_000)
    files = run.cluster.files()["n2"]
    node = TwoPhase(run.cluster.configurations["n2"])
    effects = node.step(Started(files), Instant(0, 0))
    records = [effect for effect in effects if isinstance(effect, Persist)]
    last = max(name for name in files if name.startswith("wal-"))
    synced = [record.file for record in records if not record.data]
    assert synced == [last, INDEX, "discovery.log"]
    assert effects.index(records[0]) < min(
        (place for place, effect in enumerate(effects) if isinstance(effect, Send)), default=len(effects)
    )


LAYOUT = [8, 1, "n1", "n2"]
OF_TWO = [*WHOLE[:2], [*START, LAYOUT], *WHOLE[3:]]


def test_a_second_cluster_begins_with_the_rows_of_the_cut_alone() -> None:
    """If it failed, a second cluster would have what came behind the cut, or what the first one agreed on."""
    files = {"n1": log(*OF_TWO, **{"discovery.log": b"of the first"}), "n2": log(*OF_TWO)}
    restored = restored_files(files, "k", LAYOUT)
    assert list(restored) == ["n1", "n2"]
    for node, its_files in restored.items():
        assert list(its_files) == ["wal-000001.log"]
        assert read_log(its_files)[0] == [["restored", "k", restore(files[node], "k").rows, []]]


GAP = {"wal-000001.log": log(*OF_TWO)["wal-000001.log"], "wal-000003.log": b""}
DAMAGED = {"wal-000001.log": b"".join(map(framed, OF_TWO[:3])).replace(b"t1's", b"t0's") + framed(FINISH)}


@pytest.mark.parametrize(
    ("files", "layout", "why"),
    [
        ({}, LAYOUT, "the cut k has no FINISH on n2"),
        (
            GAP,
            LAYOUT,
            r"n2: the log has a gap: expected wal-000002\.log, got wal-000001\.log, wal-000003\.log",
        ),
        (DAMAGED, LAYOUT, r"n2: wal-000001\.log is damaged at byte 0, with whole records behind it"),
        (
            log(*OF_TWO[1:]),
            [8, 1, "n1", "n2", "n3"],
            "the cut k is of 2 servers .* and this cluster has 3 servers .*",
        ),
        (log(*OF_TWO), [8, 1, "n1"], "the cut k is of 2 servers .* and this cluster has 1 servers .*"),
        (
            log(*OF_TWO),
            [4, 1, "n1", "n2"],
            "the cut k is of .* 8 partitions .* and this cluster has .* 4 partitions .*",
        ),
        (log(*OF_TWO[:3], FINISH), LAYOUT, "n2: the cut k includes t3, which the log does not hold"),
    ],
    ids=[
        "not finished",
        "gap",
        "damaged",
        "more servers",
        "fewer servers",
        "other partitions",
        "not in the log",
    ],
)
def test_a_cluster_is_restored_as_a_whole_or_refused(
    files: dict[str, bytes], layout: list[Any], why: str
) -> None:
    """If it failed, some servers would be restored and others not, or rows would lie where no node looks for them."""
    with pytest.raises(NotRestorable, match=rf"^{why}$"):
        restored_files({"n1": log(*OF_TWO), "n2": files}, "k", layout)


def start_at(cut: str, number: int, time_ns: int) -> list[Any]:
    return ["start", cut, number, 0, [8, 1, "n1", "n2"], [], time_ns]


def taken(*cuts: tuple[str, int, bool], lacks: str = "") -> dict[str, dict[str, bytes]]:
    """Files of two servers: cuts by name, time and whether they have ended well; n2 has not finished `lacks`."""
    files = {}
    for node in ("n1", "n2"):
        records: list[list[Any]] = []
        for number, (cut, time_ns, is_good) in enumerate(cuts, start=1):
            records.append(start_at(cut, number, time_ns))
            if (node, cut) != ("n2", lacks):
                records.append(["finish", cut, [], []])
            if not is_good and node == "n1":
                records.append(["void", cut])
        files[node] = log(*records)
    return files


@pytest.mark.parametrize(
    ("time_ns", "cut"), [(100, "a"), (199, "a"), (200, "b"), (399, "b"), (400, "d"), (10**20, "d")]
)
def test_a_cut_is_chosen_by_its_time(time_ns: int, cut: str) -> None:
    """If it failed, an operator who wants the state of ten o'clock would get a later one, or one that has failed."""
    files = taken(
        ("a", 100, True), ("b", 200, True), ("c", 300, False), ("d", 400, True), ("e", 500, True), lacks="e"
    )
    assert cut_at(files, time_ns, ("n1", "n2")) == cut


def test_a_time_before_all_cuts_is_refused() -> None:
    """If it failed, a restore would take a cut that holds what was written later."""
    with pytest.raises(NotRestorable, match="no cut up to 99 ns can be restored: the first cut is of 100 ns"):
        cut_at(taken(("a", 100, True)), 99, ("n1", "n2"))
    with pytest.raises(NotRestorable, match="the cut a has failed, and n1 has taken its FINISH back"):
        cut_at(taken(("a", 100, False)), 500, ("n1", "n2"))
    with pytest.raises(NotRestorable, match="no log has a cut with a timestamp"):
        cut_at({"n1": log(*WHOLE)}, 500, ("n1",))


def test_no_cut_of_a_damaged_log_is_chosen() -> None:
    """If it failed, an operator would get a traceback in the place of the name of the damaged file."""
    files = taken(("a", 100, True))
    files["n2"] = {name: b"\0" * 9 + data for name, data in files["n2"].items()}
    with pytest.raises(NotRestorable, match=r"n2: wal-000001\.log is damaged at byte 0"):
        cut_at(files, 500, ("n1", "n2"))


@pytest.mark.parametrize("variant", ["shipped", "seed-counter", "seed-colour"])
def test_every_server_records_one_timestamp_a_cut_and_timestamps_grow(variant: str) -> None:
    """If it failed, two servers would be restored to different cuts, or a later cut would have an earlier time."""
    run = cut_run(1, variant=variant)
    files = run.cluster.files()
    by_node = [
        {record[1]: record[6] for record in read_log(of_node)[0] if record[0] == "start"}
        for of_node in files.values()
    ]
    cuts = run.cluster.node("n1").agreed.cuts.values()
    agreed = {cut.named.id: cut.named.time_ns for cut in cuts if cut.named.number}
    assert list(agreed.values()) == sorted(set(agreed.values())) and len(agreed) > 2
    for times in by_node:
        assert times.items() <= agreed.items()
    for cut in good_cuts(run):
        assert cut_at(files, agreed[cut], run.cluster.servers) == cut


def test_a_clock_that_goes_back_gives_no_earlier_time() -> None:
    """If it failed, a restore by time would take the older one of two cuts."""
    agreed = Agreed(Configuration(name="n1", role="server", baseline=("n1",), clients=(), seed=1, backups=0))
    agreed.apply(1, ["join", "n1", 1, "server"])
    for index, (cut, time_ns) in enumerate((("a", 500), ("b", 300), ("c", 501), ("d", 900)), start=1):
        agreed.apply(2 * index, ["cut", cut, "n1", time_ns])
        agreed.apply(2 * index + 1, ["cuts-done", cut, [["n1", 1]]])
    assert [cut.named.time_ns for cut in agreed.cuts.values()] == [500, 501, 502, 900]
    assert {cut.state for cut in agreed.cuts.values()} == {"ok"}
