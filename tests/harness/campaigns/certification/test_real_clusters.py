"""Certificates of runs on real clusters: made there, and verified where nothing of the cluster is left."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.campaigns.certification.making import certify
from tests import needs
from tests.harness.campaigns.certification.conftest import BUGS, Sample, asked, verified
from tests.harness.cluster.ssh.sshd import sshd

PLAN = """
name = "small"
seeds = 1
first_seed = 1
[plan]
time_limit_s = 10
rate = 40
{fields}
[matrix]
configuration = ["{configuration}"]
[certificate]
bar = "trial"
"""


def certificate_of(folder: Path, configuration: str = "C", **fields: str) -> Sample:
    told = "\n".join(f'{name} = "{value}"' for name, value in fields.items())
    ask = asked(folder, PLAN.format(fields=told, configuration=configuration))
    made = certify(ask)
    assert made.certificate is not None, "\n".join(lack.text for lack in made.lacks)
    assert made.bundle is not None
    return Sample(made, made.certificate, made.bundle, folder, made.certificate.given.code.sha256)


def rare_turns_told(sample: Sample) -> set[str]:
    """The rare turns that the run counted, also those that never came about: which ones do is chance."""
    (verdict,) = sample.folder.glob("results/**/verdict.json")
    return set(msgspec.json.decode(verdict.read_bytes())["evidence"]["rare_turns"])


@pytest.mark.docker
def test_runs_in_containers_are_certified(tmp_path: Path) -> None:
    """If it failed, a release could be certified in the simulator alone, or its image would not be named."""
    needs.docker().close()
    sample = certificate_of(tmp_path, cluster="docker", faults="isolate-one")
    (image, digest), *others = sample.certificate.given.images.items()
    assert image.startswith("qsync-node:") and digest.startswith("sha256:") and not others
    assert sample.certificate.shown["faults"][0]["cluster"] == "docker"
    assert "leader fenced" in rare_turns_told(sample)
    assert verified(sample.path, sample, tmp_path / "to").refused == []


@pytest.mark.real
@needs.sshd
@needs.root
def test_runs_over_ssh_are_certified_and_verified_without_the_inventory(tmp_path: Path) -> None:
    """If it failed, only the machine that made a certificate could verify it."""
    with sshd(tmp_path) as host:
        inventory = host.inventory(hosts=3)
        sample = certificate_of(tmp_path, cluster="ssh", faults="isolate-one", inventory=str(inventory))
    inventory.unlink()
    assert sample.certificate.shown["faults"][0]["cluster"] == "ssh"
    assert "leader fenced" in rare_turns_told(sample)
    assert verified(sample.path, sample, tmp_path / "to").refused == []


@pytest.mark.real
@needs.tarantool
def test_real_tarantool_is_certified_with_the_sensitivity_of_its_reference(tmp_path: Path) -> None:
    """If it failed, a certificate of real Tarantool would claim that bugs were found in it, or could not be made."""
    sample = certificate_of(tmp_path, "A", system="tarantool", cluster="local", faults="slow")
    given, shown = sample.certificate.given, sample.certificate.shown
    assert shown["tested"]["versions"][0].startswith("2.6")
    assert given.measured.of == ("qsync",) and len(given.measured.bugs) == len(BUGS)
    assert given.measured.notes == ("of the reference node qsync under the same plan, not of tarantool",)
    assert {"C", "H"}.isdisjoint(shown["not_tested"]["configurations"])  # it has no such configurations
    assert verified(sample.path, sample, tmp_path / "to").refused == []
