"""A file without an order of transactions is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import WrongUse
from harness.judge.files.transaction_order import read_order


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        "{3 ##NaN}",
        "{[1] 2}",
        '{"03": 1}',
        '{"3": true}',
        '{"3": 1e400}',
        f'{{"3": "{"x" * 500}"}}',
    ],
)
def test_what_is_no_order_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    """If it failed, a wrong file would be a traceback, or fill the screen."""
    path = tmp_path / "order"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(WrongUse, match="expected a map of indexes to numbers in JSON or EDN") as told:
        read_order(path)
    assert len(str(told.value)) < 200 + len(str(path)) and "\n" not in str(told.value)


@pytest.mark.parametrize(("text", "order"), [("{3 1N, 5 1.5M}", {3: 1, 5: 1.5}), ('{"3": 0}', {3: 0})])
def test_an_order_is_read_in_both_notations(text: str, order: dict[int, float], tmp_path: Path) -> None:
    """If it failed, Elle's own files would be refused."""
    path = tmp_path / "order"
    path.write_text(text, encoding="utf-8")
    assert read_order(path) == order
