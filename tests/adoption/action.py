"""Runs the steps of action.yml as GitHub's runner runs those of a composite action."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]


class Ran(NamedTuple):
    """Exit status, stdout and stderr of the last step, and what the steps wrote to GITHUB_OUTPUT."""

    status: int
    out: str
    err: str
    outputs: str


def run_action(project: Path, temporary: Path, env: Mapping[str, str] | None = None, **inputs: str) -> Ran:
    """The action in the checkout `project`; it is not installed again where `temporary` has it from an earlier run."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    given = {name: inputs.get(name.replace("-", "_"), each["default"]) for name, each in action["inputs"].items()}

    def expanded(text: str) -> str:
        for name, value in given.items():
            text = text.replace(f"${{{{ inputs.{name} }}}}", value)
        return text.replace("${{ github.action_path }}", str(ROOT))

    output = project.parent / "output"
    output.write_text("")
    status, out, err = 0, "", ""
    for step in action["runs"]["steps"]:
        if step["name"] != "Lint" and (temporary / "pallas-lint").exists():
            continue
        environment = {
            **os.environ,
            **(env or {}),
            **{name: expanded(value) for name, value in step.get("env", {}).items()},
            "RUNNER_TEMP": str(temporary),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_WORKSPACE": str(project),
        }
        cwd = project / expanded(step.get("working-directory", "."))
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
        status, out, err = ran.returncode, ran.stdout, ran.stderr
        assert step["name"] == "Lint" or status == 0, err
    return Ran(status, out, err, output.read_text())
