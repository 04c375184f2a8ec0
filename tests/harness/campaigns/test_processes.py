"""Work that is spread over processes."""

from __future__ import annotations

import os

import pytest

from harness.campaigns.processes import spread
from harness.errors import HarnessError


def test_a_worker_that_is_killed_is_one_line() -> None:
    """A machine without memory would make a traceback, as if the harness had a defect."""
    with pytest.raises(HarnessError, match=r"was killed, .*; try: --jobs 1"):
        list(spread(os._exit, [9], jobs=2))
