"""A value or key that a file writes differently is different: a keyword is no string, 1 is not "1", a set no vector."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model
from checkers.guessing import guess
from checkers.history.foreign import parse
from checkers.history.values import exact, identity, value_words
from tests.examples import up_to

KINDS = (
    ("1", "1N"),
    ('"1"',),
    (":1",),
    ("\\1",),
    ("1.0", "1.0M", "1.00"),
    ("1/2",),
    ('"1/2"',),
    ("x", "x"),
    ('"x"',),
    ('#tag "x"',),
    ("#tag 1",),
    ("0.0", "-0.0"),
    ("\\A", "\\u0041"),
    (":x",),
    ("\\x",),
    (":a/x",),
    ("true",),
    ('"true"',),
    (":true",),
    ('":x"',),
    ('"\\"x\\""',),
    ("##Inf",),
    ("##-Inf",),
    ("##NaN",),
    ("[##NaN]",),
    ("[##Inf]",),
    ("[nil]",),
    ("[0.0 1 2]", "[-0.0 1 2]"),
    ("{:k 0.0}", "{:k -0.0}"),
    ('"Inf"',),
    ("9007199254740993",),
    ("9007199254740992",),
    ("9007199254740993.0",),
    ("-9223372036854775808",),
    ("9223372036854775807",),
    ("[1 2]", "(1 2)"),
    ("[2 1]",),
    ("#{1 2}", "#{2 1}"),
    ('["1" 2]',),
    ("[#{1} 2]",),
    ("[[1] 2]",),
    ('{1 "a"}',),
    ('{"1" "a"}',),
    ('{:1 "a"}',),
    ('{1 :a, "1" :b}', '{"1" :b, 1 :a}'),
    ('{1 :b, "1" :a}',),
    ("{:k #{1 2}}",),
    ("{:k [1 2]}",),
    ('""',),
    ("[]", "()"),
    ("#{}",),
    ("{}",),
)
"""EDN values; those in one row are equal on purpose."""

SAME = {text: number for number, row in enumerate(KINDS) for text in row}
texts = st.sampled_from(list(SAME))


def line(kind: str, f: str, value: str, process: int = 0) -> str:
    return f"{{:process {process}, :type :{kind}, :f :{f}, :value {value}}}\n"


def outcome(text: str, model: str) -> str:
    return by_model.judge(parse(text.encode()), model).result


@up_to(400)
@given(texts, texts)
def test_a_read_shows_what_was_written_or_something_else(written: str, read: str) -> None:
    """If it failed, a store that answers "x" for :x would be valid, or one that answers rightly would not."""
    text = line("invoke", "write", written) + line("ok", "write", written)
    text += line("invoke", "read", "nil") + line("ok", "read", read)
    assert outcome(text, "register") == ("valid" if SAME[written] == SAME[read] else "invalid")


@up_to(200)
@given(texts, texts)
def test_transactions_keep_kinds_apart(written: str, read: str) -> None:
    """If it failed, Elle's histories would be judged by the letters of their values."""
    micro = f"[[:w :k {written}]]", f"[[:r :k {read}]]"
    text = "".join(line(kind, "txn", each) for each in micro for kind in ("invoke", "ok"))
    assert outcome(text, "rw-register") == ("valid" if SAME[written] == SAME[read] else "invalid")


@up_to(200)
@given(texts, texts)
def test_keys_of_different_kinds_are_different_keys(one: str, other: str) -> None:
    """If it failed, what was written to the key 1 would be missed under the key "1"."""
    text = "".join(
        f"{{:process 0, :type :{kind}, :f :{f}, :key {key}, :value {value}}}\n"
        for f, key, values in (("write", one, ("5", "5")), ("read", other, ("nil", "nil")))
        for kind, value in zip(("invoke", "ok"), values, strict=True)
    )
    assert outcome(text, "register") == ("invalid" if SAME[one] == SAME[other] else "valid")


def test_a_file_with_one_kind_is_shown_without_signs() -> None:
    """If it failed, sentences would quote every text."""
    text = line("invoke", "write", ":x") + line("ok", "write", ":x")
    assert [each.value for each in parse(text.encode()).operations] == ["x"]


def test_texts_that_a_model_joins_stay_texts() -> None:
    """If it failed, an append of "b" to "a" would make "a""b"."""
    for shown in ('"ab"', ":ab", "\\a"):
        steps = (
            ("put", '"a"', '"a"'),
            ("append", '"b"', '"b"'),
            ("get", "nil", '"ab"'),
            ("get", "nil", shown),
        )
        text = "".join(line("invoke", f, asked) + line("ok", f, answer) for f, asked, answer in steps)
        assert outcome(text, "kv") == ("valid" if shown == '"ab"' else "invalid")


@pytest.mark.parametrize("model", ["counter"])
@up_to(300)
@given(
    st.lists(
        st.one_of(
            st.integers(-(2**70), 2**70),
            st.sampled_from([0, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63, -(2**63)]),
            st.decimals(-10, 10, places=3).map(float),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([0, 1, -1, 0.1]),
)
def test_sums_are_exact(model: str, amounts: list[int | float], off: int | float) -> None:
    """If it failed, 0.1 + 0.2 would not be 0.3, and 2^53 + 1 would be 2^53."""
    total = sum((Fraction(str(each)) for each in amounts), Fraction(str(off)))
    shown = value_words(total)
    text = "".join(line(kind, "add", str(each)) for each in amounts for kind in ("invoke", "ok"))
    text += line("invoke", "read", "nil") + line("ok", "read", shown)
    assert Fraction(shown) == total
    if float(shown) == total or total.denominator == 1:  # a float has 17 digits
        assert outcome(text, model) == ("valid" if off == 0 else "invalid")


def test_exact_numbers() -> None:
    """If it failed, a sentence would say that a read returned 0.3 instead of 0.3."""
    assert exact(0.1) == Fraction(1, 10) and exact(3.0) == 3 and exact(True) is None and exact("1") is None
    assert [value_words(each) for each in (Fraction(-3, 10), Fraction(1, 8), 2**63)] == [
        "-0.3",
        "0.125",
        str(2**63),
    ]


def test_identities() -> None:
    """If it failed, true would be 1, and 1 would be 1.0."""
    values = [None, 1, 1.0, True, "1", [1], {"a": 1}, {"a": 1.0}, [None], ""]
    assert len({identity(each) for each in values}) == len(values)
    assert identity({"a": 1, "b": [2]}) == identity({"b": [2], "a": 1})


def test_a_keyed_cas_may_have_three_parts() -> None:
    """If it failed, `[key old new]`, as Omnipaxos' tests have it, would be a cas that no model knows."""
    steps = (("write", '["k" 1]'), ("cas", '["k" 1 2]'), ("read", '["k" 2]'))
    text = "".join(line(kind, f, value) for f, value in steps for kind in ("invoke", "ok"))
    history = parse(text.encode())
    assert [(each.key, each.value) for each in history.operations] == [("k", 1), ("k", [1, 2]), ("k", 2)]
    assert outcome(text, "cas-register") == "valid"


def test_a_register_may_hold_a_collection() -> None:
    """If it failed, a file of sets that are written whole would be judged as a growing collection."""
    for written in ("#{1 2}", "[1 2]", "{:a 1}"):
        text = line("invoke", "write", written) + line("ok", "write", written)
        text += line("invoke", "read", "nil") + line("ok", "read", written)
        assert guess(parse(text.encode())) == "register"
    rows = line("invoke", "write", "[[:w 1 1]]") + line("ok", "write", "[[:w 1 1]]")
    rows += line("invoke", "read", "[[:r 1 nil]]") + line("ok", "read", "[[:r 1 1]]")
    assert guess(parse(rows.encode())) == "long-fork"
