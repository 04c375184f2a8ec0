"""What a certificate says, and when there is none."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from checkers.compiled import load
from checkers.linearizable import search_kernels
from harness.campaigns import journal
from harness.campaigns import plan as campaign_plan
from harness.campaigns.bars import BARS, Bar, Requires
from harness.campaigns.certification import lacks, making, page
from harness.campaigns.certification.compare import changes
from harness.campaigns.certification.document import CERTIFICATE, PAGE, Certificate, shown
from harness.campaigns.certification.facts import JudgedRun, row_of
from harness.campaigns.certification.making import BUNDLE, DECIDED, certify
from harness.campaigns.certification.sensitivity import Clean, Measured
from harness.campaigns.journal import Task
from harness.campaigns.nightly import Nightly
from harness.campaigns.plan import Campaign
from harness.errors import StoreError, WrongUse
from harness.judge.evidence.rare_turns import POWER_LOST_BYTES, rows_of
from harness.results import RunFolder
from harness.systems import system_of
from tests.harness.campaigns.certification.conftest import BUGS, PLAN, Sample, asked
from tests.harness.campaigns.journals import ended

LOWEST = Bar(name="trial", requires=BARS["trial"])
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def rows(sample: Sample) -> list[JudgedRun]:
    results = sample.folder / "results"
    told = {each["run"]: each["cell"] for each in sample.certificate.shown["runs"]}
    return [row_of(RunFolder(results / run), run, cell) for run, cell in told.items()]


def test_a_run_is_the_same_whatever_code_is_loaded(rows: list[JudgedRun], sample: Sample) -> None:
    """If it failed, a certificate would be refused because its process had judged many runs before."""
    load(search_kernels)
    results = sample.folder / "results"
    assert [row_of(RunFolder(results / row.run), row.run, row.cell) for row in rows] == rows
    assert not any(row.refused for row in rows)


def test_it_says_what_was_tested_and_what_was_not(sample: Sample) -> None:
    """If it failed, a certificate would leave out a part that its readers count on."""
    document = sample.certificate.shown
    assert document["tested"]["configurations"][0].startswith("C")
    assert document["tested"]["runs"] == 2
    assert document["operations"]["ok"] > 100
    (fault,) = document["faults"]
    assert fault["fault"] == "isolate-owner"
    assert 0 < fault["took_effect"] <= fault["begun"]
    assert document["verdicts"]["outcomes"] == {"valid": 2}
    assert document["verdicts"]["proofs accepted"] > 0
    assert {each["models"]["linearizable"] for each in document["promised"]} == {"linearizable"}
    states = document["states"]
    reached = {each["state"]: (each["times"], each["runs"]) for each in states["reached"]}
    assert reached and all(times >= runs > 0 for times, runs in reached.values())
    assert "leader fenced" in reached and POWER_LOST_BYTES in states["never"]
    assert {*reached, *states["never"]} == {*rows_of(system_of("qsync"))}
    left = document["not_tested"]
    assert "kill" in left["faults"] and "isolate-owner" not in left["faults"]
    assert "append" in left["workloads"] and "register" not in left["workloads"]
    assert left["clusters"] == ["local", "docker", "ssh"]
    assert "H" not in left["configurations"] and "D" in left["configurations"]
    assert "transactional" in left["checks"]
    assert all(re.fullmatch("[0-9a-f]{64}", each["history"]["sha256"]) for each in document["runs"])


def test_it_says_which_bugs_its_matrix_finds(sample: Sample) -> None:
    """If it failed, a reader could not tell what a green matrix is worth."""
    measured = sample.certificate.given.measured
    assert [bug.name for bug in measured.bugs] == list(BUGS)
    assert measured.bugs[0].word == "found"
    assert measured.clean.runs == measured.clean.valid == 2
    assert any(times for times, _ in measured.clean.sometimes.values())


def test_the_same_runs_give_the_same_document(sample: Sample, rows: list[JudgedRun]) -> None:
    """If it failed, a certificate could not be made again from its runs."""
    again = asked(sample.folder)
    assert shown(again.campaign, again.plan_file, rows[::-1]) == sample.certificate.shown
    assert (sample.made.folder / CERTIFICATE).read_bytes() == sample.certificate.encode()
    assert (sample.made.folder / PAGE).read_text() == page.html(sample.certificate)


def lacking(rows: list[JudgedRun], text: str = PLAN, folder: Path | None = None) -> list[lacks.Lack]:
    assert folder is not None
    (folder / "small.toml").write_text(text)
    campaign = campaign_plan.read(folder / "small.toml")
    return lacks.of_matrix(campaign, rows, rows[0].plan.code if rows else "", campaign.certificate.asks())


def changed(row: JudgedRun, **evidence: Any) -> JudgedRun:
    return msgspec.structs.replace(row, evidence={**row.evidence, **evidence})


def test_every_gap_of_the_evidence_is_said(rows: list[JudgedRun], tmp_path: Path) -> None:
    """If it failed, there would be a certificate without enough evidence."""
    first, second = rows
    assert lacking(rows, folder=tmp_path) == []
    replace = msgspec.structs.replace
    unseen = changed(first, not_observed=["kill"])
    begun = [{"id": 0, "name": "pause", "took_effect": False, "healed": True, "ended": True}]
    for gap, code, why in (
        ([], 3, "nothing ran"),
        ([first], 3, "0 of 1 runs"),
        ([first, first, second], 3, "counted twice"),
        ([replace(first, outcome="anomaly", exit_code=1), second], 1, "anomaly"),
        ([replace(first, outcome="unknown", exit_code=2), second], 2, "unknown"),
        ([replace(first, outcome="inconclusive", exit_code=3), second], 3, "inconclusive"),
        ([changed(first, ok=0), second], 3, "no operation succeeded"),
        ([unseen, second], 3, "the fault kill never took effect on the cluster sim"),
        ([changed(first, faults=begun), second], 3, "pause never took effect"),
        ([replace(first, refused=("a proof is wrong",)), second], 3, "a proof is wrong"),
        ([replace(first, plan=first.plan.changed(code="other")), second], 3, "of the commit other"),
        ([replace(first, plan=first.plan.changed(rate=1.0)), second], 3, "not that of the cell"),
        ([replace(first, cell="no such"), second], 3, "not that of the cell"),
        ([first, replace(first, run="copied")], 3, "copied: another run has the same history"),
        ([replace(first, seed=9, plan=first.plan.changed(seed=9)), second], 3, "its seed 9 is not one of"),
    ):
        told = lacking([*gap[::-1]], folder=tmp_path)
        assert any(each.exit_code == code and why in each.text for each in told), (why, told)
    assert min(lacking([replace(first, outcome="anomaly", exit_code=1)], folder=tmp_path)).exit_code == 1
    alarm = Measured(runs_per_bug=1, clean=Clean(runs=1, alarms=("n1 lost a write",)))
    assert next(lacks.of_measure(alarm, LOWEST)).exit_code == 1


@pytest.mark.long
def test_a_bug_that_is_switched_on_gets_no_certificate(tmp_path: Path) -> None:
    """If it failed, a release with a bug would be certified."""
    text = PLAN.replace('["C", "H"]', '["C"]').replace("[matrix]", 'bugs = ["confirm-early"]\n[matrix]')
    made = certify(asked(tmp_path, text))
    assert made.certificate is None
    assert min(made.lacks).exit_code == 1
    told = " ".join(lack.text for lack in made.lacks)
    assert "anomaly" in told and "switches a seeded bug on: confirm-early" in told
    assert not any((made.folder / name).exists() for name in (CERTIFICATE, PAGE, BUNDLE))


def test_an_interrupted_certificate_goes_on(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If it failed, hours of runs would be done again because the measure was interrupted."""
    decided = sample.made.folder / DECIDED
    before = decided.read_bytes()
    monkeypatch.setattr(making, "_is_of", lambda run, commit: True)
    monkeypatch.setattr(making, "Nightly", None)
    monkeypatch.setattr("harness.campaigns.certification.sensitivity.try_once", None)
    decided.unlink()
    told: list[str] = []
    try:
        made = certify(asked(sample.folder, tell=told.append))
    finally:
        decided.write_bytes(before)
    assert made.certificate is not None
    assert made.certificate.shown == sample.certificate.shown
    assert made.certificate.given.measured == sample.certificate.given.measured
    assert any("is done: going on" in line for line in told)


@pytest.mark.parametrize(("commit", "anew"), [("abc", False), ("abc+", True), ("", True)])
def test_runs_of_code_that_is_no_commit_are_never_gone_on_with(
    commit: str, anew: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The first half of a matrix could be of other code than the second: both are called `abc+`."""
    begun: list[bool] = []

    class Begun(Exception):
        pass

    def run(self: Nightly, *, anew: bool = False) -> None:
        begun.append(anew)
        raise Begun

    monkeypatch.setattr(Nightly, "run", run)
    with pytest.raises(Begun):
        certify(replace(asked(tmp_path), commit=commit))
    assert begun == [anew]


@pytest.mark.parametrize("commit", ["abc", "abc+", ""])
def test_a_campaign_whose_runs_never_began_is_not_gone_on_with(commit: str, tmp_path: Path) -> None:
    """If it failed, a night that broke before it had a folder would be certified, and refused, as runs of this code."""
    wanted = replace(asked(tmp_path), commit=commit)
    book = journal.create(wanted.results, wanted.campaign.name, wanted.campaign.digest, [Task("a", 1)])
    book.note(ended("a", 1, "broken", run=""))
    book.write(journal.SUMMARY, b"{}")
    book.close()
    assert making._undecided(wanted) is None


def test_without_its_bundle_there_is_no_page(
    sample: Sample, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A full disk would leave a page that says CERTIFIED, and beside it no bundle or an older one."""
    folder = tmp_path / "campaign"
    folder.mkdir()
    book = journal.load(sample.made.folder)  # type: ignore[arg-type]
    assert book is not None
    elsewhere = replace(asked(sample.folder), out=tmp_path / "no such folder" / "certificate.zip")
    with pytest.raises(StoreError, match="cannot write"):
        making._written(elsewhere, replace(book, folder=folder), [], sample.certificate)
    assert not any(folder.iterdir())


def test_runs_that_decided_nothing_are_no_runs_without_a_false_alarm() -> None:
    """If it failed, a certificate would count runs without a false alarm that could not have one."""
    clean = Clean(runs=8, valid=1, alarms=("n1 lost a write",), inconclusive=("too little load",) * 6)
    assert clean.sentence == "1 false alarms in 8 runs without a bug; 1 valid, 6 neither"


def test_a_run_of_ten_seconds_is_no_evidence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If it failed, a certificate could stand on nothing; or a person would wait for runs that cannot be enough."""
    monkeypatch.setattr(making, "Nightly", None)
    text = (
        PLAN.replace('"C", "H"', '"C"')
        .replace("time_limit_s = 8", "time_limit_s = 10")
        .replace('"trial"', '"release"')
    )
    made = certify(asked(tmp_path, text))
    assert made.certificate is made.folder is None
    assert [lack.exit_code for lack in made.lacks] == [3, 3, 3, 3]
    assert [lack.text.partition(":")[0] for lack in made.lacks] == [
        "runs",
        "hours of load",
        "operations that succeeded",
        "runs for each seeded bug",
    ]
    assert made.lacks[0].text == "runs: the plan has 1, the bar release requires 60"
    assert not (tmp_path / "results").exists()


def test_what_rotates_is_not_certified(tmp_path: Path) -> None:
    """If it failed, a certificate would hold on the day on which it was made, and on no other."""
    rotating = PLAN.partition("[plan]")[0] + (
        '[plan]\ncluster = "sim"\n[[part]]\nrotate = { configuration = 1 }\n[part.matrix]\nconfiguration = ["C", "H"]\n'
    )
    made = certify(asked(tmp_path, f'{rotating}[certificate]\nbar = "trial"\n'))
    assert [lack.text.partition(":")[0] for lack in made.lacks] == ["the plan rotates"]


def test_what_a_bar_requires_is_said_where_it_lacks(rows: list[JudgedRun], sample: Sample) -> None:
    """If it failed, evidence below the bar would be certified."""
    low = lacks.of_matrix(sample_campaign(sample), rows, rows[0].plan.code, Bar())
    words = [lack.text.partition(":")[0] for lack in low]
    assert sorted(words) == [
        "faults in effect",
        "hours of load",
        "kinds of faults in effect",
        "operations that succeeded",
        "runs",
    ]
    measured = sample.certificate.given.measured
    none_found = msgspec.structs.replace(
        measured, bugs=tuple(msgspec.structs.replace(bug, word="missed") for bug in measured.bugs)
    )
    half = Bar(name="half", requires=Requires(seeded_bugs=0.5, runs_per_bug=2))
    assert list(lacks.of_measure(measured, half)) == []
    (too_few,) = lacks.of_measure(none_found, half)
    assert too_few.text == "of the seeded bugs found: the share found is 0.0, the bar half requires 0.5"
    (no_bugs,) = lacks.of_measure(msgspec.structs.replace(measured, bugs=()), half)
    assert "try: --bar unmeasured" in no_bugs.text
    (small_budget,) = lacks.of_measure(
        measured, Bar(name="more", requires=Requires(seeded_bugs=0, runs_per_bug=3))
    )
    assert small_budget.text == "runs for each seeded bug: the budget was 2, the bar more requires 3"


def test_the_steps_of_a_directed_schedule_are_no_kinds_of_faults(
    rows: list[JudgedRun], sample: Sample
) -> None:
    """If it failed, a plan with the fault "holds" alone would have kinds of faults enough for a release."""
    steps = [{"name": f"hold-{number}", "took_effect": True} for number in range(30)]
    evidence = {**rows[0].evidence, "faults": [*rows[0].evidence["faults"], *steps]}
    more = [msgspec.structs.replace(rows[0], evidence=evidence), *rows[1:]]
    low = lacks.of_matrix(sample_campaign(sample), more, rows[0].plan.code, Bar())
    assert lacks.Lack(3, "kinds of faults in effect: there took effect 1, the bar release requires 10") in low


def sample_campaign(sample: Sample) -> Campaign:
    return campaign_plan.read(sample.folder / "small.toml")


def test_a_bar_that_is_a_little_lower_shows_by_how_much() -> None:
    """If it failed, a certificate would say "0.5 instead of 0.5 hours of load"."""
    lower = Bar(name="less", requires=Requires(hours=0.4999999, operations=49_999)).lower
    assert lower == (
        "0.4999999 instead of 0.5 hours of load, 49,999 instead of 50,000 operations that succeeded"
    )


def test_a_lower_bar_stands_in_the_first_line(sample: Sample) -> None:
    """If it failed, a trial would look like a release."""
    text = page.html(sample.certificate)
    first = "By the bar “trial”, which is lower than “release”: 1 instead of 60 runs"
    assert first in text
    given = sample.certificate.given
    as_release = msgspec.structs.replace(given, bar=Bar())
    assert "which is lower than" not in page.html(
        msgspec.structs.replace(sample.certificate, given=as_release)
    )
    for word in (
        "The Small Store",
        "its authors",
        given.about.valid_until,
        "certify --verify",
        "GiB of memory",
    ):  # type: ignore[union-attr]
        assert word in text, word


def test_what_a_bar_requires_is_said_to_the_last_operation() -> None:
    """If it failed, a certificate would name 1.23457e+06 operations, and two such bars would be called the same."""
    said = Bar(name="own", requires=Requires(operations=1_234_567)).sentence
    assert "operations that succeeded ≥ 1,234,567," in said


def test_a_lower_bar_needs_no_second_matrix(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, hours of runs that are below a bar would be done again for a lower one."""
    ask = asked(sample.folder)
    monkeypatch.setattr(making, "_is_of", lambda run, commit: True)
    assert making._undecided(ask) is None
    assert making._undecided(replace(ask, bar=Bar(name="unmeasured"))) is not None


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('bar = "low"', "expected one of the bars release, unmeasured, trial, got 'low'"),
        ("[certificate.requires]\nruns = 3", "needs a name of its own"),
        ('bar = "low"\n[certificate.requires]\nrun = 3', "run"),
        ('bar = "low"\n[certificate.requires]\nseeded_bugs = 70', "seeded_bugs"),
        ("valid_days = 0", "valid_days"),
    ],
)
def test_a_wrong_bar_is_one_line(table: str, told: str, tmp_path: Path) -> None:
    """If it failed, a slip in a plan would lower what its certificates require."""
    (tmp_path / "small.toml").write_text(f"{PLAN.partition('[certificate]')[0]}[certificate]\n{table}\n")
    with pytest.raises(WrongUse, match=told) as caught:
        campaign_plan.read(tmp_path / "small.toml")
    assert "\n" not in caught.value.message


def hostile(value: Any) -> Any:
    """The same with markup in the place of every text, and of every name that a plan or a store gives."""
    if isinstance(value, str):
        return HOSTILE
    if isinstance(value, list):
        return [hostile(each) for each in value]
    if isinstance(value, dict):
        return {name: hostile(each) for name, each in value.items()}
    return value


def test_markup_does_nothing_on_the_page(sample: Sample) -> None:
    """If it failed, a name in a plan or a text of a store could run a script in the browser of a reader."""
    built = msgspec.to_builtins(sample.certificate)
    bugs = built["given"]["measured"]["bugs"]
    words = [bug["word"] for bug in bugs]
    bad = {**built, "name": HOSTILE, "given": hostile(built["given"]), "shown": hostile(built["shown"])}
    for bug, word in zip(bad["given"]["measured"]["bugs"], words, strict=True):
        bug["word"] = word
    promised = bad["shown"]["promised"][0]
    promised["models"], promised["sources"] = {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE}
    bad["given"]["images"], bad["given"]["measured"]["clean"]["sometimes"] = (
        {HOSTILE: HOSTILE},
        {HOSTILE: [1, 1]},
    )
    text = page.html(msgspec.convert(bad, Certificate))
    assert text.count("&lt;img") > 20
    assert "<img" not in text
    assert "<script" not in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_two_certificates_are_compared(sample: Sample) -> None:
    """If it failed, a release could find less than the last one, unseen."""
    old = sample.certificate
    assert changes(old, old) == []
    code = msgspec.structs.replace(old.given.code, sha256="f" * 64)
    other = msgspec.structs.replace(old, given=msgspec.structs.replace(old.given, code=code))
    assert [line.partition(":")[0] for line in changes(old, other)] == ["code"]
    built = msgspec.to_builtins(old)
    built["given"]["code"]["commit"] = "later"
    built["given"]["measured"]["bugs"][0]["word"] = "missed"
    built["shown"]["operations"]["ok"] = 5
    built["shown"]["faults"].append(
        {"cluster": "local", "fault": "kill", "begun": 2, "took_effect": 2, "runs": 1}
    )
    built["shown"]["not_tested"]["faults"].remove("kill")
    gone = built["shown"]["states"]["reached"].pop(0)["state"]
    told = changes(old, msgspec.convert(built, Certificate))
    for wanted in (
        "later",
        "confirm-early: found → missed",
        "operations ok",
        "kill, local: 0 → 2",
        "faults: - kill",
        f"states covered: - {gone}",
    ):
        assert any(wanted in line for line in told), (wanted, told)
