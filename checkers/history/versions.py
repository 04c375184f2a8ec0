"""Which node ran which version when, by the nodes' own word: the `version` in what they say of themselves.

A node that does not answer reports no version: the last one that it reported goes on. One that answers without
a version is reported as "".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from checkers.history.history import History


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """`node` reported `version` for the first time at `start_ns`, and for the last time in a row at `end_ns`."""

    node: str
    version: str
    start_ns: int
    end_ns: int


def version_spans(history: History) -> tuple[VersionSpan, ...]:
    """In order of time; one for each time that a node began to report a version."""
    spans: list[VersionSpan] = []
    newest: dict[str, int] = {}
    for state in history.states:
        version = state.status.get("version", "")
        if not state.status.get("up") or not isinstance(version, str):
            continue
        place = newest.get(state.node)
        if place is not None and spans[place].version == version:
            spans[place] = replace(spans[place], end_ns=state.time_ns)
        else:
            newest[state.node] = len(spans)
            spans.append(VersionSpan(state.node, version, state.time_ns, state.time_ns))
    return tuple(spans)
