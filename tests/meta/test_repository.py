"""The repository as a whole: sizes, packages, examples and what the README shows."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any

import pytest

from tests.rules.interpreted import python

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    file
    for folder in ("pallas_lint", "rules", "server", "tests", "tools", "benchmarks", "examples", ".ci")
    for file in sorted((ROOT / folder).rglob("*.py"))
]
MAX_LINES = 700
PEOPLE_WORDS = frozenset(
    "ask asking asks asked hear hears heard nobody said say says somebody speak speaks spoke spoken teach teaches tell"
    " tells told untold who whom whose whoever".split()
)
LONG_FILES = {
    "pallas_lint/syntax/nodes.py": "every class of nodes, and little more than the names of their fields",
}


def test_files_stay_readable() -> None:
    long = {
        file.relative_to(ROOT).as_posix()
        for file in SOURCES
        if len(file.read_text(encoding="utf-8").splitlines()) > MAX_LINES
    }
    assert long == set(LONG_FILES)


@pytest.mark.slow
def test_data_have_no_names_of_people() -> None:
    """Names are the terms that one would search for: a verdict, a request, a status; not `told`, `asked`, `said`."""
    word = re.compile(rf"(?<![a-z])(?:{'|'.join(PEOPLE_WORDS)})(?![a-z])", re.IGNORECASE)
    found = {
        f"{file.relative_to(ROOT).as_posix()}: {token.string}"
        for file in SOURCES
        if file.relative_to(ROOT).parts[0] not in ("tests", "examples")
        if word.search(
            text := file.read_text(encoding="utf-8")
        )  # to read names takes long: most files have no such word
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and word.search(token.string)
    }
    assert found == set()


def test_every_package_and_its_data_are_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    folders = {
        "pallas_lint": ROOT / "pallas_lint",
        "pallas_lint.rules": ROOT / "rules",
        "pallas_lint.server": ROOT / "server",
    }
    present = {
        ".".join((package, *file.parent.relative_to(folder).parts))
        for package, folder in folders.items()
        for file in folder.rglob("__init__.py")
    }
    # Folders of data are packages too, in setuptools' eyes.
    bare = {package for package in listed - present if (ROOT / package.replace(".", "/")).is_dir()}
    assert listed == present | bare
    data = project["tool"]["setuptools"]["package-data"]
    for package in (ROOT / "pallas_lint").rglob("*"):
        if package.is_file() and package.suffix != ".py" and "__pycache__" not in package.parts:
            top = next(folder for folder in package.parents if ".".join(folder.relative_to(ROOT).parts) in present)
            patterns = data.get(".".join(top.relative_to(ROOT).parts), [])
            assert any(package.match(pattern) for pattern in patterns), f"{package} would not be installed"


def test_no_text_names_a_machine() -> None:
    left_out = {"build", "dist", "libs", "node_modules", "__pycache__", "tmp"}
    for top in sorted(ROOT.iterdir()):
        if top.name in left_out or (top.name.startswith(".") and top.name != ".ci") or top.suffix == ".egg-info":
            continue
        for file in [top] if top.is_file() else sorted(top.rglob("*")):
            known = file.suffix in {".py", ".md", ".toml", ".json", ".txt", ".ts"} or ".ci" in file.parts
            if not file.is_file() or not known or left_out & set(file.parts[len(ROOT.parts) :]):
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
            if file != Path(__file__).resolve():
                assert not re.search(r"/(root|home/[a-z]+|Users/[a-z]+)/", text), file


def lint(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pallas_lint", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )


EXPECTED = {
    "clean.py": [],
    "guarded.py": ["PAL603"],
    "index_map.py": ["PAL301"],
    "legacy/softmax_triton.py": ["PAL103"],
    "matmul_tpu.py": ["PAL401", "PAL106"],
    "numerics.py": ["PAL101"],
    "old_api.py": ["PAL701", "PAL701"],
    "ragged.py": [],
}


@pytest.mark.slow
def test_the_examples_have_the_expected_findings() -> None:
    ran = lint("--no-cache", "--output-format", "json", "examples")
    assert ran.returncode == 1, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    found: dict[str, list[str]] = {
        file.relative_to(ROOT / "examples").as_posix(): [] for file in SOURCES if "examples" in file.parts
    }
    for finding in document["findings"]:
        found[finding["path"].removeprefix("examples/")].append(finding["code"])
    assert found == EXPECTED
    assert document["errors"] == []


@pytest.mark.slow
def test_the_readme_shows_what_is_printed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```console\n\$ pallas-lint ([^\n]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert shown
    for arguments, output in shown:
        ran = (
            lint("--no-cache", *arguments.split())
            if not arguments.startswith(("rule", "support"))
            else lint(*arguments.split())
        )
        printed = ran.stdout + ran.stderr
        # `...` stands for lines left out.
        for part in output.split("...\n"):
            assert part in printed, f"pallas-lint {arguments} does not print\n{part}"


def readme_defects() -> list[list[str]]:
    """The rows of the table of what `interpret=True` does not show, as cells: defect, interpreted, linted, message."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("| defect |")[2].partition("\n\n")[0]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]


@pytest.mark.slow
def test_the_readme_has_the_severities_of_its_defects() -> None:
    reported: dict[str, list[str]] = {}
    for options in ((), ("--target", "tpu:v5p")):
        ran = lint("--isolated", *options, "--output-format", "json", "tests/meta/readme_defects.py")
        for finding in json.loads(ran.stdout)["findings"]:
            reported.setdefault(finding["code"], []).append(finding["severity"])
    for _, _, plain, described in readme_defects():
        code, _, severity = plain.partition(", ")
        assert reported[code] == [severity, described]


@pytest.mark.nightly
def test_the_readme_has_the_results_of_interpretation() -> None:
    ran = subprocess.run(
        [python(), str(ROOT / "tests/meta/readme_defects.py")], capture_output=True, text=True, check=True, timeout=300
    )
    assert [row[1] for row in readme_defects()] == [f"runs, {word} numbers" for word in ran.stdout.split()]


def test_the_readme_lists_the_families_there_are() -> None:
    from pallas_lint.rules.registry import RULES

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| PAL(\d)xx", text, re.MULTILINE))
    assert listed == {code[3] for code in RULES}
