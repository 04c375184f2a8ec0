"""`qsync bisect`: runs of one plan with the nodes of many commits, until the first is known that shows an anomaly.

A run on the simulator is a process that imports `nodes` of the commit, and everything else of this checkout. On a real
cluster the nodes alone are of the commit (`--node-from`), and the faults are those that the plan draws without it: the
drawn upgrade that `--node-from` brings would start other nodes in the middle.

One run may show a different anomaly than the one that is looked for. The commit is skipped then, because the different
one may hide it; unless the good commit shows that different anomaly as well.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.campaigns.bisection import Answer, CommitRange, confidence, first_that_shows
from harness.campaigns.judging import fingerprints_of
from harness.campaigns.runs import command, fields_of_run
from harness.cluster.place import ROOT, Version
from harness.cluster.versions import PACKAGE, git, package_of_commit, this_package
from harness.errors import ClusterError, StoreError, WrongUse
from harness.plan.plan import Plan, to_json
from harness.results import RunFolder
from harness.run.assemble import parts_of
from harness.run.draw import draw

NAME = "bisect"
RUN_TAKES_AT_MOST_S = 3600


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the repository, by its full hash."""

    hash: str
    title: str
    day: str


@dataclass(frozen=True, slots=True)
class CommitRuns:
    """The runs of one commit. `fingerprints`: of all anomalies but the one that the bisection looks for. `run`: one
    that shows it; if none does, one with a different anomaly, or "".
    """

    answer: Answer
    hits: int
    clean: int
    fingerprints: tuple[str, ...]
    why: str
    run: str


@dataclass(frozen=True, slots=True)
class Result:
    """`judged`: every commit that was asked, by its hash. `confidence`: that no clean commit has the bug, beside the
    good commit, which is assumed to be good.
    """

    commits: tuple[Commit, ...]
    found: CommitRange
    judged: Mapping[str, CommitRuns]
    confidence: float

    @property
    def commits_run(self) -> int:
        """How many were run; a commit with the same nodes as another has that one's runs."""
        return len({id(runs) for runs in self.judged.values() if runs.hits + runs.clean})


@dataclass(slots=True)
class Bisection:
    """`plan`: of the run to repeat; `repeat`: the number of clean runs after which a commit counts as clean."""

    plan: Plan
    fingerprint: str
    repository: Path
    results: Path
    repeat: int
    tell: Callable[[str], None]
    _judged: dict[Path, CommitRuns] = field(default_factory=dict)
    """By the folder of their nodes."""
    _asked: dict[str, CommitRuns] = field(default_factory=dict)
    """By their hashes."""
    _harmless: frozenset[str] = frozenset()
    _this: Version = field(default_factory=this_package)

    def find(self, good: str, bad: str) -> Result:
        """WrongUse for commits between which nothing can be searched; ClusterError if an end cannot be judged."""
        commits = between(self.repository, good, bad)
        self._ends(good, bad)
        at_bad = self._judge(commits[-1].hash)
        bounds = first_that_shows(len(commits), lambda place: self._ask(commits[place], place, len(commits)))
        places = {commit.hash for commit in commits}
        clean = [runs for name, runs in self._asked.items() if name in places and runs.answer == "clean"]
        doubt = sum(1 - confidence(at_bad.hits, at_bad.hits + at_bad.clean, runs.clean) for runs in clean)
        return Result(tuple(commits), bounds, self._asked, max(1 - doubt, 0.0))

    def _ends(self, good: str, bad: str) -> None:
        """Judge both ends: the search needs a bad commit that shows the anomaly, and a good one that does not."""
        at_bad = self._judge(hash_of(self.repository, bad), stops=False)
        self.tell(f"bad  {_line(at_bad)}")
        if at_bad.answer != "shows":
            attempt = (
                f"--fingerprint {at_bad.fingerprints[0]}, or --repeat" if at_bad.fingerprints else "--repeat"
            )
            raise ClusterError(
                f"--bad {bad} does not show the anomaly {self.fingerprint}: {_line(at_bad)}; try: {attempt}"
            )
        at_good = self._judge(hash_of(self.repository, good), is_good=True)
        self.tell(f"good {_line(at_good)}")
        if at_good.answer == "shows":
            raise WrongUse(
                f"--good {good} shows the anomaly {self.fingerprint} as well; try: an older commit"
            )
        if at_good.answer == "skip":
            raise ClusterError(f"--good {good} cannot be judged: {_line(at_good)}; try: a newer commit")
        self._harmless = frozenset(at_good.fingerprints)

    def _ask(self, commit: Commit, place: int, whole: int) -> Answer:
        judged = self._judge(commit.hash)
        self.tell(f"{commit.hash[:12]} ({place + 1} of {whole}) {_line(judged)}")
        return judged.answer

    def _judge(self, commit: str, *, is_good: bool = False, stops: bool = True) -> CommitRuns:
        """`stops`: at the first run that shows it. Commits with the same nodes have the same answer."""
        try:
            root = package_of_commit(commit, self.repository).root
        except WrongUse as error:
            self._asked[commit] = CommitRuns("skip", 0, 0, (), error.message, "")
            return self._asked[commit]
        assert root is not None
        if root not in self._judged:
            self._judged[root] = self._judged_anew(root, is_good=is_good, stops=stops)
        self._asked[commit] = self._judged[root]
        return self._judged[root]

    def _judged_anew(self, root: Path, *, is_good: bool, stops: bool) -> CommitRuns:
        hits = clean = tried = 0
        others: dict[str, None] = {}
        why = run = ""
        while clean + hits < self.repeat and tried < 2 * self.repeat and not (stops and hits):
            fields = self._run(root, self.plan.seed + (tried if self.plan.cluster == "sim" else 0))
            tried += 1
            if fields["outcome"] == "valid":
                clean += 1
            elif fields["outcome"] != "anomaly":
                why = fields["sentence"]
                if self.plan.cluster == "sim" and fields["outcome"] == "broken":
                    break  # it breaks at every seed
            elif self.fingerprint in fields["fingerprints"]:
                hits, run = hits + 1, fields["run"]
            elif fields["fingerprints"] and (is_good or {*fields["fingerprints"]} <= self._harmless):
                clean += 1
                others |= dict.fromkeys(fields["fingerprints"])
            else:
                others |= dict.fromkeys(fields["fingerprints"])
                prints = ", ".join(fields["fingerprints"]) or "one without a fingerprint"
                why, run = f"a different anomaly: {prints}", run if hits else fields["run"]
        answer: Answer = "shows" if hits else "clean" if clean >= self.repeat else "skip"
        return CommitRuns(answer, hits, clean, tuple(others), "" if answer == "clean" else why, run)

    def _run(self, root: Path, seed: int) -> dict[str, Any]:
        """Do one run in a process of its own; its fields of `Ended`."""
        is_this = root == self._this.root
        plan = self.plan.changed(name=NAME, seed=seed)
        environment = dict(os.environ)
        if plan.cluster == "sim":
            environment["PYTHONPATH"] = f"{root}{os.pathsep}{ROOT}"
        else:
            plan = plan.changed(node_from=None if is_this else str(root))
            environment["PYTHONPATH"] = str(ROOT)
        try:
            done = subprocess.run(
                command(self.results),
                input=to_json(plan),
                capture_output=True,
                env=environment,
                timeout=RUN_TAKES_AT_MOST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"outcome": "broken", "sentence": f"a run took more than {RUN_TAKES_AT_MOST_S} s"}
        return fields_of_run(done.stdout, done.stderr, done.returncode, self.results)


def prepared(folder: RunFolder, plan: Plan, cluster: str | None) -> Plan:
    """The plan to repeat. WrongUse if the nodes of this plan are not code of a repository."""
    if plan.node_from is not None:
        raise WrongUse(
            f"{folder.path} is a run with --node-from {plan.node_from}: its nodes are of two versions already"
        )
    plan = plan if cluster is None else plan.changed(cluster=cluster)
    parts = parts_of(plan)
    if plan.cluster == "sim":
        return plan
    usual = parts.system.version(None)
    if usual is None or usual.root is None:
        raise WrongUse(
            f"the nodes of --system {plan.system} are not in a repository that the harness can start"
        )
    return draw(parts.plan, parts.system, parts.workload) if plan.drawn is None else plan


def asked_fingerprint(folder: RunFolder, given: str | None, may_be_foreign: bool) -> tuple[str, str]:
    """The fingerprint that is looked for, and its words: the leading one of the run. WrongUse if it has none,
    StoreError if its verdict is damaged.

    `may_be_foreign`: on a different cluster the same cause may have a different fingerprint.
    """
    verdict = folder.read_verdict()
    if verdict is None or verdict.get("outcome") != "anomaly":
        outcome = "no verdict" if verdict is None else verdict.get("outcome")
        raise WrongUse(f"{folder.path} shows no anomaly: expected a run that ended with 1, got {outcome}")
    try:
        prints, shapes = fingerprints_of(verdict, folder.path)
    except (LookupError, TypeError, AttributeError) as error:  # a stored verdict may be anything
        raise StoreError(f"{folder.path}: its verdict is damaged; try: qsync check {folder.path}") from error
    words = dict(zip(prints, shapes, strict=True))
    if not words:
        raise WrongUse(f"{folder.path}: its anomaly has no fingerprint; try: qsync check {folder.path}")
    wanted = given or prints[0]
    if wanted not in words and not may_be_foreign:
        raise WrongUse(f"--fingerprint {wanted}: the run has {', '.join(words)}")
    return wanted, words.get(wanted, "")


def between(repository: Path, good: str, bad: str) -> list[Commit]:
    """The commits after `good` up to `bad` that change the nodes, oldest first. WrongUse if there are none."""
    for option, name in (("--good", good), ("--bad", bad)):
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if git(repository, *words) is None:
            raise WrongUse(f"{option}: there is no commit {name} in {repository}")
    if git(repository, "merge-base", "--is-ancestor", "--end-of-options", good, bad) is None:
        raise WrongUse(f"--good {good} is no ancestor of --bad {bad}; try: git merge-base {good} {bad}")
    commits = list(_log(repository, "--first-parent", "--reverse", f"{good}..{bad}", "--", PACKAGE))
    if not commits:
        raise WrongUse(f"no commit after {good} up to {bad} changes {PACKAGE}/ in {repository}")
    return commits


def hash_of(repository: Path, name: str) -> str:
    # Behind the dashes there are paths alone: a branch may be called like a folder.
    return next(_log(repository, "--max-count=1", name, "--")).hash


def _log(repository: Path, *words: str) -> Iterator[Commit]:
    told = git(repository, "log", "--format=%H%x00%cs%x00%s", *words) or b""
    lines = told.decode(errors="replace").split("\n")  # a title may have other ends of lines
    for line in filter(None, lines):
        name, day, title = line.split("\0", 2)
        yield Commit(name, title, day)


def _line(judged: CommitRuns) -> str:
    runs = judged.hits + judged.clean
    match judged.answer:
        case "shows":
            return f"shows it in {judged.hits} of {runs} runs"
        case "clean":
            return f"does not show it in {judged.clean} runs"
        case _:
            return f"cannot be judged: {judged.why or 'too few runs were conclusive'}"
