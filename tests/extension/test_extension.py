"""What the VS Code extension brings along: schemas of today's settings, and a server that starts from its own files."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parent.parent.parent
EXTENSION = REPOSITORY / "vscode-extension"
SERVER = EXTENSION / "bundled" / "tool" / "server.py"


def manifest() -> dict[str, Any]:
    return json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))


def settings() -> dict[str, Any]:
    groups = manifest()["contributes"]["configuration"]
    return {name: value for group in groups for name, value in group["properties"].items()}


def run(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, encoding="utf-8"
    )


def test_schemas_and_lists_are_current() -> None:
    for name, content in runpy.run_path(str(EXTENSION / "scripts" / "product.py"))["files"]().items():
        written = json.loads((EXTENSION / name).read_text(encoding="utf-8"))
        assert written == content, f"{name}: run vscode-extension/scripts/product.py"


@pytest.mark.parametrize(
    ("document", "valid"),
    [
        ({"tool": {"pallas-lint": {"target": "tpu:v5e", "select": ["PAL1"]}}, "project": {"name": "x"}}, True),
        ({"tool": {"pallas-lint": {"targets": "tpu"}}}, False),
        ({"tool": {"pallas-lint": {"select": ["PAL999"]}}}, False),
        ({"tool": {"ruff": {"select": ["E"]}}}, True),
    ],
)
def test_schema_of_pyproject(document: dict[str, Any], valid: bool) -> None:
    schema = json.loads((EXTENSION / "schemas" / "pyproject.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(schema)
    assert jsonschema.Draft7Validator(schema).is_valid(document) is valid


def test_targets_are_those_of_pallas_lint() -> None:
    from pallas_lint.config.targets import all_targets

    one = settings()["pallasLint.target"]
    assert one["type"] == "array" and one["items"]["type"] == "string"  # what the settings editor has a list for
    assert one["items"]["enum"] == list(all_targets())
    assert settings()["pallasLint.probe.targets"]["items"]["enum"] == list(all_targets())


def test_the_server_takes_the_defaults_of_all_settings() -> None:
    from pallas_lint.server.workspace.client_settings import parse

    reported: dict[str, Any] = {}
    for name, value in settings().items():
        *groups, key = name.removeprefix("pallasLint.").split(".")
        inner = reported
        for group in groups:
            inner = inner.setdefault(group, {})
        inner[key] = value["default"]
    del reported["layoutView"], reported["refColors"], reported["mcp"]  # the extension's own
    assert parse(reported).problems == ()


def test_versions_are_the_same() -> None:
    from pallas_lint import __version__

    assert manifest()["version"] == __version__


def test_bundling_without_pip_throws_nothing_away(tmp_path: Path) -> None:
    place = shutil.copytree(EXTENSION / "scripts", tmp_path / "scripts").parent
    (kept := place / "bundled" / "libs" / "common" / "kept.py").parent.mkdir(parents=True)
    kept.touch()
    # -S: the packages of the environment, pip with them, are not there.
    ran = run("-S", str(place / "scripts" / "bundle.py"), cwd=tmp_path)
    assert ran.returncode == 1
    assert f"{sys.executable} -m ensurepip" in ran.stderr
    assert kept.exists()


def test_requirements_of_the_server_are_bundled() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (EXTENSION / "bundled" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for text in (*project["dependencies"], *project["optional-dependencies"]["server"]):
        wanted = Requirement(text)
        assert wanted.name in pinned
        assert Version(pinned[wanted.name]) in wanted.specifier, text


@pytest.mark.slow
def test_tasks_find_problems() -> None:
    (matcher,) = manifest()["contributes"]["problemMatchers"]
    found = run(
        "-m", "pallas_lint", "--output-format", "concise", "--isolated", "--color", "never", "examples", cwd=REPOSITORY
    )
    lines = [match for line in found.stdout.splitlines() if (match := re.match(matcher["pattern"]["regexp"], line))]
    assert ("examples/numerics.py", "8", "12", "PAL101") in [match.groups()[:4] for match in lines]


def test_the_server_describes_its_interpreter(tmp_path: Path) -> None:
    described = run(str(SERVER), "--describe", cwd=tmp_path)
    assert described.returncode == 0, described.stderr
    phrase = json.loads(described.stdout)
    assert Path(phrase["executable"]) == Path(sys.executable)
    assert phrase["version"] == ".".join(map(str, sys.version_info[:3])) or sys.version_info.releaselevel != "final"
    assert phrase["pallasLint"]


@pytest.mark.parametrize("safe_path", ["", "1"])
def test_no_file_of_the_folder_is_imported(tmp_path: Path, safe_path: str) -> None:
    for name in ("json", "platform", "lsprotocol", "pygls", "jax", "pallas_lint", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')\n", encoding="utf-8")
    variables = {"PALLAS_LINT_LIBRARIES": "environment", "PYTHONSAFEPATH": safe_path}
    for arguments in (["--describe"], ["--version"], ["server", "--help"]):
        result = run(str(SERVER), *arguments, cwd=tmp_path, **variables)
        assert result.returncode == 0, result.stderr
        assert "hijacked" not in result.stdout + result.stderr


def test_without_fitting_libraries_it_prints_what_to_do(tmp_path: Path) -> None:
    tool = tmp_path / "bundled" / "tool" / "server.py"
    tool.parent.mkdir(parents=True)
    tool.write_bytes(SERVER.read_bytes())
    result = run(str(tool), "server", cwd=tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("pallas-lint: no libraries for ")
    assert "pallas-lint[server]" in result.stderr
    assert json.loads(run(str(tool), "--describe", cwd=tmp_path).stdout)["bundledProblem"] in result.stderr
