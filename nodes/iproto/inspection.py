"""One line about an xlog or snap file, of any Tarantool or ours: its kind, or what is wrong and how much is good.

A log without an end marker is whole: its process was killed, or still writes. A snapshot without one is not, because it
is unknown how much is missing. Nor is a log whose rows are not whole transactions (`nodes.iproto.transactions`).
"""

from __future__ import annotations

from dataclasses import dataclass

from nodes.iproto import xlog
from nodes.iproto.errors import XlogError
from nodes.iproto.messages import Row, Type
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
        found = xlog.decode(data)
    except XlogError as error:
        return Inspection(False, f"{error}; none of {len(data)} bytes is good")
    if found.meta is None:
        return Inspection(False, f"damaged: {found.damage}", xlog.is_torn(data, found))
    what = _what(found.meta, found)
    flaw = flaw_in(found)
    if flaw is not None:
        return Inspection(False, f"{what} damaged: {flaw.sentence}; the {flaw.good} rows before are good")
    if found.damage is not None:
        is_torn = xlog.is_torn(data, found)
        if is_torn:
            return Inspection(False, f"{what} damaged, as a crash leaves it: {found.damage}", is_torn=True)
        return Inspection(False, f"{what} damaged: {found.damage}{_behind(data, found)}")
    if found.meta.kind == "SNAP" and not found.finished:
        good = f"the {len(found.rows)} rows in all {len(data)} bytes are good"
        return Inspection(False, f"{what} damaged: a snapshot without its end marker is not whole; {good}")
    end = "closed in order" if found.finished else "not closed (its process was killed, or still writes)"
    return Inspection(True, f"{what} good: {len(found.rows)} rows in {len(data)} bytes, {end}")


def _behind(data: bytes, found: xlog.Xlog[Row]) -> str:
    """What shows that no crash left the damage."""
    if xlog.goes_on(data, found.good_bytes):
        return "; more good rows stand behind the damage"
    return "; an end marker stands behind the damage" if data.endswith(xlog.encode_eof()) else ""


def _what(meta: xlog.Meta, found: xlog.Xlog[Row]) -> str:
    kind = "log" if meta.kind == "XLOG" else "snapshot"
    later = {Type.RAFT.value, Type.PROMOTE.value, Type.DEMOTE.value}
    hint = ", which 2.6 cannot read" if any(row.type in later for row in found.rows) else ""
    return f"{kind} of {meta.server_version or 'no version'} from {text(meta.vclock)} on{hint}:"
