"""Characters that a browser would not show, or that would turn a sentence round."""

from __future__ import annotations

import json
import re
from pathlib import Path

from harness.pages import page, tables_page
from harness.pages.visible import visible
from harness.serve import sheets
from tests.harness.pages.run_folders import build
from tests.harness.pages.unpacking import unpacked

HOSTILE = "\u202ekey\u0000\u2066\u200f\x9b"
SHOWN = r"\u202ekey\u0000\u2066\u200f\u009b"


def test_controls_and_direction_marks_are_escapes_and_all_other_text_stays() -> None:
    """If it failed, a key could reverse the sentence of a verdict, or two different keys would look the same."""
    assert visible(HOSTILE) == SHOWN
    plain = "</script> 🔥 ключ مفتاح\tquote\"'\nnext \u200d line"
    assert visible(plain) == plain and visible(visible(HOSTILE)) == SHOWN
    for unseen in "\u00ad\u200b\u2028\u2060\ufeff":
        assert visible(f"ke{unseen}y") == f"ke\\u{ord(unseen):04x}y"


def test_the_page_of_a_run_shows_such_a_key(tmp_path: Path) -> None:
    """If it failed, the key would stand in the page, or in the data of its timeline, as it came."""
    folder = build(tmp_path / "run", "anomaly")
    record = folder / "history.jsonl"
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    text = "\n".join(
        json.dumps({**line, "key": HOSTILE} if line.get("key") == "r3" else line) for line in lines
    )
    record.write_text(text + "\n")
    shown = page.html(folder)
    packed = re.search(r'id="timeline-data">([^<]*)<', shown)
    assert packed is not None
    head, _ = unpacked(packed[1])
    assert SHOWN in head["tables"]["keys"] and SHOWN in shown
    assert not set(HOSTILE) - set("key") & set(shown + json.dumps(head, ensure_ascii=False))


def test_pages_of_tables_and_of_the_browser_show_it() -> None:
    """If it failed, the sentence of a run would stand reversed among those of others."""
    table = tables_page.Page(
        crumbs=(), title=HOSTILE, badge="", tone="", sentence=HOSTILE, facts=(), sections=()
    )
    sheet = sheets.Sheet(title=HOSTILE, sentence=HOSTILE)
    for shown in (tables_page.html(table), sheets.html(sheet)):
        assert SHOWN in shown and "\u202e" not in shown and "\x00" not in shown
