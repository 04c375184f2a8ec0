"""By the name of a model: what a promise makes of verdicts, which model is guessed, which is the strongest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkers import by_model, sessions
from checkers.by_model import judge
from checkers.guessing import LOOSER, guess
from checkers.history import History, foreign
from checkers.models import ALIASES, MODELS, PROMISES
from checkers.strongest import strongest_of
from checkers.transactional import anomalies
from tests import examples

STALE = (
    (0, "write", 1),
    (0, "write", 2),
    (1, "read", 1),
    (1, "read", 2),
)


def told(*lines: tuple[int, str, Any], **fields: str) -> History:
    maps = []
    for process, f, value in lines:
        words = "".join(f" :{name} {text}" for name, text in fields.items())
        maps += [
            f"{{:process {process} :type {type_} :f {f} :value {value} {words}}}"
            for type_ in (":invoke", ":ok")
        ]
    return foreign.parse("\n".join(maps).encode())


def test_a_promise_decides_what_is_a_violation() -> None:
    """A store would be blamed for what it never promised, or excused for what it did."""
    history = told(*STALE)
    strict = judge(history, "register")
    assert (strict.result, strict.violations, strict.strongest) == ("invalid", ("linearizable",), "coherence")
    lenient = judge(history, "register", promise="coherence")
    assert (lenient.result, lenient.violations, lenient.strongest) == ("valid", (), "coherence")
    assert {verdict.checker: verdict.result for verdict in lenient.verdicts} == {
        "linearizable": "invalid",
        "coherence": "valid",
        "staleness": "valid",
        "written": "valid",
    }


def test_a_finding_that_could_not_be_made_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that keeps its promise would be undecided because the staleness of its reads is unknown."""

    def broken(*_: Any, **__: Any) -> Any:
        raise ArithmeticError

    monkeypatch.setattr(sessions, "check_staleness", broken)
    judged = judge(told(*STALE), "register", promise="monotonic-reads")
    assert {verdict.checker: verdict.result for verdict in judged.verdicts}["staleness"] == "unknown"
    assert (judged.result, judged.violations) == ("valid", ())


def test_what_is_linearizable_needs_no_weaker_checks() -> None:
    """Time would be spent on what is implied."""
    judged = judge(told((0, "write", 1), (1, "read", 1)), "register")
    assert [verdict.checker for verdict in judged.verdicts] == ["linearizable"]
    assert judged.strongest == "linearizable"


def test_a_set_that_shows_an_element_twice_satisfies_no_model() -> None:
    """The screen would say "anomaly" at its top and "strongest: linearizable" below: sets are compared as sets."""
    judged = judge(told((0, "add", 1), (1, "read", [1, 1])), "set")
    assert (judged.violations, judged.strongest) == (("set-full",), "none")
    assert judge(told((0, "add", 1), (1, "read", [1])), "set").strongest == "linearizable"


def test_a_counter_that_nobody_added_to_may_be_read_as_nothing() -> None:
    """A store that makes its counters with the first addition could not be judged, or hide that one was lost."""
    assert judge(told((0, "read", "nil"), (0, "add", 2), (0, "read", 2)), "counter").result == "valid"
    assert judge(told((0, "add", 2), (0, "read", "nil")), "counter").violations == ("linearizable", "counter")


def test_reads_at_replicas_count_for_the_strongest_model_alone() -> None:
    """Stale reads at replicas would be violations where they are promised, or would be hidden altogether."""
    maps = [
        '{"process":0,"type":"invoke","f":"write","value":1}',
        '{"process":0,"type":"ok","f":"write","value":1,"role":"owner"}',
        '{"process":0,"type":"invoke","f":"read","value":null}',
        '{"process":0,"type":"ok","f":"read","value":1,"role":"owner"}',
        '{"process":0,"type":"invoke","f":"read","value":null}',
        '{"process":0,"type":"ok","f":"read","value":null,"role":"replica"}',
    ]
    judged = judge(foreign.parse("\n".join(maps).encode()), "register")
    assert judged.result == "valid"
    assert judged.strongest == "none"


@pytest.mark.parametrize(
    ("results", "name"),
    [
        ({"linearizable": "valid"}, "linearizable"),
        ({"linearizable": "invalid", "coherence": "valid"}, "coherence"),
        (
            {
                "linearizable": "invalid",
                "coherence": "invalid",
                "monotonic-reads": "valid",
                "read-your-writes": "valid",
            },
            "monotonic-reads and read-your-writes",
        ),
        ({"linearizable": "unknown", "coherence": "valid"}, "coherence (linearizable not decided)"),
        ({"linearizable": "invalid", "coherence": "invalid"}, "none"),
        ({"linearizable": "invalid", "coherence": "unknown"}, "not decided"),
    ],
)
def test_the_strongest_is_named(results: Any, name: str) -> None:
    """A reader would be told more, or less, than what was seen."""
    assert strongest_of(results) == name


def test_every_promise_implies_itself_first() -> None:
    """The order of strength would be lost."""
    assert all(implied[0] == name for name, implied in PROMISES.items() if implied)
    for model in MODELS.values():
        assert model.promises[0] in ("linearizable", "strict-serializable", "eventual")


@pytest.mark.parametrize(
    ("line", "model"),
    [
        ((0, "cas", "[1 2]"), "cas-register"),
        ((0, "write", "1"), "register"),
        ((0, "put", "1"), "kv"),
        ((0, "enqueue", "1"), "queue"),
        ((0, "push", "1"), "stack"),
        ((0, "acquire", "nil"), "mutex"),
        ((0, "poll", "[[:poll]]"), "log"),
        ((0, "txn", "[[:send 1 2] [:poll]]"), "log"),
        ((0, "add", "1"), "set"),
        ((0, "read", "[[:r x 1]]"), "long-fork"),
        ((0, "read", "[1 2 3]"), "causal-reverse"),
        ((0, "transfer", "{:from 1 :to 2 :amount 1}"), "bank"),
        ((0, "generate", "1"), "unique-ids"),
        ((0, "txn", "[[:append x 1]]"), "append"),
        ((0, "txn", "[[:w x 1] [:r y nil]]"), "rw-register"),
        ((0, "dance", "1"), None),
    ],
)
def test_models_are_guessed_from_operations(line: tuple[int, str, Any], model: str | None) -> None:
    """A person would have to name what is plain to see, or it would be taken for something else."""
    assert guess(told(line)) == model


def test_one_key_alone_keeps_its_line_numbers() -> None:
    """A witness would point at other lines than those of the file."""
    history = told((0, "write", "[x 1]"), (0, "write", "[y 2]"))
    (operation,) = history.only({"y"}).operations
    assert operation.events == (2, 3)


@pytest.mark.parametrize(
    ("lines", "model", "checkers"),
    [
        ([(0, "add", "1"), (0, "read", "[1]")], "set", ["linearizable", "set-full"]),
        ([(0, "add", "1"), (0, "add", "1"), (0, "read", "2")], "counter", ["linearizable", "counter"]),
        ([(0, "enqueue", "1"), (0, "drain", "[1]")], "queue", ["linearizable", "queues"]),
        ([(0, "txn", "[[:append x 1]]"), (0, "txn", "[[:r x [1]]]")], "append", ["transactional"]),
        ([(0, "put", '"a"'), (0, "append", '"b"'), (0, "get", '"ab"')], "kv", ["linearizable"]),
        ([(0, "append", "1"), (0, "read", "[1]")], "list", ["linearizable"]),
        ([(0, "read", '{"1" 5}'), (0, "transfer", "{:from 1 :to 2 :amount 0}")], "bank", ["bank"]),
    ],
)
def test_each_model_has_its_checkers(
    lines: list[tuple[int, str, Any]], model: str, checkers: list[str]
) -> None:
    """A history of that kind would be judged by nobody, or by a checker that does not understand it."""
    history = told(*lines)
    assert guess(history) == model
    judged = judge(history, model)
    assert [verdict.checker for verdict in judged.verdicts] == checkers
    assert judged.result == "valid", [verdict.summary for verdict in judged.verdicts]


def test_what_is_lost_is_a_violation_of_every_promise() -> None:
    """A store could lose elements and call itself eventually consistent."""
    judged = judge(told((0, "add", "1"), (0, "add", "2"), (1, "read", "[2]")), "set", promise="eventual")
    assert judged.violations == ("set-full",)


@pytest.mark.parametrize(
    ("in_store_1", "in_store_2"),
    [
        (":f :txn :value [1 [[:w :x 7] [:w :y 7]]]", ":f :txn :value [2 [[:r :x nil] [:r :y nil]]]"),
        (":f :txn :value [1 [[:w :x 7] [:w :y 7]]]", ":f :txn :value [2 [[:r :x] [:r :y]]]"),
        (":f :txn :key 1 :value [[:w :x 7] [:w :y 7]]", ":f :txn :key 2 :value [[:r :x nil] [:r :y nil]]"),
    ],
)
@pytest.mark.parametrize("model", ["rw-register", "multi-register", "long-fork"])
def test_transactions_in_several_stores(model: str, in_store_1: str, in_store_2: str) -> None:
    """jepsen.independent runs transactions on several stores with keys of one name: what one store holds was missed in
    the others."""
    told_of = [
        f"{{:process 0 :type {type_} {of_store} {final}}}"
        for of_store, final in ((in_store_1, ""), (in_store_2, ":final? true"))
        for type_ in (":invoke", ":ok")
    ]
    assert judge(foreign.parse("\n".join(told_of).encode()), model).result == "valid"
    in_store_1 = in_store_1.replace("1 [", "2 [").replace(":key 1", ":key 2")
    told_of[:2] = [f"{{:process 0 :type {type_} {in_store_1}}}" for type_ in (":invoke", ":ok")]
    assert judge(foreign.parse("\n".join(told_of).encode()), model).result == "invalid"


@pytest.mark.parametrize(
    ("model", "added", "row", "another"),
    [
        ("monotonic", "{:val 1 :sts 5}", "[{:val 1 :sts 5 :node 2}]", "[]"),
        ("monotonic", "{:val 1 :sts 5}", '[{:val 1 :sts "5.0"}]', "[{:val 2 :sts 6}]"),
        ("counter", "0", "nil", "1"),
    ],
)
def test_what_reads_show_otherwise_than_it_was_added(model: str, added: str, row: str, another: str) -> None:
    """A final read that shows more of a row than was added, or nothing as the sum of nothing, was called a loss; a
    failed addition, which no read can show, was called honest."""
    failed = _final(model, "fail", added, row)
    kept, lost = _final(model, "ok", added, row), _final(model, "ok", added, another)
    assert set(kept.values()) == {"valid"} and lost[model] == "invalid"
    assert not {"durability", "rollback-honesty"} & {*failed, *kept, *lost}


def _final(model: str, outcome: str, added: str, shown: str) -> dict[str, str]:
    """The results of all checks of one addition and a final read, by name."""
    history = foreign.parse(
        f"""{{:process 0 :type :invoke :f :add :value {added}}}
            {{:process 0 :type :{outcome} :f :add :value {added}}}
            {{:process 0 :type :invoke :f :read :value nil :final? true}}
            {{:process 0 :type :ok :f :read :value {shown} :final? true}}""".encode()
    )
    return {verdict.checker: verdict.result for verdict in judge(history, model).verdicts}


def test_transactions_are_judged_by_an_isolation_model() -> None:
    """A skew that snapshot isolation allows would be a violation of it, or none of serializability."""
    skew = told((0, "txn", "[[:append x 1] [:append y 1]]"), (0, "txn", "[[:r x [1]] [:r y [1]]]"))
    assert judge(skew, "append", promise="snapshot-isolation").result == "valid"
    with pytest.raises(KeyError):
        judge(skew, "append", promise="linearizable")


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    """A caller who mistypes a model would get its name back, and nothing to try."""
    with pytest.raises(KeyError, match=r"'apend' is not known: expected one of .*append"):
        judge(told((0, "txn", "[[:append x 1]]"), (0, "txn", "[[:append x 1]]")), "apend")


WORDS = sorted({f for model in MODELS.values() for f in model.f})
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 3)
    | st.sampled_from(["x", "append", "r", "w"])
    | st.just(0.5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["from", "val", "1"]), inner, max_size=2)
    ),
    max_leaves=6,
)
STRANGE = st.lists(
    st.fixed_dictionaries(
        {
            "process": st.integers(0, 2),
            "f": st.sampled_from(WORDS),
            "type": st.sampled_from(["ok", "fail", "info"]),
            "value": VALUES,
            "final?": st.booleans(),
        }
    ),
    min_size=1,
    max_size=5,
)


@given(STRANGE, st.sampled_from(sorted(MODELS)))
@examples.up_to(150)
def test_strange_values_end_in_a_verdict(maps: list[dict[str, Any]], model: str) -> None:
    """A value that nobody expected would break the command, which says nothing of the store."""
    lines = []
    for each in maps:
        lines += [json.dumps({**each, "type": "invoke"}), json.dumps(each)]
    history = foreign.parse("\n".join(lines).encode())
    assert guess(history) in (None, *MODELS)
    judged = judge(history, model, limits=by_model.Limits(timeout_s=1.0))
    for verdict in judged.verdicts:
        assert not verdict.summary.startswith("the checker broke"), verdict.summary


@pytest.mark.parametrize(("alias", "name"), [*ALIASES.items(), *anomalies.ALIASES.items()])
def test_names_of_other_tools_mean_a_model_of_ours(alias: str, name: str) -> None:
    """A person who knows Elle or Knossos would have to learn our names for the same models."""
    history = told((0, "txn", "[[:append x 1]]"), (0, "txn", "[[:r x [1]]]"))
    if alias in ALIASES:
        assert name in MODELS and alias not in MODELS
    else:
        judged = judge(history, "list-append", promise=alias)
        assert (judged.model, judged.promise, judged.result) == ("append", name, "valid")


def test_what_is_guessed_wrongly_has_a_looser_model() -> None:
    """A hint would name a model that there is not, or one for other operations."""
    for guessed, (looser, _) in LOOSER.items():
        assert MODELS[guessed].f <= MODELS[looser].f
