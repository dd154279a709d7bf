"""Rules of another package: the template is installed into a folder and used as anybody would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).resolve().parents[2] / "templates" / "rules"
CODE = """\
import jax
from jax.experimental import pallas as pl


def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...] + 1


def run(x):
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def install(folder: Path, entry_points: str | None = None) -> Path:
    """What installing the package leaves in a folder of packages."""
    shutil.copytree(TEMPLATE / "acme_pallas", folder / "acme_pallas")
    reported = folder / "acme_pallas-0.1.0.dist-info"
    reported.mkdir()
    named = "[pallas_lint.rules]\nACME101-unnamed-launch = acme_pallas.unnamed_launch\n"
    (reported / "entry_points.txt").write_text(entry_points or named)
    (reported / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-pallas\nVersion: 0.1.0\n")
    return folder


def run(cwd: Path, packages: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-s", "-m", "pallas_lint", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "k.py").write_text(CODE)
    return folder


@pytest.mark.slow
def test_a_rule_of_another_package_is_like_any_other(packages: Path, project: Path) -> None:
    install(packages)
    ran = run(project, packages, "--isolated", "--jax-version", "0.10.2", "--output-format", "json")
    (finding,) = json.loads(ran.stdout)["findings"]
    assert (finding["code"], finding["name"], finding["severity"]) == ("ACME101", "unnamed-launch", "warning")
    assert finding["url"] == "https://acme.example/pallas/ACME101"
    assert finding["start"]["line"] == 10
    again = run(project, packages, "--isolated", "--jax-version", "0.10.2", "--output-format", "json")
    assert again.stdout == ran.stdout  # from the cache
    assert run(project, packages, "--isolated", "--ignore", "ACME").returncode == 0
    assert run(project, packages, "--isolated", "--select", "unnamed-launch").returncode == 1
    assert "compiler dumps" in run(project, packages, "rule", "ACME101").stdout
    sarif = json.loads(run(project, packages, "--isolated", "--output-format", "sarif").stdout)
    assert sarif["runs"][0]["tool"]["driver"]["rules"][0]["helpUri"] == finding["url"]


def test_it_can_be_suppressed(packages: Path, project: Path) -> None:
    install(packages)
    (project / "k.py").write_text(CODE.replace(")(x)", ")(x)  # pallas-lint: disable=ACME101"))
    assert run(project, packages, "--isolated").returncode == 0
    # Without the package the comment names no rule, which is reported.
    assert "names no rule" in run(project, project / "nowhere", "--isolated").stdout


@pytest.mark.slow
def test_a_changed_rule_is_not_answered_from_the_cache(packages: Path, project: Path) -> None:
    install(packages)
    assert "the launch has no name" in run(project, packages, "--isolated").stdout
    file = packages / "acme_pallas" / "unnamed_launch.py"
    file.write_text(file.read_text().replace('"the launch has no name"', '"call it something"'))
    os.utime(file, ns=(1, 1))
    assert "call it something" in run(project, packages, "--isolated").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry_points", "message"),
    [
        ("ACME101-unnamed-launch = acme_pallas.missing", "rule ACME101 of acme_pallas cannot be imported"),
        ("ACME102-other-name = acme_pallas.unnamed_launch", "has no class with that code"),
        ("PAL101-mine = acme_pallas.unnamed_launch", "codes that begin with PAL are taken"),
        ("acme = acme_pallas.unnamed_launch", "is not a CODE-rule-name"),
    ],
)
def test_unusable_files_are_reported_once(packages: Path, project: Path, entry_points: str, message: str) -> None:
    install(packages, f"[pallas_lint.rules]\n{entry_points}\n")
    (project / "again.py").write_text(CODE.replace("+ 1", "+ 2").replace("o_ref[...] =", "o_ref[0:8, 0:1] ="))
    ran = run(project, packages, "--isolated", "--jax-version", "0.10.2")
    assert ran.returncode == 2
    assert ran.stderr.count(message) == 1
    assert "Traceback" not in ran.stderr
    listed = run(project, packages, "rule")
    assert "PAL101" in listed.stdout


def test_a_rule_that_crashes_costs_only_itself(packages: Path, project: Path) -> None:
    install(packages)
    file = packages / "acme_pallas" / "unnamed_launch.py"
    file.write_text(file.read_text().replace('if launch.kind == "pallas_call"', 'if launch.no_such_thing == ""'))
    (project / "k.py").write_text(CODE.replace("x_ref[...] + 1", "jax.numpy.cumsum(x_ref[...])"))
    ran = run(project, packages, "--isolated", "--jax-version", "0.10.2", "--target", "tpu")
    assert ran.returncode == 2
    assert "internal error in ACME101" in ran.stderr
    assert "PAL101" in ran.stdout


def test_the_working_directory_offers_no_rules(project: Path) -> None:
    install(project)
    environment = {**os.environ, "PYTHONPATH": ""}
    ran = subprocess.run(
        [sys.executable, "-m", "pallas_lint", "rule"], cwd=project, env=environment, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "ACME101" not in ran.stdout


@pytest.mark.nightly
@pytest.mark.slow
def test_the_template_installs_and_its_tests_pass(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(packages)]
    subprocess.run([*pip, str(shutil.copytree(TEMPLATE, tmp_path / "template"))], check=True)
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "template" / "tests")]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    assert "2 passed" in ran.stdout
