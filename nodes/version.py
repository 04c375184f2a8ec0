"""Which version of the nodes this is: the number of the release; a real host adds a digest of the code that runs."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
