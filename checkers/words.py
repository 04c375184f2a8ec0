"""Values in sentences for a person: `nothing`, `[r1-3, 80010]`, `1:146, 2:162`; never the text of a Python object."""

from __future__ import annotations

from collections.abc import Mapping

LIMIT = 120


def value_words(value: object, limit: int = LIMIT) -> str:
    """Text as it is, None as `nothing`, lists and mappings by their parts; beyond `limit` it ends with an ellipsis."""
    match value:
        case None:
            text = "nothing"
        case bool():
            text = "true" if value else "false"
        case bytes():
            text = value.decode(errors="replace")
        case Mapping():
            text = (
                f"{{{', '.join(f'{value_words(key)}: {value_words(each)}' for key, each in value.items())}}}"
            )
        case list() | tuple():
            text = f"[{', '.join(map(value_words, value))}]"
        case _:
            text = str(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def vclock_words(vclock: Mapping[int, int] | Mapping[str, int]) -> str:
    """`1:146, 2:162`: up to which lsn the rows of each replica are there."""
    return ", ".join(f"{origin}:{lsn}" for origin, lsn in vclock.items()) or "empty"
