"""The page as a whole: what it must say, what it must survive, what it must never let through."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pages import material, page, write
from harness.systems.qsync.promises import PROMISES
from tests import examples
from tests.harness.pages.run_folders import Kind, build, write_history
from tests.harness.pages.test_whole_timeline import DATA

HOSTILE = (
    """</style></title></script><script>alert("1")</script>"'><img src=x onerror=alert(1)>&amp;{{ 7*7 }}"""
)


class Tags(HTMLParser):
    """The elements and attributes that a browser would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes.extend((name, value or "") for name, value in attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def tags(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    parser.close()
    return parser


def text_of(html: str) -> str:
    return " ".join(" ".join(tags(html).text).split())


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()[1:]]


@pytest.mark.parametrize(
    ("kind", "badge"),
    [("valid", "VALID"), ("anomaly", "ANOMALY"), ("unknown", "UNKNOWN"), ("inconclusive", "INCONCLUSIVE")],
)
def test_the_verdict_stands_first(tmp_path: Path, kind: Kind, badge: str) -> None:
    """If it failed, a reader would have to look for the outcome, or see the wrong one."""
    folder = build(tmp_path / "default" / kind, kind, seconds=18)
    text = text_of(write(folder).read_text())
    sentence = json.loads((folder / "verdict.json").read_text())["sentence"]
    assert f"{badge} {sentence}" in text
    assert text.index(sentence) < text.index("Checks")


def test_the_witness_is_drawn_with_its_labels_and_explained(tmp_path: Path) -> None:
    """If it failed, an anomaly would be claimed without the operations that prove it."""
    html = write(build(tmp_path / "anomaly", "anomaly")).read_text()
    for label in (
        "write 3 · n1",
        "write 7 · n1",
        "read → 7 · n1",
        "cas 7→9 · n1",
        "read → 3 · n1",
        "isolate-owner n1 | n2 n3",
    ):
        assert f">{label}</text>" in html
    assert "no quorum had it" in html
    assert 'class="op info"' in html
    assert 'class="tail"' in html
    assert "owner · term 2, cut from n2, n3" in html


def test_a_run_without_enough_evidence_says_what_is_missing(tmp_path: Path) -> None:
    """If it failed, exit code 3 would leave its reader without a reason."""
    text = text_of(write(build(tmp_path / "run", "inconclusive")).read_text())
    assert "Why this run proves nothing" in text
    assert "No fault took effect." in text


@pytest.mark.parametrize("kind", ["valid", "inconclusive"])
def test_a_run_of_an_older_version_has_the_same_page(tmp_path: Path, kind: Kind) -> None:
    """If it failed, the page of a stored run would say that none of its faults took effect."""
    old = {"took_effect": "bit", "skipped_faults": "left_out", "not_observed": "not_felt"}
    old |= {"inconclusive": "not-evidence"} if kind == "inconclusive" else {}
    pages = []
    for name, words in (("new", {}), ("old", old)):
        folder = build(tmp_path / name / "run", kind)
        verdict = json.loads((folder / "verdict.json").read_text())
        verdict["evidence"] |= {
            "not_observed": ["pause"],
            "skipped_faults": [{"name": "kill", "why": "it was late"}],
        }
        (folder / "verdict.json").write_text(json.dumps(verdict))
        for path in (folder / "verdict.json", folder / "history.jsonl"):
            text = path.read_text()
            for today, before in words.items():
                assert f'"{today}"' in text or path.name == "history.jsonl" or kind == "inconclusive"
                text = text.replace(f'"{today}"', f'"{before}"')
            path.write_text(text)
        pages.append(text_of(page.html(folder)).replace(f"/ {name} /", "/"))
    assert pages[0] == pages[1]
    assert {"valid": "took effect? evidence", "inconclusive": "INCONCLUSIVE"}[kind] in pages[0]


def test_violations_come_before_findings_and_what_is_valid(tmp_path: Path) -> None:
    """If it failed, a violation could stand below the fold of a long table."""
    html = write(build(tmp_path / "run", "anomaly")).read_text()
    assert re.findall(r'<tr class="(violation|finding|unknown|valid)">', html) == [
        "violation",
        "finding",
        "valid",
        "valid",
        "valid",
    ]


def judged_again(folder: Path, **changed: Any) -> str:
    """The page of a run whose verdict says something else."""
    told = json.loads((folder / "verdict.json").read_text()) | changed
    (folder / "verdict.json").write_text(json.dumps(told))
    return page.html(folder)


def test_what_the_documentation_says_stands_beside_what_is_judged_by_it(tmp_path: Path) -> None:
    """If it failed, a reader would have to believe that a violation is one, or that a finding is allowed."""
    quoted = {"linearizable": "“Only one node.”", "replica-reads": "“May lag.”", "crash": "“Never ends.”"}
    html = judged_again(build(tmp_path / "run", "anomaly"), documented=quoted)
    witness, checks = html.split('id="checks"')
    assert "“Only one node.”" in witness
    assert "“Only one node.”" in checks and "“May lag.”" in checks
    assert "“Never ends.”" not in html, "nothing was found by that check"


def test_with_which_reservation_something_is_promised_stands_beside_what_breaks_it(tmp_path: Path) -> None:
    """If it failed, whoever meets the loss that a configuration is known for would look for it as for a new one."""
    why = PROMISES["F"].why
    assert "9376" in PROMISES["G"].why, "it loses the same"
    folder = build(tmp_path / "run", "anomaly")
    witness, others = judged_again(folder, promise={"linearizable": "one order", "why": why}).split(
        'id="checks"'
    )
    assert "(Tarantool&#39;s issue 9376): then one is lost" in witness
    assert "may have to stop on split-brain" in others, "it is not cut off where all promises stand"
    witness, _ = judged_again(folder, violations=[], outcome="valid").split('id="checks"')
    assert "9376" not in witness, "nothing is broken"


def test_every_finding_has_its_line(tmp_path: Path) -> None:
    """If it failed, of several findings one would be shown, or none if no check of that name was run."""
    told = [
        {"checker": "replica-reads", "summary": "reads lagged"},
        {"checker": "replica-reads", "summary": "reads went back"},
        {"checker": "detected", "summary": "n2 refused its files"},
    ]
    html = judged_again(build(tmp_path / "run", "valid"), findings=told)
    assert all(finding["summary"] in html for finding in told)


def test_a_witness_of_what_is_allowed_is_called_a_finding(tmp_path: Path) -> None:
    """If it failed, a page would say VALID above the proof of an anomaly, and nobody would know what to believe."""
    folder = build(tmp_path / "run", "anomaly")
    assert "allowed by what is promised" not in page.html(folder)
    assert "finding, allowed by what is promised" in judged_again(folder, violations=[], outcome="valid")


def test_of_a_crash_the_last_lines_are_shown(tmp_path: Path) -> None:
    """If it failed, the page would show how a process started, and not what it said when it ended."""
    folder = build(tmp_path / "run", "anomaly")
    printed = [f"line {number}" for number in range(100)]
    crash = {"rule": "crash", "summary": "n1 ended", "events": [], "explanation": printed}
    check = {"checker": "crash", "result": "invalid", "summary": "n1 ended", "witnesses": [crash]}
    html = judged_again(folder, checks=[check], violations=["crash"])
    assert "The last 60 lines that the process printed" in html
    assert "line 99\n</code>" in html and "line 39\n" not in html


def test_what_has_no_room_beside_a_witness_is_counted(tmp_path: Path) -> None:
    """If it failed, a witness would seem to name fewer lines than it does, or a narrow screen show fewer faults."""
    folder = build(tmp_path / "run", "valid")
    record = folder / "history.jsonl"
    lines, count = record.read_text(), len(lines_of(folder))
    for number in range(45):
        line = {
            "index": count + number,
            "time_ns": 11_000_000_000 + number,
            "type": "info",
            "process": "monitor",
        }
        lines += json.dumps({**line, "f": "state", "node": "n1", "value": {"number": number}}) + "\n"
    for number in range(15):
        line = {
            "index": count + 45 + number,
            "time_ns": 11_000_000_100,
            "type": "invoke",
            "process": "nemesis",
        }
        asked = {"id": 900 + number, "name": "pause", "does": "pause"}
        lines += json.dumps({**line, "f": "pause", "value": asked}) + "\n"
    record.write_text(lines)
    sentences = [f"sentence {number}" for number in range(15)]
    events = [*range(count, count + 45)]
    named = {"rule": "slow", "summary": "slow", "events": events, "explanation": sentences}
    witnesses = [
        named,
        *({"rule": "slow", "summary": f"number {number}", "events": []} for number in range(99)),
    ]
    check = {"checker": "slow", "result": "invalid", "summary": "slow", "witnesses": witnesses}
    html = judged_again(folder, outcome="anomaly", checks=[check], violations=["slow"])
    assert "that this witness names: the last 5 lines." in html
    assert "&#34;number&#34;: 39" in html and "&#34;number&#34;: 40}" not in html.partition('id="run"')[0]
    assert re.search(r"… and \d+ more faults, in the table of faults", html)
    assert "<li>sentence 11</li><li>… and 3 more, in verdict.json.</li>" in html
    assert (
        "<h3>99 more</h3>" in html
        and "92 more, not drawn" in html
        and "… and 32 more, in verdict.json." in html
    )


def test_the_line_that_repeats_the_run_says_what_it_repeats(tmp_path: Path) -> None:
    """If it failed, somebody would take a schedule for an outcome and call a bug unreproducible."""
    html = write(build(tmp_path / "run", "valid")).read_text()
    assert "./qsync run --cluster local --seed 7 --time-limit 20" in html
    assert "It repeats the schedule" in html


def test_the_page_needs_no_network(tmp_path: Path) -> None:
    """If it failed, the page would be broken on a machine without network, or tell a stranger that it was read."""
    html = write(build(tmp_path / "run", "anomaly")).read_text()
    assert "//" not in re.sub(r"<script>.*</script>|data:,", "", html, flags=re.DOTALL).replace("</", "")
    loading = {value for name, value in tags(html).attributes if name in ("src", "href", "action", "data")}
    assert {value for value in loading if not value.startswith("#")} == {"data:,"}
    assert not re.findall(r"url\((?!#)|@import", html)


def _with_hostile_words(folder: Path) -> None:
    """Puts the hostile text wherever a run's folder holds text that somebody else chose."""
    lines = lines_of(folder)
    for line in lines:
        for name in ("key", "error", "role", "mode", "node"):
            if line.get(name) is not None:
                line[name] = HOSTILE
        if isinstance(line["process"], int) and line["f"] == "write":
            line["value"] = HOSTILE
        if line["process"] == "nemesis" and line["type"] == "invoke":
            line["value"] |= {
                "name": HOSTILE,
                "does": HOSTILE,
                "nodes": [HOSTILE],
                "links": [[HOSTILE, HOSTILE]],
            }
        if line["process"] == "nemesis" and line["type"] == "info":
            line["value"] |= {"counters": {HOSTILE: 1}, "detail": HOSTILE}
        if line["process"] == "monitor":
            line["value"] = {"up": True, "role": HOSTILE, "term": HOSTILE}
    write_history(folder, lines)
    verdict = json.loads((folder / "verdict.json").read_text())
    verdict |= {
        "sentence": HOSTILE,
        "promise": {HOSTILE: HOSTILE},
        "run": {"cluster": HOSTILE, "seed": HOSTILE},
    }
    verdict["repeat"]["command"] = HOSTILE
    for check in verdict["checks"]:
        check |= {"summary": HOSTILE, "model": HOSTILE, "details": {HOSTILE: HOSTILE}}
        for witness in check.get("witnesses", ()):
            witness |= {"rule": HOSTILE, "summary": HOSTILE, "key": HOSTILE, "explanation": [HOSTILE]}
            check["witnesses"] = [witness, {**witness, "node": HOSTILE}]
    (folder / "verdict.json").write_text(json.dumps(verdict))
    (folder / "plan.json").write_text(json.dumps({HOSTILE: HOSTILE}))
    fields = dict.fromkeys(("level", "message", "term", "owner", "lsn", HOSTILE), HOSTILE)
    log_line = json.dumps({"time_ns": 9 * 10**9, **fields})
    (folder / "nodes" / "n1" / "log.jsonl").write_text(f"{log_line}\n{HOSTILE}\n")


def test_nothing_that_a_run_says_becomes_markup(tmp_path: Path) -> None:
    """If it failed, a value that a server returned could run a script in the browser of whoever reads the report."""
    plain = tags(write(build(tmp_path / "plain", "anomaly")).read_text())
    folder = build(tmp_path / 'a "quoted" <b>run', "anomaly")
    _with_hostile_words(folder)
    html = write(folder).read_text()
    seen = tags(html)
    assert seen.elements.count("script") == plain.elements.count("script") == 2
    assert seen.elements.count("style") == 1
    assert "img" not in seen.elements
    assert {name for name, _ in seen.attributes} <= {name for name, _ in plain.attributes} | {"open"}
    assert 'alert("1")' not in html
    assert "{{ 7*7 }}" in text_of(html)


def test_a_torn_history_is_shown_up_to_the_tear_and_said_so(tmp_path: Path) -> None:
    """If it failed, the run of a killed harness, which is when one wants to look, could not be looked at."""
    folder = build(tmp_path / "run", "valid")
    path = folder / "history.jsonl"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] + b'{"index":99')
    text = text_of(write(folder).read_text())
    assert re.search(r"history\.jsonl: line [\d,]+ is torn", text)
    assert "one point each" in text


def test_garbage_in_the_middle_of_a_history_is_named_with_its_line(tmp_path: Path) -> None:
    """If it failed, a damaged record would look like a short one."""
    folder = build(tmp_path / "run", "valid")
    lines = (folder / "history.jsonl").read_text().splitlines()
    lines[100] = "garbage"
    (folder / "history.jsonl").write_text("\n".join(lines) + "\n")
    assert "history.jsonl: line 101 cannot be read" in text_of(write(folder).read_text())


def test_an_empty_folder_gives_a_page_that_says_what_is_missing(tmp_path: Path) -> None:
    """If it failed, a run that broke at its start would have no page, or a page that looks like success."""
    text = text_of(write(tmp_path).read_text())
    assert "NO VERDICT" in text
    for name in ("plan.json", "verdict.json", "history.jsonl"):
        assert f"{name} is missing" in text


def test_lines_that_are_too_many_to_keep_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it failed, the lane of a node that died after days would show it as it was before, to the end of the run."""
    folder = build(tmp_path / "run", "valid")
    there = sum(line["process"] == "monitor" for line in lines_of(folder))
    monkeypatch.setattr(material, "MONITOR_LINES_KEPT", 50)
    assert f"the last {there - 50:,} lines of nemesis, monitor and harness are not shown" in page.html(folder)


def test_an_empty_history_is_said_to_be_empty(tmp_path: Path) -> None:
    """If it failed, "no operations" would look like "no trouble"."""
    folder = build(tmp_path / "run", "inconclusive")
    (folder / "history.jsonl").write_text("")
    assert "history.jsonl is empty: nothing was recorded" in text_of(write(folder).read_text())


def test_files_that_are_no_json_are_named(tmp_path: Path) -> None:
    """If it failed, a half-written verdict would be taken for none, without a word."""
    (tmp_path / "verdict.json").write_text('{"outcome": "val')
    (tmp_path / "plan.json").write_text("[1]")
    text = text_of(write(tmp_path).read_text())
    assert "verdict.json cannot be read" in text
    assert "plan.json is not a JSON object" in text


def test_log_lines_that_are_no_json_are_shown_as_they_are(tmp_path: Path) -> None:
    """If it failed, the traceback of the node that died would be the one thing that the page leaves out."""
    folder = build(tmp_path / "run", "valid")
    with (folder / "nodes" / "n2" / "log.jsonl").open("a") as log:
        log.write("AssertionError: the limbo is out of order\n")
    text = text_of(write(folder).read_text())
    assert "AssertionError: the limbo is out of order" in text
    assert "The log of n2 has 1 lines that are no JSON" in text


def test_the_old_page_stays_if_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, a full disk would leave half a page, or a stray file in the run's folder."""
    (tmp_path / "report.html").write_text("old")

    def breaks(_folder: Path) -> str:
        raise OSError("disk full")

    monkeypatch.setattr(page, "html", breaks)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "old"


def test_the_same_folder_gives_the_same_page(tmp_path: Path) -> None:
    """If it failed, two people could not compare what they see by comparing files."""
    folder = build(tmp_path / "run", "anomaly")
    assert write(folder).read_bytes() == write(folder).read_bytes()


def test_a_usual_run_stays_small(tmp_path: Path) -> None:
    """If it failed, a night of runs would fill the disk with pages (a run of 3,000 operations: under 1 MB)."""
    report = write(build(tmp_path / "run", "anomaly", seconds=20, rate=200))
    assert report.stat().st_size < 300_000


@pytest.mark.long
def test_a_big_history_is_downsampled_and_the_page_says_so(tmp_path: Path) -> None:
    """If it failed, the page would grow with the history until no browser opens it."""
    folder = build(tmp_path / "run", "valid", seconds=60, rate=400)
    report = write(folder)
    assert len(lines_of(folder)) > 15_000
    html = report.read_text()
    data = DATA.findall(html)[0]
    assert len(html) - len(data) < 300_000, "the drawings do not grow"
    assert len(data) < len(lines_of(folder)) // 2 * 16, "16 bytes for each operation of the timeline"
    assert "downsampled" in html


@pytest.mark.nightly
def test_a_history_of_a_million_operations_gives_a_page_below_5_mb(tmp_path: Path) -> None:
    """If it failed, the longest runs, of which a campaign is made, would have pages that nobody can open."""
    folder = build(tmp_path / "run", "valid", seconds=3_600, rate=500)
    with (folder / "history.jsonl").open() as history:
        assert sum(1 for _ in history) > 2_000_000
    report = write(folder)
    assert report.stat().st_size < 5_000_000
    assert "Densities count all operations" in report.read_text()


def test_a_record_without_times_has_no_rates(tmp_path: Path) -> None:
    """If it failed, lines of a file would be told as nanoseconds: a million operations per second, latencies of 1 µs, a
    node that served again after 0 µs."""
    folder = build(tmp_path / "run", "valid")
    header = (folder / "history.jsonl").read_text().splitlines()[0]
    of_clients = [line for line in lines_of(folder) if isinstance(line["process"], int)]
    lines = [json.dumps({**line, "time_ns": line["index"]}) for line in of_clients]
    timed = write(folder).read_text()
    (folder / "history.jsonl").write_text("\n".join([header, *lines]) + "\n")
    html = write(folder).read_text()
    assert "per second" in timed and "latency" in timed and "Rate in slices of" in timed
    shown = text_of(html.partition('<section id="run">')[2].partition("<section")[0])
    assert "The record has no times, and so no latencies and no rates." in shown
    assert "per second" not in shown and "latency" not in shown
    nodes = text_of(html.partition("How each node served")[2].partition("</section>")[0])
    assert "µs" not in nodes and "0.000 s" not in nodes


@pytest.mark.long
def test_a_witness_of_a_thousand_operations_is_drawn_in_part_and_says_so(tmp_path: Path) -> None:
    """If it failed, one checker that names everything would make the page unreadable."""
    folder = build(tmp_path / "run", "anomaly")
    verdict = json.loads((folder / "verdict.json").read_text())
    everything = [line["index"] for line in lines_of(folder) if isinstance(line["process"], int)]
    verdict["checks"][1]["witnesses"][0]["events"] = everything
    first = verdict["checks"][1]["witnesses"][0]
    verdict["checks"][1]["witnesses"] += [{**first, "summary": f"number {n}"} for n in range(99)]
    (folder / "verdict.json").write_text(json.dumps(verdict))
    html = write(folder).read_text()
    assert "Not drawn in the middle of this witness: " in html
    assert "and 32 more, in verdict.json" in html
    assert len(html) < 1_500_000


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
VERDICT_FIELDS = (
    "outcome",
    "sentence",
    "promise",
    "violations",
    "findings",
    "documented",
    "evidence",
    "checks",
    "repeat",
    "run",
)
CHECK_FIELDS = ("checker", "result", "summary", "model", "witnesses", "details", "seconds")
WITNESS_FIELDS = ("rule", "summary", "events", "key", "node", "start_ns", "end_ns", "explanation")
odd_witnesses = st.fixed_dictionaries({}, optional=dict.fromkeys(WITNESS_FIELDS, json_values))
odd_checks = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(CHECK_FIELDS, json_values) | {"witnesses": st.lists(odd_witnesses, max_size=2)}
)
odd_verdicts = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(VERDICT_FIELDS, json_values) | {"checks": st.lists(odd_checks, max_size=3)}
)


@pytest.fixture(scope="module")
def small_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("run"), "anomaly", seconds=3, rate=20)


@examples.up_to(150)
@given(verdict=odd_verdicts | json_values)
def test_any_verdict_gives_a_page(small_run: Path, verdict: object) -> None:
    """If it failed, a checker that writes something odd would cost the reader the whole page."""
    (small_run / "verdict.json").write_text(json.dumps(verdict))
    assert page.html(small_run).endswith("</html>")


EVENT_FIELDS = (
    "index",
    "time_ns",
    "type",
    "process",
    "f",
    "key",
    "value",
    "node",
    "role",
    "mode",
    "error",
    "phase",
)
odd_faults = st.fixed_dictionaries({"id": st.integers(0, 3), "name": st.text(max_size=4), "does": st.text()})
odd_events = st.fixed_dictionaries(
    {
        "index": st.integers(0, 50),
        "time_ns": st.integers(0, 10**10) | st.integers(),
        "type": st.sampled_from(["invoke", "ok", "fail", "info"]),
        "process": st.integers(0, 3) | st.sampled_from(["nemesis", "monitor", "harness", "else"]),
        "f": st.sampled_from(["read", "write", "cas", "dump", "state", "stall", "isolate-owner"]),
    },
    optional={
        "key": st.sampled_from(["r3", "r1", None]),
        "value": json_values | odd_faults,
        "node": st.sampled_from(["n1", "n2", "", None]),
        "role": st.text(max_size=5),
        "error": st.text(max_size=5),
    },
)


@examples.up_to(150)
@given(events=st.lists(odd_events, max_size=25), indexes=st.lists(st.integers(0, 30), max_size=8))
def test_any_history_gives_a_page(small_run: Path, events: list[dict[str, Any]], indexes: list[int]) -> None:
    """If it failed, a history out of the ordinary (times that go back, ends without beginnings) would have no page."""
    write_history(small_run, events)
    witness = {"events": indexes, "key": "r3", "start_ns": 0, "end_ns": 10**10}
    (small_run / "verdict.json").write_text(
        json.dumps({"checks": [{"result": "invalid", "witnesses": [witness]}]})
    )
    assert page.html(small_run).endswith("</html>")
