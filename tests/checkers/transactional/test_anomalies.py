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
    with pytest.raises(KeyError, match="snapshot-isolation"):
        anomalies.model_of("snapshot")


def test_a_lost_update_rules_out_all_models_whose_writers_see_each_other() -> None:
    """If this fails, a lost update of two registers passes for a snapshot, which it must not even where no cycle shows
    which write came first."""
    left = {"read-committed", "read-atomic"}
    weak = {model for model in anomalies.MODELS if anomalies.MODELS[model][0] in left}
    assert set(anomalies.ruled_out(["lost-update"])) == set(anomalies.MODELS) - weak
