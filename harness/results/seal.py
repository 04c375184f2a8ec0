"""The seal of a bundle: its last bytes, by which a change of any byte before them is found.

    qsync-bundle 1 sha256:<64 digits> ed25519:<128 digits>

The hash is that of all bytes before the seal. The signature signs this hash, and so signs every byte of the file. A
bundle without a signature has hyphens in its place. A hash alone finds damage. Only a signature, with a public key that
comes by another way than the bundle, finds a forger: everybody can write a hash again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from harness.errors import StoreError, WrongUse

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MARK = b"qsync-bundle 1 "
_UNSIGNED = b"-" * 128
_FORM = re.compile(rb"qsync-bundle 1 sha256:([0-9a-f]{64}) ed25519:([0-9a-f]{128}|-{128})")
_CHUNK_BYTES = 1 << 20

Sign = Callable[[bytes], bytes]
"""A message → its signature of 64 bytes."""


@dataclass(frozen=True, slots=True)
class Seal:
    """`digest`: 32 bytes; `signature`: 64 bytes, None without a signature."""

    digest: bytes
    signature: bytes | None = None

    def encode(self) -> bytes:
        signature = _UNSIGNED if self.signature is None else self.signature.hex().encode()
        return MARK + b"sha256:" + self.digest.hex().encode() + b" ed25519:" + signature

    @property
    def message(self) -> bytes:
        """The bytes that are signed: the form of the file, and its hash."""
        return MARK + self.digest


EMPTY = Seal(bytes(32)).encode()
"""As long as every seal."""


def sealed(file: BinaryIO, sign: Sign | None) -> Seal:
    """Write the seal of a file that ends with `EMPTY` in its place."""
    length = file.seek(0, 2) - len(EMPTY)
    seal = Seal(_digest(file, length))
    seal = seal if sign is None else Seal(seal.digest, sign(seal.message))
    file.seek(length)
    file.write(seal.encode())
    return seal


def is_sealed(path: Path) -> bool:
    """Whether the file ends with the mark of a seal. Raises OSError."""
    with path.open("rb") as file:
        return _last(file)[1].startswith(MARK)


def intact(path: Path) -> Seal:
    """The seal of an unchanged file; StoreError if it has no seal, or differs from it. Raises OSError."""
    with path.open("rb") as file:
        length, data = _last(file)
        match = _FORM.fullmatch(data)
        if match is None:
            raise StoreError(
                f"{path} is damaged: it does not end with the seal of a bundle; try: copy it again"
            )
        signature = None if match[2] == _UNSIGNED else bytes.fromhex(match[2].decode())
        seal = Seal(bytes.fromhex(match[1].decode()), signature)
        if _digest(file, length) != seal.digest:
            raise StoreError(f"{path} is damaged: its bytes differ from its seal; try: copy it again")
    return seal


def _last(file: BinaryIO) -> tuple[int, bytes]:
    """Where the seal begins, and its bytes."""
    length = max(0, file.seek(0, 2) - len(EMPTY))
    file.seek(length)
    return length, file.read()


def _digest(file: BinaryIO, length: int) -> bytes:
    """The SHA-256 of the first `length` bytes."""
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(min(_CHUNK_BYTES, length)):
        digest.update(chunk)
        length -= len(chunk)
    return digest.digest()


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A key that signs. `name`: the name of its public key."""

    key: Ed25519PrivateKey

    def sign(self, message: bytes) -> bytes:
        return self.key.sign(message)

    @property
    def name(self) -> str:
        return PublicKey(self.key.public_key()).name


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that verifies a signature."""

    key: Ed25519PublicKey

    @property
    def name(self) -> str:
        """SHA-256 of the key's 32 bytes, as people compare keys."""
        return "sha256:" + hashlib.sha256(self.key.public_bytes_raw()).hexdigest()

    def has_signed(self, seal: Seal) -> bool:
        from cryptography.exceptions import InvalidSignature

        if seal.signature is None:
            return False
        try:
            self.key.verify(seal.signature, seal.message)
        except InvalidSignature:
            return False
        return True


_MAKES = "openssl genpkey -algorithm ed25519 -out private.pem && openssl pkey -in private.pem -pubout -out public.pem"


def private_key(path: Path) -> PrivateKey:
    """The Ed25519 key in a PEM file; WrongUse in one line, which does not quote the file."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = _loaded(path, lambda data: load_pem_private_key(data, password=None), "private")
    if not isinstance(key, Ed25519PrivateKey):
        raise WrongUse(f"{path}: expected a private Ed25519 key, got another kind of key; try: {_MAKES}")
    return PrivateKey(key)


def public_key(path: Path) -> PublicKey:
    """The public Ed25519 key in a PEM file; WrongUse in one line."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    key = _loaded(path, load_pem_public_key, "public")
    if not isinstance(key, Ed25519PublicKey):
        raise WrongUse(f"{path}: expected a public Ed25519 key, got another kind of key; try: {_MAKES}")
    return PublicKey(key)


def _loaded(path: Path, load: Callable[[bytes], object], kind: str) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load(path.read_bytes())
    except OSError as error:
        raise WrongUse(f"cannot read the key {path}: {error.strerror}; try: {_MAKES}") from error
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:  # TypeError: it needs a password
        raise WrongUse(
            f"{path}: expected a {kind} Ed25519 key as PEM, without a password; try: {_MAKES}"
        ) from error
