"""Recording under attack: what settings name, what the program leaves, several runs at once, and kills."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pallas_lint.known_calls import shapes_file
from tests.hostile import attack

if TYPE_CHECKING:
    from pathlib import Path

NAME = "pallas-lint-shapes.toml"
SECRET = "export TOKEN=s3cr3t\n"
OURS = shapes_file.render([])


def noted(function: str = "k.py::run", shape: str = "f32[8,128]") -> str:
    """What a captured program notes of a call."""
    return json.dumps({"function": function, "arguments": {"x": shape}, "on": "trace", "seen": "t.py"})


def leave(line: str, name: str = "1.calls") -> list[str]:
    """A program that leaves a line where those that are captured leave theirs."""
    return ["--", "sh", "-c", 'printf "%s\\n" "$0" > "$PALLAS_LINT_CAPTURE/$1"', line, name]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder, home = tmp_path / "project", tmp_path / "home"
    for place in (folder / ".git", home):
        place.mkdir(parents=True)
    (home / ".bashrc").write_text(SECRET)
    (folder / "k.py").write_text(attack.KERNEL)
    return folder


@pytest.mark.parametrize("how", [(), ("--record-replace",)])
@pytest.mark.parametrize("way", ["setting", "new file", "link", "folder", "found"])
def test_settings_name_no_file_outside_of_the_project(project: Path, way: str, how: tuple[str, ...]) -> None:
    home = project.parent / "home"
    named = {
        "setting": "../home/.bashrc", "new file": "../home/new.toml", "link": "s.toml", "folder": "out/.bashrc",
    }.get(way)  # fmt: skip
    if way == "link":
        (project / "s.toml").symlink_to(home / ".bashrc")
    elif way == "folder":
        (project / "out").symlink_to(home, target_is_directory=True)
    elif way == "found":
        (project / NAME).symlink_to(home / ".bashrc")
    if named is not None:
        (project / "pallas-lint.toml").write_text(f'shapes = "{named}"\n')
    program = ["--", "sh", "-c", "touch ran"]
    recorded = attack.run("probe", "--capture", "--record", *how, *program, cwd=project)
    linted = attack.run("--jax-version", "0.10.2", "k.py", cwd=project)
    for ran in (recorded, linted):
        assert ran.calm and ran.status == 2, ran.err
        assert "it leads out of the project" in ran.err and "s3cr3t" not in ran.err + ran.out
    assert not (project / "ran").exists(), "it is known before the program runs"
    assert {file.name: file.read_text() for file in home.iterdir() if file.is_file()} == {".bashrc": SECRET}


def test_the_command_line_names_any_file(project: Path) -> None:
    (project.parent / "known.toml").write_text(OURS)
    ran = attack.run("--jax-version", "0.10.2", "--shapes", "../known.toml", "k.py", cwd=project)
    assert ran.calm and ran.status == 1, "the finding of the kernel"


@pytest.mark.parametrize(
    "content",
    [SECRET, "", "[tool.ruff]\nline-length = 100\n", "version = 2\n", "version = true\n", "\ufeff", "\0", "{}"],
)
def test_only_shapes_files_are_replaced(project: Path, content: str) -> None:
    (project / "pallas-lint.toml").write_text('shapes = "notes"\n')
    (project / "notes").write_text(content)
    ran = attack.run("probe", "--capture", "--record-replace", *leave(noted()), cwd=project)
    assert ran.calm and ran.status == 2
    assert "notes: not replaced: it is not a shapes file of pallas-lint" in ran.err
    assert (project / "notes").read_text() == content


@pytest.mark.parametrize("content", [OURS, f"{OURS}<<<<<<< HEAD\n", 'version = 1\n["k.py::f"]\ncalls = []\n'])
def test_shapes_files_are_replaced_also_where_they_are_broken(project: Path, content: str) -> None:
    (project / NAME).write_text(content)
    ran = attack.run("probe", "--capture", "--record-replace", *leave(noted()), cwd=project)
    assert ran.calm and ran.status == 0
    read = shapes_file.read(project / NAME, NAME)
    assert [each.function for each in read.known_calls] == ["k.py::run"] and not read.problems


@pytest.mark.parametrize("name", ["1.calls", "1.jsonl"])
@pytest.mark.parametrize(
    ("script", "reported"),
    [
        ("mkfifo {}", "it is not a regular file"),
        ("ln -s /dev/zero {}", "it is not a regular file"),
        ("mkdir {}", "Is a directory"),
        ("truncate -s 80M {}", "it is larger than 64 MiB"),
    ],
)
def test_what_a_program_leaves_is_read_with_care(project: Path, name: str, script: str, reported: str) -> None:
    place = f'"$PALLAS_LINT_CAPTURE/{name}"'
    program = ["--", "sh", "-c", script.format(place)]
    ran = attack.run("probe", "--capture", "--record", *program, cwd=project)
    assert ran.calm and ran.status == 2 and reported in ran.err
    assert not (project / NAME).exists()


@pytest.mark.parametrize(
    "line", ["[" * 50_000, '{"event": ' + "[" * 50_000 + "]" * 50_000 + "}", "9" * 50_000, "\xff", "null"]
)
def test_lines_that_no_worker_writes(project: Path, line: str) -> None:
    for name, status in (("1.calls", 0), ("1.jsonl", 2)):
        ran = attack.run("probe", "--capture", "--record", *leave(line, name), cwd=project)
        assert ran.calm and ran.status == status, ran.err
    assert "its output is not understood" in ran.err
    assert not (project / NAME).exists()


# What a captured program leaves is in the folder; the main process takes it into the file, again and again.
WRITER = """\
import sys
from pathlib import Path
from pallas_lint.probe.recorded import Recording
root, number, rounds = Path(sys.argv[1]), *map(int, sys.argv[2:])
for at in range(rounds):
    noted = root.parent / f"noted-{number}"
    noted.mkdir(exist_ok=True)
    line = '{"function": "k.py::f%d_%d", "arguments": {"x": "f32[8,128]"}, "on": "trace", "seen": ""}'
    (noted / "1.calls").write_text(line % (number, at))
    Recording(root / "pallas-lint-shapes.toml", root).finish(noted, root)
    print(at, flush=True)
"""


def writer(project: Path, number: int, rounds: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(project), str(number), str(rounds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_several_runs_at_once_keep_what_each_recorded(project: Path) -> None:
    processes = [writer(project, number, 10) for number in range(3)]
    for process in processes:
        _, stderr = process.communicate(timeout=attack.SECONDS)
        assert process.returncode == 0, stderr
    read = shapes_file.read(project / NAME, NAME)
    assert not read.problems
    assert {each.function for each in read.known_calls} == {f"k.py::f{n}_{at}" for n in range(3) for at in range(10)}


def test_a_kill_leaves_the_file_whole(project: Path) -> None:
    """Killed right after a round, a process is somewhere in the next: reading, merging, writing, renaming."""
    known: set[str] = set()
    for number in range(12):
        process = writer(project, number, 10_000)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3 + number)]
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        known |= {f"k.py::f{number}_{at}" for at in range(len(lines))}
        read = shapes_file.read(project / NAME, NAME)
        assert not read.problems
        assert {each.function for each in read.known_calls} >= known
