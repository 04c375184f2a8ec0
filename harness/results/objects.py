"""Results in an object store: addresses such as s3://bucket/prefix, and the calls to the store.

pyarrow's file systems speak the protocols, so no Hadoop is needed: `s3://` and `s3a://` are the same thing, `gs://` and
`abfs://` (`abfss://`) work the same way. Endpoint, region and credentials come from their usual places:
AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, AWS_REGION or AWS_DEFAULT_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_SESSION_TOKEN, AWS_PROFILE and ~/.aws; for Google and Azure what their libraries read. An object is whole or
absent; there are no folders, and nothing is renamed. A refusal is one line without secrets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.errors import HarnessError, StoreError, WrongUse
from harness.results.output_file import output_file

SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs", "abfs": "abfs", "abfss": "abfs"}
CONNECT_S = 5.0
CHUNK_BYTES = 8 << 20
_SECRETS = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AZURE_STORAGE_KEY", "AZURE_CLIENT_SECRET"
)  # fmt: skip
_KINDS = {".html": "text/html", ".json": "application/json", ".jsonl": "application/x-ndjson", ".md": "text/markdown",
          ".xml": "application/xml"}  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A place in an object store: `root` is the bucket (of Azure container@account), a slash, and the key."""

    scheme: str
    root: str

    def __str__(self) -> str:
        return f"{self.scheme}://{self.root}"

    def __truediv__(self, name: str) -> Address:
        return Address(self.scheme, f"{self.root}/{name}")

    @property
    def name(self) -> str:
        return self.root.rpartition("/")[2]

    @property
    def parent(self) -> Address:
        return Address(self.scheme, self.root.rpartition("/")[0])

    @property
    def bucket(self) -> str:
        return self.root.partition("/")[0]

    @property
    def key(self) -> str:
        """The key in pyarrow's form: without Azure's account."""
        bucket, slash, rest = self.root.partition("/")
        return bucket.partition("@")[0] + slash + rest


def address_of(given: Path | str) -> Address | None:
    """The address in a text; None for a path. WrongUse if it has no bucket, or contains credentials.

    An address that was parsed as a path has lost one of its two slashes.
    """
    scheme, colon, rest = f"{given}/".partition(":/")
    meant = SCHEMES.get(scheme.lower())
    if not colon or meant is None or Path(given).exists():
        return None
    root = rest.strip("/")
    if (meant != "abfs" and "@" in root.partition("/")[0]) or ":" in root.partition("/")[0] or "?" in root:
        raise WrongUse(
            f"expected {scheme}://bucket/prefix and nothing else: credentials, region and endpoint are taken from the "
            "environment; try: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL"
        )
    if not root:
        raise WrongUse(f"expected {scheme}://bucket/prefix, got no bucket; try: {scheme}://bucket/results")
    return Address(meant, root)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object below an address: its relative name, its size in bytes, and a stamp that changes with every write but
    one of as many bytes within the store's unit of time (of S3 a second)."""

    name: str
    size: int
    stamp: str
    age_s: float


class ObjectStore:
    """The store behind one address. Every call raises StoreError or WrongUse with one line."""

    def __init__(self, address: Address, environ: Mapping[str, str] = os.environ) -> None:
        self._environ = environ
        with self._as_store_error(f"use {address}", address):
            self.files = _file_system(address, environ)

    def objects(self, address: Address, now_s: float = 0.0) -> list[StoredObject]:
        """All objects below an address, in order of names; none if there is nothing. `now_s`: for their ages."""
        from pyarrow.fs import FileType

        with self._as_store_error(f"list {address}", address):
            infos = self._below(address, recursive=True)
        files = [info for info in infos if info.type == FileType.File]
        # Markers of empty folders have no name.
        return sorted((_object_of(info, address, now_s) for info in files), key=lambda stored: stored.name)

    def entries(self, address: Address) -> list[tuple[str, bool]]:
        """The entries directly below: names, and whether they have entries in turn."""
        from pyarrow.fs import FileType

        with self._as_store_error(f"list {address}", address):
            infos = self._below(address, recursive=False)
        return sorted((info.base_name, info.type == FileType.Directory) for info in infos)

    def _below(self, address: Address, *, recursive: bool) -> list[Any]:
        """A missing bucket is an error, a missing key is empty."""
        from pyarrow.fs import FileSelector

        try:
            return list(self.files.get_file_info(FileSelector(address.key, recursive=recursive)))
        except FileNotFoundError:
            return []

    def read(self, address: Address) -> bytes | None:
        """The content of an object; None if there is none."""
        with self._as_store_error(f"read {address}", address):
            try:
                with self.files.open_input_file(address.key) as file:
                    return bytes(file.read())
            except FileNotFoundError:
                return None

    def fetch(self, address: Address, target: Path) -> bool:
        """Copy an object to a file, which is whole or absent; False if there is no such object."""
        with self._as_store_error(f"read {address}", address):
            try:
                source = self.files.open_input_file(address.key)
            except FileNotFoundError:
                return False
        with source, on_disk(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with output_file(target, "a copy") as file:
                while chunk := self._chunk(source, address):
                    file.write(chunk)
        return True

    def _chunk(self, source: Any, address: Address) -> bytes:
        with self._as_store_error(f"read {address}", address):
            return bytes(source.read(CHUNK_BYTES))

    def write(self, address: Address, data: bytes) -> None:
        """Write an object: readers get the old one or the new one, never half."""
        with self._as_store_error(f"write {address}", address), self._opened(address) as file:
            file.write(data)

    def send(self, source: Path, address: Address) -> None:
        """Copy a file to an object."""
        try:
            with source.open("rb") as file, self._as_store_error(f"write {address}", address):
                first = file.read(CHUNK_BYTES)
                with self._opened(address) as target:
                    target.write(first)
                    while chunk := file.read(CHUNK_BYTES):
                        target.write(chunk)
        except OSError as error:
            raise StoreError(f"cannot read {source}: {error.strerror or error}") from error

    def _opened(self, address: Address) -> Any:
        kind = _KINDS.get(Path(address.name).suffix, "application/octet-stream")
        return self.files.open_output_stream(address.key, metadata={"Content-Type": kind})

    def remove(self, address: Address) -> None:
        """Remove an object; nothing if there is none."""
        with self._as_store_error(f"remove {address}", address):
            try:
                self.files.delete_file(address.key)
            except FileNotFoundError:
                return

    @contextmanager
    def _as_store_error(self, doing: str, address: Address) -> Iterator[None]:
        """Turn errors of the store into errors of one line, which say what could not be done (`doing`)."""
        import pyarrow

        try:
            yield
        # A ValueError: of an address that is no UTF-8, or an endpoint that is none.
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            raise _in_one_line(str(error), doing, address, self._environ) from error


@contextmanager
def on_disk(target: Path) -> Iterator[None]:
    """Turns errors of the file system into StoreErrors."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror or error}") from error


def _object_of(info: Any, address: Address, now_s: float) -> StoredObject:
    name = info.path[len(address.key) :].lstrip("/")
    at_ns = info.mtime_ns or 0
    return StoredObject(name, info.size, f"{info.size}.{at_ns}", now_s - at_ns / 1e9)


def endpoint_of(environ: Mapping[str, str]) -> str:
    """The endpoint of an S3 that is not Amazon's; empty: Amazon's."""
    return environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL") or ""


def _file_system(address: Address, environ: Mapping[str, str]) -> Any:
    from pyarrow import fs

    match address.scheme:
        case "s3":
            return fs.S3FileSystem(**_s3_settings(address, environ))
        case "gs":
            return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=15))
        case _:
            account = address.bucket.partition("@")[2].partition(".")[0] or environ.get(
                "AZURE_STORAGE_ACCOUNT"
            )
            if not account:
                raise WrongUse(
                    f"{address} names no account; try: abfs://container@account.dfs.core.windows.net/results"
                )
            return fs.AzureFileSystem(account, account_key=environ.get("AZURE_STORAGE_KEY") or None)


def _s3_settings(address: Address, environ: Mapping[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {"connect_timeout": CONNECT_S, "allow_delayed_open": True}
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    endpoint = endpoint_of(environ)
    if endpoint:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise WrongUse(
                "AWS_ENDPOINT_URL: expected http://host:port or https://host:port, without credentials"
            )
        settings |= {"endpoint_override": parts.netloc + parts.path.rstrip("/"), "scheme": parts.scheme}
        region = region or "us-east-1"
    elif region is None:
        region = _region_of(address.bucket)
    if environ.get("AWS_CA_BUNDLE"):
        settings["tls_ca_file_path"] = environ["AWS_CA_BUNDLE"]
    return settings | ({} if region is None else {"region": region})


def _region_of(bucket: str) -> str | None:
    """The region of Amazon's bucket; None leaves it to the configuration files."""
    from pyarrow.fs import resolve_s3_region

    try:
        return str(resolve_s3_region(bucket))
    except OSError:
        return None


def _in_one_line(why: str, doing: str, address: Address, environ: Mapping[str, str]) -> HarnessError:
    where = endpoint_of(environ) if address.scheme == "s3" else ""
    at = f" at {where}" if where else ""
    if "NO_SUCH_BUCKET" in why or ("Bucket '" in why and "not found" in why):
        return WrongUse(f"there is no bucket {address.bucket}{at}; try: another address, or make it first")
    if any(
        word in why
        for word in ("ACCESS_DENIED", "INVALID_ACCESS_KEY", "SIGNATURE", "CREDENTIALS", "Forbidden")
    ):
        return StoreError(
            f"cannot {doing}: it was refused{at}; try: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) "
            "with the right to read, list and write there"
        )
    if "NETWORK_CONNECTION" in why or "curlCode" in why:
        return StoreError(
            f"cannot {doing}: no server answers{at or ' (no AWS_ENDPOINT_URL is set)'}; try: again later"
        )
    return StoreError(f"cannot {doing}: {_without_secrets(why, environ)[:300]}")


def _without_secrets(text: str, environ: Mapping[str, str]) -> str:
    for name in _SECRETS:
        if environ.get(name):
            text = text.replace(environ[name], "…")
    return " ".join(text.split())
