"""The action for GitHub: its steps are run as the runner runs those of a composite action."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow
KERNEL = """\
from jax.experimental.pallas import tpu as pltpu

params = pltpu.TPUCompilerParams()
"""


def run_action(project: Path, temporary: Path, **inputs: str) -> tuple[int, str, str]:
    """Status and output of the last step, and what it set as the action's output."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: inputs.get(name.replace("-", "_"), told["default"]) for name, told in action["inputs"].items()}

    def expanded(text: str) -> str:
        for name, value in given.items():
            text = text.replace(f"${{{{ inputs.{name} }}}}", value)
        return text.replace("${{ github.action_path }}", str(ROOT))

    told = project.parent / "output"
    told.touch()
    status, out = 0, ""
    for step in action["runs"]["steps"]:
        if step["name"] != "Lint" and (temporary / "pallas-lint").exists():
            continue
        environment = {
            **os.environ,
            **{name: expanded(value) for name, value in step.get("env", {}).items()},
            "RUNNER_TEMP": str(temporary),
            "GITHUB_OUTPUT": str(told),
        }
        cwd = project / expanded(step.get("working-directory", "."))
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        status, out = ran.returncode, ran.stdout
        assert step["name"] == "Lint" or status == 0, ran.stderr
    return status, out, told.read_text()


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner's folder: what the action installs lies there after the first run."""
    return tmp_path_factory.mktemp("runner")


def test_the_checkout_is_data(tmp_path: Path, runner: Path) -> None:
    assert not (runner / "pallas-lint").exists(), "the first run installs, among the files of the checkout"
    project = tmp_path / "project"
    project.mkdir()
    for name in ("venv", "pip", "ensurepip", "json", "pallas_lint", "attrs"):
        (project / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    for name in ("a", "made1", "made2"):
        (project / f"{name}.py").write_text(KERNEL)
    (project / "--fix").write_text("x = 1\n")
    (tmp_path / "outside").write_text("kept")
    (project / "out.sarif").symlink_to(tmp_path / "outside")
    # A pattern in args is the linter's, not the shell's; one in paths is the shell's.
    args = "--isolated --jax-version 0.10.2 --force-exclude --exclude made*"
    options = {"python": sys.executable, "args": args, "sarif_file": "out.sarif"}
    status, out, _ = run_action(project, runner, **options, paths="-* *.py")
    assert status == 1
    assert [line.split(" ")[0] for line in out.splitlines()] == ["::error"]
    assert (project / "a.py").read_text() == KERNEL
    assert (tmp_path / "outside").read_text() == "kept"
    assert not (tmp_path / "ran").exists()


def test_windows_has_its_programs_in_another_folder(tmp_path: Path, runner: Path) -> None:
    environment, project = runner / "pallas-lint", tmp_path / "project"
    project.mkdir()
    (project / "a.py").write_text(KERNEL)
    if not environment.exists():
        run_action(project, runner, python=sys.executable)
    (environment / "bin").rename(environment / "Scripts")
    try:
        status, out, _ = run_action(project, runner, args="--isolated --jax-version 0.10.2", sarif_file="out.sarif")
    finally:
        (environment / "Scripts").rename(environment / "bin")
    assert (status, out[:8]) == (1, "::error ")
    assert '"version": "2.1.0"' in (project / "out.sarif").read_text()


def test_findings_are_annotations_and_a_sarif_file(tmp_path: Path, runner: Path) -> None:
    project = tmp_path / "project"
    (project / "src dir").mkdir(parents=True)
    (project / "src dir" / "a.py").write_text(KERNEL)
    (project / "b.py").write_text(KERNEL)
    options = {"python": sys.executable, "args": "--isolated --jax-version 0.10.2", "sarif_file": "out.sarif"}
    status, out, told = run_action(project, runner, **options)
    assert status == 1
    assert told == "status=1\n"
    assert [line.split(" ")[0] for line in out.splitlines()] == ["::error", "::error"]
    assert '"version": "2.1.0"' in (project / "out.sarif").read_text()
    (project / "b.py").write_text("x = 1\n")
    assert run_action(project, runner, **options, paths="b.py")[0] == 0
