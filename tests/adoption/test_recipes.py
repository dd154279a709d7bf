"""What the documentation tells people to write or to type: installers, pipelines, a container, editors' settings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from repository import git

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
UV, PIPX = [sys.executable, "-m", "uv"], [sys.executable, "-m", "pipx"]


def blocks(page: str, language: str) -> list[str]:
    """The blocks of code of a page of the documentation."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found
    return found


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(blocks("start/ci.md", "yaml"))))
def test_pipelines_are_valid(tmp_path: Path, number: int) -> None:
    text = blocks("start/ci.md", "yaml")[number]
    schema, file = "vendor.gitlab-ci", tmp_path / "pipeline.yml"
    if text.startswith("- uses:"):
        schema = "vendor.github-workflows"
        job = {"runs-on": "ubuntu-latest", "steps": yaml.safe_load(text)}
        text = yaml.safe_dump({"on": "push", "jobs": {"lint": job}})
    file.write_text(text)
    done = run(sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", ["start/pre-commit.md", "../README.md"])
def test_the_configuration_of_pre_commit_is_valid_and_can_be_filled_in(tmp_path: Path, tool: Path, page: str) -> None:
    (recipe,) = (block for block in blocks(page, "yaml") if block.startswith("repos:"))
    git(tmp_path, "init", "-q")
    file = tmp_path / ".pre-commit-config.yaml"
    file.write_text(recipe)
    assert output_of_pre_commit(tmp_path, "validate-config") == ""
    file.write_text(recipe.replace("https://github.com/pallas-lint/pallas-lint", str(tool)))
    (before,) = (each["rev"] for each in yaml.safe_load(recipe)["repos"])
    update = ("autoupdate", "--bleeding-edge")
    assert before.startswith("v") or f"pre-commit {' '.join(update)}" in (ROOT / "docs" / page).read_text("utf-8")
    commit = git(tool, "rev-parse", "HEAD").stdout.strip()
    assert f"updating {before} -> {commit}" in output_of_pre_commit(tmp_path, *update)
    (filled,) = yaml.safe_load(file.read_text())["repos"]
    assert filled["rev"] == commit


def output_of_pre_commit(folder: Path, *command: str) -> str:
    """What pre-commit says, which is neither a warning nor an error."""
    done = run(sys.executable, "-m", "pre_commit", *command, cwd=folder, PRE_COMMIT_HOME=str(folder / "hooks"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout + done.stderr
    return done.stdout


def test_settings_of_editors_can_be_read() -> None:
    for text in blocks("editors.md", "json"):
        assert "pallas-lint" in json.dumps(json.loads(text))
    for text in blocks("editors.md", "toml"):
        assert tomllib.loads(text)["language-server"]["pallas-lint"]["args"] == ["server"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "command",
    [
        [*UV, "tool", "run", "--from", "{source}", "pallas-lint"],
        [*UV, "tool", "run", "--from", "git+{url}", "pallas-lint"],
        [*PIPX, "run", "--spec", "git+{url}", "pallas-lint"],
    ],
    ids=["uvx", "uvx-git", "pipx-run"],
)
def test_it_runs_without_an_installation(tool: Path, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "old.py").write_text(
        "from jax.experimental.pallas import tpu as pltpu\n\nparams = pltpu.TPUCompilerParams()\n"
    )
    homes = {"PIPX_HOME": str(tmp_path / "pipx")}
    filled = [part.format(source=tool, url=tool.as_uri()) for part in command]
    done = run(*filled, "--isolated", "--jax-version", "0.10.2", "--output-format", "concise", cwd=tmp_path, **homes)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("old.py:3:10: PAL701 ")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "command",
    [
        [*UV, "tool", "install", "{source}"],
        [*UV, "tool", "install", "pallas-lint[server] @ git+{url}"],
        [*PIPX, "install", "{source}"],
        [*PIPX, "install", "pallas-lint[server] @ git+{url}"],
    ],
    ids=["uv", "uv-server", "pipx", "pipx-server"],
)
def test_it_is_installed_as_a_tool(tool: Path, tmp_path: Path, command: list[str]) -> None:
    place = tmp_path / "bin"
    homes = {
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(place),
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(place),
    }
    done = run(*(part.format(source=tool, url=tool.as_uri()) for part in command), cwd=tmp_path, **homes)
    assert done.returncode == 0, done.stderr
    options = ["server", "--help"] if "server" in command[-1] else ["--version"]
    done = run(str(place / "pallas-lint"), *options, cwd=tmp_path)
    assert (done.returncode, "pallas-lint" in done.stdout) == (0, True), done.stderr


@pytest.mark.nightly
def test_the_steps_of_the_container(tmp_path: Path) -> None:
    """Those that build the environment, in another folder: no engine is at hand."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()

    def here(text: str) -> str:
        return re.sub(r"(?<![\w/.])/(source|opt)\b", lambda found: f"{tmp_path}/{found[1]}", text)

    (tmp_path / "source").mkdir()
    for line in lines[: lines.index("")]:
        instruction, _, rest = line.partition(" ")
        if instruction == "COPY":
            *sources, target = rest.split()
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, here(target), ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, here(target))
        elif instruction == "RUN":
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            done = run("sh", "-c", here(rest), cwd=tmp_path, PATH=path)
            assert done.returncode == 0, done.stderr
    (entry,) = json.loads(lines[-1].removeprefix("ENTRYPOINT "))
    done = run(here(entry), "--version", cwd=tmp_path)
    assert done.stdout.startswith("pallas-lint "), done.stderr
