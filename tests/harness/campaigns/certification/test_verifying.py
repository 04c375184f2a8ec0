"""A certificate holds with its bundle alone, and nothing that a forger does makes another one hold."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from harness.campaigns.certification import page
from harness.campaigns.certification.document import CERTIFICATE, PAGE, read
from harness.campaigns.certification.facts import LATER
from harness.campaigns.certification.verifying import verify
from harness.errors import HarnessError, StoreError
from harness.results import bundle
from harness.results.seal import PrivateKey
from tests.harness.campaigns.certification.conftest import (
    PUBLIC,
    TODAY,
    Edit,
    Sample,
    forged,
    rewritten,
    verified,
)


def of_run(folder: Path, configuration: str = "C") -> Path:
    """The run of this configuration."""
    return next(
        path.parent
        for path in sorted(folder.glob("runs/*/*/plan.json"))
        if f'"configuration":"{configuration}"'.encode() in path.read_bytes().replace(b" ", b"")
    )


def verdicts(folder: Path) -> list[Path]:
    return sorted(folder.glob("runs/*/*/verdict.json"))


def as_unsigned_document(folder: Path) -> None:
    rewritten(folder / CERTIFICATE, lambda document: document["given"].update(signed_by=None))  # type: ignore[attr-defined]


def as_unsigned(folder: Path) -> None:
    """The certificate says that it is not signed, on its page too."""
    as_unsigned_document(folder)
    (folder / PAGE).write_text(page.html(read(folder / CERTIFICATE, folder)))


def test_a_certificate_holds_with_its_bundle_alone(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a certificate could be verified only where its runs lie."""
    elsewhere = tmp_path / "elsewhere" / "release.zip"
    elsewhere.parent.mkdir()
    shutil.copy(sample.path, elsewhere)
    found = verified(elsewhere, sample, tmp_path / "to", PUBLIC)
    assert found.refused == []
    assert any(note.startswith("signed by") for note in found.notes)
    for path in (tmp_path / "to").rglob("*"):
        assert not path.is_file() or str(sample.folder).encode() not in path.read_bytes(), path


@pytest.mark.parametrize("part", ["checks", "settled"])
def test_a_proof_that_is_none_is_refused_wherever_it_stands(
    sample: Sample, tmp_path: Path, part: str
) -> None:
    """If it failed, a proof of what settled could be anything, and a stranger's would end the command with 70."""
    replaced: list[str] = []

    def forge(document: dict[str, Any]) -> None:
        for check in document["checks"] if part == "checks" else document["settled"]["checks"]:
            if check["details"].get("proofs"):
                replaced.append(check["checker"])
                check["details"]["proofs"] = ["this is no proof"] * len(check["details"]["proofs"])

    def edit(folder: Path) -> None:
        as_unsigned(folder)
        rewritten(verdicts(folder)[0], forge)

    found = verified(forged(sample, tmp_path, edit), sample, tmp_path / "to")
    assert replaced
    assert [lack.text for lack in found.refused if "this is no proof" in lack.text]


def test_a_date_that_is_none_never_ends(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a certificate that is valid until "never" would not expire."""

    def edit(folder: Path) -> None:
        rewritten(
            folder / CERTIFICATE, lambda document: document["given"]["about"].update(valid_until="never")
        )
        as_unsigned(folder)

    found = verified(forged(sample, tmp_path, edit), sample, tmp_path / "to")
    assert [lack.text for lack in found.refused] == ["it is valid until 'never', and that is no date"]


def test_without_a_key_it_says_what_was_not_verified(sample: Sample, tmp_path: Path) -> None:
    """If it failed, an unchecked signature would look like one that holds."""
    signed = verified(sample.path, sample, tmp_path / "signed")
    assert signed.refused == []
    assert any("was not verified" in note for note in signed.notes)
    unsigned = verified(forged(sample, tmp_path, as_unsigned), sample, tmp_path / "unsigned")
    assert unsigned.refused == []
    assert any("not signed" in note for note in unsigned.notes)


def test_a_thousand_changed_bytes_are_refused(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a bundle could be changed in transit, and its certificate would still hold."""
    data, chance = sample.path.read_bytes(), random.Random(18)
    path, to = tmp_path / "changed.zip", tmp_path / "to"
    to.mkdir()
    path.write_bytes(data)
    with path.open("r+b", buffering=0) as file:
        for _ in range(1000):
            place = chance.randrange(len(data))
            file.seek(place)
            file.write(bytes([data[place] ^ chance.randrange(1, 256)]))
            # A signature of other digits is one too: without the key nothing would be wrong with it.
            with suppress(StoreError):
                assert verify(path, to, PUBLIC, sample.code, TODAY).refused, place
                shutil.rmtree(to)
                to.mkdir()
            file.seek(place)
            file.write(data[place : place + 1])
    assert not any(to.iterdir())
    assert verify(path, to, PUBLIC, sample.code, TODAY).refused == []


def test_only_the_asked_key_signs(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a forger could sign with a key of his own, or leave the signature out."""
    other = PrivateKey(Ed25519PrivateKey.generate())
    theirs = forged(sample, tmp_path, lambda folder: None, other)
    assert verified(theirs, sample, tmp_path / "theirs", PUBLIC).refused
    theirs.unlink()
    shutil.rmtree(tmp_path / "edited")
    nobodys = forged(sample, tmp_path, as_unsigned)
    assert "not signed" in verified(nobodys, sample, tmp_path / "nobodys", PUBLIC).refused[0].text
    shutil.rmtree(tmp_path / "edited")
    stripped = forged(sample, tmp_path, lambda folder: None)
    assert "does not fit" in verified(stripped, sample, tmp_path / "stripped").refused[0].text


def checks_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document["checks"])


def all_reads_left_out(folder: Path) -> None:
    """As if no read had been promised anything."""

    def change(document: dict[str, Any]) -> None:
        for check in checks_of(document):
            if check["checker"] == "linearizable":
                check["details"] |= {"observations": 0, "reads_not_judged": {"all": 9}, "proofs": []}

    rewritten(verdicts(folder)[0], change)


def another_model(folder: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        for check in checks_of(document):
            if check["checker"] == "linearizable":
                check["details"]["model"] = "set"

    rewritten(verdicts(folder)[0], change)


def another_promise(folder: Path) -> None:
    rewritten(verdicts(folder)[0], lambda document: document["promise"].update(linearizable="stale"))  # type: ignore[attr-defined]


def a_weaker_configuration(folder: Path) -> None:
    """The plan of a run says a configuration that promises less, and its matrix does not."""
    path = of_run(folder, "H") / "plan.json"
    path.write_bytes(path.read_bytes().replace(b'"H"', b'"B"'))


def a_weaker_matrix(folder: Path) -> None:
    path = folder / "small.toml"
    path.write_text(path.read_text().replace('"H"', '"B"'))
    a_weaker_configuration(folder)


def a_lost_write(folder: Path) -> None:
    """A record in which a read shows a value that was never written; the verdict stays."""
    path = of_run(folder) / "history.jsonl"
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    reads = [
        line for line in lines if line.get("f") == "read" and line.get("type") == "ok" and line.get("value")
    ]
    reads[len(reads) // 2]["value"] = 123_456_789
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))


def a_run_left_out(folder: Path) -> None:
    shutil.rmtree(of_run(folder))


def a_run_twice(folder: Path) -> None:
    run = of_run(folder)
    shutil.copytree(run, run.with_name(f"{run.name}-twice"))


def no_verdict(folder: Path) -> None:
    verdicts(folder)[0].unlink()


def more_operations(folder: Path) -> None:
    rewritten(folder / CERTIFICATE, lambda document: document["shown"]["operations"].update(ok=10**9))  # type: ignore[index]


def nothing_left_untested(folder: Path) -> None:
    rewritten(folder / CERTIFICATE, lambda document: document["shown"].update(not_tested={}))  # type: ignore[attr-defined]


def every_state_covered(folder: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        states = document["shown"]["states"]
        states["reached"] += [{"state": name, "times": 1, "runs": 1} for name in states["never"]]
        states["never"] = []

    rewritten(folder / CERTIFICATE, change)


def a_bug_forgotten(folder: Path) -> None:
    rewritten(folder / CERTIFICATE, lambda document: document["given"]["measured"]["bugs"].pop())  # type: ignore[index]


def another_page(folder: Path) -> None:
    (folder / PAGE).write_text("<h1>CERTIFIED</h1>")


def a_file_more(folder: Path) -> None:
    (folder / "readme.txt").write_text("trust me")


def of_other_shapes(folder: Path) -> None:
    rewritten(folder / CERTIFICATE, lambda document: document.update(shown={"runs": [1, None, {"run": []}]}))


@pytest.mark.parametrize(
    "edit",
    [
        another_promise,
        a_weaker_matrix,
        a_lost_write,
        a_run_left_out,
        more_operations,
        another_page,
        a_file_more,
        *(
            pytest.param(edit, marks=pytest.mark.long)
            for edit in (
                all_reads_left_out,
                another_model,
                a_weaker_configuration,
                a_run_twice,
                no_verdict,
                nothing_left_untested,
                every_state_covered,
                a_bug_forgotten,
                of_other_shapes,
            )
        ),
    ],
)
def test_a_forgery_without_a_key_is_refused(edit: Edit, sample: Sample, tmp_path: Path) -> None:
    """If it failed, a forger could have certified what no run shows, with all hashes written again."""

    def unsigned(folder: Path) -> None:
        as_unsigned(folder)
        edit(folder)
        if edit not in (another_page, of_other_shapes):
            (folder / PAGE).write_text(page.html(read(folder / CERTIFICATE, folder)))

    path = forged(sample, tmp_path, unsigned)
    try:
        found = verified(path, sample, tmp_path / "to")
    except HarnessError as error:
        assert "\n" not in error.message  # noqa: PT017  # a refusal may be an error of one line
    else:
        assert found.refused


def test_a_weaker_matrix_says_so(sample: Sample, tmp_path: Path) -> None:
    """If it failed, the test above could pass for another reason than the promise."""
    found = verified(forged(sample, tmp_path, a_weaker_matrix), sample, tmp_path / "to")
    assert any("promise" in lack.text for lack in found.refused), found.refused


def test_a_plan_that_this_code_cannot_read_is_a_refusal(sample: Sample, tmp_path: Path) -> None:
    """It would be called wrong use, of a file in a folder that is gone."""

    def edit(folder: Path) -> None:
        path = folder / "small.toml"
        path.write_text(path.read_text().replace("isolate-owner", "a-fault-of-later"))

    path = forged(sample, tmp_path, edit)
    with pytest.raises(StoreError, match=r"forged\.zip is refused: small\.toml: the cell .*a-fault-of-later"):
        verified(path, sample, tmp_path / "to")


def test_other_code_says_so(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a reader would take the words of another version for those of this one."""
    to = tmp_path / "to"
    to.mkdir()
    found = verify(sample.path, to, PUBLIC, "0" * 64, TODAY)
    assert found.refused == []
    assert any("other code" in note for note in found.notes)


def test_an_old_certificate_has_expired(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a certificate would count for ever."""
    (tmp_path / "to").mkdir()
    last = TODAY + timedelta(days=90)
    found = verify(sample.path, tmp_path / "to", PUBLIC, sample.code, last + timedelta(days=1))
    assert [lack.text for lack in found.refused] == [f"it was valid until {last}"]


def test_a_bar_cannot_be_lowered_afterwards(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a trial could be passed off as a release, or with a bar of no plan."""

    def as_bar(name: str) -> Edit:
        def edit(folder: Path) -> None:
            rewritten(folder / CERTIFICATE, lambda document: document["given"]["bar"].update(name=name))  # type: ignore[index]
            as_unsigned(folder)

        return edit

    for name, told in (
        ("release", "its bar is release: runs ≥ 1, operations that succeeded ≥ 1"),
        ("ours", "its bar ours is neither known nor of its plan"),
    ):
        path = forged(sample, tmp_path, as_bar(name))
        found = verified(path, sample, tmp_path / name)
        assert any(lack.text.startswith(told) for lack in found.refused), (told, found.refused)
        shutil.rmtree(tmp_path / "edited")


def as_an_earlier_version(folder: Path) -> None:
    """Neither verdicts nor certificate know of states, nor the certificate of a bar."""
    for path in verdicts(folder):
        rewritten(path, lambda document: [document["evidence"].pop(name) for name in LATER])  # type: ignore[attr-defined]
    rewritten(folder / CERTIFICATE, lambda document: document["shown"].pop("states"))  # type: ignore[attr-defined]
    for name in ("about", "bar", "environment"):
        rewritten(folder / CERTIFICATE, lambda document, name=name: document["given"].pop(name))  # type: ignore[attr-defined,misc]
    as_unsigned_document(folder)


def test_a_certificate_of_an_earlier_version_holds(sample: Sample, tmp_path: Path) -> None:
    """If it failed, the certificate of the last release would be refused, as no state is in its verdicts."""
    earlier = forged(sample, tmp_path, as_an_earlier_version)
    (tmp_path / "to").mkdir()
    found = verify(earlier, tmp_path / "to", None, "different code", TODAY)
    assert found.refused == []
    assert "this code says differently: states" in found.notes
    assert "it was made before there were bars: nothing was required of its evidence" in found.notes


def test_a_bundle_of_a_run_is_none(sample: Sample, tmp_path: Path) -> None:
    """If it failed, a single run would end in a traceback, or pass."""
    to = tmp_path / "to"
    to.mkdir()
    run = next((sample.folder / "results" / "small").glob("*/plan.json")).parent
    bundle.write(tmp_path / "run.zip", bundle.of_run(run))
    with pytest.raises(HarnessError, match="bundle of a run"):
        verify(tmp_path / "run.zip", to, None, sample.code, TODAY)
