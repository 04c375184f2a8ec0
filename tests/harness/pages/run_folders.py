"""Run folders made up for the report's tests: they look like a run of three nodes, without running one.

`build(folder, "anomaly")` writes plan, history, verdict and node logs of a run in which an isolated owner lost a
write that it had acknowledged. The other kinds: "valid", "unknown", "inconclusive". The damage that a killed
harness or a bad disk does is made on top of it by the tests.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Kind = Literal["valid", "anomaly", "unknown", "inconclusive"]
SECOND = 1_000_000_000
NODES = ("n1", "n2", "n3")
HEADER = {
    "format": "qsync-history",
    "version": 1,
    "system": "qsync",
    "cluster": "local",
    "workload": "register",
    "nodes": list(NODES),
    "quorum": 2,
    "owner": "n1",
    "heartbeat_ns": 300_000_000,
    "seed": 7,
}
SENTENCES = {
    "valid": "No anomaly: all 7 checks hold what configuration C promises.",
    "anomaly": "Key r3 lost an acknowledged write: write 7 was answered ok, and a later read at the owner saw 3.",
    "unknown": "Nobody knows: the search for an order of the operations on r3 ran out of time.",
    "inconclusive": "This run proves nothing: too few operations succeeded while a fault was active.",
}
EXIT_CODES = {"valid": 0, "anomaly": 1, "unknown": 2, "inconclusive": 3}


@dataclass(frozen=True)
class Scripted:
    """An operation of the witness: who, when, what; `end_s` None if it was never answered."""

    process: int
    start_s: float
    end_s: float | None
    type: str
    f: str
    value: Any
    node: str = "n1"
    error: str | None = None


LOST_WRITE = (
    Scripted(2, 8.31, 8.37, "ok", "write", 3),
    Scripted(4, 8.62, 8.71, "ok", "write", 7),
    Scripted(1, 8.84, 8.86, "ok", "read", 7),
    Scripted(0, 9.02, 9.62, "info", "cas", [7, 9], error="timeout"),
    Scripted(3, 10.11, 10.16, "ok", "read", 3),
)
FAULTS: tuple[dict[str, Any], ...] = (
    {"name": "slow-links", "does": "slow", "from": 1.6, "to": 4.1, "links": [["n1", "n3"], ["n3", "n1"]]},
    {"name": "pause", "does": "pause", "from": 5.0, "to": 6.4, "nodes": ["n3"]},
    {
        "name": "isolate-owner",
        "does": "cut",
        "from": 8.15,
        "to": 10.9,
        "links": [["n1", "n2"], ["n2", "n1"], ["n1", "n3"], ["n3", "n1"]],
    },
    {"name": "kill", "does": "kill", "from": 12.2, "to": 14.0, "nodes": ["n2"]},
    {"name": "kill", "does": "kill", "from": 12.9, "to": 13.6, "nodes": ["n3"]},
    {
        "name": "one-way",
        "does": "cut",
        "from": 15.5,
        "to": 17.2,
        "links": [["n2", "n1"]],
        "took_effect": False,
    },
)


@dataclass
class Record:
    """Lines gathered in any order; `lines` sorts them and numbers them."""

    entries: list[tuple[int, int, dict[str, Any]]] = field(default_factory=list)

    def add(self, time_s: float, **fields: Any) -> dict[str, Any]:
        fields["time_ns"] = round(time_s * SECOND)
        self.entries.append((fields["time_ns"], len(self.entries), fields))
        return fields

    def lines(self) -> list[dict[str, Any]]:
        ordered = [fields for _, _, fields in sorted(self.entries, key=lambda entry: entry[:2])]
        for index, fields in enumerate(ordered):
            fields["index"] = index
        return ordered


def build(folder: Path, kind: Kind, *, seconds: int = 20, rate: int = 150, seed: int = 7) -> Path:
    """Writes the folder and returns it."""
    chance = random.Random(seed)
    record = Record()
    scripted = [_add_scripted(record, operation) for operation in LOST_WRITE] if kind == "anomaly" else []
    _add_load(record, chance, seconds, rate, kind)
    faults = _add_faults(record) if kind != "inconclusive" else []
    _add_monitor(record, seconds)
    _add_final(record, seconds)
    lines = record.lines()
    folder.mkdir(parents=True, exist_ok=True)
    write_history(folder, lines)
    proof = [index for pair in scripted for index in sorted(entry["index"] for entry in pair)]
    (folder / "verdict.json").write_text(json.dumps(verdict(kind, proof, lines, faults)))
    (folder / "plan.json").write_text(
        json.dumps({"format": "qsync-plan", "seed": seed, "time_limit_s": seconds})
    )
    _add_logs(folder, seconds)
    return folder


def write_history(folder: Path, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in [HEADER, *lines])
    (folder / "history.jsonl").write_text(text, encoding="utf-8")


def _add_scripted(record: Record, operation: Scripted) -> list[dict[str, Any]]:
    asked = {"process": operation.process, "f": operation.f, "key": "r3", "node": operation.node}
    question = None if operation.f == "read" else operation.value
    pair = [record.add(operation.start_s, type="invoke", value=question, **asked)]
    if operation.end_s is not None:
        answer = {"type": operation.type, "value": operation.value, "role": "owner", "error": operation.error}
        pair.append(record.add(operation.end_s, **asked, **answer))
    return pair


def _add_load(record: Record, chance: random.Random, seconds: int, rate: int, kind: Kind) -> None:
    """Five clients, one after the other; a client whose operation ends as info goes on under a new number."""
    per_client = rate / 5
    for client in range(5):
        process, now_s, written = client, chance.random() / per_client, 100 * (client + 1)
        while now_s < seconds:
            key, f = f"r{chance.randrange(6)}", chance.choices(("read", "write", "cas"), (5, 4, 2))[0]
            cut = kind != "inconclusive" and 8.2 < now_s < 10.9
            if kind == "anomaly" and 8.2 < now_s < 10.3 and (key == "r3" or client in (0, 1, 2, 3, 4)):
                now_s += 0.05
                process = client + 50
                continue
            took_s = chance.lognormvariate(-6.2 if f == "read" else -5.2, 0.5)
            written += 1
            value = None if f == "read" else written if f == "write" else [written - 1, written]
            asked = {
                "process": process,
                "f": f,
                "key": key,
                "node": "n1" if f != "read" else chance.choice(NODES),
            }
            record.add(
                now_s, type="invoke", value=value, mode="read-confirmed" if f == "read" else None, **asked
            )
            outcome: dict[str, Any] = {
                "type": "ok",
                "value": written if f == "read" else value,
                "role": "owner",
            }
            if cut and f != "read":
                took_s = 1.0 + chance.random() * 0.05
                outcome = {"type": "info", "value": value, "error": "216 quorum timeout"}
            elif f == "cas" and chance.random() < 0.3:
                outcome = {"type": "fail", "value": value, "error": "mismatch"}
            record.add(now_s + took_s, **asked, **outcome)
            process = process + 5 if outcome["type"] == "info" else process
            now_s += took_s + chance.expovariate(per_client)


def _add_faults(record: Record) -> list[dict[str, Any]]:
    told = []
    for number, fault in enumerate(FAULTS):
        start_ns, end_ns = round(fault["from"] * SECOND), round(fault["to"] * SECOND)
        took_effect = fault.get("took_effect", True)
        asked = {
            "id": number,
            "name": fault["name"],
            "does": fault["does"],
            "at_ns": start_ns,
            "until_ns": end_ns,
        }
        asked |= {name: fault[name] for name in ("links", "nodes") if name in fault}
        evidence = {
            "id": number,
            "took_effect": took_effect,
            "asked_ns": start_ns,
            "first_effect_ns": start_ns + 3_000_000 if took_effect else None,
            "all_in_effect_ns": start_ns + 60_000_000 if took_effect else None,
            "heal_asked_ns": end_ns,
            "last_effect_ns": end_ns + 40_000_000 if took_effect else None,
            "healed": True,
            "counters": {
                "bytes_withheld": 4_312 * (number + 1) if took_effect else 0,
                "connections_reset": number,
            },
        }
        record.add(fault["from"], type="invoke", process="nemesis", f=fault["name"], value=asked)
        record.add(fault["to"] + 0.05, type="info", process="nemesis", f=fault["name"], value=evidence)
        told.append({"id": number, "name": fault["name"], "took_effect": took_effect})
    return told


def _add_monitor(record: Record, seconds: int) -> None:
    for tick in range(seconds * 2):
        now_s = tick / 2 + 0.11
        for node in NODES:
            down = any(
                node in fault.get("nodes", ()) and fault["from"] <= now_s <= fault["to"] + 0.3
                for fault in FAULTS
            )
            role = "owner" if node == "n1" else "replica"
            up = {"up": True, "role": role, "owner": 1, "term": 2, "limbo": tick % 4, "rollbacks": 1}
            value = {"up": False} if down else up
            record.add(now_s, type="info", process="monitor", f="state", node=node, value=value)


def _add_final(record: Record, seconds: int) -> None:
    for number, node in enumerate(NODES):
        asked = {"process": 900 + number, "f": "dump", "node": node, "phase": "final"}
        record.add(seconds + 1.5, type="invoke", **asked)
        record.add(seconds + 1.6, type="ok", value={"spaces": {"register": [["r3", 3], ["r1", 12]]}}, **asked)


def verdict(
    kind: Kind, proof: list[int], lines: list[dict[str, Any]], faults: list[dict[str, Any]]
) -> dict[str, Any]:
    counts = {
        word: sum(line["type"] == word and isinstance(line["process"], int) for line in lines)
        for word in ("ok", "fail", "info")
    }
    witness = {
        "rule": "lost-write",
        "summary": "write 7 was acknowledged, then r3 was read as 3 again although nobody wrote 3 after it.",
        "events": proof,
        "key": "r3",
        "node": "n1",
        "start_ns": round(8.31 * SECOND),
        "end_ns": round(10.16 * SECOND),
        "explanation": [
            "write 7 was answered ok at 8.710 s, while n1 was cut off from both other nodes: no quorum had it.",
            "A read at n1 saw 7, so the row was visible before it was confirmed.",
            "The limbo's timeout rolled 7 back; the read that began at 10.110 s, after write 7 had ended, saw 3.",
        ],
    }
    linearizable: dict[str, Any] = {
        "checker": "linearizable",
        "result": "valid",
        "model": "linearizable per key",
    }
    linearizable |= {"summary": "All 6 keys have an order that explains every answer.", "seconds": 0.41}
    linearizable |= {"details": {"keys": 6, "operations": len(lines) // 2}, "witnesses": []}
    if kind == "anomaly":
        linearizable |= {
            "result": "invalid",
            "summary": "1 of 6 keys has no such order.",
            "witnesses": [witness],
        }
    if kind == "unknown":
        linearizable |= {"result": "unknown", "summary": "r3: out of time after 60 s."}
    missing = ["Only 0 ok operations while a fault was active; 300 are asked for.", "No fault took effect."]
    finding = "Reads at replicas lagged behind by up to 1.3 s, which is allowed."
    return {
        "format": "qsync-verdict",
        "version": 1,
        "outcome": kind,
        "exit_code": EXIT_CODES[kind],
        "sentence": SENTENCES[kind],
        "promise": {"linearizable": "linearizable per key", "replica-reads": "monotone prefix"},
        "violations": ["linearizable"] if kind == "anomaly" else [],
        "findings": [{"checker": "replica-reads", "summary": finding}],
        "evidence": {
            **counts,
            "ok_under_fault": 611 if faults else 0,
            "faults": faults,
            "rollbacks": 3,
            "missing": missing if kind == "inconclusive" else [],
        },
        "checks": [
            {
                "checker": "availability",
                "result": "valid",
                "summary": "Longest gap 2.9 s at n1.",
                "seconds": 0.02,
            },
            linearizable,
            {"checker": "replica-reads", "result": "valid", "model": "monotone prefix", "summary": "Held."},
            {
                "checker": "convergence",
                "result": "valid",
                "model": "all nodes equal",
                "summary": "3 equal dumps.",
            },
            {"checker": "crash", "result": "valid", "summary": "No node ended untold."},
        ],
        "repeat": {
            "command": "./qsync run --cluster local --seed 7 --time-limit 20 --bug confirm-early",
            "repeats": "schedule",
        },
        "run": {"system": "qsync", "cluster": "local", "workload": "register", "seed": 7},
    }


def _add_logs(folder: Path, seconds: int) -> None:
    for node in NODES:
        log = folder / "nodes" / node / "log.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        entries = [(0.02, "info", "recovered", {"lsn": 1}), (seconds + 1.9, "info", "stopped", {})]
        if node == "n1":
            entries += [
                (8.7, "info", "confirmed", {"lsn": 66}),
                (9.61, "warning", "quorum timeout: rolled back", {"lsn": 66}),
            ]
        else:
            entries += [
                (8.46, "warning", "no heartbeat from n1", {"silent_ms": 301}),
                (10.95, "info", "subscribed to n1", {}),
            ]
        lines = [
            {
                "time_ns": round(time_s * SECOND),
                "level": level,
                "message": message,
                "node": node,
                "term": 2,
                "owner": 1,
                **more,
            }
            for time_s, level, message, more in sorted(entries, key=lambda entry: entry[0])
        ]
        log.write_text("".join(json.dumps(line) + "\n" for line in lines))
