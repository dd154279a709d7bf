"""The hooks, installed and run by pre-commit in a git repository of a project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from repository import git

pytestmark = pytest.mark.slow

KERNELS = """\
def kernel(x_ref, o_ref):
    o_ref[...] = x_ref[...]


def wrong(x_ref, o_ref):
    import jax.numpy as jnp

    o_ref[...] = jnp.cumsum(x_ref[...], axis=1)
"""
LAUNCH = """\
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

import kernels


def run(x):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        kernels.kernel,
        grid=(4,),
        in_specs=[spec],
        out_specs=spec,
        out_shape=jax.ShapeDtypeStruct((32, 128), x.dtype),
        compiler_params=pltpu.CompilerParams(),
    )(x)
"""


@pytest.fixture(autouse=True)
def shared_environments(tool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hooks' environments are installed once, into a folder of their own."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tool.parent / "hooks"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "pallas-lint.toml").write_text('jax-version = "0.10.2"\nexclude = ["generated"]\n')
    return folder


def commit_with(project: Path, tool: Path, hook: str, args: str = "[]") -> subprocess.CompletedProcess[str]:
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {tool}\n    rev: {git(tool, 'rev-parse', 'HEAD').stdout}    hooks:\n      - id: {hook}\n"
        f"        args: {args}\n"
    )
    git(project, "add", "-A")
    subprocess.run([sys.executable, "-m", "pre_commit", "install"], cwd=project, check=True, capture_output=True)
    return git(project, "commit", "-m", "work", check=False)


@pytest.mark.nightly
def test_a_commit_is_refused_and_then_accepted(tool: Path, project: Path) -> None:
    (project / "kernels.py").write_text(KERNELS)
    (project / "launch.py").write_text(LAUNCH)
    accepted = commit_with(project, tool, "pallas-lint")
    assert accepted.returncode == 0, accepted.stderr
    # Only the launch is in the commit; what is wrong with it stands in the file that it imports.
    (project / "launch.py").write_text(LAUNCH.replace("kernels.kernel", "kernels.wrong"))
    git(project, "add", "-A")
    refused = git(project, "commit", "-m", "wrong", check=False)
    assert refused.returncode == 1
    assert "kernels.py:8:18 PAL101" in refused.stderr
    assert len(git(project, "log", "--oneline").stdout.splitlines()) == 1
    (project / "launch.py").write_text(f"{LAUNCH}\n\nx = 1\n")
    git(project, "add", "-A")
    assert git(project, "commit", "-m", "right", check=False).returncode == 0


@pytest.mark.nightly
def test_the_fixing_hook_fixes_and_stops_the_commit(tool: Path, project: Path) -> None:
    (project / "kernels.py").write_text(KERNELS)
    (project / "launch.py").write_text(LAUNCH.replace("CompilerParams", "TPUCompilerParams"))
    stopped = commit_with(project, tool, "pallas-lint-fix")
    assert stopped.returncode == 1
    assert "files were modified by this hook" in stopped.stderr
    assert (project / "launch.py").read_text() == LAUNCH
    git(project, "add", "-A")
    assert git(project, "commit", "-m", "fixed", check=False).returncode == 0


def test_excluded_files_are_left_out(tool: Path, project: Path) -> None:
    (project / "generated").mkdir()
    (project / "generated" / "launch.py").write_text(LAUNCH.replace("CompilerParams", "TPUCompilerParams"))
    assert commit_with(project, tool, "pallas-lint").returncode == 0


@pytest.mark.parametrize("args", ["[]", '[--jax-version, "0.9.2", --target=tpu]'])
def test_tracked_files_are_no_options_and_no_commands(tool: Path, project: Path, args: str) -> None:
    (project / "launch.py").write_text(wrong := LAUNCH.replace("CompilerParams", "TPUCompilerParams"))
    for name in ("--fix", "--write-baseline", "--probe", "--help", "-", "server", "rule"):
        (project / name).write_text("#!/usr/bin/env python3\nx = 1\n")
        (project / name).chmod(0o755)
    refused = commit_with(project, tool, "pallas-lint", args)
    assert refused.returncode == 1
    assert "fix: write `CompilerParams`" in refused.stderr
    assert "Found 1 finding (1 error) in 0 kernels, 8 files" in refused.stderr
    assert (project / "launch.py").read_text() == wrong


@pytest.mark.parametrize("hook", ["pallas-lint", "pallas-lint-fix"])
def test_a_hostile_repository_is_data(tool: Path, project: Path, hook: str) -> None:
    """`pre-commit run --all-files`, as CI runs it, in a repository that holds modules, settings and links."""
    ran, outside = project.parent / "ran", project.parent / "outside"
    outside.mkdir()
    (outside / "launch.py").write_text(wrong := LAUNCH.replace("CompilerParams", "TPUCompilerParams"))
    (outside / "old.json").write_text("{}")
    plant = f"open({str(ran)!r}, 'w').close()\n"
    for name in ("pallas_lint", "json", "venv", "pip", "attrs", "sitecustomize", "setup", "conftest", "jax"):
        (project / f"{name}.py").write_text(plant)
    (project / "pallas_lint").mkdir()
    (project / "pallas_lint" / "__init__.py").write_text(plant)
    for name in ("pip.conf", "setup.cfg", "pyvenv.cfg"):
        (project / name).write_text("[install]\ntarget = planted\nhome = planted\n")
    options = ("-c", "-m", "@file", "--fix", "--output-file=stolen", "--cache-dir=.", "--probe")
    for name in (*options, "probe", "clean", "-"):
        (project / name).write_text("#!/usr/bin/env python3\nx = 1\n")
        (project / name).chmod(0o755)
    (project / "a\n::error::b.py").write_text("x = 1\n")
    (project / "launch.py").write_text(wrong)
    (project / "linked.py").symlink_to(outside / "launch.py")
    (project / "linked").symlink_to(outside)
    before = {file.name: file.read_bytes() for file in outside.iterdir()}
    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {tool}\n    rev: {git(tool, 'rev-parse', 'HEAD').stdout}    hooks:\n      - id: {hook}\n"
    )
    git(project, "add", "-A")
    # Not `python -m`, which imports from the current folder.
    command = [Path(sys.executable).with_name("pre-commit"), "run", "--all-files"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert ("PAL701" in done.stdout) is (hook == "pallas-lint"), done.stdout
    assert (project / "launch.py").read_text() == (wrong if hook == "pallas-lint" else LAUNCH)
    assert not ran.exists() and not (project / "stolen").exists()
    assert {file.name: file.read_bytes() for file in outside.iterdir()} == before
    changed = git(project, "status", "--porcelain").stdout.splitlines()
    assert [line for line in changed if line[1] != " "] == ([] if hook == "pallas-lint" else ["AM launch.py"])
