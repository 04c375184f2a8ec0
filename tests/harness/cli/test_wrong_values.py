"""Every value of every option of every verb: what cannot be meant is one line and 64, before anything is done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli.main import qsync as group
from harness.cli.param_types import Folder, InputPath, Kind, Number, OutputFile, Text, Whole, YesNo
from harness.cli.verbs import VERBS
from tests.harness.cli.verbs.conftest import Qsync, qsync, results

__all__ = ["qsync", "results"]

FILE, FOLDER = "a-file", "a-folder"
MATRIX = '[matrix]\nnodes = [3]\n[plan]\ncluster = "sim"\n'
EDN = (
    "{:type :invoke, :process 0, :f :write, :value [x 1]}\n{:type :ok, :process 0, :f :write, :value [x 1]}\n"
)
ARGUMENTS = {
    "run": ("--cluster", "sim", "--time-limit", "1", "--faults", "none"),
    "simulate": ("--seeds", "1", "--time-limit", "1"),
    "check": ("history.edn",),
    "audit": (FOLDER,),
    "cut": (FOLDER, "--quorum", "1"),
    "nightly": ("campaign.toml", "--list"),
    "xlog": (FOLDER,),
    "report": (FOLDER,),
}
ANY_TEXT = {("check", "--key"), ("analyze", "--conf"), ("check", "--conf"), ("nightly", "--conf")}
"""Options whose values mean something to others, and may be any."""
OUTPUTS = ("", FOLDER, f"nowhere/{FILE}", f"{FILE}/below")
WRONG: dict[type[click.ParamType], tuple[str, ...]] = {
    Number: ("", " ", "nan", "inf", "-inf", "soon", "-1"),
    Whole: ("", "1.5", "many", "-1", "nan"),
    Text: ("", "  "),
    InputPath: ("",),
    OutputFile: OUTPUTS,
    Folder: ("", FILE, f"{FILE}/below"),
    click.Choice: ("", "something"),
    YesNo: ("", "something", "2"),
}
PYTHON = re.compile(r"`|\bint\b|\bfloat\b|\bstr\b|\bNone\b|regex|Traceback|click|msgspec")


def options() -> Iterator[tuple[str, click.Option]]:
    context = click.Context(group)
    for verb in VERBS:
        command = group.get_command(context, verb)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option) and not (option.is_flag or option.count):
                yield verb, option


def kind_of(option: click.Option) -> type[click.ParamType]:
    mine = (each for each in WRONG if isinstance(option.type, each))
    return next(mine, Text if isinstance(option.type, Kind) else click.ParamType)


OPTIONS = [(verb, option.opts[0], kind_of(option)) for verb, option in options()]
CASES = [
    (verb, option, value)
    for verb, option, kind in OPTIONS
    if (verb, option) not in ANY_TEXT
    for value in WRONG.get(kind, ())
]


def test_every_option_has_a_kind_that_refuses_what_cannot_be_meant() -> None:
    """If it failed, a new option would take NaN, an empty word or a folder for a file, and break in the middle."""
    without = {(verb, option) for verb, option, kind in OPTIONS if kind is click.ParamType}
    assert without == ANY_TEXT
    assert len(CASES) > 300


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = tmp_path / "here"
    (here / FOLDER).mkdir(parents=True)
    (here / FILE).write_text("")
    (here / "campaign.toml").write_text(MATRIX)
    (here / "history.edn").write_text(EDN)
    monkeypatch.chdir(here)
    return here


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("verb", sorted({verb for verb, _, _ in CASES}))
def test_a_wrong_value_is_one_line_and_64(
    qsync: Qsync, results: Path, place: Path, verb: str, every: int
) -> None:
    """If it failed, a slip would be a run of something else, a traceback, or half a result with another exit code."""
    before = sorted(place.rglob("*"))
    for _, option, value in [case for case in CASES if case[0] == verb][::every]:
        done = qsync(verb, *ARGUMENTS.get(verb, ()), f"{option}={value}")
        assert done.code == 64, (option, value, done)
        assert not PYTHON.search(done.line.replace(" --help", "")), done.line
        assert sorted(place.rglob("*")) == before, (option, value)
        assert not results.exists(), (option, value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--faults", ","), "--faults: expected names"),
        (("run", "--faults", "all,none"), "--faults: none is for no fault at all"),
        (("run", "--faults", "none,kill"), "--faults: none is for no fault at all"),
        (("simulate", "--faults", "all,none"), "--faults: none is for no fault at all"),
        (("run", "--drawn"), "--drawn is for a plan that is written: it needs --write-plan FILE"),
        (("run", "--write-plan", "plan.json", "--repeat", "2"), "--repeat does not go with --write-plan"),
        (
            ("run", "--write-plan", "plan.json", "--record-only"),
            "--record-only does not go with --write-plan",
        ),
        (("run", "--results", FILE), f"expected a folder, and {FILE} is a file"),
        (("run", "--results", "s3://bucket/results"), "expected a folder of this machine"),
        (("check", "history.edn", "--html", FOLDER), f"expected a file to write, and {FOLDER} is a folder"),
        (
            ("check", "history.edn", "--edn", "nowhere/x.edn"),
            "cannot write nowhere/x.edn: nowhere is not there",
        ),
        (("check", ""), "expected a path, got nothing"),
        (("report", ""), "expected a path, got nothing"),
        (("xlog", ""), "expected a path, got nothing"),
        (("nightly", FOLDER), "cannot read"),
        (("nightly", "campaign.toml", "--known", FOLDER), "cannot read"),
        (("run", "--plan", FOLDER), "cannot read the plan"),
        (("run", "--nodes", "0"), "--nodes: expected a whole number of at least 1, got 0"),
        (("run", "--disk", "floppy"), "--disk: expected one of mounted, node, got 'floppy'"),
        (("run", "--name", "../up"), "--name: expected a name of at most 64 letters"),
    ],
)
def test_what_cannot_be_is_refused_in_plain_words(
    qsync: Qsync, results: Path, place: Path, words: tuple[str, ...], said: str
) -> None:
    """If it failed, a command line would run as something else than what it says."""
    done = qsync(*words)
    assert said in done.line
    assert done.code == 64
    assert not results.exists()
    assert not (place / "plan.json").exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"nodes": 0}', "nodes: expected a whole number of at least 1, got 0"),
        (b'{"name": "../up"}', "name: expected a name of at most 64 letters"),
        (
            b'{"drawn": {"faults": [], "operations": [{"at_ns": -1, "worker": 0, "f": "read"}]}}',
            "operations[0].at_ns",
        ),
        (b'{"colour": "red"}', "there is no field 'colour'"),
        (b'{"faults": "kill"}', "faults: expected a list, got 'kill'"),
        (b'{"faults": ["all", "none"]}', "--faults: none is for no fault at all"),
        (b"[]", "expected a table of fields"),
        (b"\xff", "not a plan: JSON is malformed"),
    ],
)
def test_a_wrong_plan_is_told_in_plain_words(qsync: Qsync, place: Path, content: bytes, said: str) -> None:
    """If it failed, who edits a plan would read of Python's types and regular expressions."""
    (place / "plan.json").write_bytes(content)
    done = qsync("run", "--plan", "plan.json")
    assert said in done.line
    assert not PYTHON.search(done.line.replace(" --help", ""))
    assert done.code == 64


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        (Whole(), "x", "expected a whole number, got 'x'"),
        (Whole(1, 5), "9", "expected a whole number of at least 1 and of at most 5, got 9"),
        (Whole(most=5), "9", "expected a whole number of at most 5, got 9"),
        (Number(0, 2), "-1", "expected a number of at least 0 and of at most 2, got -1"),
        (Number(0.5, is_open=True), "0.5", "expected a number greater than 0.5, got 0.5"),
        (Number(), "nan", "expected a number, got nan"),
        (Whole(1), " ", "expected a whole number of at least 1, got nothing"),
    ],
)
def test_a_number_out_of_bounds_is_told_the_bounds(kind: Kind, value: str, told: str) -> None:
    """If it failed, people would have to guess which numbers an option takes."""
    with pytest.raises(click.BadParameter) as refused:
        kind.convert(value, None, None)
    assert refused.value.message == told
