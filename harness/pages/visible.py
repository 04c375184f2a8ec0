"""Characters of keys, values and logs that would not be seen, as their escapes.

A browser drops some control characters, and a direction mark in a key turns the rest of its sentence round.
"""

from __future__ import annotations

_CONTROLS = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ESCAPES = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS)}


def visible(text: str) -> str:
    """The text with each control character and direction mark as `\\u202e`; tabs and ends of lines stay."""
    return text if text.isprintable() else text.translate(_ESCAPES)
