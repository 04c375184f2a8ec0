"""Characters of keys, values and logs that would not be seen, as their escapes.

A browser drops some control characters, and a direction mark in a key turns the rest of its sentence round. Two keys
that differ by a character without width look the same. (A joiner is no such one: it changes its neighbours.)
"""

from __future__ import annotations

_CONTROLS = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0))
_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_WITHOUT_WIDTH = (0xAD, 0x200B, 0x2028, 0x2029, *range(0x2060, 0x2065), 0xFEFF)
_ESCAPES = {code: f"\\u{code:04x}" for code in (*_CONTROLS, *_DIRECTIONS, *_WITHOUT_WIDTH)}


def visible(text: str) -> str:
    """The text with each of these characters as `\\u202e`; tabs and ends of lines stay."""
    return text if text.isprintable() else text.translate(_ESCAPES)
