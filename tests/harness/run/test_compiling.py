"""Machine code for the verdict on many clients: when it is compiled beside a run."""

from __future__ import annotations

import pytest

from checkers.linearizable import forward
from harness.run import compiling
from harness.systems.plans import planned


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout in which nothing was compiled yet."""
    monkeypatch.setattr(compiling, "waiting_for", lambda module, kernel: "compiling")


@pytest.mark.usefixtures("anew")
def test_only_real_runs_of_many_clients_compile_beside_their_load() -> None:
    assert compiling.is_needed(planned(workers=1_000))
    assert not compiling.is_needed(planned(workers=10))
    assert not compiling.is_needed(planned(workers=1_000, cluster="sim"))


def test_nothing_is_compiled_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "waiting_for", lambda module, kernel: "loading")
    assert not compiling.is_needed(planned(workers=1_000))


@pytest.mark.usefixtures("anew")
def test_the_other_process_ends_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int | None] = []
    started = compiling.subprocess.Popen

    def popen(*arguments: object, **options: object) -> object:
        process = started(*arguments, **options)  # type: ignore[call-overload]  # as it was called
        wait = process.wait
        monkeypatch.setattr(process, "wait", lambda: ended.append(wait()))
        return process

    monkeypatch.setattr(compiling.subprocess, "Popen", popen)
    monkeypatch.setattr(compiling, "PREPARE", "import time; time.sleep(600)")
    with compiling.compiling(planned(workers=1_000)):
        assert not ended
    assert len(ended) == 1


def test_what_is_prepared_is_a_search_that_runs() -> None:
    forward.prepare()
