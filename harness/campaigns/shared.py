"""Campaigns of several machines that share their history through an object store.

    <address>/<plan>/<utc>-<seed>/…                 the runs, as `harness.results.remote_runs` uploads them
    <address>/_campaigns/<name>/<utc>-<digest>/…    a finished campaign: its journal, summary, JUnit XML, page

A campaign begins by fetching the campaigns of all machines (to results/_shared/). Runs that failed lately on any of
them come first, and anomalies are joined with sightings on all. At its end it uploads its runs, then its documents. If
the store does not answer, the next campaign uploads them, and meanwhile retention keeps them.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from checkers.history.errors import NOT_JSON
from harness.campaigns import journal
from harness.campaigns.journal import Ended, Journal
from harness.errors import HarnessError, StoreError, WrongUse
from harness.results import RunFolder
from harness.results.objects import Address, ObjectStore
from harness.results.remote_runs import at_once, put_run

SHARED = "_shared"
MARK = "published.json"
DOCUMENTS = (journal.RUNS, "junit.xml", "summary.md", "index.html", journal.SUMMARY, journal.HEAD)
"""The head is last, because readers take a campaign with a head for whole."""
FETCHING_TAKES_AT_MOST_S = 600


def name_of(book: Journal) -> str:
    """The name of a campaign among those of all machines."""
    digest = hashlib.sha256(msgspec.json.encode(book.head)).hexdigest()[:8]
    return f"{book.folder.name}-{digest}"


def fetch(address: Address, name: str, folder: Path) -> None:
    """Copy the journals of all campaigns of this name below `folder`, except copies that are whole."""
    store = ObjectStore(address)
    place = address / journal.FOLDER / name
    wanted = (journal.RUNS, journal.HEAD)
    there = {entry.name: entry.size for entry in store.objects(place)}
    whole = [entry.partition("/")[0] for entry in there if entry.endswith(f"/{journal.HEAD}")]
    whole = [entry for entry in whole if not entry.startswith(".")]
    files = [(entry, file) for entry in whole for file in wanted if f"{entry}/{file}" in there]
    fresh = [(entry, file) for entry, file in files if not (folder / entry / journal.HEAD).exists()]

    def copy(pair: tuple[str, str]) -> None:
        entry, file = pair
        store.fetch(place / entry / file, folder / entry / file)

    for file in wanted:  # the head last here, too
        at_once(copy, [pair for pair in fresh if pair[1] == file])


def fetch_apart(address: Address, name: str, results: Path) -> None:
    """`fetch` in a separate process: it uses threads that take locks, and this process begins runs by forking."""
    words = [sys.executable, "-P", "-m", __name__, str(address), name, str(results / SHARED / name)]
    try:
        done = subprocess.run(
            words, stdout=subprocess.PIPE, text=True, timeout=FETCHING_TAKES_AT_MOST_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"cannot read {address}: it took more than {FETCHING_TAKES_AT_MOST_S} s") from error
    if done.returncode != 0:
        why = done.stdout.strip() or f"reading {address} ended with {done.returncode}"
        raise (WrongUse if done.returncode == WrongUse.exit_code else StoreError)(why)


def of_others(results: Path, name: str, own: Sequence[Journal]) -> list[Journal]:
    """The fetched campaigns of this name of all remaining machines, of which this version can read a run."""
    names = {name_of(campaign) for campaign in own}
    folders = sorted(path.parent for path in (results / SHARED / name).glob(f"*/{journal.HEAD}"))
    books = (journal.load(folder) for folder in folders if folder.name not in names)
    return [book for book in books if book is not None and book.ended]


def unpublished(address: Address, results: Path, name: str) -> list[Journal]:
    """Finished campaigns of this machine that are not uploaded yet."""
    folders = [folder for folder in journal.folders(results, name) if (folder / journal.SUMMARY).exists()]
    return [
        book for folder in folders if not _is_published(folder, address) and (book := journal.load(folder))
    ]


def _is_published(folder: Path, address: Address) -> bool:
    try:
        return str(address) in msgspec.json.decode((folder / MARK).read_bytes(), type=list[str])
    except (OSError, *NOT_JSON):
        return False


def put_runs(address: Address, results: Path, ended: Sequence[Ended]) -> int:
    """Upload the judged runs; returns how many. Runs without a stored verdict are skipped."""
    store = ObjectStore(address)
    paths = [results / run.run for run in ended if run.run]
    judged = [path for path in paths if RunFolder(path).read_verdict_outcome() is not None]
    at_once(lambda path: put_run(store, address, path), judged)
    return len(judged)


def put_campaign(address: Address, book: Journal) -> None:
    """Upload the documents of a campaign, and record in its folder that it is published."""
    store = ObjectStore(address)
    place = address / journal.FOLDER / book.head.name / name_of(book)
    for name in DOCUMENTS:
        if (book.folder / name).exists():
            store.send(book.folder / name, place / name)
    book.write(MARK, msgspec.json.encode([str(address)]))


def put_what_is_left(address: Address, results: Path, name: str, tell: Callable[[str], None]) -> None:
    """Upload campaigns that an earlier call could not upload."""
    for book in unpublished(address, results, name):
        count = put_runs(address, results, book.ended)
        put_campaign(address, book)
        tell(f"published the campaign of {book.head.begun} and {count} of its runs, which had not been")


def _main(words: Sequence[str]) -> int:
    scheme, _, root = words[0].partition("://")
    try:
        fetch(Address(scheme, root), words[1], Path(words[2]))
    except HarnessError as error:
        print(error.message)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
