"""Changes between two certificates, line by line: the last release's and this one's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.campaigns.certification.document import About, Certificate

NOT_SAID = dict.fromkeys(About.__struct_fields__, "not said")


def changes(old: Certificate, new: Certificate) -> list[str]:
    """A line for each change of the product, the code, the matrix, its numbers, what it found and what it left out.

    No line if the two say the same; single runs, their histories and findings are not compared.
    """
    return list(_changes(old, new))


def _changes(old: Certificate, new: Certificate) -> Iterator[str]:
    was, now = old.given, new.given
    yield from _word(
        "version", f"{was.code.version} {was.code.commit}", f"{now.code.version} {now.code.commit}"
    )
    yield from _word("code", was.code.sha256[:16], now.code.sha256[:16])
    yield from _about(old, new)
    yield from _word("made", was.made, now.made)
    yield from _word("signed by", was.signed_by or "nobody", now.signed_by or "nobody")
    yield from _word("plan", old.shown["plan"]["sha256"][:16], new.shown["plan"]["sha256"][:16])
    yield from _lists(
        "image", (f"{a} {b}" for a, b in was.images.items()), (f"{a} {b}" for a, b in now.images.items())
    )
    for name in dict.fromkeys((*old.shown["tested"], *new.shown["tested"])):
        before, after = old.shown["tested"].get(name), new.shown["tested"].get(name)
        if isinstance(before, list) and isinstance(after, list):
            yield from _lists(f"tested: {name}", map(str, before), map(str, after))
        else:
            yield from _word(f"tested: {name}", str(before), str(after))
    for word, count in new.shown["operations"].items():
        yield from _word(
            f"operations {word.replace('_', ' ')}", str(old.shown["operations"].get(word)), str(count)
        )
    yield from _counts("fault in effect", _faults(old), _faults(new))
    yield from _lists("states covered", _states(old), _states(new))
    yield from _lists("promised", _promises(old), _promises(new))
    yield from _word("sensitivity", was.measured.sentence, now.measured.sentence)
    before_of, after_of = (
        {bug.name: bug.word for bug in certificate.measured.bugs} for certificate in (was, now)
    )
    for bug in dict.fromkeys((*before_of, *after_of)):
        yield from _word(f"seeded bug {bug}", before_of.get(bug, "not there"), after_of.get(bug, "not there"))
    yield from _word("false alarms", str(len(was.measured.clean.alarms)), str(len(now.measured.clean.alarms)))
    for name in dict.fromkeys((*old.shown["not_tested"], *new.shown["not_tested"])):
        before, after = (certificate.shown["not_tested"].get(name, ()) for certificate in (old, new))
        yield from _lists(f"not tested: {name}", before, after)


def _about(old: Certificate, new: Certificate) -> Iterator[str]:
    """Changes of the product, the bar and the environment. Certificates from before there were bars have none."""
    was, now = (side.given.about or About(**NOT_SAID) for side in (old, new))
    for name in About.__struct_fields__:
        yield from _word(name.replace("_", " "), getattr(was, name), getattr(now, name))
    yield from _word("bar", *(side.given.bar.sentence if side.given.bar else "none" for side in (old, new)))
    for name in dict.fromkeys((*old.given.environment, *new.given.environment)):
        yield from _word(name, *(side.given.environment.get(name, "not said") for side in (old, new)))


def _word(name: str, before: str, after: str) -> Iterator[str]:
    if before != after:
        yield f"{name}: {before} → {after}"


def _lists(name: str, before: Iterable[str], after: Iterable[str]) -> Iterator[str]:
    old, new = list(before), list(after)
    for mark, words in (
        ("+", [word for word in new if word not in old]),
        ("-", [word for word in old if word not in new]),
    ):
        if words:
            yield f"{name}: {mark} {', '.join(words)}"


def _counts(name: str, before: Mapping[str, int], after: Mapping[str, int]) -> Iterator[str]:
    for counted in dict.fromkeys((*before, *after)):
        yield from _word(f"{name}: {counted}", str(before.get(counted, 0)), str(after.get(counted, 0)))


def _faults(certificate: Certificate) -> dict[str, int]:
    return {f"{row['fault']}, {row['cluster']}": row["took_effect"] for row in certificate.shown["faults"]}


def _states(certificate: Certificate) -> list[str]:
    """The states that the runs reached; empty for a certificate that an older version wrote."""
    return [row["state"] for row in certificate.shown.get("states", {}).get("reached", ())]


def _promises(certificate: Certificate) -> list[str]:
    promises: list[Mapping[str, Any]] = certificate.shown["promised"]
    return [
        f"{promise['system']} {promise['configuration']}: {check}: {model}"
        for promise in promises
        for check, model in promise["models"].items()
    ]
