"""Headers of log files that contradict each other: no checksum covers a header."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from nodes.iproto import xlog
from nodes.kernel.vclock import covers, signature, text

NAME_DIGITS: Final = 20
"""Digits of a file's name, which is the sum of its vclock."""
_VERSION = re.compile(r"\d+\.\d+\.\d+(-[-.\w]+)?")


def contradictions(headers: Mapping[str, xlog.Meta], end: Mapping[int, int]) -> dict[str, str]:
    """File → how its header contradicts its name or the other files of the node. No checksum covers a header.

    `end`: the vclock at the end of the log.
    """
    instances = Counter(meta.instance_uuid for meta in headers.values())
    logs = {meta.instance_uuid for meta in headers.values() if meta.kind == "XLOG"}
    instance = max(instances, key=lambda uuid: (instances[uuid], uuid in logs), default="")
    vclocks = {signature(meta.vclock): meta.vclock for meta in headers.values() if meta.kind == "XLOG"}
    vclocks.setdefault(signature(end), end)
    has_versions = any(map(_names_a_version, headers.values()))
    denials: dict[str, str] = {}
    for name, meta in headers.items():
        stem, _, _ = name.partition(".")
        total = signature(meta.vclock)
        if len(stem) == NAME_DIGITS and stem.isdecimal() and int(stem) != total:
            denials[name] = f"its vclock is {text(meta.vclock)}, which its name denies"
        elif meta.kind == "SNAP" and not covers(
            vclocks.get(total, meta.vclock), meta.vclock
        ):  # of equal sums
            denials[name] = f"its vclock is {text(meta.vclock)}, and the log comes to {text(vclocks[total])}"
        elif meta.instance_uuid != instance:
            denials[name] = f"written by {meta.instance_uuid}, and the other files by {instance}"
        elif has_versions and not _names_a_version(meta):
            denials[name] = f"its header names no version but {meta.server_version!r}"
    return denials


def _names_a_version(meta: xlog.Meta) -> bool:
    return _VERSION.fullmatch(meta.server_version) is not None
