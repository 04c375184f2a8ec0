"""The table of anomalies and models: a lattice, in which every name is known."""

from __future__ import annotations

import pytest

from checkers.transactional import anomalies


def test_a_stronger_model_forbids_all_that_a_weaker_one_does() -> None:
    """If this fails, the lattice of models is no lattice, and "the strongest left" may be one that is ruled out."""
    for model in anomalies.MODELS:
        for other in anomalies.weaker(model):
            assert anomalies.forbidden(other) <= anomalies.forbidden(model), (other, model)


def test_every_anomaly_is_forbidden_by_something_and_every_name_is_known() -> None:
    """If this fails, a name in the table is misspelt: what it stands for would never be a violation."""
    forbidden = frozenset().union(*(anomalies.forbidden(model) for model in anomalies.MODELS))
    assert forbidden == set(anomalies.ANOMALIES)
    assert anomalies.forbidden("strict-serializable") == set(anomalies.ANOMALIES)


def test_nothing_found_leaves_the_strongest_model() -> None:
    """If this fails, a clean history is said to satisfy less than it does."""
    assert anomalies.ruled_out(()) == ()
    assert anomalies.strongest(anomalies.MODELS) == ("strict-serializable",)


def test_models_by_other_names() -> None:
    """If this fails, a model's other common name is refused, or an unknown one is not."""
    assert anomalies.model_of("strong-serializable") == "strict-serializable"
    assert anomalies.model_of("session-serializable") == "strong-session-serializable"
    assert anomalies.model_of("strong-session-PL-2+") == "strong-session-parallel-snapshot-isolation"
    assert anomalies.model_of("strong-session-causal-cerone") == "causal"
    with pytest.raises(KeyError, match="snapshot-isolation"):
        anomalies.model_of("snapshot")


@pytest.mark.parametrize("name", [*anomalies.REFUSED, "strong-PL-1", "strong-session-PL-3U"])
def test_a_model_that_is_not_judged_is_refused_with_the_reason(name: str) -> None:
    """If this fails, a model of Elle's tree is unknown here, or judged without a definition."""
    with pytest.raises(KeyError, match=f"'{name}' is not judged: it .*; try "):
        anomalies.model_of(name)


ELLE = (
    "PL-1",
    "PL-2",
    "PL-2+",
    "PL-2.99",
    "PL-2L",
    "PL-3",
    "PL-3U",
    "PL-CS",
    "PL-FCV",
    "PL-MSR",
    "PL-SI",
    "PL-SS",
    "PRAM",
    "ROLA",
    "1SR",
    "causal",
    "causal-cerone",
    "conflict-serializable",
    "consistent-view",
    "cursor-stability",
    "forward-consistent-view",
    "linearizable",
    "monotonic-atomic-view",
    "monotonic-reads",
    "monotonic-snapshot-read",
    "monotonic-view",
    "monotonic-writes",
    "parallel-snapshot-isolation",
    "prefix",
    "read-atomic",
    "read-committed",
    "read-uncommitted",
    "read-your-writes",
    "repeatable-read",
    "sequential",
    "serializable",
    "session-serializable",
    "snapshot-isolation",
    "strict-serializable",
    "strong-PL-1",
    "strong-PL-2",
    "strong-read-committed",
    "strong-read-uncommitted",
    "strong-serializable",
    "strong-session-PL-1",
    "strong-session-PL-2",
    "strong-session-read-committed",
    "strong-session-read-uncommitted",
    "strong-session-serializable",
    "strong-session-snapshot-isolation",
    "strong-snapshot-isolation",
    "update-serializable",
    "view-serializable",
    "writes-follow-reads",
)


@pytest.mark.parametrize("name", ELLE)
def test_every_name_that_elle_knows_is_known(name: str) -> None:
    """If this fails, the user of another checker asks for a model and gets no answer to the question."""
    prefix = max((each for each in anomalies.PREFIXES if name.startswith(each)), key=len)
    known = name.removeprefix(prefix) in anomalies.REFUSED or anomalies.model_of(name) in anomalies.MODELS
    assert known, name


def test_a_lost_update_rules_out_all_models_whose_writers_see_each_other() -> None:
    """If this fails, a lost update of two registers passes for a snapshot, which it must not even where no cycle shows
    which write came first."""
    left = {
        "read-committed",
        "read-atomic",
        "monotonic-atomic-view",
        "monotonic-view",
        "causal-cerone",
        "prefix",
    }
    weak = {model for model in anomalies.MODELS if anomalies.MODELS[model][0] in left}
    assert set(anomalies.ruled_out(["lost-update"])) == set(anomalies.MODELS) - weak
