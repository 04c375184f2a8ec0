"""The 128 bytes with which a server opens every connection: two lines of 64, each ended by a newline.

The first is `Tarantool 2.6.0 (Binary) 7170b4a6-5a1d-4a0c-a8ae-0f7ba5b0a1e7`, the second the salt for
passwords in base64; spaces fill them up.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import dataclass

from nodes.iproto.errors import MalformedGreeting

SIZE = 128
SERVER_VERSION = "2.6.0"
"""The version in the greeting to clients: with a later one, clients would send requests that 2.6 does not know."""
_LINE = SIZE // 2
_UUID = rb"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_FIRST_LINE = re.compile(rb"Tarantool +(\d+\.\d+\.\d+[!-~]*) +\(([^)]*)\) *(" + _UUID + rb")? *\n")
_SALT_BYTES_MIN = 20


@dataclass(frozen=True, slots=True)
class Greeting:
    version: str
    instance_uuid: str
    salt: bytes


def version_number(version: str) -> int:
    """A version as requests carry it: 0x020600 for "2.6.0"."""
    major, minor, patch = (int(part) for part in version.split("-", maxsplit=1)[0].split("."))
    return major << 16 | minor << 8 | patch


def greeting(version: str, instance_uuid: str, salt: bytes) -> bytes:
    """`version` as in "2.6.0"; the salt is 20 to 44 bytes, Tarantool takes 32."""
    first = f"Tarantool {version} (Binary) {instance_uuid}".encode()
    lines = b"".join(line.ljust(_LINE - 1) + b"\n" for line in (first, b64encode(salt)))
    assert len(lines) == SIZE, (
        f"too long for a greeting: {version} {instance_uuid}, {len(salt)} bytes of salt"
    )
    return lines


def parse_greeting(data: bytes) -> Greeting:
    """Raises MalformedGreeting."""
    first, second = data[:_LINE], data[_LINE:]
    match = _FIRST_LINE.fullmatch(first)
    if len(data) != SIZE or match is None or not second.endswith(b"\n"):
        raise MalformedGreeting(f"expected the {SIZE} bytes of Tarantool's greeting, got {data[:_LINE]!r}")
    version, protocol, instance_uuid = match.groups()
    if protocol != b"Binary" or instance_uuid is None:
        raise MalformedGreeting(f"expected a binary port with an instance UUID, got {first!r} (a console?)")
    return Greeting(version.decode("ascii"), instance_uuid.decode("ascii"), _salt(second))


def _salt(line: bytes) -> bytes:
    try:
        salt = b64decode(line.strip(), validate=True)
    except ValueError as error:
        raise MalformedGreeting(f"expected a salt in base64, got {line!r}: {error}") from None
    if len(salt) < _SALT_BYTES_MIN:
        raise MalformedGreeting(f"expected a salt of {_SALT_BYTES_MIN} bytes or more, got {len(salt)}")
    return salt
