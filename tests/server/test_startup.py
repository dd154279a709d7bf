"""Nothing in a project is executed by linting it or serving it, wherever Python looks for modules.

Every planted file leaves a mark when it runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.server.test_protocol import CODE
from tests.server.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Iterable

pytestmark = pytest.mark.slow  # each test starts programs

SCRIPT = str(Path(sys.executable).with_name("pallas-lint"))
SAFE = ["-P"] if sys.version_info >= (3, 11) else ["-I"]
COMMANDS = {
    "console script": [SCRIPT],
    "module": [sys.executable, "-m", "pallas_lint"],
    "module, -P": [sys.executable, *SAFE, "-m", "pallas_lint"],
}
SERVERS = {
    **{name: [*command, "server"] for name, command in COMMANDS.items()},
    "server module": [sys.executable, "-m", "pallas_lint.server"],
    "server module, -P": [sys.executable, *SAFE, "-m", "pallas_lint.server"],
}
LIBRARIES = (
    "attr attrs cattrs libcst lsprotocol packaging pygls rich tomli tree_sitter tree_sitter_python jax jaxlib numpy"
).split()
STANDARD = "argparse ast asyncio concurrent difflib json logging multiprocessing socket subprocess tomllib".split()
AT_START = ("sitecustomize", "usercustomize", "conftest", "setup")
# `python -m` looks these up in the current folder before any code of ours runs; only -P and -I keep it from that.
BY_PYTHON_ITSELF = ("pallas_lint", "rules", "server", "tests")
HOSTILE = """
[build-system]
requires = ["setuptools"]
build-backend = "backend"
backend-path = ["."]

[tool.pallas-lint]
jax-version = "auto"
extend-exclude = ["$(touch marks/shell)", "`touch marks/backquotes`"]

[tool.pallas-lint.probe]
timeout = 5

[project]
name = "p"
version = "1"
dependencies = ["jax @ file://./jax-0.1.tar.gz", "jaxlib"]

[project.entry-points."pallas_lint.rules"]
PAL999-evil = "evil_rules"
"""


class Project:
    """A folder with a kernel, a virtual environment, and things that must not run."""

    def __init__(self, folder: Path, *, packages: bool) -> None:
        self.folder = folder
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.kernel = folder / "kernel.py"
        self.kernel.write_text(CODE)
        modules = (*LIBRARIES, *STANDARD, *AT_START, "evil_rules", "backend")
        for name in modules:
            self.plant(folder / f"{name}.py")
        for name in BY_PYTHON_ITSELF if packages else ():
            for file in ("__init__", "__main__", "cli", "conftest"):
                self.plant(folder / name / f"{file}.py")
        (folder / "pyproject.toml").write_text(HOSTILE)
        self.environment(folder / ".venv")
        (folder / "venv").symlink_to(folder / ".venv", target_is_directory=True)
        known = folder / "evil.egg-info"
        known.mkdir()
        (known / "entry_points.txt").write_text("[pallas_lint.rules]\nPAL999-evil = evil_rules\n")
        (known / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")

    def environment(self, venv: Path) -> None:
        """One with jax 0.10.2, by its metadata."""
        (venv / "bin").mkdir(parents=True)
        for name in ("python", "python3", "pallas-lint", "git"):
            program = venv / "bin" / name
            program.write_text(f"#!/bin/sh\ntouch '{self.marks}/venv-{name}'\n")
            program.chmod(0o755)
        (venv / "pyvenv.cfg").write_text(f"home = {venv}/bin\n")
        packages = venv / "lib" / "python3.12" / "site-packages"
        (packages / "jax-0.10.2.dist-info").mkdir(parents=True)
        (packages / "jax-0.10.2.dist-info" / "METADATA").write_text("Name: jax\nVersion: 0.10.2\n")
        (packages / "evil.pth").write_text(f"import pathlib; pathlib.Path({str(self.marks / 'pth')!r}).touch()\n")
        for name in ("jax", "sitecustomize"):
            self.plant(packages / f"{name}.py")

    def plant(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        mark = self.marks / str(file.relative_to(self.folder)).replace(os.sep, "-")
        file.write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit('ran ' + __file__)\n")

    @property
    def ran(self) -> list[str]:
        return sorted(mark.name for mark in self.marks.iterdir())


def project(folder: Path, name: str) -> Project:
    return Project(folder, packages=name == "console script" or name.endswith("-P"))


@pytest.fixture(autouse=True)
def no_active_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.delenv(variable, raising=False)


def linted(command: Iterable[str], folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)


def test_the_plants_would_run(tmp_path: Path) -> None:
    found = project(tmp_path, "console script")
    subprocess.run([sys.executable, "-c", "import json"], cwd=tmp_path, capture_output=True)
    subprocess.run([str(tmp_path / "venv" / "bin" / "python")], check=True)
    assert found.ran == ["json.py", "venv-python"]


@pytest.mark.parametrize("name", COMMANDS)
def test_linting(name: str, tmp_path: Path) -> None:
    found = project(tmp_path, name)
    done = linted(COMMANDS[name], tmp_path, "kernel.py", "--output-format", "concise", "--no-cache")
    assert done.returncode == 1 and "PAL101" in done.stdout, done.stderr
    others = (["--python", ".venv/bin/python"], ["--python", "venv"], ["--diff"]) if name == "module" else ()
    for options in others:
        assert "i * 8" in linted(COMMANDS[name], tmp_path, "kernel.py", "--no-cache", *options).stdout
    assert "0.10.2" in linted(COMMANDS[name], tmp_path, "config").stdout, "the environment is read"
    assert found.ran == []


@pytest.mark.parametrize("name", SERVERS)
def test_serving(name: str, tmp_path: Path) -> None:
    found = project(tmp_path, name)
    uri = found.kernel.as_uri()
    with Wire(
        SERVERS[name], cwd=tmp_path, settings={"interpreter": str(tmp_path / ".venv" / "bin" / "python")}
    ) as wire:
        wire.initialize(rootUri=tmp_path.as_uri())
        wire.open(uri, CODE)
        assert wire.codes(uri) == ["PAL101", "PAL301"]
        place = {"line": 9, "character": 20}
        requested = {
            "textDocument": {"uri": uri},
            "position": place,
            "range": {"start": place, "end": place},
            "context": {"diagnostics": [], "triggerKind": 1},
        }
        for method in ("hover", "codeAction", "inlayHint", "codeLens", "completion"):
            assert "result" in wire.request(f"textDocument/{method}", requested)
        (tmp_path / "pyproject.toml").write_text(HOSTILE.replace("timeout = 5", "enable = true\nallow = true"))
        changes = [{"uri": (tmp_path / "pyproject.toml").as_uri(), "type": 2}]
        wire.notify("workspace/didChangeWatchedFiles", {"changes": changes})
        wire.notify(
            "workspace/didChangeConfiguration",
            {"settings": {"pallasLint": {"probe": {"enable": True}, "args": ["--probe", "--allow-probe"]}}},
        )
        command = {
            "command": "pallasLint.probe",
            "arguments": [{"uri": uri, "function": "run", "arguments": "f32[8,128]"}],
        }
        assert wire.request("workspace/executeCommand", command)["result"]["outcome"] == "not-allowed"
        assert wire.end() == 0
    assert found.ran == []


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_processes_that_help(method: str, tmp_path: Path) -> None:
    """Where processes are spawned, as on macOS, on Windows and from Python 3.14 on, each starts as `python -c` does."""
    if sys.version_info < (3, 11) and method != "fork":
        pytest.skip("before Python 3.11 nothing keeps the current folder out of `python -c`")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    found = project(workspace, "console script")
    for number in range(40):
        (workspace / f"kernel_{number}.py").write_text(CODE + "# " + "x" * 50_000 + "\n")
    start = tmp_path / "start.py"
    start.write_text(
        "import multiprocessing, sys\n"
        "from pallas_lint.cli import main\n"
        "if __name__ == '__main__':\n"
        f"    multiprocessing.set_start_method({method!r})\n"
        "    raise SystemExit(main())\n"
    )
    files = [f"kernel_{number}.py" for number in range(40)]
    done = linted([sys.executable, str(start)], workspace, *files, "--no-cache", "--jobs", "2", "--statistics")
    assert done.returncode == 1 and "PAL101" in done.stdout, done.stderr
    assert found.ran == []


def test_initialize_does_not_wait_for_the_engine(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pallas_lint.server.registration import create\n"
        "create()\n"
        "heavy = {'libcst', 'tree_sitter', 'multiprocessing', 'pallas_lint.lint', 'pallas_lint.kernels.interpreter'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
