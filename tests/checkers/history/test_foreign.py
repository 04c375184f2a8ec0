"""Histories of others: what each notation becomes, that any bytes end in a history or a HistoryError, round trips."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from checkers.history import Event, Header, History, HistoryError, foreign, jsonl, parquet
from checkers.history.foreign import edn, edn_shapes, jepsen_edn, json_maps
from checkers.linearizable import promised_linearizable
from tests.checkers.history import one_token_at_a_time

FOLDER = Path(__file__).parents[1] / "histories"
HEADER = Header(system="qsync", workload="register", nodes=("n1",))


def told(text: str) -> History:
    return foreign.parse(text.encode())


# ---- EDN


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("nil true false 12 -3N 1.5 2M", [None, True, False, 12, -3, 1.5, 2]),
        (':a :b/c "d\\n\\"e" \\f \\newline 1/2', ["a", "b/c", 'd\n"e', "f", "\n", "1/2"]),
        ("[1 [2 (3)] #{4}] 5", [[1, [2, [3]], [4]], 5]),
        ('{:a 1, "b" {0 10}} x', [{"a": 1, "b": {"0": 10}}, "x"]),
        (r'"\ud83d\ude00" "\ud83d \ude00" \udfff', ["\U0001f600", "\ufffd \ufffd", "\ufffd"]),
        ("#_ 1 2 #_ #_ 3 4 5", [2, 5]),
        ('#inst "2024-01-01" #jepsen.history.Op{:index 0} ^{:m 1} y', ["2024-01-01", {"index": 0}, "y"]),
        ("; a comment [\n1,,,2", [1, 2]),
        ("##Inf ##-Inf 1e999 1E-99999999999999999999M", ["Inf", "-Inf", "1e999", "1E-99999999999999999999M"]),
        ('#_#inst "2024" 5 #inst #_1 "2024"', [5, "2024"]),
    ],
)
def test_edn(text: str, values: list[Any]) -> None:
    """A foreign value would be taken for another."""
    assert edn.read(text).values == values


@pytest.mark.parametrize("text", ["]", "{:a}", "[1 2)"])
def test_edn_that_is_none(text: str) -> None:
    """Nonsense would be read as something."""
    with pytest.raises(HistoryError, match="line 2"):
        edn.read(f"1\n{text}")


def test_a_torn_text_gives_what_was_whole() -> None:
    """What a killed test had recorded would be lost, or its last half of an operation be believed."""
    forms = edn.read("[{:a 1} {:b 2}\n {:c [3")
    assert (forms.values, forms.torn_at) == ([{"a": 1}, {"b": 2}], 16)
    for rest in ('{:b "tex', "{:b \\", "#", "#jepsen.history.O", "#jepsen.history.Op #_"):
        forms = edn.read(f"{{:a 1}} {rest}")
        assert forms.values == [{"a": 1}] and forms.torn_at is not None, rest


def test_no_tag_of_several_is_lost() -> None:
    """Two values that differ in their first tag alone would be equal."""
    (first, second) = edn.read("#a #b 1 #c #b 1").values
    assert (edn.spelling(first), edn.spelling(second)) == ("#a #b 1", "#c #b 1")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[{:type :ok :process 0 :f :read :value " + "[" * 150 + "]" * 150 + "}]",
        '[{"type":"ok","process":0,"f":"read","error":' + "[" * 900 + "]" * 900 + "}]",
    ],
)
def test_nesting_without_end(text: str) -> None:
    """A file could break the reader's stack."""
    with pytest.raises(HistoryError):
        told(text)


_PIECES = [
    *("[", "]", "(", ")", "{", "}", "#{", "[[", "{:a", " ", " ", " ", ",", "\n", "\t", "; [\n", "\ufeff"),
    *(
        "1",
        "-2",
        "007",
        "12345678901",
        "3N",
        "1.5",
        "1e999",
        "1/2",
        "nil",
        "true",
        ":a",
        ":b/c",
        "sym",
        "a#b",
        "²",
    ),
    *(
        '"',
        '"x"',
        '"\\""',
        '"\n"',
        "\\",
        "\\newline",
        "\\(",
        "#_",
        "^",
        "#",
        "##",
        "##Inf",
        "##-Inf",
        "#inst",
        "#t[",
        ":value [1 2]",
    ),
]


@given(st.lists(st.sampled_from(_PIECES), max_size=30).map("".join))
@example("[[1 2] {:a 1} {:b [1]}\n(3)")
@example('{1 :a, "1" :b}')
@example("[1 2 #_ [3 4]]")
@example("#t [1] #t{:a 1} #t 1 2 #t :a :b")
@example("#_ #t 1 2 ^#t :m 3 #t #_ 4 5 #t #_ #u 6 7")
@example("[{:a 1}\n{:b 2}]\n#_ [{:c 3}] #_{:d [4]}")
def test_the_reader_agrees_with_its_slow_twin(text: str) -> None:
    """Runs of atoms are read at once: a value, its line or a torn end could differ from what the text says."""
    _agrees(text)


def _agrees(text: str) -> None:
    try:
        values, starts, is_torn = one_token_at_a_time.read(text)
    except one_token_at_a_time.Wrong:
        with pytest.raises(HistoryError):
            edn.read(text)
        return
    forms = edn.read(text)
    assert _exact(forms.values) == _exact(values)
    assert [edn.line_of(text, start) for start in forms.starts] == [edn.line_of(text, at) for at in starts]
    assert (forms.torn_at is not None) == is_torn


_SHAPES = st.lists(
    st.sampled_from(
        [
            *(
                "# ",
                "# ",
                "# ",
                "[# #] ",
                "[#, #,#] ",
                "[:r # [# #]] ",
                "[",
                "]",
                "(#) ",
                ":a ",
                ":b # ",
                ":c nil ",
            ),
            *(
                ":d# ",
                "#:e ",
                "1.# ",
                "-# ",
                "+# ",
                "0# ",
                "{:f #}",
                '"#" ',
                "\\a ",
                "#_ ",
                "\ue0001 ",
                ":\ue0001 ",
                "\t",
            ),
        ]
    ),
    max_size=8,
).map("".join)
_NUMBERS = st.lists(
    st.sampled_from(["1", "-2", "37", "4 5", "6,7", "1" * 25, "8N", "x"]), min_size=12, max_size=12
)


@given(
    st.sampled_from(["{%s}", "{:g %s}", "#op.Op{:g %s}", "%s"]),
    _SHAPES,
    st.lists(_NUMBERS, min_size=3, max_size=5),
)
@example("{%s}", ":b # ", [["1"] * 12, ["2"] * 12, ["4 5"] * 12])
@example("{%s}", "# :a ", [["1"] * 12, ["2"] * 12, ["3"] * 12])
@example("{%s}", ":a [# nil] ", [["1"] * 12, ["2"] * 12, ["4 5"] * 12])
@example("{%s}", "# ", [["4 5"] * 12, ["6 7"] * 12, ["8 9"] * 12])
@example("{:g %s}", ":\ue0001 ", [["1"] * 12, ["2"] * 12, ["3"] * 12])
@example("{:g [%s]}", "# :\ue0001 ", [["1"] * 12, ["2"] * 12, ["3"] * 12])
@example("{:g [%s]}", ":d# # ", [["1"] * 12, ["2", "3"] * 6, ["3"] * 12])
def test_lines_of_one_shape_and_their_slow_twin(form: str, shape: str, numbers: list[list[str]]) -> None:
    """The third line of a shape could have the numbers of another, or share its lists with it."""
    lines = []
    for each in numbers:
        left = iter(each)
        lines.append(form % "".join(next(left, "9") if letter == "#" else letter for letter in shape))
    for text in ("\n".join(lines), "[" + "\n ".join(lines) + "]"):
        _agrees(text)
    values = [edn.read(line).values for line in lines if _is_read(line)]
    assert len({id(part) for value in values for part in _lists(value)}) == sum(
        len(_lists(each)) for each in values
    )


def test_few_shapes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in which every line has a shape of its own would be kept in memory whole."""
    monkeypatch.setattr(edn_shapes, "_MOST", 2)
    shapes = edn_shapes.Shapes(lambda text: edn.read(f"{text}\n(").values)
    assert [shapes.values(f"[:{name} 1]") for name in "abcabc"] == [None] * 3 + [[["a", 1]], [["b", 1]], None]


def _is_read(text: str) -> bool:
    try:
        one_token_at_a_time.read(text)
    except one_token_at_a_time.Wrong:
        return False
    return True


def _lists(value: Any) -> list[Any]:
    """All lists and maps in a value."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict | list) else []
    return own + [each for part in parts for each in _lists(part)]


def _exact(value: Any) -> Any:
    """The value with the types and spellings of all its parts."""
    if isinstance(value, dict):
        return [(_exact(key), _exact(each)) for key, each in value.items()]
    if isinstance(value, list):
        return type(value).__name__, [_exact(each) for each in value]
    return type(value).__name__, edn.spelling(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
@example({"0": 1, "-1": 2, "a b": 3, "from": 4, "01": 5, "": 6})
@example(["\ud7ff\\", "\x00\u2028"])
def test_values_survive_edn(value: Any) -> None:
    """Knossos and Elle would judge another history than ours."""
    text = edn.write(value)
    assert "\n" not in text
    assert edn.read(f"{text} 0").values == [value, 0]


# ---- what operations become


def test_jepsen_record_lines() -> None:
    """The operations of a current Jepsen would not be understood."""
    history = told(
        "#jepsen.history.Op{:index 0, :time 5, :type :invoke, :process 3, :f :write, :value 7}\n"
        "#jepsen.history.Op{:index 1, :time 4, :type :info, :process 3, :f :write, :value 7, :error [:timeout 5]}\n"
    )
    (write,) = history.operations
    assert (write.type, write.f, write.value, write.error) == ("info", "write", 7, "timeout 5")
    assert [event.time_ns for event in history.events] == [5, 5]


def test_a_record_of_ours_may_come_through_a_pipe() -> None:
    """A record that another program prints would be called an empty file."""
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb"):
        with jsonl.Writer(os.fdopen(writer, "wb"), Header()) as record:  # so small that the pipe holds it
            event = record.record("invoke", 0, "read", time_ns=0)
        assert tuple(foreign.read(Path(f"/dev/fd/{reader}")).events) == (event,)


def test_independent_keys() -> None:
    """Values of different keys would be thrown together, or a compare-and-set be taken for a key and a value."""
    history = told(
        "[{:type :invoke :process 0 :f :cas :value [k [1 2]]} {:type :ok :process 0 :f :cas :value [k [1 2]]}"
        " {:type :invoke :process 0 :f :read :value nil} {:type :ok :process 0 :f :read :value [k 2]}]"
    )
    assert [(each.f, each.key, each.value) for each in history.operations] == [
        ("cas", "k", [1, 2]),
        ("read", "k", 2),
    ]
    plain = told(
        "{:type :invoke :process 0 :f :cas :value [1 2]} {:type :fail :process 0 :f :cas :value [1 2]}"
    )
    assert [(each.key, each.value, each.error) for each in plain.operations] == [(None, [1, 2], "mismatch")]
    unnamed = told(
        "{:type :invoke :f :read :value nil} {:type :invoke :f :write :value [x 1]}"
        " {:type :ok :f :write :value [x 1]} {:type :ok :f :read :value [y 5]}"
    )
    assert [(each.f, each.key, each.value) for each in unnamed.operations] == [
        ("read", "y", 5),
        ("write", "x", 1),
    ]
    observed = told(
        "{:type :invoke :process 0 :f :read :value [k nil]} {:type :ok :process 0 :f :read :value [k 2]}"
        " {:type :invoke :process :nemesis :f :start :value nil}"
        " {:type :info :process :nemesis :f :start :value {:n1 :cut}}"
    )
    assert [fault.name for fault in observed.faults] == ["start"], "an observer's value has no key"


def test_what_maelstrom_writes() -> None:
    """Its workloads could not be judged: broadcast is a set, lin-kv is independent registers."""
    history = told(
        "{:index 0, :time 1, :type :invoke, :process 0, :f :broadcast, :value 3}\n"
        "{:index 1, :time 2, :type :ok, :process 0, :f :broadcast, :value 3}\n"
        "{:index 2, :time 3, :type :invoke, :process 1, :f :read, :value nil, :final? true}\n"
        "{:index 3, :time 4, :type :ok, :process 1, :f :read, :value [3], :final? true}\n"
    )
    assert [(each.f, each.value, each.phase) for each in history.operations] == [
        ("add", 3, "load"),
        ("read", [3], "final"),
    ]
    history = told(
        "{:type :invoke, :process 0, :f :cas, :value [0 [1 2]]}"
        '{:type :fail, :process 0, :f :cas, :value [0 [1 2]], :error [:precondition-failed "it is 3"]}'
        "{:type :invoke, :process 0, :f :read, :value [0 nil]}"
        '{:type :fail, :process 0, :f :read, :value [0 nil], :error [:key-does-not-exist "not found"]}'
    )
    assert [(each.key, each.error) for each in history.operations] == [
        ("0", "mismatch"),
        ("0", "key-does-not-exist not found"),
    ]


def test_a_refused_cas_is_a_mismatch_only_if_it_says_so() -> None:
    """A cas that never reached the store would count as a look at its value."""
    history = told(
        "{:type :invoke :process 0 :f :cas :value [1 2]}"
        "{:type :fail :process 0 :f :cas :value [1 2] :error :connection-refused}"
    )
    assert history.operations[0].error == "connection-refused"


@pytest.mark.parametrize("process", ["1.0", "true", '"1"', "[1]"])
def test_a_process_that_is_neither_a_number_nor_a_word_is_refused(process: str) -> None:
    """Its operations would be taken for an observer's and left out, and a wrong read of its would be VALID."""
    write = '{"type":"invoke","process":0,"f":"write","value":1}\n{"type":"ok","process":0,"f":"write","value":1}\n'
    read = f'{{"type":"invoke","process":{process},"f":"read","value":null}}\n'
    with pytest.raises(HistoryError, match="line 3: expected a whole number as the process of a client"):
        foreign.parse((write + read).encode())


@pytest.mark.parametrize(
    "text",
    [
        '[{"type":"invoke","process":0,"value":[["append","x",1]]},{"type":"ok","process":0,"value":[["append","x",1]]}]',
        '{"type":"invoke","process":0,"f":"txn","value":[["append","x",1]]}\n\n{"type":"ok","process":0,"f":"txn"}\n',
        '[{"type":"invoke","process":0,"f":"txn","value":[["append","x",1]]},\n{"type":"ok","process":0,"f":"txn"}\n]',
        '{"history":[{"type":"ok","process":0,"value":[["append","x",1]]}]}',
        "[{:type :ok :value [[:append :x 1]]}]",
        "0\t:invoke\t:txn\t[[:append :x 1]]\n0\t:ok\t:txn\t[[:append :x 1]]\n",
    ],
)
def test_one_transaction_in_six_spellings(text: str) -> None:
    """A history that Elle accepts would be refused, or read differently."""
    (transaction,) = told(text).operations
    assert (transaction.type, transaction.f, transaction.value) == ("ok", "txn", [["append", "x", 1]])


@pytest.mark.parametrize("end", ["\t[1 2", "\t[[:r 8 [1", '\t1\t"no', "\t", "", "\tnil\t{:a 1"])
def test_a_log_that_is_cut_off_has_no_half_operation(end: str) -> None:
    """If this fails, the beginning of a value is judged as the value, and nothing tells that the log is torn."""
    log = "3\t:invoke\t:cas\t[1 2]\n4\t:invoke\t:write\t1\n4\t:ok\t:write\t1\n"
    history = told(f"{log}3\t:ok\t:cas{end}")
    assert history.torn == "line 4 was torn off and is left out"
    assert [each.type for each in history.operations] == ["info", "ok"]
    assert told(f"{log}3\t:ok\t:cas\t[1 2]").torn is None
    with pytest.raises(HistoryError, match="line 4: expected a value in EDN"):
        told(f"{log}3\t:ok\t:cas\t]")


@pytest.mark.parametrize(
    "end", ["3", "3\t:o", "3\t:ok", "3\t:ok\t:", "INFO  jepsen.ut", "INFO  jepsen.util - 3\t:in"]
)
def test_a_log_may_be_cut_off_before_the_operation(end: str) -> None:
    """If it failed, a log that lacks its end would be valid without a word about that."""
    history = told(f"3\t:invoke\t:write\t1\n3\t:ok\t:write\t1\n{end}")
    assert history.torn == "line 3 was torn off and is left out"
    assert len(history.operations) == 1


@pytest.mark.parametrize(
    "line", ["3\t:oj\t:write\t1", "3\t:ok\t:", "INFO  jepsen.util - 3\t:invo\t:write\t1"]
)
def test_an_operation_without_its_type_or_f_is_refused(line: str) -> None:
    """If it failed, a damaged line would be left out as one of another kind, and the rest be valid."""
    with pytest.raises(HistoryError, match="line 2: expected process :type :f value, got '3"):
        told(f"3\t:invoke\t:write\t1\n{line}\n4\t:invoke\t:read\tnil\n4\t:ok\t:read\t1\n")
    assert len(told("3\t:invoke\t:write\t1\n:valid? true\n{:perf :x}\nat\n:a b\n").operations) == 1


def test_a_pipe_is_read_whole() -> None:
    """If this fails, what comes through a pipe is judged without its beginning."""
    line = (
        "{{:process 0 :type {} :f :write :value {:3}}}".ljust(66) + "\n"
    )  # 64 characters: the look ends behind one
    text = "".join(line.format(type_, value) for value in range(100) for type_ in (":invoke", ":ok    "))
    reading, writing = os.pipe()
    try:
        os.write(writing, text.encode())
        os.close(writing)
        assert len(foreign.read(Path(f"/dev/fd/{reading}")).operations) == 100
    finally:
        os.close(reading)


def test_completions_alone_are_concurrent() -> None:
    """An order in real time would be made up where the file tells none."""
    history = told("[{:type :ok :f :write :value 1 :process 0} {:type :ok :f :read :value nil :process 0}]")
    first, second = history.operations
    assert not first.precedes(second)


def test_faults_of_a_nemesis() -> None:
    """No foreign anomaly could be laid beside the fault that was active."""
    lines = [
        ":process :nemesis :f :start-partition :value nil",
        ":process :nemesis :f :start-partition :value [:isolated n1]",
        ":process :nemesis :f :kill",
        ":process :nemesis :f :stop-partition",
        ":process :nemesis :f :stop-partition",
        ":process :nemesis :f :wake-up",
    ]
    text = "".join(f"{{:type :info {line}}}\n" for line in lines)
    history = told(text + "{:type :ok :process 1 :f :read :value 1}")
    assert [(fault.name, fault.does, fault.end_index is None) for fault in history.faults] == [
        ("partition", "cut", False),
        ("kill", "kill", True),
    ]
    assert all(fault.sure is None for fault in history.faults)


def test_a_log_of_a_current_jepsen() -> None:
    """The text that every Jepsen run leaves could not be judged."""
    stamp = "2024-05-01 10:00:00,000{GMT}\tINFO\t[jepsen worker 0] jepsen.util: "
    history = told(
        f"noise\n{stamp}0\t:invoke\t:enqueue\t5\nmore noise :ok\n{stamp}:nemesis\t:info\t:start\tnil\n"
        f"{stamp}0\t:info\t:enqueue\t5\t:timed-out\n"
    )
    (operation,) = history.operations
    assert (operation.type, operation.value, operation.error) == ("info", 5, "timed-out")
    assert [fault.name for fault in history.faults] == ["start"]


def test_porcupine_key_value_files() -> None:
    """The reference checker's own data would not be readable."""
    history = foreign.read(FOLDER / "porcupine" / "kv" / "c10-ok.txt")
    assert {each.f for each in history.operations} == {"get", "put", "append"}
    assert {each.key for each in history.operations} == {str(number) for number in range(10)}
    assert len(history.operations) == 337


# ---- what is refused


@pytest.mark.parametrize(
    "text", ["", "  \n", "[]", "()", "; nothing\n", "{}", "[{}]", "[{:a 1}]", '[{"a":1}]']
)
def test_nothing_is_no_history(text: str) -> None:
    """A history without operations would pass."""
    with pytest.raises(HistoryError):
        told(text)


@pytest.mark.parametrize("text", ["", "[]", "{:type :info :process :nemesis :f :start}"])
def test_no_operations_are_called_so(text: str) -> None:
    """A person would look for a mistake in a file that is merely empty."""
    with pytest.raises(HistoryError, match="no operations"):
        told(text)


def test_what_is_unknown_is_named() -> None:
    """A wrong file would be answered with a traceback or a riddle."""
    with pytest.raises(HistoryError, match=r"expected a history\.jsonl .* got '# A page'"):
        told("# A page\n")
    with pytest.raises(HistoryError, match="no text"):
        foreign.parse(b"\xff\xfe\x00")


def test_lines_are_named() -> None:
    """The operation at fault would have to be searched for."""
    with pytest.raises(HistoryError, match="line 2"):
        told("[{:type :ok :process 0 :f :read}\n {:type :maybe :process 0 :f :read}]")
    with pytest.raises(HistoryError, match="line 1: expected process 0 to end its read of event 0"):
        told("{:type :invoke :process 0 :f :read} {:type :invoke :process 0 :f :read}")
    with pytest.raises(HistoryError, match="line 2: expected an operation map"):
        told("[{:type :ok :process 0 :f :read}\n {:type :maybe :process 0 :f :read}]\n#_[1] #_{:a [2]}")


NOISE = st.text(alphabet=st.sampled_from('[](){}#"\\:;^ \n,0a1'), max_size=60)
PIECES = st.sampled_from(
    [
        "{:type :invoke :process 0 :f :read :value nil}\n",
        "{:type :ok :process 0 :f :read :value [1 2]}",
        '{"type":"ok","process":1,"f":"w","value":[[0,null]]}\n',
        "jepsen.util - 1\t:invoke\t:read\tnil\n",
        jsonl.header_line(HEADER).decode() + "\n",
        "[",
        "]",
    ]
)


@given(
    st.binary(max_size=60) | st.lists(NOISE | PIECES, max_size=6).map(lambda parts: "".join(parts).encode())
)
def test_any_bytes_end_in_a_history_or_a_refusal(data: bytes) -> None:
    """Some file would end in a traceback, which looks like a harness that broke."""
    try:
        history = foreign.parse(data)
    except HistoryError:
        return
    assert history.operations or history.origin == "ours"


# ---- round trips


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Histories of three clients on two keys, with faults and dumps, as our harness records them."""
    events: list[Event] = []
    open_: dict[int, tuple[str, str, Any]] = {}
    keys = draw(st.sampled_from([("x",), ("x", "y")]))

    def add(type_: Any, process: int | str, f: str, **fields: Any) -> None:
        events.append(
            Event(index=len(events), time_ns=10 * len(events), type=type_, process=process, f=f, **fields)
        )

    for step in range(draw(st.integers(1, 12))):
        process = draw(st.integers(0, 2))
        if process in open_:
            f, key, value = open_.pop(process)
            outcome = draw(st.sampled_from(["ok", "fail", "info"]))
            found = draw(st.none() | st.integers(0, 9)) if f == "read" and outcome == "ok" else value
            error = {"ok": None, "fail": "mismatch" if f == "cas" else "gone", "info": "timed out"}[outcome]
            add(outcome, process, f, key=key, value=found, error=error, node="n1", role="owner")
        else:
            f, key = draw(st.sampled_from(["read", "write", "cas"])), draw(st.sampled_from(keys))
            value = {"read": None, "write": step, "cas": [step, step + 1]}[f]
            open_[process] = (f, key, value)
            phase = draw(st.sampled_from(["load", "final"]))
            add("invoke", process, f, key=key, value=value, node="n1", mode="read-confirmed", phase=phase)
    return History.of(HEADER, events)


@given(histories())
def test_our_runs_survive_jepsen_edn(history: History) -> None:
    """A sceptic's checker would judge another run than ours."""
    again = told(jepsen_edn.write(history))
    several = len({operation.key for operation in history.operations}) > 1
    assert len(again.operations) == len(history.operations)
    for ours, theirs in zip(history.operations, again.operations, strict=True):
        for name in ("type", "process", "f", "value", "node", "role", "mode", "phase", "invoke_ns"):
            assert getattr(theirs, name) == getattr(ours, name), name
        assert theirs.error == ours.error or ours.complete_index is None
        assert theirs.key == (ours.key if several else None)


def test_what_others_cannot_judge_is_left_out() -> None:
    """Knossos would hold stale reads of replicas against us, and stumble over dumps."""
    lines: list[tuple[str, str, Any, str | None]] = [
        ("invoke", "read", None, None),
        ("ok", "read", 1, "replica"),
        ("invoke", "read", None, None),
        ("ok", "read", 2, "owner"),
        ("invoke", "dump", None, None),
        ("ok", "dump", {"spaces": {}}, None),
    ]
    events = [
        Event(index=index, time_ns=index, type=type_, process=0, f=f, value=value, role=role)  # type: ignore[arg-type]
        for index, (type_, f, value, role) in enumerate(lines)
    ]
    text = jepsen_edn.write(History.of(HEADER, events), reads=promised_linearizable)
    assert [operation.value for operation in told(text).operations] == [2]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.long if place % 4 else ())
        for place, path in enumerate(sorted(FOLDER.glob("*/*.jsonl")))
    ],
    ids=lambda path: path.stem,
)
def test_our_own_files_are_recognized(path: Path, tmp_path: Path) -> None:
    """`check` would not know our own records."""
    history = foreign.read(path)
    assert history.origin == "ours"
    copy = tmp_path / "history.parquet"
    parquet.write(copy, history)
    again = foreign.read(copy)
    assert (again.origin, again.operations) == ("parquet", history.operations)


def test_json_is_as_good_as_edn() -> None:
    """The same history would be judged differently by its notation."""
    maps = [
        {"type": "invoke", "process": 0, "f": "transfer", "value": {"from": 1, "to": 2, "amount": 5}},
        {"type": "ok", "process": 0, "f": "transfer", "value": {"from": 1, "to": 2, "amount": 5}},
        {"type": "invoke", "process": 1, "f": "read", "value": None},
        {"type": "ok", "process": 1, "f": "read", "value": {"1": 5, "2": 15}},
    ]
    history = told(json.dumps(maps))
    assert told(jepsen_edn.write(history)).operations == history.operations


@pytest.mark.parametrize("cut", ["]", "}]", "1}]"])
def test_an_array_without_its_end_is_torn(cut: str) -> None:
    """Breaks if a file that lost its last operations is judged as a whole one."""
    text = '[{"type":"invoke","f":"read","process":1},\n{"type":"ok","f":"read","process":1,"value":1}]'
    assert json_maps.parse(text.encode()).torn is None
    assert json_maps.parse(text.removesuffix(cut).encode()).torn is not None
    assert json_maps.parse(text.replace("[", "").replace("]", "").encode()).torn is None


MAPS: list[dict[str, Any]] = [
    {"type": kind, "process": 0, "f": f, "value": value}
    for f, value in (("write", '1" }],{"'), ("read", 2.5))
    for kind in ("invoke", "ok")
]


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("place", range(4))
def test_the_line_of_a_map_in_an_array(indent: int | None, place: int) -> None:
    """A message would name a line that is fine, or that the file does not have."""
    maps = [*MAPS[:place], {"type": "okay"}, *MAPS[place:]]
    arrays = [
        json.dumps(maps, indent=indent),
        json.dumps(
            {"history\n": [[0]], "other": {"history": [1]}, "history": maps, "last": []}, indent=indent
        ),
        "[\n" + ",\n".join(map(json.dumps, maps)) + "\n]",
        "\n\n[" + "\n,".join(map(json.dumps, maps)) + "]",
    ]
    for text in arrays:
        line = text.count("\n", 0, text.index('"okay"')) + 1
        # With indent each name stands on a line of its own: the map begins on the line before.
        begins = text.count("\n", 0, text.rindex("{", 0, text.index('"okay"'))) + 1
        assert line - begins == (indent is not None and text in arrays[:2])
        with pytest.raises(HistoryError, match=f"^line {begins}: expected an operation map with type"):
            told(text)


@pytest.mark.parametrize(
    ("between", "end", "line"),
    [
        (",\n", ",]", None),
        ("\n", "]", None),
        ("\n", "\n]", None),
        (",\n", "},]", 4),
        (",\n", "\nfoo", 5),
        ("\n", "\n}", 5),
        ("\n", "\nx", 5),
        ("\n", ', "y": NaN}', None),
    ],
)
@pytest.mark.parametrize("begin", ["[", ""])
def test_a_whole_map_is_never_left_out(begin: str, between: str, end: str, line: int | None) -> None:
    """The last operation of a whole file, which may be the anomaly, would be taken for one that was cut off."""
    text = begin + between.join(map(json.dumps, MAPS)) + end
    if line is None and "NaN" not in text:
        history = told(text)
        assert history.torn is None and history.operations == told(json.dumps(MAPS)).operations
    else:
        with pytest.raises(
            HistoryError, match=f"line {line or 4}: expected an array of operations, or one a line, in"
        ):
            told(text)


@pytest.mark.parametrize("begin", ["[", ""])
def test_wherever_a_file_is_cut_it_is_torn(begin: str) -> None:
    """A file that was cut off in a word, a number or a letter would be refused, or taken as whole."""
    maps = [*MAPS, {"type": "info", "process": 1, "f": "é\\", "value": [None, -1.5e-3, {"true": False}]}]
    first, *rest = (json.dumps(each, ensure_ascii=place % 2 == 1).encode() for place, each in enumerate(maps))
    whole = len(begin) + len(first)
    data = begin.encode() + b",\n".join([first, *rest])
    ends = {whole + sum(len(each) + 2 for each in rest[:count]) for count in range(len(rest) + 1)}
    for cut in range(whole, len(data)):
        parsed = json_maps.parse(data[:cut])
        assert len(parsed.maps) == sum(end <= cut for end in ends), data[:cut]
        is_between = any(end <= cut <= end + 2 for end in ends)
        assert (parsed.torn is None) == (is_between and not begin), data[:cut]


def test_a_keyed_cas_may_be_answered_with_nothing() -> None:
    """A cas `[key old new]` names keys, whatever writes and cas are answered; without one, pairs may be values."""
    lines = [
        "{:process 0 :type :invoke :f :write :value [k 1]}",
        "{:process 0 :type :ok :f :write :value nil}",
        "{:process 1 :type :invoke :f :read :value [k nil]}",
        "{:process 1 :type :ok :f :read :value [k 1]}",
    ]
    cas = ["{:process 0 :type :invoke :f :cas :value [k 1 2]}", "{:process 0 :type :ok :f :cas :value nil}"]
    assert told("\n".join(lines)).keys() == {None}
    keyed = told("\n".join([*lines, *cas]))
    assert keyed.keys() == {"k"}
    assert [(each.f, each.value) for each in keyed.operations] == [("write", 1), ("read", 1), ("cas", [1, 2])]


def test_results_are_no_history_and_are_called_by_their_name() -> None:
    """Whoever gives the other file of a test would read of a type None."""
    with pytest.raises(HistoryError, match=r"got what Jepsen's checkers said .* \(history\.edn\)"):
        told("{:stats {:valid? true} :valid? true}")
