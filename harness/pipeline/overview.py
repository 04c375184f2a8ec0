"""The summary of an analysis for people: a page beside the tables, and a screen for the terminal.

Both are made from the aggregates alone, which are small, and without Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkers.history.values import many
from harness.errors import StoreError
from harness.pages.tables_page import Cell, Page, Section, html
from harness.pages.terminal.colour import printable
from harness.results import output_file

if TYPE_CHECKING:
    from harness.pipeline.report import Report
    from harness.results.objects import Address

Rows = list[dict[str, Any]]
PAGE = "overview.html"
AGGREGATES = ("trend", "recurrence", "flaky_or_fixed", "recurring_findings", "slowest", "fault_coverage")
LEFT_OUT_SHOWN = 20
SLOWEST_SHOWN = 15


@dataclass(frozen=True, slots=True)
class Overview:
    """The aggregates as rows, by name."""

    folder: Path
    rows: Mapping[str, Rows]
    place: str = ""
    """Where the tables are kept, if `folder` is a copy."""

    def write(self, target: Path, report: Report) -> None:
        """Write the page. StoreError in one line if it cannot be written."""
        output_file.write(target, html(self._page(report, target)).encode("utf-8", "replace"), "the overview")

    def publish(self, address: Address) -> str:
        """Put the page beside the tables at their address; returns its address."""
        from harness.results.objects import ObjectStore

        target = address / PAGE
        ObjectStore(address).write(target, (self.folder / PAGE).read_bytes())
        return str(target)

    def lines(self, report: Report, page: Path | str) -> list[str]:
        """The lines of the screen."""
        counts = self._counts()
        lines = [
            f"{report.new} new, {report.changed} changed, {report.known} known runs; {report.seconds:.1f} s",
            f"{sum(counts.values())} runs in the tables: "
            + ", ".join(f"{count} {word}" for word, count in counts.items() if count),
        ]
        says = {row["fingerprint"]: row["says"] for row in self.rows["flaky_or_fixed"]}
        for row in self.rows["recurrence"][:10]:
            where = f"{many(row['runs'], 'run')}, last {row['last_run']}"
            lines.append(
                f"  {row['fingerprint']}  {says.get(row['fingerprint'], ''):<11}  {where}: {row['shape']}"
            )
        if findings := len(self.rows["recurring_findings"]):
            lines.append(f"{many(findings, 'fingerprint')} of findings, which break no promise: see the page")
        lines += [printable(sentence) for sentence in (*report.says, *self._skipped(report, "skipped   "))]
        lines += [f"tables    {self._place}", f"page      {page}"]
        return lines

    def as_json(self, report: Report, page: Path | str) -> dict[str, Any]:
        skipped = [{"path": entry.place, "why": entry.why} for entry in [*report.left_out, *report.foreign]]
        return {
            "tables": self._place,
            "page": str(page),
            "new": report.new,
            "changed": report.changed,
            "known": report.known,
            "seconds": report.seconds,
            "skipped": skipped,
            "left_out": len(report.left_out),
            "changed_files": report.changed_files,
            "damaged_tables": list(report.damaged_tables),
            "lost": list(report.lost),
            "outcomes": self._counts(),
            "fingerprints": _in_short(self.rows["recurrence"]),
            "findings": _in_short(self.rows["recurring_findings"]),
        }

    def _skipped(self, report: Report, word: str = "") -> list[str]:
        """The first entries that were left out, with their reasons."""
        shown = [*report.left_out, *report.foreign][:LEFT_OUT_SHOWN]
        return [f"{word}{entry.place}: {entry.why}" for entry in shown]

    @property
    def _place(self) -> str:
        return self.place or str(self.folder)

    def _counts(self) -> dict[str, int]:
        names = ("valid", "anomaly", "unknown", "inconclusive")
        return {name.replace("_", "-"): sum(row[name] for row in self.rows["trend"]) for name in names}

    def _page(self, report: Report, target: Path) -> Page:
        counts = self._counts()
        runs = sum(counts.values())
        seen = len(self.rows["recurrence"])
        tone = "anomaly" if seen else "valid" if runs else "no-verdict"
        sentence = (
            f"{many(runs, 'run')} in the tables, {many(seen, 'fingerprint')} of anomalies among them."
            if runs
            else "There are no finished runs in the tables yet."
        )
        left_out = [("left out", f"{len(report.left_out):,}", report.reasons)]
        return Page(
            title=f"{runs} runs · qsync analyze",
            crumbs=("analyze", self._place),
            tone=tone,
            badge=many(runs, "run").upper(),
            sentence=sentence,
            facts=(
                *((word, f"{count:,}", "runs") for word, count in counts.items()),
                (
                    "this call",
                    f"{report.new + report.changed} read",
                    f"{report.known} known, {report.seconds:.1f} s",
                ),
                ("operations ok", f"{sum(row['ok'] or 0 for row in self.rows['trend']):,}", ""),
                *(left_out if report.left_out else ()),
            ),
            notes=(*report.says, *self._skipped(report)),
            sections=(
                self._fingerprints(target),
                self._findings(target),
                self._trend(),
                self._coverage(),
                self._slowest(target),
            ),
        )

    def _fingerprints(self, target: Path) -> Section:
        fate = {row["fingerprint"]: row for row in self.rows["flaky_or_fixed"]}
        rows = []
        for row in self.rows["recurrence"]:
            says = fate.get(row["fingerprint"], {})
            rate = (
                f"{100 * says['rate']:.0f} % of {says['tried']} tried, {says['silent']} silent since"
                if says
                else ""
            )
            rows.append(
                (
                    Cell(row["fingerprint"], "code"),
                    Cell(
                        str(says.get("says", "")),
                        {"present": "anomaly", "fixed": "valid"}.get(str(says.get("says")), "unknown"),
                    ),
                    Cell(row["shape"], "prose"),
                    f"{row['runs']:,}",
                    rate,
                    _day(row["first_seen"]),
                    Cell(row["last_run"], link=self._link(row["last_run"], target)),
                    Cell("; ".join(row["cells"][:3]), "prose"),
                )
            )
        return Section(
            "Anomalies by fingerprint",
            "A fingerprint is the rule that was broken, the shape of the witness and the state around it. "
            "“Fixed” means that its silence since would come by chance less often than in 1 of 20 cases.",
            (
                "fingerprint",
                "now",
                "what",
                "runs",
                "how often",
                "first seen",
                "last seen in",
                "where",
            ),
            rows,
            frozenset({"runs"}),
            "No anomaly was ever seen.",
        )

    def _findings(self, target: Path) -> Section:
        rows = [
            (
                Cell(row["fingerprint"], "code"),
                Cell(row["shape"], "prose"),
                f"{row['runs']:,}",
                _day(row["first_seen"]),
                Cell(row["last_run"], link=self._link(row["last_run"], target)),
                Cell("; ".join(row["cells"][:3]), "prose"),
            )
            for row in self.rows["recurring_findings"]
        ]
        return Section(
            "Findings by fingerprint",
            "Checks that found what the promise of the run does not forbid. They are no anomalies.",
            ("fingerprint", "what", "runs", "first seen", "last seen in", "where"),
            rows,
            frozenset({"runs"}),
            "There are none.",
        )

    def _trend(self) -> Section:
        rows = [
            (
                row["campaign"],
                Cell(row["code"] or "unknown", "code"),
                f"{row['runs']:,}",
                Cell(parts=tuple((word, row[word.replace("-", "_")]) for word in self._counts())),
                "" if row["ok_share"] is None else f"{100 * row['ok_share']:.1f} %",
                "" if row["typical_worst_p99_ms"] is None else f"{row['typical_worst_p99_ms']:,.1f}",
                _day(row["first_run"]),
                _day(row["last_run"]),
            )
            for row in self.rows["trend"]
        ]
        return Section(
            "Trend by plan and version",
            "The bar: valid, anomaly, unknown, inconclusive. The p99 is of a run's worst window, in the median run.",
            ("plan", "version", "runs", "outcomes", "ok of asked", "worst p99, ms", "first run", "last run"),
            rows,
            frozenset({"runs", "ok of asked", "worst p99, ms"}),
        )

    def _coverage(self) -> Section:
        rows = [
            (
                row["campaign"], row["system"] or "", row["cluster"] or "", row["workload"] or "", row["name"],
                f"{row['runs']:,}", f"{row['injected']:,}", f"{row['took_effect']:,}", f"{row['healed']:,}",
                f"{row['in_effect_s'] or 0:,.1f}", f"{row['ok_meanwhile']:,}", f"{row['not_ok_meanwhile']:,}",
            )
            for row in self.rows["fault_coverage"]
        ]  # fmt: skip
        columns = (
            "plan",
            "system",
            "cluster",
            "workload",
            "fault",
            "runs",
            "injected",
            "took effect",
            "healed",
            "in effect, s",
            "ok meanwhile",
            "not ok",
        )
        return Section(
            "Fault coverage",
            "A fault took effect if there is evidence of it; operations count while it surely was in effect.",
            columns,
            rows,
            frozenset(columns[5:]),
        )

    def _slowest(self, target: Path) -> Section:
        rows = [
            (
                Cell(row["run"], link=self._link(row["run"], target)), f"{row['window_s']} s", row["f"],
                row["node"] or "", row["role"] or "", row["fault"], f"{row['ok']:,}",
                _ms(row["p50_ns"]), _ms(row["p99_ns"]), _ms(row["max_ns"]),
            )
            for row in self.rows["slowest"][:SLOWEST_SHOWN]
        ]  # fmt: skip
        columns = (
            "run",
            "at",
            "operation",
            "node",
            "role",
            "fault",
            "ok",
            "p50, ms",
            "p99, ms",
            "slowest, ms",
        )
        return Section(
            "Slowest windows",
            "Windows of one second, by their slowest answer that was ok.",
            columns,
            rows,
            frozenset(columns[6:]),
        )

    def _link(self, run: str, target: Path) -> str:
        """To the run's own page, if that is still there."""
        if self.place not in ("", str(self.folder)):
            return ""  # the page lies elsewhere
        page = self.folder.parent / run / "report.html"
        return os.path.relpath(page, target.parent) if page.exists() else ""


def overview(folder: Path, place: str = "") -> Overview:
    """Read the aggregates; none are there before the first run was analyzed."""
    return Overview(folder, {name: _rows(folder / name) for name in AGGREGATES}, place)


def _rows(folder: Path) -> Rows:
    import pyarrow
    import pyarrow.parquet

    rows: Rows = []
    for file in sorted(folder.glob("*.parquet")):
        try:
            rows += pyarrow.parquet.read_table(file, page_checksum_verification=True).to_pylist()
        except (OSError, pyarrow.ArrowException) as error:
            why = " ".join(str(error).split())
            raise StoreError(f"{file} cannot be read: {why}; try: qsync analyze --anew") from error
    return rows


def _in_short(rows: Rows) -> Rows:
    return [{name: row[name] for name in ("fingerprint", "shape", "runs")} for row in rows]


def _day(moment: Any) -> str:
    return str(moment)[:16]


def _ms(time_ns: int | None) -> str:
    return "" if time_ns is None else f"{time_ns / 1e6:,.1f}"
