"""What workflows run with which permissions. zizmor, which .ci/run starts, checks what is common to all projects."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.adoption.repository import git

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = {path.stem: path for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))}
# Runs code of the repository's tests, or of packages that are not pinned by hash.
OPEN = re.compile(
    r"\bpytest\b|\bnpm (?!ci --ignore-scripts)\w|\bnpx\b|\bpip install (?!--require-hashes )|\.ci/run|\bpython \w+/"
)


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, path in WORKFLOWS.items():
        for job, content in yaml.safe_load(path.read_text())["jobs"].items():
            yield f"{name}.{job}", content


def scripts(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def step(workflow: str, job: str, name: str) -> str:
    """The script of a step."""
    steps = yaml.safe_load(WORKFLOWS[workflow].read_text())["jobs"][job]["steps"]
    (script,) = (each["run"] for each in steps if each.get("name") == name)
    return str(script)


def test_a_job_that_may_write_or_has_secrets_runs_only_what_is_pinned() -> None:
    seen = set()
    for name, job in jobs():
        writes = "write" in job.get("permissions", {}).values()
        if writes or "secrets." in str(job):
            seen.add(name)
            assert OPEN.search(scripts(job)) is None, name
    assert seen == {"jax.propose", "release.attest", "release.pypi", "release.editors", "release.notes"}
    for path in WORKFLOWS.values():  # a job without permissions of its own has these
        assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}, path


def test_what_is_signed_and_published_comes_from_jobs_that_ran_no_tests() -> None:
    uploads = {name for name, job in jobs() if name.startswith("release.") and "upload-artifact" in str(job)}
    assert uploads == {"release.build", "release.extension"}
    for name, job in jobs():
        if name in uploads:
            assert "pytest" not in scripts(job), name


def test_actions_are_pinned_by_commit_with_their_version() -> None:
    used = [
        line.strip()
        for path in [*WORKFLOWS.values(), ROOT / "action.yml"]
        for line in path.read_text().splitlines()
        if re.match(r"\s*(- )?uses:", line)
    ]
    assert len(used) > 20
    pinned = re.compile(r"(- )?uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [line for line in used if not pinned.fullmatch(line)] == []
    commits = {re.sub(r".*uses: ", "", line) for line in used}
    assert len({commit.partition("@")[0] for commit in commits}) == len(commits), "one version of each"


def test_nothing_is_fetched_and_run_without_a_version() -> None:
    places = (".ci", ".github", "docs", "vscode-extension/scripts", "vscode-extension/e2e/harness")
    files = [file for place in places for file in (ROOT / place).rglob("*") if file.is_file()]
    files += [ROOT / name for name in ("action.yml", "README.md", "CONTRIBUTING.md", "vscode-extension/package.json")]
    loose = re.compile(rb"npx (--yes|-y) (?!\S+@\d)")
    assert [file for file in files if loose.search(file.read_bytes())] == []


@pytest.mark.parametrize(
    ("changed", "accepted"),
    [
        ({"pallas_lint/compat/data/versions.json": "new"}, True),
        ({"pallas_lint/compat/data/apis.json.gz": "new", "vscode-extension/src/product.json": "new"}, True),
        ({"pallas_lint/compat/data/versions.json": "new", ".github/workflows/tests.yml": "new"}, False),
        ({"pallas_lint/compat/data/versions.json": "new", "pallas_lint/lint.py": "new"}, False),
        ({"pallas_lint/compat/data/versions.json": "new", "pallas_lint/compat/data/code.py": "new"}, False),
        ({"pallas_lint/lint.py": None, "pallas_lint/compat/data/moved.json": "code"}, False),
        ({"../outside.json": "new"}, False),
        ({}, False),
    ],
)
def test_a_pull_request_for_a_new_jax_brings_nothing_but_data(
    tmp_path: Path, changed: dict[str, str | None], accepted: bool
) -> None:
    checkout, patch = tmp_path / "checkout", tmp_path / "measured.patch"
    before = {
        "pallas_lint/compat/data/versions.json": "old",
        "pallas_lint/compat/data/apis.json.gz": "\0old",
        "vscode-extension/src/product.json": "old",
        "pallas_lint/lint.py": "code",
        ".github/workflows/tests.yml": "old",
    }
    git(tmp_path, "init", "-q", str(checkout))
    write(checkout, before)
    git(checkout, "add", "-A")
    git(checkout, "commit", "-qm", "before")
    inside = {name: text for name, text in changed.items() if not name.startswith("..")}
    write(checkout, inside)
    git(checkout, "add", "-A")
    text = git(checkout, "diff", "--cached", "--binary").stdout
    for name in changed.keys() - inside.keys():
        text += (
            f"diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+new\n"
        )
    patch.write_text(text)
    git(checkout, "reset", "-q", "--hard")
    script = step("jax", "propose", "Apply what was measured, if it is nothing but data")
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    environment = {**os.environ, "RUNNER_TEMP": str(tmp_path)}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is accepted, done.stderr
    assert not (tmp_path / "outside.json").exists()


def write(folder: Path, files: dict[str, str | None]) -> None:
    """Write files; one without a text is removed."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            (folder / name).unlink()
        else:
            (folder / name).write_text(text)
