"""`qsync nightly`: a campaign from its plan to its exit code.

After a kill -9 or a Ctrl-C the same command continues the campaign. Each run is a process of its own. The budget
counts all parts of a resumed campaign; a run begins only if it will probably end in time.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from checkers.history.values import many
from harness.campaigns import compare, documents, interruption, journal, order, shared
from harness.campaigns.journal import Ended, Journal, Task, ToJudge
from harness.campaigns.judging import Judge, judge_here
from harness.campaigns.known import KnownList
from harness.campaigns.plan import Campaign, Cell
from harness.campaigns.retention import retain
from harness.campaigns.runs import Runs
from harness.campaigns.summary import CODES, LeftOut, Summary, summarize
from harness.errors import HarnessError, StoreError
from harness.judge.evidence.rare_turns import rows_of
from harness.plan.plan import Plan
from harness.results.objects import Address
from harness.results.run_folder import LATEST, point_to
from harness.systems import system_of

POLL_S = 0.05
NIGHTS = 14
"""The nights of the trend."""
SEEDS_BELOW = 1 << 40
LIKELY_OVERHEAD_S = {"sim": 5.0}
OVERHEAD_S = 15.0
"""Seconds that a run takes beside its load, if no earlier run says."""
LACKED_AT_FIRST = "this machine lacked something for it when the campaign began; the next campaign runs it"


@dataclass(slots=True)
class Nightly:
    """A campaign at work. `tell` prints a line for the user.

    `judge`: judges all runs after the last one has ended; None: each run judges itself. Recorded runs of an interrupted
    part of the campaign are judged in both cases. `publish`: the address at which machines share their campaigns
    (`harness.campaigns.shared`).
    """

    campaign: Campaign
    results: Path
    known: KnownList
    tell: Callable[[str], None]
    judge: Judge | None = None
    publish: Address | None = None
    clock: Callable[[], float] = time.monotonic
    is_interrupted: bool = False
    _left_out: tuple[LeftOut, ...] = ()

    def run(self, *, anew: bool = False) -> tuple[Summary, Path]:
        """Do the remaining tasks and sum up; returns the summary and the campaign's folder."""
        self._left_out = left_out(self.campaign.cells)
        earlier = self._earlier()
        book = self._book(earlier, anew)
        known_cells = {task.cell for task in book.head.tasks} | {omitted.cell for omitted in self._left_out}
        self._left_out += tuple(
            LeftOut(cell.name, LACKED_AT_FIRST)
            for cell in self.campaign.cells
            if cell.name not in known_cells
        )
        others = [each for each in earlier if each.folder != book.folder]
        for why, count in Counter(each.why for each in self._left_out).items():
            self.tell(f"{many(count, 'cell')} left out here: {why}")
        try:
            covered = order.covered(each.ended for each in others)
            self._work(book, covered)
            return self._sum_up(book, others, self._too_long(book, covered)), book.folder
        finally:
            book.close()

    def _earlier(self) -> list[Journal]:
        """Earlier campaigns of this name, oldest first; with `publish` those of all machines."""
        name = self.campaign.name
        own = [book for campaign in journal.folders(self.results, name) if (book := journal.load(campaign))]
        if self.publish is None:
            return own
        try:
            shared.fetch_apart(self.publish, name, self.results)
        except StoreError as error:
            self.tell(f"{error.message}; this campaign begins with what is known here")
        return sorted(
            [*own, *shared.of_others(self.results, name, own)], key=lambda campaign: campaign.head.begun
        )

    def _book(self, earlier: Sequence[Journal], anew: bool) -> Journal:
        campaign = self.campaign
        wanted = (self.results, campaign.name, campaign.digest, campaign.first_seed)
        book = None if anew else journal.unfinished(*wanted)
        if book is not None:
            self.tell(
                f"going on with the campaign of {book.head.begun}: {len(book.ended)} of {len(book.head.tasks)} runs "
                f"are done, {len(book.to_judge)} are recorded and will be judged, {len(book.interrupted)} were "
                "interrupted and begin again"
            )
            self._remove_leftovers(book)
            return book
        first = campaign.first_seed
        if first is None:
            first = random.SystemRandom().randrange(SEEDS_BELOW)
        seeds = range(first, first + campaign.seeds)
        out = {each.cell for each in self._left_out}
        names = [cell.name for cell in campaign.cells if cell.name not in out]
        todo = order.tasks(names, seeds, order.covered(each.ended for each in earlier))
        systems = dict.fromkeys(cell.plan.system for cell in campaign.cells)
        rows = dict.fromkeys(row for name in systems for row in rows_of(system_of(name)))
        return journal.create(self.results, campaign.name, campaign.digest, todo, tuple(rows))

    def _remove_leftovers(self, book: Journal) -> None:
        """Remove containers of interrupted runs: they outlive a killed campaign, and would slow down the next runs."""
        clusters = {cell.name: cell.plan.cluster for cell in self.campaign.cells}
        if not any(clusters.get(task.cell) == "docker" for task in book.interrupted):
            return
        from harness.cluster.containers.image import connect
        from harness.cluster.ownership import remove_leftovers

        try:
            removed = remove_leftovers(connect())
        except HarnessError as error:
            self.tell(f"what the interrupted runs left could not be removed: {error.message}")
        else:
            if removed:
                self.tell(f"removed what the interrupted runs left: {', '.join(removed)}")

    def _work(self, book: Journal, covered: order.Coverage) -> None:
        plans = {cell.name: cell.plan for cell in self.campaign.cells}
        runs = Runs(self.results, plans, self.campaign.at_once, judged_later=self.judge is not None)
        began_s = self.clock()
        out = {omitted.cell for omitted in self._left_out}
        waiting = [task for task in book.to_run() if task.cell not in out]
        try:
            self._begin(book, runs, waiting, covered, began_s)
            while runs.running:
                time.sleep(POLL_S)
                interruption.look()
                for run in runs.ended():
                    self._note(book, run)
                self._begin(book, runs, waiting, covered, began_s)
            self._judge(book)
        except KeyboardInterrupt:
            self.is_interrupted = True
            self.tell("interrupted: ending the runs that go on; the same command goes on where this one was")
            runs.interrupt()
            for run in runs.ended():
                if _is_whole(run):
                    self._note(book, run)
        finally:
            runs.interrupt(5.0)
            book.spend(self.clock() - began_s)

    def _note(self, book: Journal, run: Ended | ToJudge) -> None:
        book.note(run)
        whole = len(book.head.tasks)
        if isinstance(run, Ended):
            self.tell(_line(run, len(book.ended), whole))
        else:
            recorded = len(book.ended) + len(book.to_judge)
            self.tell(
                f"[{recorded}/{whole}] {'recorded':<12} {run.seconds:6.1f} s  {run.cell} seed {run.seed}"
            )

    def _judge(self, book: Journal) -> None:
        """Judge the recorded runs. No run is active meanwhile, because judging takes processor time from its nodes."""
        if not book.to_judge:
            return
        judge = self.judge or judge_here
        for ended in judge(self.results, book.to_judge):
            self._note(book, ended)

    def _begin(
        self,
        book: Journal,
        runs: Runs,
        waiting: list[Task],
        covered: order.Coverage,
        began_s: float,
    ) -> None:
        """Begin runs that fit beside the active ones, in order; skip those that would not end in time."""
        for task in list(waiting):
            if not runs.has_room(task):
                break
            waiting.remove(task)
            likely_s = self._likely_s(runs.plans[task.cell], covered[task.cell].seconds)
            spent_s = book.spent_s + self.clock() - began_s
            if self.campaign.budget_s is None or spent_s + likely_s <= self.campaign.budget_s:
                # Before its process: after a kill the run counts as interrupted.
                book.begin(task)
                runs.begin(task)

    def _likely_s(self, plan: Plan, lately_s: float) -> float:
        """The expected duration of a run of this plan, from its latest runs."""
        if lately_s:
            return lately_s
        load_s = plan.time_limit_s / 4 if plan.cluster == "sim" else plan.time_limit_s
        return load_s + LIKELY_OVERHEAD_S.get(plan.cluster, OVERHEAD_S)

    def _too_long(self, book: Journal, covered: order.Coverage) -> tuple[str, ...]:
        """Cells that were not reached because one run takes longer than the whole budget."""
        budget_s = self.campaign.budget_s
        if budget_s is None:
            return ()
        left = {task.cell for task in book.left()} - {run.cell for run in book.ended}
        return tuple(
            cell.name
            for cell in self.campaign.cells
            if cell.name in left and self._likely_s(cell.plan, covered[cell.name].seconds) > budget_s
        )

    def _sum_up(self, book: Journal, others: Sequence[Journal], too_long: tuple[str, ...]) -> Summary:
        notes = []
        unpublished = self._publish_runs(book)
        if unpublished:
            notes.append("nothing was removed by age or size, as runs are not published yet")
        elif not self.is_interrupted:
            ended_runs = [run.run for run in book.ended]
            removed = retain(self.results, self.campaign.name, self.campaign.retention, keep=ended_runs)
            if removed.runs:
                notes.append(f"retention removed {removed.runs} runs ({removed.bytes / 2**20:.0f} MiB)")
        if book.unwritten:
            notes.append(f"{book.unwritten} lines of the journal could not be written: the disk is full")
        earlier = [other.ended for other in others]
        summary = summarize(book, self.known, earlier, excluded=self.campaign.excluded, notes=notes)
        if self.is_interrupted:
            return replace(summary, is_interrupted=True)
        summary = replace(summary, too_long=too_long, left_out=self._left_out, unpublished=unpublished)
        try:
            self._keep(book, summary, others)
            summary = self._publish_summary(book, summary, others)
        except StoreError as error:
            if summary.exit_code != 1:
                raise
            self.tell(error.message)
        return summary

    def _publish_runs(self, book: Journal) -> str:
        """Upload the runs, and those that earlier campaigns could not; why the store refused, "" if it did not."""
        if self.publish is None or self.is_interrupted:
            return ""
        try:
            shared.put_what_is_left(self.publish, self.results, self.campaign.name, self.tell)
            self.tell(
                f"published {shared.put_runs(self.publish, self.results, book.ended)} runs to {self.publish}"
            )
        except HarnessError as error:
            return error.message
        except KeyboardInterrupt:
            self.is_interrupted = True
            self.tell("interrupted while publishing: the same command goes on where this one was")
        return ""

    def _publish_summary(self, book: Journal, summary: Summary, others: Sequence[Journal]) -> Summary:
        if self.publish is None or summary.unpublished:
            return summary
        try:
            shared.put_campaign(self.publish, book)
        except HarnessError as error:
            summary = replace(summary, unpublished=error.message)
            self._keep(book, summary, others)
        return summary

    def _keep(self, book: Journal, summary: Summary, others: Sequence[Journal]) -> None:
        """Write the documents of the campaign. The summary is last: a campaign with a summary is over."""
        before = compare.previous(book, others)
        comparison = None if before is None else compare.compare(before, book)
        nights = compare.trend([*others, book], NIGHTS)
        page = documents.page(summary, book.folder, self.results, comparison, nights)
        book.write("junit.xml", documents.junit(summary))
        book.write("summary.md", documents.markdown(summary).encode())
        book.write("index.html", page.encode())
        text = msgspec.json.format(msgspec.json.encode(summary.to_json()), indent=1)
        book.write(journal.SUMMARY, text + b"\n")
        with suppress(OSError):  # a file system without links: the folder's name says when it was
            point_to(book.folder.parent / LATEST, book.folder)


def left_out(cells: Sequence[Cell]) -> tuple[LeftOut, ...]:
    """The cells that cannot run on this machine."""
    needs_engine = any(cell.plan.cluster == "docker" for cell in cells)
    no_engine = _why_no_engine() if needs_engine else ""
    whys = ((cell, cell.lacks or (no_engine if cell.plan.cluster == "docker" else "")) for cell in cells)
    return tuple(LeftOut(cell.name, why) for cell, why in whys if why)


def _why_no_engine() -> str:
    from harness.cluster.containers.image import connect

    try:
        connect().close()
    except HarnessError as error:
        return error.message
    return ""


def on_end(command: str, folder: Path, summary: Summary, tell: Callable[[str], None]) -> None:
    """Run the user's command at the end. Its result does not change the campaign's exit code, and its output goes to
    standard error: what stands on standard output is the campaign's own."""
    variables = {
        "QSYNC_CAMPAIGN": str(folder),
        "QSYNC_EXIT_CODE": str(summary.exit_code),
        "QSYNC_SENTENCE": summary.sentence,
    }
    code: int | str = "an interruption"
    with suppress(KeyboardInterrupt):
        code = subprocess.run(
            command, shell=True, env=os.environ | variables, stdout=2, check=False
        ).returncode
    if code != 0:
        tell(f"--on-end ended with {code}: {command}")


def _is_whole(run: Ended | ToJudge) -> bool:
    """Whether the result of an interrupted run counts: the run was over already, or is an anomaly all the same."""
    if isinstance(run, Ended):
        return run.exit_code in (CODES["valid"], CODES["anomaly"], CODES["unknown"])
    return not run.interrupted and run.failure is None


def _line(run: Ended, done: int, whole: int) -> str:
    leading = f"  {run.fingerprints[0]}" if run.fingerprints else ""
    why = f"  {run.sentence}" if run.outcome not in ("valid", "anomaly") else ""
    return (
        f"[{done}/{whole}] {run.outcome:<12} {run.seconds:6.1f} s  {run.cell} seed {run.seed}{leading}{why}"
    )
