"""Formats for other programs, read by programs that are not ours."""

from __future__ import annotations

import json
import re
import subprocess
import tarfile
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import jsonschema
import junitparser
import pytest
from invocation import KERNEL, OLD, Ran

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Lint = Callable[..., Ran]

# https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
GITLAB = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 16},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "lines"],
                "properties": {
                    "path": {"type": "string", "not": {"pattern": "^(/|\\./)"}},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}, "end": {"type": "integer"}},
                    },
                },
            },
        },
    },
}
BROKEN = "from jax.experimental import pallas as pl\n\ndef half(:\n    pl.load\n"


@pytest.fixture
def files(folder: Path) -> Path:
    """Findings of two severities, one that spans lines, odd names, and a file that cannot be read."""
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "odd name, 100%&<é>.py").write_text(KERNEL)
    (folder / "half.py").write_text(BROKEN)
    (folder / "latin.py").write_bytes(b"# pallas \xe9\n")
    (folder / "clean.py").write_text("x = 1\n")
    return folder


def test_gitlab(files: Path, lint: Lint) -> None:
    issues = json.loads(lint(*OLD, "--output-format", "gitlab").out)
    jsonschema.validate(issues, GITLAB)
    assert {issue["location"]["path"] for issue in issues} == {"kernel.py", "odd name, 100%&<é>.py", "half.py"}
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    (files / "kernel.py").write_text(f"# moved\n{KERNEL}")
    moved = json.loads(lint(*OLD, "--output-format", "gitlab").out)
    assert {issue["fingerprint"] for issue in moved} == {issue["fingerprint"] for issue in issues}
    assert json.loads(lint("--output-format", "gitlab", "clean.py").out) == []


def unescaped(text: str, *, of_property: bool) -> str:
    """As the runner reads it."""
    pairs = [("%0D", "\r"), ("%0A", "\n"), *([("%3A", ":"), ("%2C", ",")] if of_property else []), ("%25", "%")]
    for escaped, plain in pairs:
        text = text.replace(escaped, plain)
    return text


def annotations(out: str) -> list[tuple[str, dict[str, str], str]]:
    """What the runner makes of the lines: command, properties, message."""
    found = []
    for line in out.splitlines():
        match = re.fullmatch(r"::(error|warning|notice)(?: ([^:]*(?:%3A[^:]*)*))?::(.*)", line)
        assert match, line
        pairs = [pair.split("=", 1) for pair in (match[2] or "").split(",") if pair]
        properties = {key: unescaped(value, of_property=True) for key, value in pairs}
        found.append((match[1], properties, unescaped(match[3], of_property=False)))
    return found


def test_github(files: Path, lint: Lint) -> None:
    found = annotations(lint(*OLD, "--output-format", "github").out)
    known = {"title", "file", "line", "endLine", "col", "endColumn"}
    assert all(set(properties) <= known for _, properties, _ in found)
    errors = {properties["file"]: message for command, properties, message in found if command == "error"}
    assert set(errors) == {"odd name, 100%&<é>.py", "kernel.py", "half.py", "latin.py"}
    _, properties, message = next(each for each in found if each[1]["file"] == "kernel.py")
    assert (properties["line"], properties["title"]) == ("14", "pallas-lint PAL301 index-map-element-offset")
    assert "block" in message and "\n" in message
    assert lint("--output-format", "github", "clean.py").out == ""


def test_junit(files: Path, lint: Lint) -> None:
    out = lint(*OLD, "--output-format", "junit").out
    suites = junitparser.JUnitXml.fromstring(out.encode())
    names = {suite.name for suite in suites}
    assert {"kernel.py", "odd name, 100%&<é>.py", "half.py"} <= names
    assert suites.failures == 3
    assert suites.errors == 1
    assert suites.tests == sum(suite.tests for suite in suites)
    clean = ET.fromstring(lint("--output-format", "junit", "clean.py").out)
    assert clean.get("tests") == "1" and clean.get("failures") == "0"


def test_junit_writes_only_what_xml_can_hold(files: Path, lint: Lint) -> None:
    (files / "kernel.py").write_text(f"{KERNEL}\nrun.ﬀ = '\x1b\ufffe'\n")
    junitparser.JUnitXml.fromstring(lint(*OLD, "--output-format", "junit").out.encode())


def test_sarif(files: Path, lint: Lint) -> None:
    log = json.loads(lint(*OLD, "--output-format", "sarif").out)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({result["ruleId"] for result in run["results"]})
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    (reported,) = invocation["toolExecutionNotifications"]
    assert reported["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "latin.py"
    mine = next(result for result in run["results"] if uri_of(result) == "kernel.py")
    (fix,) = mine["fixes"]
    (change,) = fix["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"]
    assert "odd%20name%2C%20100%25%26%3C%C3%A9%3E.py" in {uri_of(result) for result in run["results"]}


def uri_of(result: dict[str, Any]) -> str:
    uri: str = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    return uri


def test_a_fix_in_sarif_is_the_fix_that_is_made(files: Path, lint: Lint) -> None:
    """Applied by hand from the regions, as a consumer would."""
    log = json.loads(lint(*OLD, "--output-format", "sarif", "kernel.py").out)
    lines = KERNEL.splitlines(keepends=True)
    (result,) = log["runs"][0]["results"]
    for replacement in result["fixes"][0]["artifactChanges"][0]["replacements"]:
        region = replacement["deletedRegion"]
        assert region["startLine"] == region["endLine"]
        at = region["startLine"] - 1
        line = lines[at]
        text = replacement["insertedContent"]["text"]
        lines[at] = line[: region["startColumn"] - 1] + text + line[region["endColumn"] - 1 :]
    lint(*OLD, "--fix", "kernel.py")
    assert (files / "kernel.py").read_text() == "".join(lines)


@pytest.mark.slow
def test_sarif_is_valid_against_its_schema(files: Path, lint: Lint, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("schema")
    package = "@microsoft/jest-sarif@1.0.0-beta.0"  # the schema as its editors publish it for tests
    subprocess.run(["npm", "pack", "--silent", package], cwd=place, check=True, stdout=subprocess.DEVNULL)
    with tarfile.open(next(place.glob("*.tgz"))) as archive:
        member = archive.extractfile("package/lib/schemas/sarif-2.1.0-rtm.5.json")
        assert member is not None
        schema = json.load(member)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
    for arguments in (OLD, ("clean.py",), ("--extend-select", "ALL", "--jax-version", "0.12.0.1")):
        log = json.loads(lint(*arguments, "--output-format", "sarif").out)
        assert [error.message for error in validator.iter_errors(log)] == []
