"""The record: what is read is what was written, and what does not add up is refused with its line."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from checkers.history import Event, Header, History, HistoryError, jsonl, parquet
from checkers.history.declared import needs_quorum
from checkers.history.foreign import jepsen_text
from checkers.history.operation import paired
from tests import examples

HEADER = Header(
    system="qsync", nodes=("n1", "n2"), quorum=2, owner="n1", seed=7, extra={"expect": {"a": [1, None]}}
)
FAULT = {"id": 3, "name": "isolate-owner", "does": "cut", "links": [["n1", "n2"]], "nodes": []}
EVIDENCE = {"id": 3, "took_effect": True, "all_in_effect_ns": 40, "heal_asked_ns": 60}


def record(*lines: tuple[Any, ...]) -> bytes:
    """A file of (type, process, f) and, as a fourth, further fields; the time of an event is ten times its index."""
    file = io.BytesIO()
    writer = jsonl.Writer(file, HEADER)
    for index, (type_, process, f, *rest) in enumerate(lines):
        writer.record(type_, process, f, time_ns=10 * index, **(rest[0] if rest else {}))
    return file.getvalue()


WHOLE = record(
    ("invoke", 0, "write", {"key": "r1", "value": 1, "node": "n1"}),
    ("invoke", 1, "read", {"key": "r1", "node": "n2", "mode": "read-confirmed"}),
    ("ok", 0, "write", {"key": "r1", "value": 1, "node": "n1", "role": "owner"}),
    ("invoke", "nemesis", "isolate-owner", {"value": FAULT}),
    ("ok", 1, "read", {"key": "r1", "value": 1, "node": "n2", "role": "replica", "mode": "read-confirmed"}),
    ("invoke", 2, "cas", {"key": "r1", "value": [1, 2], "node": "n1"}),
    ("info", "nemesis", "isolate-owner", {"value": EVIDENCE}),
    ("fail", 2, "cas", {"key": "r1", "error": "mismatch"}),
    ("invoke", 3, "write", {"key": "r1", "value": 4, "node": "n1"}),
    ("info", 3, "write", {"key": "r1", "error": "timeout"}),
    ("info", "monitor", "state", {"node": "n1", "value": {"up": True}}),
    ("info", "monitor", "crash", {"node": "n2", "value": {"how": "signal 11"}}),
    ("info", "harness", "stall", {"value": {"stalled_ms": 420}}),
    ("invoke", 4, "dump", {"node": "n1", "phase": "final"}),
)


@pytest.mark.parametrize("micro", [["r", "x", None], ["append", "x", 1]])
def test_an_answer_that_lacks_what_was_read_is_refused(tmp_path: Path, micro: list[Any]) -> None:
    """If it failed, a lost answer would say that each read of its transaction found nothing: a false alarm."""
    question = {"value": [micro]}
    (path := tmp_path / "history.jsonl").write_bytes(
        record(("invoke", 0, "txn", question), ("ok", 0, "txn", {}), ("invoke", 1, "txn", question))
    )
    if micro[0] == "append":
        assert jsonl.read(path).operations[0].value == [micro]
        return
    with pytest.raises(
        HistoryError, match=r"line 3: expected the end of txn with value \[\[r, x, nothing\]\]"
    ):
        jsonl.read(path)


@pytest.mark.parametrize(
    ("process", "f", "value"),
    [
        ("harness", "settled", [None]),
        ("operator", "cut-asked", {"cut": [None]}),
        ("operator", "cut-ended", None),
        ("operator", "cut-ended", {"cut": "cut-1"}),
        ("nemesis", "isolate-owner", {**EVIDENCE, "counters": [None]}),
        ("nemesis", "isolate-owner", {**EVIDENCE, "heal_asked_ns": 1 << 70}),
    ],
)
def test_a_line_of_the_harness_in_another_form_is_refused(process: str, f: str, value: Any) -> None:
    """If it failed, one damaged line would break the judge, or be an anomaly: a cut without a state, no end."""
    data = record(
        ("invoke", "nemesis", "isolate-owner", {"value": FAULT}), ("info", process, f, {"value": value})
    )
    with pytest.raises(HistoryError, match="line 3: expected a"):
        jsonl.parse(data)


def test_a_time_of_the_harness_beyond_64_bits_is_refused(tmp_path: Path) -> None:
    """If it failed, the columns of the record could not be written, and the judge would break."""
    (path := tmp_path / "history.jsonl").write_bytes(
        WHOLE
        + b'{"index":14,"time_ns":1180591620717411303424,"type":"info","process":"harness","f":"used"}\n'
    )
    with pytest.raises(HistoryError, match="line 16: expected a time_ns of at least 130 that 64 bits hold"):
        jsonl.read(path)


@pytest.mark.parametrize("name", ["time_ns", "process"])
def test_what_64_bits_do_not_hold_is_refused(name: str) -> None:
    """If it failed, a check of such a record would end with a traceback."""
    fields = {"time_ns": 5, "process": 7, name: 1 << 63}
    events = [
        Event(index=index, type=type_, f="write", key="x", value=1, **fields)
        for index, type_ in enumerate(("invoke", "ok"))
    ]
    with pytest.raises(HistoryError, match="64 bits"):
        History.of(HEADER, events)


def test_a_record_is_paired() -> None:
    """A checker would see other operations than the clients did."""
    history = jsonl.parse(WHOLE)
    assert history.header == HEADER
    write, read, cas, unsure, dump = history.operations
    assert (write.type, write.value, write.role, write.events) == ("ok", 1, "owner", (0, 2))
    assert (read.type, read.value, read.role, read.mode) == ("ok", 1, "replica", "read-confirmed")
    assert (cas.type, cas.value, cas.error) == ("fail", [1, 2], "mismatch")
    assert (unsure.type, unsure.value, unsure.returned_index) == ("info", 4, None)
    assert (dump.type, dump.complete_index, dump.phase) == ("info", None, "final")
    assert history.dumps == (dump,)
    assert write.precedes(cas) and not write.precedes(read) and not unsure.precedes(dump)


def test_faults_and_watchers_are_read() -> None:
    """A fault would be in effect at other times than it was, or a crash be overlooked."""
    history = jsonl.parse(WHOLE)
    (fault,) = history.faults
    assert (fault.sure, fault.links, fault.events) == ((40, 60), (("n1", "n2"),), (3, 6))
    assert history.states[0].status == {"up": True}
    assert (history.crashes[0].node, history.crashes[0].how) == ("n2", "signal 11")
    assert history.stalls[0].stalled_ms == 420


@pytest.mark.parametrize(
    ("fault", "evidence"),
    [
        ({"options": None}, {}),
        ({"options": [1]}, {}),
        ({}, {"counters": [1]}),
        ({}, {"counters": {"a": "x"}}),
    ],
)
def test_options_and_counters_of_a_fault_are_objects(fault: dict[str, Any], evidence: dict[str, Any]) -> None:
    """If it failed, a run with such a line would end in a traceback where its evidence is put together."""
    with pytest.raises(HistoryError, match=r"expected a fault's value on a nemesis line of type in"):
        jsonl.parse(
            record(
                ("invoke", "nemesis", "isolate-owner", {"value": {**FAULT, **fault}}),
                ("info", "nemesis", "isolate-owner", {"value": {**EVIDENCE, **evidence}}),
            )
        )


@pytest.mark.parametrize(
    "value", [None, 420, {}, {"stalled_ms": None}, {"stalled_ms": True}, {"stalled_ms": 10**400}]
)
def test_a_stall_without_a_number_is_refused(value: object) -> None:
    """If it failed, a check of such a record would end with a traceback, or forgive what was slow without a reason."""
    with pytest.raises(HistoryError, match=r"line 2: .* a number of milliseconds as its stalled_ms"):
        jsonl.parse(record(("info", "harness", "stall", {"value": value})))


def test_the_time_of_a_crash_is_a_number() -> None:
    """If it failed, `true` would be the first nanosecond of the run."""
    value = {"how": "signal 11", "at_ns": True}
    history = jsonl.parse(
        record(
            ("info", "monitor", "state", {"node": "n1", "value": {"up": True}}),
            ("info", "monitor", "crash", {"node": "n2", "value": value}),
        )
    )
    assert history.crashes[0].time_ns == history.events[1].time_ns > 1


def test_a_fault_is_sure_only_with_evidence() -> None:
    """A checker would build on a fault that nobody saw take effect."""
    no_end = jsonl.parse(record(("invoke", "nemesis", "x", {"value": FAULT})))
    assert no_end.faults[0].sure is None and not no_end.faults[0].took_effect
    unfelt = {**EVIDENCE, "took_effect": False}
    ended = jsonl.parse(
        record(("invoke", "nemesis", "x", {"value": FAULT}), ("info", "nemesis", "x", {"value": unfelt}))
    )
    assert ended.faults[0].sure is None


def test_a_torn_last_line_is_left_out_and_told() -> None:
    """A killed harness would leave nothing that can be checked."""
    for cut in range(WHOLE.rindex(b"\n", 0, -1) + 2, len(WHOLE) - 1):
        history = jsonl.parse(WHOLE[:cut])
        assert len(history.events) == 13
        assert history.torn is not None and "line 15" in history.torn
    assert jsonl.parse(WHOLE).torn is None
    assert len(jsonl.parse(WHOLE[:-1]).events) == 14, "only the newline is missing"


@pytest.mark.parametrize(
    ("line", "by", "says"),
    [
        (3, b"garbage", "line 3"),
        (3, b"", "line 3"),
        (4, b'{"index":2,"time_ns":20,"type":"maybe","process":0,"f":"write"}', "line 4"),
        (4, b'{"index":7,"time_ns":20,"type":"ok","process":0,"f":"write"}', "line 4: expected index 2"),
        (4, b'{"index":2,"time_ns":2,"type":"ok","process":0,"f":"write"}', "line 4: expected a time_ns"),
        (4, b'{"index":2,"time_ns":20,"type":"ok","process":9,"f":"write"}', "line 4: expected an open operation"),
        (4, b'{"index":2,"time_ns":20,"type":"ok","process":0,"f":"read"}', "line 4: expected the end of write"),
        (4, b'{"index":2,"time_ns":20,"type":"invoke","process":0,"f":"read"}', "line 4: expected process 0 to end"),
        (4, b'{"index":2,"time_ns":20,"type":"ok","process":0,"f":"write","key":"r2"}', "line 4"),
        (5, b'{"index":3,"time_ns":30,"type":"invoke","process":"nemesis","f":"x","value":{"id":"a"}}', "line 5"),
        (8, b'{"index":6,"time_ns":60,"type":"info","process":"nemesis","f":"x","value":{"id":9}}', "line 8"),
        (12, b'{"index":10,"time_ns":100,"type":"info","process":"monitor","f":"state"}', "line 12"),
        (1, b'{"format":"qsync-history","version":2}', "line 1: expected version 1"),
        (1, b'{"format":"other"}', "line 1: expected a header"),
        (1, b"[]", "line 1: expected a header"),
        (1, b'{"format":"qsync-history","version":1,"nodes":"n1"}', "line 1: expected a header"),
    ],
)  # fmt: skip
def test_a_record_that_does_not_add_up_is_refused(line: int, by: bytes, says: str) -> None:
    """A verdict would be given on a record that cannot be what happened."""
    lines = WHOLE.split(b"\n")
    lines[line - 1] = by
    with pytest.raises(HistoryError) as refused:
        jsonl.parse(b"\n".join(lines))
    assert str(refused.value).startswith(says)
    assert refused.value.line == line


def test_brackets_without_end_are_refused() -> None:
    """A line made of brackets would break the reader."""
    head, _, rest = WHOLE.partition(b"\n")
    with pytest.raises(HistoryError, match="line 2"):
        jsonl.parse(head + b"\n" + b"[" * 100_000 + b"\n" + rest)


@pytest.mark.parametrize("data", [b"", b"\n", b"  \n\n"])
def test_an_empty_file_is_refused(data: bytes) -> None:
    """Nothing at all would be judged."""
    with pytest.raises(HistoryError, match="no operations"):
        jsonl.parse(data)


@examples.up_to(300)
@given(st.binary(max_size=200), st.integers(0, len(WHOLE)), st.integers(0, 40))
def test_any_bytes_are_a_history_or_refused(junk: bytes, at: int, gone: int) -> None:
    """A damaged file would break the checker instead of being named as damaged."""
    for data in (junk, WHOLE[:at] + junk + WHOLE[at + gone :]):
        try:
            history = jsonl.parse(data)
        except HistoryError:
            continue
        assert isinstance(history, History)


def test_a_record_is_never_overwritten(tmp_path: Path) -> None:
    """A second run into the same folder would destroy the first one's record."""
    path = tmp_path / "history.jsonl"
    with jsonl.Writer.create(path, HEADER) as writer:
        writer.record("invoke", 0, "read", time_ns=5)
        writer.flush()
        assert len(jsonl.read(path).events) == 1, "flushed lines must be readable while the run goes on"
    with pytest.raises(FileExistsError):
        jsonl.Writer.create(path, HEADER)


def test_time_never_goes_back_in_a_record() -> None:
    """A record would be written that its own reader refuses."""
    writer = jsonl.Writer(io.BytesIO(), HEADER)
    writer.record("invoke", 0, "read", time_ns=5)
    with pytest.raises(AssertionError):
        writer.record("invoke", 1, "read", time_ns=4)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@examples.up_to(100)
@given(st.lists(json_values, max_size=5))
def test_values_come_back_as_they_were(values: Sequence[Any]) -> None:
    """A checker would compare other values than the clients saw."""
    history = jsonl.parse(
        record(*(("invoke", k, "write", {"value": value}) for k, value in enumerate(values)))
    )
    assert [event.value for event in history.events] == list(values)


def test_parquet_holds_the_same(tmp_path: Path) -> None:
    """Whoever analyses many runs would see other events than the checkers."""
    history = jsonl.parse(WHOLE)
    path = tmp_path / "history.parquet"
    parquet.write(path, history)
    parquet.write(path, history)
    assert parquet.read(path) == history


def test_a_foreign_parquet_file_is_refused(tmp_path: Path) -> None:
    """Any table would pass for a history."""
    path = tmp_path / "history.parquet"
    path.write_bytes(b"not parquet")
    with pytest.raises(HistoryError, match=r"history\.jsonl"):
        parquet.read(path)


def test_jepsen_lines() -> None:
    """A foreign log would be read as something else than it says."""
    history = jepsen_text.parse(
        "INFO  jepsen.util - 0\t:invoke\t:cas\t[3 -1]\nnoise\nINFO  jepsen.util - 1\t:invoke\t:read\tnil\n"
        "INFO  jepsen.util - 0\t:fail\t:cas\t[3 -1]\nINFO  jepsen.util - 1\t:ok\t:read\t3\n"
    ).history()
    cas, read = history.operations
    assert (cas.type, cas.value, cas.error) == ("fail", [3, -1], "mismatch")
    assert (read.type, read.value) == ("ok", 3)


def test_an_event_line_is_small() -> None:
    """Absent fields would be written out and a long run's record would be half nulls."""
    line = msgspec.json.encode(Event(index=0, time_ns=1, type="invoke", process=0, f="read", key="r1"))
    assert line == b'{"index":0,"time_ns":1,"type":"invoke","process":0,"f":"read","key":"r1"}'


def test_a_partition_that_changed_says_what_was_cut_when() -> None:
    """A link of two shapes in a row would seem to have been open between them, or one that was opened still cut."""
    both, one, other = [["n1", "n2"], ["n2", "n1"]], [["n1", "n2"]], [["n2", "n1"]]
    start = {"id": 3, "name": "changing-partitions", "does": "changing-cut", "links": both}
    shapes = [
        {"links": links, "asked_ns": at, "in_effect_ns": at + 1, "until_ns": at + 10, "took_effect": True}
        for links, at in ((both, 10), (one, 20), (other, 30))
    ]
    end = {**EVIDENCE, "all_in_effect_ns": 11, "heal_asked_ns": 40, "shapes": shapes}
    data = record(
        ("invoke", "nemesis", "changing-partitions", {"value": start}),
        ("info", "nemesis", "changing-partitions", {"value": end}),
    )
    (fault,) = jsonl.parse(data).faults
    assert [cut.sure for cut in fault.cuts] == [(11, 20), (21, 30), (31, 40)]
    assert fault.cut_times == {("n1", "n2"): ((11, 30),), ("n2", "n1"): ((11, 20), (31, 40))}
    assert fault.links_between(22, 25) == (("n1", "n2"),)
    assert fault.links_between(0, 100) == (("n1", "n2"), ("n2", "n1"))
    unfelt = {**end, "took_effect": False}
    data = record(
        ("invoke", "nemesis", "changing-partitions", {"value": start}),
        ("info", "nemesis", "changing-partitions", {"value": unfelt}),
    )
    (fault,) = jsonl.parse(data).faults
    assert fault.cuts == () and fault.cut_times == {}


def test_the_store_s_own_name_of_a_transaction_is_kept(tmp_path: Path) -> None:
    """Breaks if what a node's log says of a transaction cannot be joined to the operation that asked for it."""
    path = tmp_path / "history.jsonl"
    with jsonl.Writer.create(path, Header(nodes=("n1",))) as writer:
        writer.record("invoke", 0, "write", time_ns=1, key="x", value=1)
        writer.record("ok", 0, "write", time_ns=2, key="x", value=1, transaction="n1-1-7")
    history = jsonl.read(path)
    assert history.operations[0].transaction == "n1-1-7"
    parquet.write(tmp_path / "history.parquet", history)
    assert parquet.read(tmp_path / "history.parquet") == history


def test_what_an_answer_says_counts_also_if_it_is_empty() -> None:
    """If it failed, a record would have other nodes by its size: as columns the empty word of an answer counts."""
    asked = Event(
        index=0, time_ns=0, type="invoke", process=0, f="read", node="n1", role="owner", mode="dirty"
    )
    answered = replace(asked, index=1, type="ok", value=1, node="", role="", mode="")
    (operation,) = History.of(Header(), [asked, answered]).operations
    assert (operation.node, operation.role, operation.mode) == ("", "", "")


def test_tuples_are_micro_operations() -> None:
    """If it failed, a transaction of reads that Python made would be a write that no quorum has."""
    read, write = (
        Event(index=0, time_ns=0, type="invoke", process=0, f="txn", value=((f, "x", 1),)) for f in "rw"
    )
    assert not needs_quorum(Header(), paired(read, None)) and needs_quorum(Header(), paired(write, None))
