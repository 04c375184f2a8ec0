"""What keeps the harness free of any one store: names of systems are data, never decisions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import harness
from harness.plan.plan import Plan
from harness.systems import SYSTEMS
from harness.systems.qsync import node_options

ROOT = Path(harness.__file__).parent
FILES = [
    path for path in sorted(ROOT.rglob("*.py")) if path.relative_to(ROOT).parts[0] not in ("systems", "wires")
]


def names_a_system(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return text in SYSTEMS
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return any(map(names_a_system, elements))
    return False


def decisions(source: str) -> list[int]:
    """The lines that compare with a system's name, match one, or list several."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others) if any(map(names_a_system, (left, *others))):
                lines.append(node.lineno)
            case ast.MatchValue(value=value) if names_a_system(value):
                lines.append(node.value.lineno)
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                if sum(map(names_a_system, elements)) > 1:
                    lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_system_is_named_in_a_decision(path: Path) -> None:
    """Breaks if a new system would need lines all over the harness."""
    assert decisions(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        'if plan.system == "qsync": pass',
        'known = plan.system in ("tarantool", "x")',
        'ABLE = ("qsync", "tarantool")',
        'match system:\n    case "tarantool": pass',
    ],
)
def test_decisions_are_seen(source: str) -> None:
    """Breaks if the test above cannot fail."""
    assert decisions(source)


OPTIONS_OF_NODES = frozenset((*node_options.AT_START, *node_options.APART))
OPTIONS = frozenset(name for system in SYSTEMS.values() for name in system.options.__struct_fields__)
OWN_OPTIONS = OPTIONS - {*Plan.__struct_fields__} - {"configuration", "quorum", "read", "start", "variant"}
"""Without words that mean more: a named set of options, a fault, an operation, a message, a kind of cut."""


def known_options(source: str) -> list[int]:
    """The lines that know an option of a system by its name."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str() as text) if text in OPTIONS_OF_NODES | OWN_OPTIONS:
                lines.append(node.lineno)
            case ast.Attribute(value=ast.Attribute(attr="options"), attr=name) if name in OPTIONS:
                lines.append(node.lineno)
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_option_of_a_system_is_known(path: Path) -> None:
    """Breaks if faults, hunts or the judge decide by an option that only some systems have."""
    assert known_options(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        'quorum = fault.options.get("replication_synchro_quorum")',
        'plan = plan.changed(**{"election_mode": "off"})',
        "mode = plan.options.read",
        "wait = self.plan.options.commit_wait",
    ],
)
def test_known_options_are_seen(source: str) -> None:
    """Breaks if the test above cannot fail."""
    assert known_options(source)
