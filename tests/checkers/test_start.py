"""What objects held before the first operation: an option of every model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import checkers as checkers_package
from checkers import by_model, domain, transactional
from checkers.history import Event, Header, HistoryError, ModelError
from checkers.history.foreign import edn, parse
from checkers.history.foreign import given as as_given
from checkers.history.history import History
from checkers.history.start import Start
from checkers.proofs import verify, verify_isolation
from tests.examples import up_to

api: Any = checkers_package  # its modules can be called
Asked = tuple[str, Any, str, Any]
"""f and value of an invocation, type and value of its completion."""


def text(steps: Sequence[Asked], key: str | None = None) -> str:
    """One operation after the other, in JSON."""
    lines = []
    for place, (f, asked, kind, answer) in enumerate(steps):
        named: dict[str, Any] = {"process": place, "f": f, **({} if key is None else {"key": key})}
        lines += [{**named, "type": "invoke", "value": asked}, {**named, "type": kind, "value": answer}]
    return "\n".join(msgspec.json.encode(line).decode() for line in lines)


def judged(steps: Sequence[Asked], model: str, initial: str | None) -> by_model.Judgement:
    return by_model.judge(parse(text(steps).encode(), initial=initial), model)


SHOWN: dict[str, tuple[str, str, list[Asked]]] = {
    "register": ("register", "7", [("read", None, "ok", 7)]),
    "text": ("register", '"a"', [("read", None, "ok", "a")]),
    "float": ("register", "1.5", [("read", None, "ok", 1.5)]),
    "list": ("register", "[1, 2]", [("read", None, "ok", [1, 2])]),
    "cas": ("cas-register", "0", [("cas", [0, 3], "ok", [0, 3]), ("read", None, "ok", 3)]),
    "null": (
        "register",
        "0",
        [("read", None, "ok", 0), ("write", None, "ok", None), ("read", None, "ok", None)],
    ),
    "again": ("register", "0", [("write", 1, "ok", 1), ("write", 0, "ok", 0), ("read", None, "ok", 0)]),
    "keys": (
        "multi-register",
        '{"x": 1, "y": 2}',
        [("txn", [["r", "x", None], ["r", "y", None]], "ok", [["r", "x", 1], ["r", "y", 2]])],
    ),
    "counter": ("counter", "10", [("add", 3, "ok", 3), ("read", None, "ok", 13)]),
    "tenths": ("counter", "0.1", [("add", 0.2, "ok", 0.2), ("read", None, "ok", 0.3)]),
    "elements": ("set", "[1, 2]", [("add", 3, "ok", 3), ("read", None, "ok", [3, 1, 2])]),
    "appended": ("list", "[1, 2]", [("append", 3, "ok", 3), ("read", None, "ok", [1, 2, 3])]),
    "queue": (
        "queue",
        "[1, 2]",
        [("enqueue", 3, "ok", 3), *(("dequeue", None, "ok", each) for each in (1, 2, 3))],
    ),
    "kv": ("kv", '"ab"', [("append", "c", "ok", "c"), ("get", None, "ok", "abc")]),
    "rw": (
        "rw-register",
        "0",
        [("txn", [["r", "x", None], ["w", "x", 1]], "ok", [["r", "x", 0], ["w", "x", 1]])],
    ),
    "append": (
        "append",
        "[9]",
        [("txn", [["append", "x", 1], ["r", "x", None]], "ok", [["append", "x", 1], ["r", "x", [9, 1]]])],
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_every_model_has_a_start(name: str) -> None:
    """If it failed, a history of a test whose store did not begin empty would be an anomaly."""
    model, initial, steps = SHOWN[name]
    history = parse(text(steps).encode(), initial=initial)
    found = by_model.judge(history, model)
    assert (found.result, found.violations) == ("valid", ())
    asked = by_model.judged_by(model, found.promise, failed_cas_observes=False)
    for verdict in found.verdicts:
        if verdict.checker == "linearizable":
            assert verify.check(history, verdict, asked["linearizable"]).holds
        if verdict.checker == "transactional":
            assert verify_isolation.check(history, verdict, asked["transactional"]).holds
    if name != "again":
        assert judged(steps, model, None).result == "invalid"
        assert judged(steps, model, "null").result == "invalid"


WRONG: dict[str, tuple[str, str, list[Asked]]] = {
    "register": ("register", "7", [("read", None, "ok", 8)]),
    "nothing": ("register", "7", [("read", None, "ok", None)]),
    "over": ("register", "0", [("write", 1, "ok", 1), ("read", None, "ok", 0)]),
    "keys": (
        "multi-register",
        '{"x": 1, "y": 2}',
        [("txn", [["r", "x", None], ["r", "y", None]], "ok", [["r", "x", 1], ["r", "y", 1]])],
    ),
    "counter": ("counter", "10", [("add", 3, "ok", 3), ("read", None, "ok", 3)]),
    "elements": ("set", "[1, 2]", [("add", 3, "ok", 3), ("read", None, "ok", [3, 1])]),
    "appended": ("list", "[1, 2]", [("append", 3, "ok", 3), ("read", None, "ok", [3, 1, 2])]),
    "queue": (
        "queue",
        "[1, 2]",
        [("enqueue", 3, "ok", 3), ("dequeue", None, "ok", 3), ("dequeue", None, "ok", 1)],
    ),
    "kv": ("kv", '"ab"', [("append", "c", "ok", "c"), ("get", None, "ok", "c")]),
    "rw": ("rw-register", "0", [("txn", [["r", "x", None]], "ok", [["r", "x", None]])]),
    "stale": (
        "rw-register",
        "0",
        [("txn", [["w", "x", 1]], "ok", [["w", "x", 1]]), ("txn", [["r", "x", None]], "ok", [["r", "x", 0]])],
    ),
    "append": ("append", "[9]", [("txn", [["r", "x", None]], "ok", [["r", "x", []]])]),
    "lost": (
        "append",
        "[9]",
        [
            ("txn", [["append", "x", 1]], "ok", [["append", "x", 1]]),
            ("txn", [["r", "x", None]], "ok", [["r", "x", [1]]]),
        ],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_start_explains_nothing_else(name: str) -> None:
    """If it failed, an option would hide anomalies."""
    model, initial, steps = WRONG[name]
    found = judged(steps, model, initial)
    assert found.result == "invalid" and found.supposed.is_plain
    assert all(
        event >= 0 for verdict in found.verdicts for each in verdict.witnesses for event in each.events
    )


@up_to(150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["read", "write", "cas"]), st.integers(0, 2), st.integers(0, 2), st.booleans()
        ),
        max_size=6,
    ),
    st.sampled_from([None, 0, 1, "a"]),
)
def test_a_start_is_a_write_before_everything(steps: list[tuple[str, int, int, bool]], start: Any) -> None:
    """The slow twin: the same history behind an acknowledged write of the start value."""
    values = [None, 1, "a"] if start is None else [None, 0, 1]
    asked: list[Asked] = []
    for f, one, other, answered in steps:
        value = {"read": None, "write": values[one], "cas": [values[one], values[other]]}[f]
        shown = values[one] if f == "read" else value
        asked.append((f, value, "ok" if answered else "info", shown))
    first: list[Asked] = [("write", start, "ok", start)]
    history = parse(text([*first, *asked]).encode())
    begun = parse(text(asked).encode(), initial=msgspec.json.encode(start).decode()) if asked else history
    one, other = (api.linearizable(each, model="cas-register") for each in (history, begun))
    if other.details["observations"]:
        assert one.result == other.result


def test_first_reads_that_agree_name_the_option() -> None:
    """If it failed, a file that does not say how its store began would be called an anomaly without a way out."""
    zero: list[Asked] = [("read", None, "ok", 0), ("write", 1, "ok", 1)]
    found = judged(zero, "register", None)
    assert (found.result, edn.start(found.supposed)) == ("invalid", "0")
    assert judged(zero, "register", "nil").supposed.is_plain
    late: list[Asked] = [("write", 1, "ok", 1), ("read", None, "ok", 0)]
    assert judged(late, "register", None).supposed.is_plain
    other: list[Asked] = [("read", None, "ok", 0), ("read", None, "ok", 5)]
    assert judged(other, "register", None).supposed.is_plain
    ours = parse(b'{"format":"qsync-history","version":1}\n' + b"".join(LINES))
    assert by_model.judge(ours, "register").supposed.is_plain


def test_a_start_that_explains_nothing_is_not_suggested() -> None:
    """If it failed, "if the store began with 0" would stand beside an anomaly that is one from 0, too."""
    sums: list[Asked] = [("read", None, "ok", 0), ("add", 1, "ok", 1), ("read", None, "ok", 5)]
    begun: list[Asked] = [("read", None, "ok", 4), ("add", 1, "ok", 1), ("read", None, "ok", 5)]
    assert edn.start(judged(begun, "counter", None).supposed) == "4"
    for initial in (None, "0"):
        found = judged(sums, "counter", initial)
        assert found.result == "invalid" and found.supposed.is_plain


def test_a_start_of_keys_that_no_witness_reads_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, a large history without an order is judged twice, or a start that explains it is missed."""
    tried: list[Start] = []
    judgement = by_model._judgement
    monkeypatch.setattr(
        by_model,
        "_judgement",
        lambda history, *rest: tried.append(history.start) or judgement(history, *rest),
    )
    early: list[Asked] = [txn("rz7 ru8"), txn("wz7 wu8")]  # nobody had asked to write these yet
    torn = [txn("wx1 wy1"), txn("wx2 wy2"), txn("rx1 ry2")]
    for asked, times in (([*early, *torn], 1), ([*early, *torn[:2], txn("rx1 ry2 rz7")], 2)):
        tried.clear()
        found = by_model.judge(parse(text(asked).encode()), "rw-register", promise="serializable")
        assert [each.rule for each in found.verdicts[0].witnesses] == ["no-order"]
        assert found.supposed.is_plain and len(tried) == times, (asked, tried)


def txn(words: str) -> Asked:
    """Such as "rx1 wy2": x was read as 1, then 2 was written to y."""
    micros = [[word[0], word[1], int(word[2:])] for word in words.split()]
    return "txn", [[f, key, value if f == "w" else None] for f, key, value in micros], "ok", micros


LINES = [
    b'{"index":0,"time_ns":0,"type":"invoke","process":0,"f":"read","value":null}\n',
    b'{"index":1,"time_ns":1,"type":"ok","process":0,"f":"read","value":0}\n',
]


def test_keys_begin_one_by_one() -> None:
    """If it failed, `--initial {:x 0}` would be taken for the value of every key."""
    history = parse(text([("read", None, "ok", 0)], key="x").encode(), initial="{:x 0}")
    assert history.start == Start(by_key={"x": 0})
    assert api.linearizable(history).result == "valid"
    other = parse(text([("read", None, "ok", 0)], key="y").encode(), initial="{:x 0}")
    assert api.linearizable(other).result == "invalid"
    assert api.linearizable(other, initial=0).result == "valid"
    assert api.sessions(other, initial=0).result == "valid"
    assert api.sessions(other).result == "invalid"


def test_notations_of_a_start() -> None:
    """If it failed, JSON or EDN could not be given as users write them."""
    assert as_given("0") == 0 and as_given("nil") is None and as_given('"0"') == "0" and as_given(":x") == "x"
    assert as_given('{"x": 1}') == as_given("{:x 1}") == {"x": 1} and as_given("#{1 2}") == [1, 2]
    for strange in ("", "{1:0}", "1 2", "[", "[1"):
        with pytest.raises(HistoryError, match="--initial"):
            as_given(strange)


@pytest.mark.parametrize(
    ("model", "initial"),
    [("counter", "x"), ("set", "1"), ("kv", "1"), ("queue", "1"), ("bank", "1"), ("append", "1")],
)
def test_a_start_that_a_model_cannot_have_is_refused(model: str, initial: str) -> None:
    """If it failed, a mistyped option would end in a verdict or a traceback."""
    history: History = parse(text([("txn", [], "ok", [])]).encode(), initial=initial)
    with pytest.raises(ModelError, match="start value"):
        by_model.judge(history, model)


def test_values_of_several_kinds_as_a_start() -> None:
    """If it failed, a file with :x and "x" could not begin with either."""
    lines = "".join(
        f"{{:process 0, :type :{kind}, :f :read, :value {value}}}\n"
        for shown in (":x", '"x"')
        for kind, value in (("invoke", "nil"), ("ok", shown))
    )
    for initial, shown in ((":x", ['"x"']), ('"x"', [":x"])):
        history = parse(lines.encode(), initial=initial)
        (witness,) = api.linearizable(history).witnesses
        assert f"read {shown[0]}" in witness.summary


WRITTEN_SO: list[tuple[str, str, str, str]] = [
    ("true", "{true 5}", "5", "valid"),
    ("[1 2]", "{[1 2] 5}", "5", "valid"),
    ('"1"', '{1 5, "1" 6}', "6", "valid"),
    ('"1"', "{1 5}", "5", "invalid"),
    ("1", '{"1": 5}', "5", "valid"),
    (":x", '{"x": 5}', "5", "valid"),
    ('"x"', "{:x 5}", "5", "valid"),
    ('"x"', '{:x 6, "x" 5}', "5", "valid"),
    (":x", "{:x :a}", ":a", "valid"),
    (":x", '{:x "a"}', ":a", "invalid"),
    ("nil", ":a", '"a"', "invalid"),
    ("nil", "#{1 2}", "#{2 1}", "valid"),
    ("nil", "#{1 2}", "[1 2]", "invalid"),
    ("nil", "{:a 1}", "{:a 1}", "valid"),
]
"""A key, `--initial`, what the only read of the key shows, and what is right."""


@pytest.mark.parametrize(
    "start",
    [
        Start(),
        Start(value=[1]),
        Start(by_key={"a": 1, "None": 2}),
        Start(value=3, by_key={None: 5, "None": 2}),
    ],
)
def test_a_start_in_json_and_back(start: Start) -> None:
    """Broken, the report draws the orders of operations without a key from a different state than the checker's."""
    assert Start.from_json(msgspec.json.decode(msgspec.json.encode(start.to_json()))) == start


@pytest.mark.parametrize(("key", "initial", "shown", "result"), WRITTEN_SO)
def test_a_start_is_read_as_the_file_is(key: str, initial: str, shown: str, result: str) -> None:
    """If it failed, a start value would miss its key, or stand for a value of another kind."""
    text = "".join(
        f"{{:process 0, :type :{kind}, :f :read, :key {key}, :value {value}}}\n"
        for kind, value in (("invoke", "nil"), ("ok", shown))
    )
    assert by_model.judge(parse(text.encode(), initial=initial), "register").result == result


def test_the_hint_can_be_used_as_it_stands() -> None:
    """If it failed, `say --initial …` would not take the anomaly away."""
    for shown in ("0", '"a"', "#{1 2}", "[1 [2]]", "1.5", "{:a 1}", "true"):
        text = "".join(
            f"{{:process 0, :type :{kind}, :f :read, :value {value}}}\n"
            for kind, value in (("invoke", "nil"), ("ok", shown))
        )
        supposed = by_model.judge(parse(text.encode()), "register").supposed
        again = parse(text.encode(), initial=edn.start(supposed))
        assert by_model.judge(again, "register").result == "valid", edn.start(supposed)


@pytest.mark.parametrize("model", ["register", "set", "queue", "rw-register"])
def test_what_was_there_is_not_what_failed(model: str) -> None:
    """If it failed, a read of the start value would be called a read of a failed write."""
    steps: dict[str, list[Asked]] = {
        "register": [("write", 1, "fail", 1), ("read", None, "ok", 1)],
        "set": [("add", 1, "fail", 1), ("read", None, "ok", [1])],
        "queue": [("enqueue", 1, "fail", 1), ("dequeue", None, "ok", 1)],
        "rw-register": [
            ("txn", [["w", "x", 2]], "fail", [["w", "x", 2]]),
            ("txn", [["r", "x", None]], "ok", [["r", "x", 1]]),
        ],
    }
    initial = "[1]" if model in ("set", "queue") else "1"
    assert judged(steps[model], model, initial).result == "valid"


@pytest.mark.parametrize("empty", ["[]", "{}", "#{}", '""'])
def test_an_empty_register_is_not_nothing(empty: str) -> None:
    """If it failed, a register that began with an empty list would be one that nobody wrote to."""
    for shown, result in ((empty, "valid"), ("nil", "invalid")):
        text = "".join(
            f"{{:process 0, :type :{kind}, :f :txn, :value [[:r :x {value}]]}}\n"
            for kind, value in (("invoke", "nil"), ("ok", shown))
        )
        history = parse(text.encode(), initial="{:x " + empty + "}")
        assert by_model.judge(history, "rw-register").result == result


def test_a_map_is_by_key_in_our_own_files_too() -> None:
    """If it failed, `--initial '{"x": 5}'` would be the value of a register."""
    lines = [
        msgspec.json.encode({"index": place, "time_ns": place, "process": 0, "f": "read", "key": "x", **more})
        for place, more in enumerate(({"type": "invoke"}, {"type": "ok", "value": 5}))
    ]
    for initial, result in (
        ('{"x": 5}', "valid"),
        ("{:x 5}", "valid"),
        ("{}", "invalid"),
        ('{"y": 5}', "invalid"),
    ):
        ours = parse(b'{"format":"qsync-history","version":1}\n' + b"\n".join(lines) + b"\n", initial=initial)
        assert by_model.judge(ours, "register").result == result


def test_the_value_from_before_replaces_no_acknowledged_write() -> None:
    """If it failed, an acknowledged write could be lost to the value that was there before the run."""
    events = [
        Event(index=0, time_ns=0, type="invoke", process=0, f="write", key="x", value=5),
        Event(index=1, time_ns=1, type="ok", process=0, f="write", key="x", value=5),
        Event(index=2, time_ns=2, type="invoke", process=1, f="read", key="x", phase="final"),
        Event(index=3, time_ns=3, type="ok", process=1, f="read", key="x", value=0, phase="final"),
    ]
    verdict = domain.durability.check(History.of(Header(), events).starting_at(0))
    assert [witness.rule for witness in verdict.witnesses] == ["lost-write"]


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ([], "read x as [], without [0], with which it began"),
        ([5], "read x as [5], without [0], with which it began"),
        ([0, 5], "read x as [0, 5], which holds a value that was never written"),
        ([0, None], "read x as [0, null], which holds a value that was never written"),
    ],
)
def test_a_list_is_said_to_be_read_as_it_was(shown: list[Any], words: str) -> None:
    """If it failed, the sentence would show a list that no client read: without its first elements, or with a null."""
    events = [
        Event(index=0, time_ns=0, type="invoke", process=0, f="txn", value=[["r", "x", None]]),
        Event(index=1, time_ns=1, type="ok", process=0, f="txn", value=[["r", "x", shown]]),
    ]
    (found,) = transactional.check(History.of(Header(), events).starting_at([0])).witnesses
    assert found.summary.endswith(words)
