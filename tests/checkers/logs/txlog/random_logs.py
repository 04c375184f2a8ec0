"""Logs and clients of any kind, seldom right: splits, restores, recoveries, doubled and torn records, all by chance."""

from __future__ import annotations

from random import Random
from typing import Any

from checkers.history.history import History
from tests.checkers.logs.txlog.scripts import SECOND, Records, cut, history, operation, told

NAMES = ("n1", "n2", "n3")
STRATEGIES = ("none", "simple", "smart")
HASHES = (b"", b"state  a", b"state  b")


class RandomLogs:
    """Each master keeps to the form of the records, and often to its own queue; ids and numbers are few."""

    def __init__(self, random: Random, ids: int) -> None:
        self.random = random
        self.ids = [f"{random.choice(NAMES)}-{number}" for number in range(ids)]
        self.stamps = {name: random.randint(0, ids) for name in self.ids}
        self.logs = {name: self._log(name, random.randint(0, 6 * ids)) for name in NAMES}

    def _ref(self) -> list[Any]:
        """Mostly with the timestamp that all know."""
        name = self.random.choice(self.ids)
        ts = self.stamps[name] if self.random.random() < 0.9 else self.random.randint(0, len(self.ids))
        origin = name.partition("-")[0] if self.random.random() < 0.97 else self.random.choice(NAMES)
        return [ts, name, origin]

    def _refs(self, most: int) -> list[list[Any]]:
        refs = [self._ref() for _ in range(self.random.randint(0, most))]
        return sorted(refs) if self.random.random() < 0.8 else refs

    def _some(self, masters: tuple[str, ...] = NAMES) -> list[str]:
        return [name for name in masters if self.random.random() < 0.5]

    def _log(self, master: str, count: int) -> Records:
        random = self.random
        records: Records = [["life", 1, random.choice(STRATEGIES)]]
        self._counter = self._done = self._epoch = 0
        self._synced: list[list[Any]] = []
        self._backup: list[Any] | None = None
        kinds = (
            ["made", "heard", "acquired", "added", "caught-up", "executed"] * 4
            + ["executed", "split", "rejoined", "recovering", "recovered", "restored", "thawed"]
            + [random.choice(["life", "strategy", "matched", "peer", "max-peer-lag"])]
        )
        for _ in range(count):
            record = self._record(master, random.choice(kinds))
            records += [record] * random.choice((1,) * 20 + (2,))
        return records

    def _record(self, master: str, kind: str) -> list[Any]:
        random = self.random
        match kind:
            case "made":
                name = random.choice(self.ids)
                self._counter += random.choice((0, 1, 1, 1))
                return ["made", self._counter, self.stamps[name], name, [["write", "s", "k", name]]]
            case "heard":
                self._counter = max(self._counter, random.randint(0, len(self.ids))) - random.choice(
                    (0,) * 9 + (1,)
                )
                self._counter = max(0, self._counter)
                last = random.choice((None, self._counter, random.randint(0, len(self.ids))))
                return ["heard", random.choice(NAMES), self._counter, last, self._refs(3)]
            case "acquired":
                return ["acquired", [[name, []] for name in random.sample(self.ids, min(2, len(self.ids)))]]
            case "added" | "caught-up":
                index = len(self._synced)
                if random.random() < 0.2:
                    index = random.randint(0, index + 1)
                refs = self._refs(3)
                self._synced[index:] = refs
                if kind == "caught-up":
                    return [kind, index, refs, random.choice(NAMES)]
                return [kind, index, refs, random.randint(0, len(self.ids)), self._some(), self._some()]
            case "executed":
                self._done += random.choice((1,) * 9 + (0, 2))
                self._done = max(1, self._done)
                entry = self._synced[self._done - 1 : self._done]
                is_right = entry and random.random() < 0.8
                name = entry[0][1] if is_right else random.choice(self.ids)
                return ["executed", self._done, name, HASHES[1 + (random.random() < 0.1)]]
            case "split" | "recovering":
                backup: list[Any] | None = [self._done, HASHES[min(1, self._done)], []]
                if random.random() < 0.3:
                    backup = random.choice((None, [random.randint(0, 4), random.choice(HASHES), []]))
                self._backup = backup or self._backup
                return ["split", self._some(), backup] if kind == "split" else [kind, self._epoch, backup]
            case "recovered":
                self._epoch += random.choice((1,) * 9 + (0, 2))
                common = random.randint(0, len(self._synced))
                refs = self._refs(2)
                self._synced[common:] = refs
                votes = {name: random.randint(1, 3) for name in NAMES if random.random() < 0.9}
                last = {name: random.randint(0, 9) for name in self._some()}
                self._counter = random.randint(0, 2 * len(self.ids))
                winner = random.choice(NAMES)
                return [kind, self._epoch, common, winner, votes, refs, self._refs(5), self._counter, last]
            case "restored":
                index, digest = (self._backup or [random.randint(0, 3), random.choice(HASHES)])[:2]
                self._done = index
                return ["restored", index, digest]
        return {
            "life": ["life", 2, random.choice(STRATEGIES)],
            "strategy": ["strategy", random.choice(STRATEGIES)],
            "max-peer-lag": ["max-peer-lag", random.choice((0, SECOND))],
            "peer": ["peer", random.choice((*NAMES, "n4"))],
        }.get(kind, [kind])

    def history(self) -> History:
        """Each client asks a few times, for transactions and for reads; two masters may be apart."""
        random = self.random
        lines: list[Any] = []
        for process in range(random.randint(0, 8)):
            at_s = random.uniform(0, 5)
            for _ in range(random.randint(1, 3)):
                end_s = at_s + random.uniform(0.001, 4)
                node = random.choice((*NAMES, "n9"))
                if random.random() < 0.3:
                    read = operation(process, at_s, end_s, node=node, f="read", value=random.choice(self.ids))
                    lines.append(read)
                else:
                    name = random.choice((*self.ids, "n1-unknown"))
                    asked = operation(process, at_s, end_s, name, node=node)
                    asked[1]["type"] = random.choice(("ok", "ok", "ok", "info"))
                    lines.append(asked[: random.choice((1, 2, 2, 2))])
                    if len(lines[-1]) < 2:
                        break
                at_s = end_s + 0.0001
        if random.random() < 0.7:
            start_s = random.uniform(0, 3)
            lines.append(
                cut(
                    [(one, "n3") for one in self._some(("n1", "n2"))], start_s, start_s + random.uniform(0, 9)
                )
            )
        if random.random() < 0.7:
            lines.append(told("settled", 30, random.random() < 0.5))
        return history(*lines)

    def configured(self) -> dict[str, Any]:
        random = self.random
        return {
            "strategy": random.choice(STRATEGIES),
            "split_ns": random.choice((0, SECOND, 2 * SECOND)),
            "max_peer_lag_ns": random.choice((0, SECOND, 3 * SECOND)),
            "agrees_within_ns": random.choice((0, SECOND, 5 * SECOND)),
            "executes_within_ns": random.choice((0, SECOND)),
            "is_deterministic": random.random() < 0.8,
            "late": random.choice(((), (), ("n3",), ("n1", "n2"))),
        }
