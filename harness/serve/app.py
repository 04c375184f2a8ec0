"""Addresses → pages and files.

Refused are

- methods other than GET and HEAD
- a Host that is not ours: by a name that it makes point here, another site could read the results (DNS rebinding)
- names that are not in results/
- files outside of the folder of which they are asked, by `..` or by a link

Nothing of a history is executed: pages escape it and allow no script but ours, files are downloaded, and a stored page
has a sandbox of its own.
"""

from __future__ import annotations

import ipaddress
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, unquote_to_bytes

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from checkers.history import HistoryError, segments
from harness.campaigns import journal
from harness.campaigns.journal import Journal
from harness.errors import HarnessError
from harness.results import bundle
from harness.results.run_folder import HISTORY, REPORT
from harness.serve import campaign_sheets, sheets, side_by_side, tables
from harness.serve.index import Index, Run
from harness.serve.lines import Kept, Lines
from harness.serve.sheets import Sheet
from harness.serve.under_way import UnderWay

PAGE = "index.html"
OVERVIEW = "overview.html"
NUMBER_MAX = 1 << 53
CHUNK_BYTES = 1 << 18
TEXT_MAX = 200
POLICY = (
    "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; script-src 'self'; connect-src 'self'; "
    "img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
STORED_POLICY = (
    "sandbox allow-scripts allow-popups allow-modals allow-downloads; connect-src 'none'; object-src 'none'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""For stored pages, beside their own policies: an origin of their own, and no requests."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Served:
    """The pages over one results/."""

    def __init__(self, results: Path) -> None:
        self.results = results.resolve()
        self.index = Index(self.results)
        self._lines = Kept(Lines)
        self._under_way = Kept(UnderWay)

    def warm_up(self) -> int:
        """Read the index and compile the templates, so that the first page is not slow; returns the number of runs."""
        runs = self.index.runs()
        sheets.html(sheets.runs(runs, {}, 0))
        return len(runs)

    def routes(self) -> list[Route]:
        run = "/runs/{plan}/{name}"
        pages: dict[str, Callable[[Request], Response]] = {
            "/": lambda request: RedirectResponse("/runs"),
            "/static/serve.css": lambda request: Response(sheets.style(), media_type="text/css"),
            "/static/serve.js": lambda request: Response(sheets.script(), media_type="text/javascript"),
            "/runs": self.runs,
            "/runs/{name}/operations": self.operations_of_a_name,
            run: self.run,
            f"{run}/operations": self.operations,
            f"{run}/live": self.live,
            f"{run}/bundle": self.bundle,
            run + "/files/{path:path}": self.file,
            "/compare": self.two_runs,
            "/campaigns": self.campaigns,
            "/campaigns/{name}/{begun}": self.campaign,
            "/nights": self.two_nights,
            "/live": self.under_way,
            "/tables": self.tables,
            "/tables/{name}": self.table,
            f"/results/_campaigns/{{name}}/{{begun}}/{PAGE}": self.stored_campaign,
            f"/results/_tables/{OVERVIEW}": self.stored_overview,
            f"/results/{{plan}}/{{name}}/{REPORT}": self.stored_report,
        }
        return [Route(path, page) for path, page in pages.items()]

    def runs(self, request: Request) -> Response:
        asked = {name: _text(request, name) for name in ("text", "outcome", "plan", "sort")}
        return _html(sheets.runs(self.index.runs(), asked, _number(request, "page")))

    def run(self, request: Request) -> Response:
        run = self._run(request)
        files = list(_files(run.path))
        has_report = any(name == REPORT for name, _ in files)
        stored = side_by_side.Stored.read(run)
        return _html(sheets.run(run, stored, files, has_report, (run.path / HISTORY).exists()))

    def operations_of_a_name(self, request: Request) -> Response:
        """Redirect by the run's folder alone: a page that was opened from disk may not know the plan."""
        name = request.path_params["name"]
        runs = self.index.named(name)
        if not runs:
            raise HTTPException(404, f"There is no run {name} in results/.")
        return RedirectResponse(f"{sheets.run_link(runs[0])}/operations?from={_number(request, 'from')}")

    def operations(self, request: Request) -> Response:
        run, asked = self._run(request), _number(request, "from")

        def read(lines: Lines) -> tuple[int, int, list[bytes]]:
            whole = max(lines.count() - 1, 0)  # without the header
            first = max(min(asked, whole - 1) - sheets.AROUND, 0)
            return first, whole, lines.read(first + 1, sheets.EVENTS)

        first, whole, lines = self._lines.use(self._record(run.path), read)
        return _html(sheets.operations(run, lines, first, whole, asked))

    def live(self, request: Request) -> Response:
        run = self._run(request)

        def read(progress: UnderWay) -> Sheet:
            progress.look()
            return sheets.live(run, progress)

        return _html(self._under_way.use(self._record(run.path), read))

    def bundle(self, request: Request) -> Response:
        run = self._run(request)
        file = _bundled(run)
        named = quote(f"{run.plan}-{run.name}.zip")
        headers = {
            "content-disposition": f"attachment; filename*=utf-8''{named}",
            "content-length": str(os.fstat(file.fileno()).st_size),
        }
        return StreamingResponse(_chunks(file), media_type="application/zip", headers=headers)

    def file(self, request: Request) -> Response:
        run = self._run(request)
        # Not the path as text: there a byte that is no UTF-8 has become another character.
        name = os.fsdecode(unquote_to_bytes(request.scope["raw_path"].split(b"/", 5)[-1]))
        path = self._inside(run.path, name)
        shown = path.name.encode(errors="replace").decode()
        return FileResponse(path, filename=shown, media_type="application/octet-stream")

    def two_runs(self, request: Request) -> Response:
        one, other = (self._named(request, side) for side in "ab")
        return _html(sheets.two_runs(side_by_side.Stored.read(one), side_by_side.Stored.read(other)))

    def campaigns(self, request: Request) -> Response:
        return _html(campaign_sheets.campaigns(self.index.campaigns()))

    def campaign(self, request: Request) -> Response:
        book = self._campaign(request.path_params["name"], request.path_params["begun"])
        return _html(campaign_sheets.campaign(book, self._of_name(book), (book.folder / PAGE).is_file()))

    def two_nights(self, request: Request) -> Response:
        books = []
        for side in "ab":
            name, _, begun = _text(request, side).partition("/")
            books.append(self._campaign(name, begun))
        earlier, later = sorted(books, key=lambda book: book.head.begun)
        return _html(campaign_sheets.two_nights(earlier, later, self._of_name(later)))

    def under_way(self, request: Request) -> Response:
        return _html(campaign_sheets.under_way(self.index.runs(), self.index.campaigns()))

    def tables(self, request: Request) -> Response:
        has_overview = (self.results / tables.FOLDER / OVERVIEW).is_file()
        return _html(sheets.tables(tables.names(self.results), has_overview))

    def table(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in tables.names(self.results):
            raise HTTPException(404, f"There is no table {name}.")
        try:
            section = tables.first_rows(self.results, name)
        except (OSError, ValueError) as error:
            raise HTTPException(404, f"The table {name} cannot be read: {error}") from error
        return _html(sheets.table(name, section))

    def stored_report(self, request: Request) -> Response:
        return self._stored(self._run(request).path, REPORT)

    def stored_campaign(self, request: Request) -> Response:
        book = self._campaign(request.path_params["name"], request.path_params["begun"])
        return self._stored(book.folder, PAGE)

    def stored_overview(self, request: Request) -> Response:
        return self._stored(self.results / tables.FOLDER, OVERVIEW)

    def _stored(self, folder: Path, name: str) -> Response:
        headers = {"content-security-policy": STORED_POLICY}
        return FileResponse(self._inside(folder, name), media_type="text/html", headers=headers)

    def _run(self, request: Request) -> Run:
        plan, name = request.path_params["plan"], request.path_params["name"]
        run = self.index.run(plan, name)
        if run is None:
            raise HTTPException(404, f"There is no run {plan}/{name} in results/.")
        return run

    def _named(self, request: Request, side: str) -> Run:
        plan, _, name = _text(request, side).partition("/")
        run = self.index.run(plan, name)
        if run is None:
            raise HTTPException(404, f"{side}: expected a run of results/ as PLAN/RUN, got {plan}/{name}.")
        return run

    def _campaign(self, name: str, begun: str) -> Journal:
        book = self.index.campaign(name, begun)
        if book is None:
            raise HTTPException(404, f"There is no campaign {name}/{begun} in results/{journal.FOLDER}.")
        return book

    def _of_name(self, book: Journal) -> list[Journal]:
        return [other for other in self.index.campaigns() if other.folder.parent == book.folder.parent]

    def _record(self, folder: Path) -> Path:
        """The history of a run; 404, as of `_inside`, if it or a segment is outside of the folder."""
        path = self._inside(folder, HISTORY)
        for segment in segments.segments(folder / HISTORY):
            self._inside(folder, f"{segments.FOLDER}/{segment.name}")
        return path

    def _inside(self, folder: Path, name: str) -> Path:
        """A file below a folder of results/, with all links followed; 404 if it is outside of the folder."""
        try:
            path = (folder / name).resolve(strict=True)
            is_ours = path.is_relative_to(folder.resolve(strict=True)) and path.is_relative_to(self.results)
            is_ours = is_ours and path.is_file()
        except (OSError, ValueError, RuntimeError):
            is_ours = False
        if not is_ours:
            raise HTTPException(404, f"There is no file {name}.")
        return path


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """The plain files below a folder and their bytes, by name. Links are left out."""
    for path in sorted(folder.rglob("*")):
        try:
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path.stat().st_size
        except OSError:
            continue


def _bundled(run: Run) -> BinaryIO:
    """The open bundle of a run; its file vanishes when it is closed. Raises OSError or StoreError."""
    with tempfile.TemporaryDirectory(prefix="qsync-bundle-") as folder:
        path = Path(folder) / "bundle.zip"
        bundle.write(path, bundle.of_run(run.path))
        return path.open("rb")


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _text(request: Request, name: str) -> str:
    return request.query_params.get(name, "")[:TEXT_MAX]


def _number(request: Request, name: str) -> int:
    given = request.query_params.get(name, "") or "0"
    if not (given.isascii() and given.isdigit() and len(given) < 20):
        raise HTTPException(400, f"{name}: expected a whole number of at least 0, got {given[:40]!r}.")
    return min(int(given), NUMBER_MAX)


def _html(sheet: Sheet, status: int = 200) -> Response:
    text = sheets.html(sheet).encode(errors="replace")
    return HTMLResponse(text, status, {"content-security-policy": POLICY})


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "There is no such page.", 405: "Expected GET."}
    sentence = (
        error.detail if error.detail not in ("Not Found", "Method Not Allowed") else words[error.status_code]
    )
    return _html(sheets.plain(error.status_code, sentence), error.status_code)


def _unreadable(request: Request, error: Exception) -> Response:
    """The page for a file that vanished or cannot be read, which is not a defect of ours."""
    sentence = f"A file cannot be read: {getattr(error, 'strerror', error)}."
    if isinstance(error, HarnessError):
        sentence = error.message
    return _html(sheets.plain(404, sentence), 404)


def _broke(request: Request, error: Exception) -> Response:
    return _html(sheets.plain(500, f"The harness itself failed: {type(error).__name__}."), 500)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_ours(header: str, host: str) -> bool:
    """Whether a Host header names us. On a loopback address only loopback names do. On others every address does, but
    no name except the one that was given: a foreign site can make a name point here, not an address.
    """
    name = header.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
    if is_loopback(host) or is_loopback(name):
        return is_loopback(name)
    if name == host.lower():
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def application(results: Path, host: str, tell: Callable[[Exception], None]) -> tuple[Application, Served]:
    """The ASGI application and its pages. `tell`: receives errors that are defects of ours."""
    served = Served(results)
    handlers: dict[Any, Any] = {
        HTTPException: _refused,
        HarnessError: _unreadable,
        HistoryError: _unreadable,
        OSError: _unreadable,
        Exception: _broke,
    }
    inner = Starlette(routes=served.routes(), exception_handlers=handlers)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # no websockets; nothing to begin or to end
        has_begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                there = {name.lower() for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [
                    *message["headers"],
                    *(header for header in added if header[0] not in there),
                ]
            await send(message)

        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not is_ours(hosts[0], host):
            sheet = sheets.plain(
                421, f"This server answers to {host} alone; try its address in place of a name."
            )
            await _html(sheet, 421)(scope, receive, send_guarded)
            return
        try:
            await inner(scope, receive, send_guarded)
        except Exception as error:
            tell(error)
            if not has_begun:
                await _broke(Request(scope), error)(scope, receive, send_guarded)

    return guarded, served
