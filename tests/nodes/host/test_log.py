"""A node's log takes whatever a node logs: a line must not end it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from nodes.host.log import NodeLog


def deep() -> object:
    value: object = 1
    for _ in range(2000):
        value = [value]
    return value


@pytest.mark.parametrize("value", [{(1, 2): 3}, deep(), {"a": deep()}])
@pytest.mark.parametrize("place", ["fields", "status"])
def test_a_field_that_json_lacks_costs_the_fields_and_not_the_node(
    tmp_path: Path, value: object, place: str
) -> None:
    """If it failed, a node of a user's own would end as broken because of what it says."""
    log = NodeLog(str(tmp_path / "log"), "n1", 0, lambda: {"term": value if place == "status" else 1})
    log.line("info", "look", {"value": value} if place == "fields" else None)
    log.line("info", "at that", {"name": "bad \udcff"} if place == "fields" else None)
    log.close()
    first, second = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert (first["message"], first["node"], first["fields"][:7]) == ("look", "n1", "no JSON")
    assert second["message"] == "at that"
    assert place == "status" or (second["term"], second["name"]) == (1, "bad \udcff")


def test_a_line_that_a_full_disk_cut_off_is_the_only_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it failed, the first line after a full disk, such as why the node ends, would be lost, too."""
    log = NodeLog(str(tmp_path / "log"), "n1", 0, dict)
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:20]))
    log.line("info", "cut off")
    monkeypatch.undo()
    log.line("error", "whole")
    log.line("error", "the next")
    log.close()
    _, *lines = (tmp_path / "log").read_text().splitlines()
    assert [json.loads(line)["message"] for line in lines] == ["whole", "the next"]
