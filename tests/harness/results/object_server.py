"""A small S3 over loopback: what pyarrow's file system asks of one, in memory; signatures are not looked at.

Paths are `/<bucket>/<key>`. There are lists in pages, ranges, multipart uploads, and bodies in signed chunks. `breaks`
is asked before each request is served and may raise `Gone`: from then on nobody is answered.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest

PAGE = 7
"""Keys of one page of a list: few, so that every list of some runs has several."""
ETAG = '"0123456789abcdef0123456789abcdef"'


class Gone(Exception):
    """The endpoint is away."""


class ObjectServer(ThreadingHTTPServer):
    """`buckets`: name → key → content. `asked`: every request that was served, as "PUT bucket/key"."""

    daemon_threads = True

    def __init__(self, *buckets: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.buckets: dict[str, dict[str, bytes]] = {name: {} for name in buckets}
        self.changed: dict[tuple[str, str], datetime] = {}
        self.uploads: dict[str, dict[int, bytes]] = {}
        self.numbers = count(1)
        self.asked: list[str] = []
        self.breaks: Callable[[str], None] = lambda asked: None
        self.refuses = False
        self.is_gone = False
        self.lock = threading.Lock()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def environ(self) -> dict[str, str]:
        """What the field's variables are set to for it; nothing asks a cloud who it is."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "key-that-is-not-told",
            "AWS_SECRET_ACCESS_KEY": "secret-that-is-not-told",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def speak_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, value in self.environ.items():
            monkeypatch.setenv(name, value)
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_PROFILE", "http_proxy", "HTTP_PROXY"):
            monkeypatch.delenv(name, raising=False)

    def present(self, bucket: str = "b") -> list[str]:
        """What is there, but for markers of folders."""
        return sorted(key for key in self.buckets[bucket] if not key.endswith("/"))

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self.buckets[bucket][key] = data
        self.changed[bucket, key] = datetime.now(UTC)

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that a client gives up are no news."""


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ObjectServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the base class has it
        """Nothing."""

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query, True).items()}
        self.bucket, _, self.key = unquote(parts.path.lstrip("/")).partition("/")
        body = self._body()
        with self.server.lock:
            asked = f"{self.command} {self.bucket}/{self.key}"
            try:
                if self.server.is_gone:
                    raise Gone
                self.server.breaks(asked)
            except Gone:
                self.server.is_gone = True
                self.close_connection = True
                self.connection.close()
                return
            self.server.asked.append(asked)
            if self.server.refuses:
                self._refuse(403, "AccessDenied")
            elif self.bucket not in self.server.buckets:
                self._refuse(404, "NoSuchBucket")
            else:
                getattr(self, f"_{self.command.lower()}")(self.server.buckets[self.bucket], body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _serve  # noqa: N815  # as the base class wants them

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = self._chunks()
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "aws-chunked" not in (self.headers.get("Content-Encoding") or ""):
            return data
        whole = b""
        while data:  # size in hexadecimal [;signature] CRLF data CRLF … until a size of 0
            head, _, data = data.partition(b"\r\n")
            size = int(head.partition(b";")[0], 16)
            if size == 0:
                break
            whole, data = whole + data[:size], data[size + 2 :]
        return whole

    def _chunks(self) -> bytes:
        whole = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass  # trailers
        return whole

    def _get(self, bucket: dict[str, bytes], body: bytes) -> None:
        if not self.key:
            self._list(bucket)
        elif self.key not in bucket:
            self._refuse(404, "NoSuchKey")
        else:
            self._content(bucket[self.key])

    def _content(self, data: bytes) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if found is None:
            self._answer(200, data)
            return
        start, end = int(found[1]), int(found[2] or len(data) - 1)
        more = {"Content-Range": f"bytes {start}-{min(end, len(data) - 1)}/{len(data)}"}
        self._answer(206, data[start : end + 1], more)

    def _head(self, bucket: dict[str, bytes], body: bytes) -> None:
        if self.key and self.key not in bucket:
            self._refuse(404, "NoSuchKey")
        else:
            self._answer(200, bucket.get(self.key, b""))

    def _put(self, bucket: dict[str, bytes], body: bytes) -> None:
        if "uploadId" in self.query:
            self.server.uploads[self.query["uploadId"]][int(self.query["partNumber"])] = body
        else:
            self.server.put(self.bucket, self.key, body)
        self._answer(200)

    def _post(self, bucket: dict[str, bytes], body: bytes) -> None:
        if "uploads" in self.query:
            upload = str(next(self.server.numbers))
            self.server.uploads[upload] = {}
            self._xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>")
        elif "uploadId" in self.query:
            parts = self.server.uploads.pop(self.query["uploadId"])
            self.server.put(self.bucket, self.key, b"".join(parts[number] for number in sorted(parts)))
            self._xml("CompleteMultipartUploadResult", f"<ETag>{escape(ETAG)}</ETag>")
        else:
            for key in re.findall(r"<Key>(.*?)</Key>", body.decode()):
                bucket.pop(key, None)
            self._xml("DeleteResult", "")

    def _delete(self, bucket: dict[str, bytes], body: bytes) -> None:
        if "uploadId" in self.query:
            self.server.uploads.pop(self.query["uploadId"], None)
        else:
            bucket.pop(self.key, None)
        self._answer(204)

    def _list(self, bucket: dict[str, bytes]) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter", "")
        found: dict[str, bool] = {}
        for key in sorted(key for key in bucket if key.startswith(prefix)):
            head, cut, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            found[prefix + head + cut if cut else key] = bool(cut)
        after = self.query.get("continuation-token", self.query.get("start-after", ""))
        names = [name for name in found if name > after]
        page = names[: min(PAGE, int(self.query.get("max-keys", PAGE)))]
        text = "".join(self._listed(bucket, name, found[name]) for name in page)
        more = len(page) < len(names)
        text += f"<IsTruncated>{str(more).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>"
        if more:
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        self._xml("ListBucketResult", f"<Name>{self.bucket}</Name><Prefix>{escape(prefix)}</Prefix>{text}")

    def _listed(self, bucket: dict[str, bytes], name: str, is_prefix: bool) -> str:
        written = quote(name) if self.query.get("encoding-type") == "url" else escape(name)
        if is_prefix:
            return f"<CommonPrefixes><Prefix>{written}</Prefix></CommonPrefixes>"
        at = self.server.changed[self.bucket, name].strftime("%Y-%m-%dT%H:%M:%S.000Z")
        size = len(bucket[name])
        return (
            f"<Contents><Key>{written}</Key><LastModified>{at}</LastModified><Size>{size}</Size></Contents>"
        )

    def _xml(self, root: str, inside: str) -> None:
        self._answer(200, f'<?xml version="1.0"?><{root}>{inside}</{root}>'.encode(), kind="application/xml")

    def _refuse(self, status: int, code: str) -> None:
        text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
        self._answer(status, text.encode(), kind="application/xml")

    def _answer(
        self,
        status: int,
        data: bytes = b"",
        more: dict[str, str] | None = None,
        kind: str = "binary/octet-stream",
    ) -> None:
        at = self.server.changed.get((self.bucket, self.key), datetime.now(UTC))
        headers = {
            "Content-Length": str(len(data)),
            "Content-Type": kind,
            "ETag": ETAG,
            "Last-Modified": at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
            **(more or {}),
        }
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(data)


@contextmanager
def object_server(*buckets: str) -> Iterator[ObjectServer]:
    """One that serves for as long as the block lasts."""
    with ObjectServer(*buckets) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
