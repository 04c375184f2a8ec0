"""Pages over stored runs: what they show, and what they refuse."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.campaigns.journal import Head, Task
from harness.results import bundle
from harness.serve.app import is_ours
from harness.serve.index import GOES_ON, Index
from tests import examples
from tests.harness.campaigns.journals import ended
from tests.harness.serve.asked import Asked

ODD = "<img src=x onerror=alert(1)>"
SECRET = "the secret beside results"
NAME = "20261123T021700Z-7"
OTHER = "20261123T021800Z-8"


def event(index: int, **fields: object) -> str:
    return json.dumps({"index": index, "time_ns": index * 1_000_000, **fields}) + "\n"


def store(results: Path, plan: str, name: str, outcome: str | None = "anomaly", word: str = ODD) -> Path:
    """A run's folder as a run would leave it; `word` is every name and value in it."""
    folder = results / plan / name
    (folder / "nodes" / "n1").mkdir(parents=True)
    (folder / "nodes" / "n1" / f"{quote(word, safe='')}.xlog").write_text(word)
    plan_file = {
        "system": word,
        "cluster": "sim",
        "workload": word,
        "seed": 7,
        "name": plan,
        "options": {"configuration": word, word: word},
    }
    (folder / "plan.json").write_text(json.dumps(plan_file))
    header = {"format": "qsync-history", "version": 1, "system": word, "nodes": ["n1", word]}
    lines = [json.dumps(header) + "\n"]
    lines.append(
        event(0, type="invoke", process="nemesis", f=word, value={"id": 0, "does": "kill", "nodes": [word]})
    )
    lines.append(
        event(1, type="info", process="monitor", f="state", node=word, value={"up": True, "role": word})
    )
    lines += [
        event(2 + n, type="invoke" if n % 2 == 0 else "ok", process=1, f=word, key=word, value=word)
        for n in range(300)
    ]
    lines.append(event(302, type="info", process=2, f="read", error=word))
    (folder / "history.jsonl").write_text("".join(lines) + '{"index":303,"torn')
    (folder / "report.html").write_text(f"<script>{word}</script>")
    if outcome is not None:
        check = {
            "checker": word,
            "result": "invalid",
            "summary": word,
            "witnesses": [{"rule": word, "events": [3]}],
        }
        verdict = {
            "outcome": outcome,
            "sentence": word,
            "evidence": {
                "ok": 150,
                "kinds_in_effect": [word],
                "rare_turns": {word: 2, "a turn that never came": 0, "a turn of no number": word},
                "faults": [{"name": word, "took_effect": True}],
            },
            "checks": [check],
            "violations": [word],
        }
        (folder / "verdict.json").write_text(json.dumps(verdict))
    return folder


def store_campaign(results: Path, begun: str, *fingerprints: str) -> Path:
    folder = results / "_campaigns" / ODD.replace("/", "") / begun
    folder.mkdir(parents=True)
    runs = [
        ended(ODD, seed, "anomaly", *fingerprints, run=f"night/{NAME}", shapes=(ODD,)) for seed in range(2)
    ]
    turns = (f"turn of {begun[6:8]} {ODD}",)
    runs.append(ended(ODD, 2, "inconclusive", sentence=ODD, kinds_in_effect=(ODD,), rare_turns=turns))
    head = Head(
        name=ODD,
        digest=begun,
        begun=f"2026-11-{begun[6:8]}T02:17:00",
        tasks=(Task(ODD, 9),),
        rare_turns=(*turns, f"never {ODD}"),
    )
    (folder / "campaign.json").write_bytes(msgspec.json.encode(head))
    (folder / "runs.jsonl").write_bytes(b"".join(msgspec.json.encode(run) + b"\n" for run in runs))
    (folder / "index.html").write_text("a stored page")
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("serve")
    (root / "secret.txt").write_text(SECRET)
    (root / "outside").mkdir()
    (root / "outside" / "plan.json").write_text("{}")
    (root / "outside" / "report.html").write_text(SECRET)
    results = root / "results"
    run = store(results, "night", NAME)
    store(results, "night", OTHER, "valid", "plain")
    odd = store(results, ODD.replace("/", ""), NAME, None)
    (odd / os.fsdecode(b"no \xff text")).write_text(ODD)
    (run / "out.txt").symlink_to(root / "secret.txt")
    (run / "up").symlink_to(root)
    (run / "nodes" / "in.txt").symlink_to(run / "plan.json")
    (results / "night" / "20261123T021900Z-9").symlink_to(root / "outside", target_is_directory=True)
    (results / "linked").symlink_to(root, target_is_directory=True)
    (results / "latest").symlink_to(run, target_is_directory=True)
    campaign = store_campaign(results, "20261122T021700Z", "x")
    store_campaign(results, "20261123T021700Z", "x", "y")
    (campaign.parent / "20261121T021700Z").symlink_to(root / "outside", target_is_directory=True)
    tables = results / "_tables"
    (tables / "runs" / "campaign=night").mkdir(parents=True)
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"run": [NAME], ODD: [ODD]})
    pyarrow.parquet.write_table(table, tables / "runs" / "campaign=night" / "0.parquet")
    (tables / "runs" / "campaign=night" / "1.parquet").symlink_to(root / "secret.txt")
    (tables / "out").symlink_to(root, target_is_directory=True)
    (tables / "broken").mkdir()
    (tables / "broken" / "0.parquet").write_text(SECRET[:4])
    return results


@pytest.fixture(scope="module")
def asked(results: Path) -> Asked:
    return Asked(results)


RUN = f"/runs/night/{NAME}"
CAMPAIGN = quote(ODD.replace("/", ""), safe="")
PAGES = (
    "/runs",
    "/runs?text=img&sort=ok&outcome=anomaly&plan=night",
    RUN,
    f"{RUN}/operations?from=40",
    f"{RUN}/live",
    f"/runs/{CAMPAIGN}/{NAME}",
    f"/runs/{CAMPAIGN}/{NAME}/live",
    f"/compare?a=night/{NAME}&b=night/{OTHER}",
    f"/compare?a=night/{NAME}&b={CAMPAIGN}/{NAME}",
    "/campaigns",
    f"/campaigns/{CAMPAIGN}/20261123T021700Z",
    f"/nights?a={CAMPAIGN}/20261122T021700Z&b={CAMPAIGN}/20261123T021700Z",
    "/live",
    "/tables",
    "/tables/runs",
)
REFUSED = (
    "/nix",
    f"/{quote(ODD)}",
    f"/runs/{quote(ODD)}/{NAME}x",
    f"/tables/{quote(ODD)}",
    f"/runs?page={quote(ODD)}",
    f"/compare?a={quote(ODD)}&b=",
    f"{RUN}/files/{quote(ODD)}",
    f"/nights?a={quote(ODD)}",
)


@pytest.mark.parametrize("page", [*PAGES, *REFUSED])
def test_markup_in_a_name_or_a_value_does_nothing(asked: Asked, page: str) -> None:
    """If it failed, a key, value, error, node, file or campaign could act in the browser of a reader."""
    found = asked(page)
    assert found.status == (200 if page in PAGES else 400 if "page=" in page else 404), found.text
    assert "<img" not in found.text and "onerror=alert(1)>" not in found.text
    if page in PAGES and page != "/tables":
        assert "&lt;img" in found.text
    assert set(re.findall(r"<script[^>]*>", found.text)) <= {'<script src="/static/serve.js" defer>'}
    policy = found.headers["content-security-policy"]
    assert (
        "default-src 'none'" in policy
        and "script-src 'self'" in policy
        and "script-src 'unsafe" not in policy
    )
    assert found.headers["x-content-type-options"] == "nosniff"
    assert asked.failed == []


def test_the_states_that_a_night_reached_are_told(asked: Asked) -> None:
    """If it failed, a browser would show which runs passed, and not what they tried."""
    night = asked(f"/campaigns/{CAMPAIGN}/20261123T021700Z").text
    for words in (
        "States covered",
        "rare turns that came about",
        "turn of 23 ",
        "never came about",
        "never &lt;img",
    ):
        assert words in night
    assert "rare turn: turn of 22 " in night and "not reached" in night  # since the night before
    both = f"/nights?a={CAMPAIGN}/20261122T021700Z&b={CAMPAIGN}/20261123T021700Z"
    assert "rare turn: turn of 22 " in asked(both).text
    run = asked(RUN).text
    assert "Rare turns" in run and "a turn that never came" not in run


def test_files_are_downloaded_and_stored_pages_are_alone(asked: Asked) -> None:
    """If it failed, a file of a run could act in the origin of the server."""
    file = asked(f"{RUN}/files/plan.json")
    assert file.status == 200 and file.headers["content-disposition"].startswith("attachment")
    assert file.headers["content-type"] == "application/octet-stream"
    inside = asked(f"{RUN}/files/nodes/in.txt")
    assert inside.body == file.body
    for page in (
        f"/results/night/{NAME}/report.html",
        f"/results/_campaigns/{CAMPAIGN}/20261122T021700Z/index.html",
    ):
        stored = asked(page)
        assert stored.status == 200 and stored.headers["content-type"].startswith("text/html")
        policy = stored.headers["content-security-policy"]
        assert policy.startswith("sandbox ") and "allow-same-origin" not in policy
        assert stored.headers["x-content-type-options"] == "nosniff"


def test_every_listed_file_is_downloaded(tmp_path: Path) -> None:
    """If it failed, a name that is no UTF-8 would be a dead link, or break the server."""
    folder = store(tmp_path, "night", NAME)
    (folder / os.fsdecode(b"no \xff text")).write_text("all the same")
    asked = Asked(tmp_path)
    links = re.findall(r'href="([^"]+/files/[^"]+)"', asked(RUN).text)
    assert len(links) == 6
    assert [asked(link).status for link in links] == [200] * 6
    assert asked(f"{RUN}/files/no%20%FF%20text").text == "all the same"
    assert asked.failed == []


def test_a_table_of_files_that_do_not_fit_each_other_cannot_be_read(tmp_path: Path) -> None:
    """If it failed, a file of another version would be reported as a defect of ours."""
    import pyarrow
    import pyarrow.parquet

    (tmp_path / "_tables" / "t").mkdir(parents=True)
    for number, value in enumerate((1, ["x"])):
        path = tmp_path / "_tables" / "t" / f"{number}.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"a": [value]}), path)
    asked = Asked(tmp_path)
    answer = asked("/tables/t")
    assert (answer.status, asked.failed) == (404, [])
    assert "The table t cannot be read: " in answer.text


@pytest.mark.parametrize(
    "target",
    [
        f"{RUN}/files/out.txt",
        f"{RUN}/files/up/secret.txt",
        f"{RUN}/files/../../../secret.txt",
        f"{RUN}/files/%2e%2e/%2e%2e/%2e%2e/secret.txt",
        f"{RUN}/files//etc/passwd",
        f"{RUN}/files/%2Fetc%2Fpasswd",
        f"{RUN}/files/plan.json%00",
        f"{RUN}/files/",
        f"{RUN}/files/nodes",
        "/runs/night/..%2f../files/secret.txt",
        "/runs/../../files/secret.txt",
        "/runs/night/20261123T021900Z-9",
        "/results/night/20261123T021900Z-9/report.html",
        "/runs/linked/results",
        f"/runs/latest/{NAME}",
        "/runs/latest/nodes/files/in.txt",
        f"/campaigns/{CAMPAIGN}/20261121T021700Z",
        "/tables/out",
        "/tables/..",
        "/tables/broken",
        "/static/../../secret.txt",
    ],
)
def test_nothing_outside_is_shown(asked: Asked, target: str) -> None:
    """If it failed, a path or a link in results/ would open any file of the machine."""
    found = asked(target)
    assert found.status == 404, found.text
    assert SECRET not in found.text and "root:" not in found.text and "Traceback" not in found.text
    assert asked.failed == []


parts = st.sampled_from(
    ["runs", "results", "night", NAME, "files", "..", ".", "", "up", "out.txt", "secret.txt", "%2e%2e", "%2f", "live",
     "operations", "tables", "out", "campaigns", CAMPAIGN, "20261122T021700Z", "bundle", "\x00", "%00", "_tables",
     "_campaigns", "latest", "linked", "compare", "nights", "%ff", "report.html", "plan.json", "nodes", "ä"]
)  # fmt: skip
words = st.one_of(st.text(max_size=12), parts, st.integers().map(str))
paths = st.lists(st.one_of(parts, words.map(quote)), max_size=7).map(lambda each: "/" + "/".join(each))
queries = st.dictionaries(
    st.sampled_from(["from", "page", "a", "b", "text", "sort", "plan", "outcome"]), words, max_size=4
)


@examples.up_to(300)
@given(paths, queries, st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "X"]))
@example(f"{RUN}/operations", {"from": "9" * 30}, "GET")
@example(f"{RUN}/operations", {"from": "٣"}, "GET")
@example("/runs", {"page": str(1 << 70)}, "GET")
def test_any_request_gets_a_page(asked: Asked, path: str, query: dict[str, str], method: str) -> None:
    """If it failed, a request would end in a traceback, or show a file outside of results/."""
    target = path + "?" + "&".join(f"{name}={quote(value)}" for name, value in query.items())
    found = asked(target, method=method)
    assert found.status in (200, 307, 400, 404, 405), (target, found.status)
    assert SECRET.encode() not in found.body and b"root:" not in found.body and b"Traceback" not in found.body
    assert asked.failed == []
    if method not in ("GET", "HEAD"):
        assert found.status in (404, 405)


@pytest.mark.parametrize(
    ("bound", "header", "is_fine"),
    [
        ("127.0.0.1", "127.0.0.1:8000", True),
        ("127.0.0.1", "localhost:8000", True),
        ("127.0.0.1", "[::1]:8000", True),
        ("127.0.0.1", "LOCALHOST", True),
        ("127.0.0.1", "evil.example:8000", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "192.168.0.7:8000", False),
        ("127.0.0.1", "", False),
        ("::1", "[::1]:8000", True),
        ("0.0.0.0", "192.168.0.7:8000", True),
        ("0.0.0.0", "evil.example", False),
        ("box.lan", "BOX.lan:8000", True),
        ("box.lan", "evil.example:8000", False),
    ],
)
def test_a_foreign_name_is_refused(results: Path, bound: str, header: str, is_fine: bool) -> None:
    """If it failed, a page of another site could read all results by a name that points here."""
    assert is_ours(header, bound) == is_fine
    found = Asked(results, bound)("/runs", host=header)
    assert found.status == (200 if is_fine else 421)
    assert ("night" in found.text) == is_fine


def test_a_run_is_downloaded_as_one_bundle(asked: Asked, tmp_path: Path) -> None:
    """If it failed, a shared run would lack a file, or bring one along to which a link leads."""
    found = asked(f"{RUN}/bundle")
    assert found.status == 200 and found.headers["content-disposition"].startswith("attachment")
    assert int(found.headers["content-length"]) == len(found.body)
    (tmp_path / "bundle.zip").write_bytes(found.body)
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        names = set(archive.namelist())
        contents = b"".join(archive.read(name) for name in names)
    assert {"plan.json", "history.jsonl", "verdict.json", "report.html"} <= names
    assert {"out.txt", "up"}.isdisjoint(names) and SECRET.encode() not in contents
    refused = asked(f"/runs/{CAMPAIGN}/{NAME}/bundle")
    assert refused.status == 404 and "cannot bundle" in refused.text and asked.failed == []
    (tmp_path / "copy").mkdir()
    assert bundle.unpack(tmp_path / "bundle.zip", tmp_path / "copy").manifest.kind == "run"
    assert (tmp_path / "copy" / "plan.json").read_bytes() == asked(f"{RUN}/files/plan.json").body


def test_operations_are_shown_around_the_one_that_is_asked_for(asked: Asked) -> None:
    """If it failed, a link of a report to an operation would show different ones."""
    found = asked(f"{RUN}/operations?from=150").text
    assert found.count('class="asked"') == 1
    rows = [int(number) for number in re.findall(r'<a href="\?from=(\d+)">', found)]
    assert rows == list(range(140, 240))
    for beyond in ("302", "303", "99999999999999999999"[:19]):
        last = re.findall(r'<a href="\?from=(\d+)">', asked(f"{RUN}/operations?from={beyond}").text)
        assert last == [str(number) for number in range(292, 303)]
    assert "<h1>Events around number 302</h1>" in asked(f"{RUN}/operations?from=302").text
    assert (
        "<h1>There is no event 303; these are the last ones</h1>" in asked(f"{RUN}/operations?from=303").text
    )
    to = asked(f"/runs/{OTHER}/operations?from=3")
    assert (to.status, to.headers["location"]) == (307, f"/runs/night/{OTHER}/operations?from=3")


@pytest.mark.parametrize("events", [99, 101, 105, 215])
def test_the_links_to_later_rows_lead_to_every_event_and_no_further(tmp_path: Path, events: int) -> None:
    """If it failed, a page's own link would say "There is no event", or events would be on no page."""
    run = store(tmp_path, "p", NAME)
    lines = (run / "history.jsonl").read_text().splitlines(keepends=True)
    (run / "history.jsonl").write_text("".join(lines[: events + 1]))
    asked, target, seen = Asked(tmp_path), f"/runs/p/{NAME}/operations", set()
    while target:
        text = asked(target).text
        assert "There is no event" not in text
        seen.update(map(int, re.findall(r'<a href="\?from=(\d+)">', text)))
        target = next(iter(re.findall(r'href="([^"]+)" rel="next"', text)), "")
    assert seen == set(range(events))


def test_a_time_that_no_float_holds_is_left_out(tmp_path: Path) -> None:
    """If it failed, one damaged line would hide the operations around it, and the whole live view."""
    run = store(tmp_path, "p", NAME, None)
    line = json.dumps({"index": 0, "time_ns": 10**399, "type": "invoke", "process": 1, "f": "read"})
    (run / "history.jsonl").write_text('{"format":"qsync-history"}\n' + line + "\n")
    asked = Asked(tmp_path)
    for page in ("operations", "live"):
        assert asked(f"/runs/p/{NAME}/{page}").status == 200
    assert asked.failed == []


def test_two_runs_are_compared_line_by_line(asked: Asked) -> None:
    """If it failed, a difference between two runs would not be marked, or one that is none."""
    same = asked(f"/compare?a=night/{NAME}&b=night/{NAME}").text
    assert "The two do not differ" in same and "differs" not in same
    found = asked(f"/compare?a=night/{NAME}&b=night/{OTHER}").text
    assert "lines differ" in found and found.index("differs") < found.index(">sentence<")


def test_a_list_is_filtered_sorted_and_paged(tmp_path: Path) -> None:
    """If it failed, a run would be missing from the list, or stand in it twice."""
    for number in range(120):
        outcome = "anomaly" if number % 40 == 0 else "valid"
        store(
            tmp_path,
            "many",
            f"20261123T02{number // 60:02}{number % 60:02}Z-{number}",
            outcome,
            f"word{number}",
        )
    asked = Asked(tmp_path)
    pages = [re.findall(r'name="a" value="([^"]+)"', asked(f"/runs?page={page}").text) for page in range(3)]
    assert [len(page) for page in pages] == [50, 50, 20]
    every = [name for page in pages for name in page]
    assert len(set(every)) == 120 and every == sorted(every, reverse=True)
    assert asked("/runs?sort=oldest").text.index("Z-0") < asked("/runs?sort=oldest").text.index("Z-1")
    assert len(re.findall(r'name="a"', asked("/runs?outcome=anomaly").text)) == 3
    assert re.findall(r'name="a" value="([^"]+)"', asked("/runs?text=word77").text) == [
        "many/20261123T020117Z-77"
    ]
    assert re.findall(r'name="a"', asked("/runs?page=999").text) == re.findall(
        r'name="a"', asked("/runs?page=2").text
    )


@pytest.mark.parametrize("name", ["plan.json", "verdict.json", "history.jsonl"])
def test_a_run_with_a_link_for_a_file_is_none(tmp_path: Path, name: str) -> None:
    """If it failed, a link in a stored run would show a document of this machine to all who reach the server."""
    folder = store(tmp_path / "results", "night", NAME)
    asked = Asked(tmp_path / "results")
    asked.served.index.clock = iter(range(10)).__next__
    assert NAME in asked("/runs").text
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    for each in (asked, Asked(tmp_path / "results")):
        assert each(RUN).status == each(f"{RUN}/live").status == 404
        assert NAME not in each("/runs").text


@pytest.mark.parametrize("name", ["campaign.json", "runs.jsonl", "summary.json"])
def test_a_campaign_with_a_link_for_a_file_is_none(tmp_path: Path, name: str) -> None:
    """If it failed, a link in a stored campaign would open a file outside of results/."""
    folder = store_campaign(tmp_path / "results", "20261122T021700Z", "f1")
    asked = Asked(tmp_path / "results")
    assert len(asked.served.index.campaigns()) == 1
    (folder / name).touch()
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    assert asked.served.index.campaigns() == []


def test_no_link_stands_in_the_place_of_all_tables_or_campaigns(tmp_path: Path) -> None:
    """If it failed, one link in results/ would open the tables and campaigns of another folder."""
    results = tmp_path / "results"
    store_campaign(results, "20261122T021700Z", "f1")
    (results / "_tables" / "runs").mkdir(parents=True)
    asked = Asked(results)
    assert asked("/tables/runs").status == 200 and len(asked.served.index.campaigns()) == 1
    for name in ("_tables", "_campaigns"):
        (results / name).rename(tmp_path / name)
        (results / name).symlink_to(tmp_path / name)
    assert asked("/tables/runs").status == 404 and asked.served.index.campaigns() == []


def test_the_index_reads_a_folder_again_only_when_it_changed(tmp_path: Path) -> None:
    """If it failed, a judged run would stay without a verdict, a removed one stay listed, or every page read all."""
    now_s = [0.0]
    folder = store(tmp_path, "night", NAME, None)
    index = Index(tmp_path, lambda: now_s[0])
    assert [run.outcome for run in index.runs()] == [GOES_ON]
    os.utime(folder / "history.jsonl", (0, 0))
    now_s[0] = 2.0
    assert [run.outcome for run in index.runs()] == ["no-verdict"]
    os.utime(folder / "history.jsonl")
    now_s[0] = 3.0
    assert [run.outcome for run in index.runs()] == [GOES_ON]  # it had stood still for a while
    os.utime(folder / "history.jsonl", (0, 0))
    now_s[0] = 4.0
    assert [run.outcome for run in index.runs()] == ["no-verdict"]
    (folder / "verdict.json").write_text('{"outcome": "valid", "sentence": "fine"}')
    assert [run.outcome for run in index.runs()] == ["no-verdict"]  # looked just now
    now_s[0] = 6.0
    assert [run.sentence for run in index.runs()] == ["fine"]
    (folder / "plan.json").write_text('{"options": ["of", "another", "kind"], "new": {}}')
    os.utime(folder, (1, 1))
    now_s[0] = 8.0
    assert [(run.sentence, run.configuration) for run in index.runs()] == [("fine", "")]
    shutil.rmtree(folder)
    now_s[0] = 10.0
    assert index.runs() == []


def test_a_run_of_an_older_version_has_the_same_pages(tmp_path: Path) -> None:
    """If it failed, a stored run whose faults were said to bite would seem to have had none."""
    old = {"took_effect": "bit", "kinds_in_effect": "kinds_that_bit", "inconclusive": "not-evidence"}
    texts = []
    for words in ({}, old):
        verdict = store(tmp_path / str(bool(words)), "night", NAME, "inconclusive", "kill") / "verdict.json"
        text = verdict.read_text()
        for today, before in words.items():
            text = text.replace(f'"{today}"', f'"{before}"')
        verdict.write_text(text)
        asked = Asked(tmp_path / str(bool(words)))
        texts.append([asked(f"/runs/night/{NAME}").text.partition("<h2>Files")[0], asked("/runs").text])
    assert texts[0] == texts[1]
    assert "1 of 1 took effect" in texts[0][0] and '<td class="faults">kill</td>' in texts[0][1]


def test_a_run_without_a_record_has_no_dead_links(tmp_path: Path) -> None:
    """If it failed, the page of a run killed before its cluster began would lead nowhere, or to qsync check."""
    folder = store(tmp_path, "night", NAME, None)
    asked = Asked(tmp_path)
    links = set(re.findall(r'href="(/[^"]*)"', asked(f"/runs/night/{NAME}").text))
    assert {f"/runs/night/{NAME}/{page}" for page in ("operations", "live", "bundle")} < links
    (folder / "history.jsonl").unlink()
    page = asked(f"/runs/night/{NAME}").text
    assert "try: qsync run --plan" in page and "qsync check" not in page
    links = set(re.findall(r'href="(/[^"]*)"', page))
    assert [link for link in links if asked(link.replace("&amp;", "&")).status >= 400] == []
    assert "<h1>1 run</h1>" in asked("/runs").text
