"""Headers of log files, which no checksum covers: what they deny each other."""

from __future__ import annotations

from collections.abc import Mapping

from harness.systems.qsync.log_headers import contradictions
from nodes.iproto.xlog import Meta

OURS, OTHERS = "00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"


def header(kind: str, vclock: Mapping[int, int], uuid: str = OURS, version: str = "3.2.0") -> Meta:
    return Meta(kind, version, uuid, vclock, None)


def name(number: int, kind: str = "xlog") -> str:
    return f"{number:020}.{kind}"


def test_headers_that_agree_deny_nothing() -> None:
    """If it failed, whole logs would be said to be damaged."""
    headers = {
        name(0): header("XLOG", {}),
        name(7): header("XLOG", {1: 5, 2: 2}),
        name(7, "snap"): header("SNAP", {1: 5, 2: 2}),
        name(9, "snap"): header("SNAP", {1: 7, 2: 2, 3: 0}),
        "vinyl.index": header("INDEX", {1: 3}),
    }
    assert contradictions(headers, {1: 7, 2: 2}) == {}


def test_each_contradiction_is_told_of_its_file() -> None:
    """If it failed, rows under a changed header would be taken for those of another place, or of another node."""
    headers = {
        name(0): header("XLOG", {}),
        name(7): header("XLOG", {1: 6, 2: 2}),
        name(9): header("XLOG", {1: 7, 2: 2}, OTHERS),
        name(9, "snap"): header("SNAP", {1: 6, 2: 3}),
        name(12): header("XLOG", {1: 10, 2: 2}, version="3.x"),
        name(13, "snap"): header("SNAP", {1: 10, 2: 3}),
    }
    told = contradictions(headers, {1: 11, 2: 2})
    assert told.keys() == headers.keys() - {name(0)}
    assert "which its name denies" in told[name(7)]
    assert told[name(9)] == f"written by {OTHERS}, and the other files by {OURS}"
    assert told[name(9, "snap")] == "its vclock is {1: 6, 2: 3}, and the log comes to {1: 7, 2: 2}"
    assert told[name(13, "snap")] == "its vclock is {1: 10, 2: 3}, and the log comes to {1: 11, 2: 2}"
    assert "names no version but '3.x'" in told[name(12)]


def test_of_two_files_of_two_nodes_the_log_is_that_of_the_node() -> None:
    """If it failed, a snapshot that was put there by mistake would make the log the stranger."""
    headers = {name(0, "snap"): header("SNAP", {}, OTHERS), name(0): header("XLOG", {}, OURS)}
    assert list(contradictions(headers, {})) == [name(0, "snap")]
