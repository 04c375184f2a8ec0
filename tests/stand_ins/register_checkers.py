"""Stand-ins for Knossos' command and for docs/porcupine, which judge by trying every order.

    python register_checkers.py knossos -jar JAR --model MODEL FILE…      (as `java`)
    python register_checkers.py porcupine --model MODEL FILE

They read what those read and say what those say, of histories of a few operations. They share no code with the project.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import permutations
from pathlib import Path
from typing import Any

EDN = re.compile(r"\{:process (-?\d+), :type :(\w+), :f :(\w+), :value (.*)\}")


def edn_value(text: str) -> Any:
    return json.loads(text.replace("nil", "null").replace(" ", ", "))


def edn_lines(path: str) -> list[dict[str, Any]]:
    found = [EDN.fullmatch(line) for line in Path(path).read_text().splitlines()]
    return [
        {"process": int(each[1]), "type": each[2], "f": each[3], "value": edn_value(each[4])}
        for each in found
        if each is not None
    ]


def operations(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    open_: dict[int, dict[str, Any]] = {}
    for place, line in enumerate(lines):
        if line["type"] == "invoke":
            open_[line["process"]] = {**line, "type": "info", "began": place, "over": len(lines)}
            made.append(open_[line["process"]])
        elif line["type"] != "info":
            open_[line["process"]] |= {"type": line["type"], "value": line["value"], "over": place}
    return made


def fits(order: tuple[dict[str, Any], ...]) -> bool:
    state: Any = None
    for place, each in enumerate(order):
        if any(later["over"] < each["began"] for later in order[place:]):
            return False
        match each["f"], each["type"], each["value"]:
            case "read", "ok", value:
                if value != state:
                    return False
            case "write", _, value:
                state = value
            case "cas", "fail", [old, _]:
                if old == state:
                    return False
            case "cas", type_, [old, new]:
                if old != state and type_ == "ok":
                    return False
                state = new if old == state else state
    return True


def is_linearizable(lines: list[dict[str, Any]]) -> bool:
    made = operations(lines)
    sure, open_ = (
        [each for each in made if each["type"] != "info"],
        [each for each in made if each["type"] == "info"],
    )
    return any(
        fits(order)
        for chosen in range(1 << len(open_))
        for order in permutations([*sure, *(each for bit, each in enumerate(open_) if chosen >> bit & 1)])
    )


def said(found: bool) -> str:
    return "true" if found else "false"


def main(which: str, *words: str) -> None:
    paths = [word for word in words if word.endswith((".edn", ".jsonl"))]
    assert "--model" in words and words[words.index("--model") + 1] == "cas-register", words
    if which == "knossos":
        assert words[0] == "-jar" and Path(words[1]).exists(), words
        for path in paths:
            print(f"{path}\t{said(is_linearizable(edn_lines(path)))}")
        return
    lines = [json.loads(line) for line in Path(paths[0]).read_text().splitlines()]
    keys = {line.get("key") for line in lines}
    print(said(all(is_linearizable([line for line in lines if line.get("key") == key]) for key in keys)))


if __name__ == "__main__":
    main(*sys.argv[1:])
