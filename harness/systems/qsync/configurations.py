"""Configurations A to I: what a cluster of qsync is set to, by the letter that its row of promises has.

A plan names one (`--configuration F` or `--configuration as-shipped`) and may set single options apart from it. The
verdict does not depend on the letter but on the resulting options: `letter_of` finds the row again from the settings
(`harness.systems.qsync.promises` holds the rows).

| letter | owner | PROMOTE takes effect | waiting too long |
|---|---|---|---|
| A, B | fixed; taken over with `clear_synchro_queue` (protocol 2.6) | – | rolls back |
| C | fixed | when written | rolls back |
| D | an operator promotes, without votes | when written | rolls back |
| E | elected, acknowledgements carry no term | when written | rolls back |
| F | elected | when written | goes on waiting |
| G | elected | when written | rolls back |
| H | elected | when a quorum has it in its own term | goes on waiting |
| I | elected | when a quorum has it in its own term | rolls back |
"""

from __future__ import annotations

from dataclasses import dataclass

ELECTION_MODES = ("off", "voter", "manual", "candidate")
PROTOCOLS = ("3.2", "2.6")
FENCING_MODES = ("off", "soft", "strict")
LINEARIZABLE = "linearizable"
READ_CONFIRMED = "read-confirmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedConfiguration:
    """The settings of a letter. `protocol` is the version of the wire, one of `PROTOCOLS`; 2.6 has no terms on it."""

    letter: str
    name: str
    summary: str
    election_mode: str = "candidate"
    protocol: str = "3.2"
    rollback_on_timeout: bool = False
    synchronous_promote: bool = True
    terms_in_acks: bool = True
    fails_over: bool = True
    """The owner may change in the middle of a run, so the fault `failover` is among "all"."""
    read: str = LINEARIZABLE


CONFIGURATIONS: dict[str, NamedConfiguration] = {
    row.letter: row
    for row in (
        NamedConfiguration(
            letter="A",
            name="2.6",
            summary="Tarantool 2.6.0 with a fixed owner",
            election_mode="off",
            protocol="2.6",
            rollback_on_timeout=True,
            synchronous_promote=False,
            fails_over=False,
            read="dirty",
        ),
        NamedConfiguration(
            letter="B",
            name="2.6-clear-queue",
            summary="Tarantool 2.6.0, the queue taken over with clear_synchro_queue",
            election_mode="off",
            protocol="2.6",
            rollback_on_timeout=True,
            synchronous_promote=False,
            read="dirty",
        ),
        NamedConfiguration(
            letter="C",
            name="fixed-owner",
            summary="one owner for the whole run",
            election_mode="off",
            rollback_on_timeout=True,
            synchronous_promote=False,
            fails_over=False,
            read=READ_CONFIRMED,
        ),
        NamedConfiguration(
            letter="D",
            name="promote-by-hand",
            summary="no elections, an operator promotes: two owners are possible",
            election_mode="off",
            rollback_on_timeout=True,
            synchronous_promote=False,
            read=READ_CONFIRMED,
        ),
        NamedConfiguration(
            letter="E",
            name="ack-without-term",
            summary="elections as up to 2.10: acknowledgements carry no term",
            rollback_on_timeout=True,
            synchronous_promote=False,
            terms_in_acks=False,
        ),
        NamedConfiguration(
            letter="F",
            name="as-shipped",
            summary="elections as shipped since 2.11, no rollback on timeout",
            synchronous_promote=False,
        ),
        NamedConfiguration(
            letter="G",
            name="as-shipped-rollback",
            summary="elections as shipped, with rollback on timeout",
            rollback_on_timeout=True,
            synchronous_promote=False,
        ),
        NamedConfiguration(
            letter="H",
            name="synchronous-promote",
            summary="elections, PROMOTE waits for a quorum in its own term, no rollback on timeout (the default)",
        ),
        NamedConfiguration(
            letter="I",
            name="synchronous-promote-rollback",
            summary="as H, with rollback on timeout",
            rollback_on_timeout=True,
        ),
    )
}
_BY_NAME = {row.name: row for row in CONFIGURATIONS.values()}
DEFAULT = "H"


def configuration(name: str) -> NamedConfiguration:
    """By letter or by name; ValueError says what there is."""
    named = CONFIGURATIONS.get(name.upper()) or _BY_NAME.get(name)
    if named is None:
        known = ", ".join(f"{row.letter} ({row.name})" for row in CONFIGURATIONS.values())
        raise ValueError(f"unknown configuration {name!r}; try one of: {known}")
    return named


def with_protocol(named: NamedConfiguration, protocol: str | None) -> NamedConfiguration:
    """The configuration with this wire ("3.2", "2.6"; None: its own); ValueError if it cannot be had with it.

    2.6 has no elections: A and B are C and D without terms, and A is what it makes of the default.
    """
    is_old = named.protocol == "2.6"
    if protocol is None or is_old == (protocol == "2.6"):
        return named
    if is_old:
        return CONFIGURATIONS["D" if named.fails_over else "C"]
    if named.letter not in (DEFAULT, "C", "D"):
        raise ValueError(
            f"protocol 2.6 has no elections, configuration {named.letter} has; try: --configuration A or B"
        )
    return CONFIGURATIONS["B" if named.letter == "D" else "A"]


def letter_of(
    *,
    protocol: str,
    has_elections: bool,
    fails_over: bool,
    terms_in_acks: bool,
    synchronous_promote: bool,
    rollback_on_timeout: bool,
) -> str:
    """The row of promises that these settings come under."""
    if not has_elections:
        return ("B" if fails_over else "A") if protocol == "2.6" else ("D" if fails_over else "C")
    if not terms_in_acks:
        return "E"
    if synchronous_promote:
        return "I" if rollback_on_timeout else "H"
    return "G" if rollback_on_timeout else "F"


def sizes_of(words: str, nodes: int) -> tuple[int, ...]:
    """Each node's number of bytes: one for all, or one for each, separated by commas."""
    parts = tuple(word.strip() for word in words.split(","))
    if not all(part.isascii() and part.isdigit() and len(part) < 16 for part in parts):
        raise ValueError(f"expected a number of bytes, or one for each node, got {words!r}")
    return tuple(map(int, _for_each("queue sizes", parts, nodes, words)))


def modes_of(words: str, nodes: int) -> tuple[str, ...]:
    """Each node's election mode: one word for all, or one for each, separated by commas."""
    modes = tuple(word.strip() for word in words.split(","))
    for mode in modes:
        if mode not in ELECTION_MODES:
            raise ValueError(f"unknown election mode {mode!r}; try one of: {', '.join(ELECTION_MODES)}")
    modes = _for_each("election modes", modes, nodes, words)
    if set(modes) != {"off"} and set(modes) <= {"off", "voter"}:
        attempt = ",".join(("candidate", *["voter"] * (nodes - 1)))
        raise ValueError(f"no node could ever lead: {words}; try: {attempt}")
    return modes


def _for_each(what: str, given: tuple[str, ...], nodes: int, words: str) -> tuple[str, ...]:
    """One for all, or one for each."""
    if len(given) not in (1, nodes):
        raise ValueError(f"{what} of {len(given)} nodes were given, expected 1 or {nodes}: {words}")
    return given * nodes if len(given) == 1 else given
