"""The last screen: short, in order, safe, and complete enough to act upon."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from harness.pages.terminal.file_screen import asked_lines
from harness.pages.terminal.last_screen import last_screen

FOLDER = Path("results/default/20250101T090000Z-7")
COMMAND = "./qsync run --seed 7 --time-limit 20"


def verdict(**fields: Any) -> dict[str, Any]:
    faults = [{"id": 0, "name": "kill", "took_effect": True}, {"id": 1, "name": "kill", "took_effect": True}]
    faults += [
        {"id": 2, "name": "isolate-owner", "took_effect": True},
        {"id": 3, "name": "pause", "took_effect": False},
    ]
    evidence = {"ok": 2412, "fail": 12, "info": 33, "ok_under_fault": 611, "faults": faults, "rollbacks": 1}
    return {
        "outcome": "anomaly",
        "sentence": "Key r3 lost an acknowledged write.",
        "violations": ["linearizable"],
        "findings": [{"checker": "replica-reads", "summary": "lagged"}],
        "evidence": evidence,
        "checks": [
            {"checker": "crash", "result": "valid", "summary": "none"},
            {"checker": "linearizable", "result": "invalid", "summary": "1 of 6 keys"},
            {"checker": "convergence", "result": "unknown", "summary": "no dump of n3"},
        ],
        "repeat": {"command": COMMAND, "repeats": "outcome"},
        **fields,
    }


def test_it_says_what_is_needed_in_this_order() -> None:
    """If it failed, the outcome, the reason or the next step would be missing or hard to find."""
    assert last_screen(verdict(), FOLDER).splitlines() == [
        "ANOMALY  Key r3 lost an acknowledged write.",
        "",
        "2,412 ok  12 fail  33 info   611 ok under a fault   1 rollback",
        "faults that took effect (3 of 4): kill ×2, isolate-owner",
        "  violation  linearizable: 1 of 6 keys",
        "  unknown    convergence: no dump of n3",
        "  finding    replica-reads: lagged",
        "",
        f"report  {FOLDER}/report.html",
        f"again   {COMMAND}   (repeats the outcome)",
    ]


def test_the_strongest_model_says_that_it_leaves_dirty_reads_out() -> None:
    """If it failed, "linearizable" would stand beside stale reads of a store that only has dirty ones."""
    assert "strongest model that held, dirty reads aside: linearizable" in last_screen(
        verdict(strongest="linearizable"), FOLDER
    )


def test_who_came_to_which_version_when_is_one_line() -> None:
    """If it failed, one would have to open the page to see how far an upgrade came."""
    told = (
        ("n1", "0.1", 0.1),
        ("n2", "0.1", 0.1),
        ("n2", "0.2", 2.0),
        ("n1", "0.2", 4.0),
        ("n2", "0.1", 6.0),
    )
    rows = [{"node": node, "version": version, "from_ns": int(at_s * 1e9)} for node, version, at_s in told]
    (line,) = [line for line in last_screen(verdict(versions=rows), FOLDER).splitlines() if "0.2" in line]
    assert line == "versions  0.1 → 0.2: n2 at 2.0 s, n1 at 4.0 s → 0.1: n2 at 6.0 s"


@pytest.mark.parametrize("many", [1, 5, 6, 7, 50])
def test_it_never_has_more_than_fifteen_lines_of_a_hundred_columns(many: int) -> None:
    """If it failed, the verdict would scroll off a small terminal."""
    names = [f"checker-{number}" for number in range(many)]
    checks = [{"checker": name, "result": "invalid", "summary": "word " * 60} for name in names]
    told = verdict(violations=names, checks=checks, findings=[], sentence="word " * 90)
    lines = last_screen(told, FOLDER).splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 100
    shown = sum(line.startswith("  violation") for line in lines)
    hidden = re.search(r"and (\d+) more", "\n".join(lines))
    assert shown + int(hidden[1] if hidden else 0) == many


def test_what_is_missing_is_said_when_the_run_is_no_evidence() -> None:
    """If it failed, exit code 3 would come without its reason."""
    evidence = verdict()["evidence"] | {"missing": ["Only 200 ok operations."], "faults": []}
    text = last_screen(verdict(outcome="inconclusive", violations=[], evidence=evidence), FOLDER)
    assert text.startswith("INCONCLUSIVE")
    assert "  missing    Only 200 ok operations." in text
    assert "no fault was injected" in text


def test_it_makes_do_with_an_empty_verdict() -> None:
    """If it failed, a run without a verdict would end in a traceback."""
    assert last_screen({}, FOLDER).startswith("NO VERDICT\n")


def test_colour_is_only_colour() -> None:
    """If it failed, the coloured screen would say something else than the one in a log."""
    coloured = last_screen(verdict(), FOLDER, colour=True)
    assert "\x1b[1;31mANOMALY\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == last_screen(verdict(), FOLDER)


def test_what_a_server_said_does_not_steer_the_terminal() -> None:
    """If it failed, a value in a summary could clear the screen, or forge lines of it."""
    told = verdict(sentence="a\x1b[2Jb\nVALID", findings=[{"checker": "x\r\x9b", "summary": "\x07"}])
    text = last_screen(told, FOLDER)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert not any(line.startswith("VALID") for line in text.splitlines())


def test_the_path_is_shown_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the path would be too long to read in a usual checkout."""
    monkeypatch.chdir(tmp_path)
    assert "report  results/x/report.html" in last_screen(verdict(), tmp_path / "results" / "x")


def test_no_word_of_a_file_steers_the_terminal() -> None:
    """If it failed, a history from elsewhere could hide the verdict on it."""
    told = {
        "verified": {"accepted": 0, "without": [], "refused": ["key \x1b[2J: no"]},
        "jepsen": "invalid",
        "jepsen_checkers": ["a\x1b[2J"],
    }
    lines = list(asked_lines(told))
    assert len(lines) == 3
    assert all(line.isprintable() for line in lines)
