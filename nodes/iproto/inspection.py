"""One line about an xlog or snap file, of any Tarantool or of these nodes: its kind, or the damage and the good part.

Vinyl's files (`nodes.iproto.vinyl`) have the same form.

A log without an end marker is whole: its process was killed, or still writes. A snapshot without one is not whole,
because it is unknown how much is missing. Neither is a log with incomplete transactions (`nodes.iproto.transactions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodes.iproto import vinyl, xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Type
from nodes.iproto.transactions import flaw_in
from nodes.kernel.vclock import text


@dataclass(frozen=True, slots=True)
class Inspection:
    """`is_sound`: all of it can be used. `is_torn`: only its end is torn, as a crash leaves it."""

    is_sound: bool
    sentence: str
    is_torn: bool = False


def inspect(data: bytes) -> Inspection:
    """Never raises: a file that is not an xlog is reported as well."""
    try:
        log = _decoded(data)
    except XlogError as error:
        return Inspection(False, f"{error}; none of {len(data)} bytes is good")
    if log.meta is None:
        return Inspection(False, f"damaged: {log.damage}", xlog.is_torn(data, log))
    description = _description(log.meta, log)
    flaw = flaw_in(log) if log.meta.kind in xlog.LOGS else None
    if flaw is not None:
        return Inspection(
            False, f"{description} damaged: {flaw.sentence}; the {flaw.good} rows before are good"
        )
    if log.damage is not None:
        is_torn = xlog.is_torn(data, log)
        if is_torn:
            return Inspection(
                False, f"{description} damaged, as a crash leaves it: {log.damage}", is_torn=True
            )
        return Inspection(False, f"{description} damaged: {log.damage}{_behind(data, log)}")
    if log.meta.kind not in ("XLOG", vinyl.APPENDED) and not log.finished:
        good = f"the {len(log.rows)} rows in all {len(data)} bytes are good"
        what = "a snapshot" if log.meta.kind == "SNAP" else "such a file"
        return Inspection(False, f"{description} damaged: {what} without its end marker is not whole; {good}")
    end = "closed in order" if log.finished else "not closed (its process was killed, or still writes)"
    return Inspection(True, f"{description} good: {len(log.rows)} rows in {len(data)} bytes, {end}")


def _decoded(data: bytes) -> xlog.Xlog[Any]:
    return vinyl.decode(data) if vinyl.is_vinyl(data) else xlog.decode(data)


def _behind(data: bytes, log: xlog.Xlog[Any]) -> str:
    """The evidence that the damage does not come from a crash."""
    if xlog.goes_on(data, log.good_bytes):
        return "; more good rows stand behind the damage"
    return "; an end marker stands behind the damage" if data.endswith(xlog.encode_eof()) else ""


def _description(meta: xlog.Meta, log: xlog.Xlog[Any]) -> str:
    version = meta.server_version.encode("unicode_escape").decode() or "no version"  # a header may be damaged
    if meta.kind in xlog.WITHOUT_VCLOCK:
        return f"{vinyl.NAMES[meta.kind]} of {version}:"
    if meta.kind == vinyl.APPENDED:
        return f"{vinyl.NAMES[meta.kind]} of {version} from {text(meta.vclock)} on:"
    kind = "log" if meta.kind == "XLOG" else "snapshot"
    later = {Type.RAFT.value, Type.PROMOTE.value, Type.DEMOTE.value}
    hint = ", which 2.6 cannot read" if any(row.type in later for row in log.rows) else ""
    return f"{kind} of {version} from {text(meta.vclock)} on{hint}:"
