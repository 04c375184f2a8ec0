"""Our verdicts on small tests that people have run with Jepsen on several databases, beside what Jepsen said of them.

`tests/checkers/histories/jepsen-tests` names their origin. docs/checkers-beside-others.md has the table.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from checkers import by_model, guessing
from checkers.history import foreign
from checkers.history.foreign import edn
from tests.checkers.beside import pages

FOLDER = Path(__file__).parents[1] / "histories" / "jepsen-tests"
WORDS = {True: "valid", False: "invalid"}
OURS = {
    "dkv-register": "valid",
    "etcd-gateway-key": "valid",
    "etcd-register": "valid",
    "etcd-serializable-key": "valid",
    "etcd-stale-reads": "invalid",
    "etcd-unparsed": "invalid",  # this test had no checker of the history
    "ratis-counter": "valid",
    "ratis-stale-reads": "invalid",
    "zookeeper-key": "invalid",
    "zookeeper-sync-key": "valid",
}


def unpacked(test: str, name: str) -> bytes:
    return lzma.decompress((FOLDER / test / f"{name}.xz").read_bytes())


def said(test: str) -> str:
    (results,) = edn.read(unpacked(test, "results.edn").decode()).values
    return WORDS[results["valid?"]]


@pytest.mark.parametrize("test", OURS)
def test_our_verdict(test: str) -> None:
    """We would contradict Jepsen on a history of a real database, or guess a model that its operations do not have."""
    history = foreign.parse(unpacked(test, "history.edn"))
    model = guessing.guess(history)
    assert model is not None
    verdicts = by_model.judge(history, model).verdicts
    assert ("invalid" if any(each.result == "invalid" for each in verdicts) else "valid") == OURS[test]
    assert any(each.result == OURS[test] for each in verdicts), "nothing was decided"


def test_a_text_that_was_written_as_a_number_is_called_so() -> None:
    """If it failed, "read 1, but no client ever asked to write 1" would say nothing to the author of the client."""
    verdicts = by_model.judge(foreign.parse(unpacked("etcd-unparsed", "history.edn")), "register").verdicts
    (broken,) = (each for each in verdicts if each.result == "invalid")
    assert broken.witnesses[0].summary.endswith("no client ever asked to write 1 as a text, only as a number")


def test_the_table_in_the_docs() -> None:
    """The docs would have another figure than these tests."""
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == set(OURS)
    agree = sum(said(test) == ours for test, ours in OURS.items())
    assert pages.row("small tests that are kept") == [str(len(OURS)), str(agree)]
