"""What only a real process shows: start-up, imports, streams, signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from invocation import KERNEL, OLD

from pallas_lint import __version__

COMMAND = [sys.executable, "-m", "pallas_lint"]


# What a run that finds all its verdicts in the cache does without.
NEVER_CACHED = set(
    "attr dataclasses difflib _hashlib inspect libcst logging multiprocessing packaging rich "
    "subprocess tempfile tree_sitter".split()
)


def run(*arguments: str, cwd: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*COMMAND, *arguments], cwd=cwd, capture_output=True, timeout=300, **options)  # type: ignore[call-overload, no-any-return]


def modules_after(arguments: list[str], cwd: Path) -> set[str]:
    """The top-level modules imported by a run."""
    code = (
        "import sys\nfrom pallas_lint.cli import main\nmain(sys.argv[1:])\n"
        "print('\\n' + ' '.join(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return set(ran.stdout.splitlines()[-1].split())


@cache
def modules_of_every_run() -> frozenset[str]:
    """Those that are imported whatever is requested."""
    return frozenset(modules_after(["--version"], Path.cwd()))


def test_version(folder: Path) -> None:
    ran = run("--version", cwd=folder)
    assert (ran.returncode, ran.stdout.decode(), ran.stderr) == (0, f"pallas-lint {__version__}\n", b"")


@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--version"], {"argparse", "attr", "libcst", "rich"}),
        (["--help"], {"attr", "libcst", "rich"}),
        (["plain.py", "--isolated"], {"libcst", "rich", "tree_sitter", "jax", "pygls", "attr"}),
        (["kernel.py", "--isolated", *OLD], {"rich", "jax", "pygls", "attr"}),
    ],
)
def test_nothing_heavy_is_imported(folder: Path, arguments: list[str], unwanted: set[str]) -> None:
    (folder / "plain.py").write_text("print(1)\n")
    (folder / "kernel.py").write_text(KERNEL)
    assert not (modules_after(arguments, folder) - modules_of_every_run()) & unwanted


@pytest.mark.slow
def test_a_cached_file_is_not_parsed(folder: Path) -> None:
    (folder / "kernel.py").write_text(KERNEL)
    arguments = ["kernel.py", "--isolated", *OLD]
    first = run(*arguments, cwd=folder)
    assert not (modules_after(arguments, folder) - modules_of_every_run()) & {*NEVER_CACHED, "tomllib"}
    again = run(*arguments, cwd=folder)
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)


@pytest.mark.slow
def test_a_hook_that_finds_all_in_the_cache_imports_little(folder: Path) -> None:
    (folder / "kernel.py").write_text(KERNEL)
    (folder / "pyproject.toml").write_text(
        '[project]\nname = "kernels"\nversion = "1"\ndependencies = ["jax[tpu]>=0.8,<0.11"]\n'
        '[tool.pallas-lint]\nextend-exclude = ["old"]\nignore = ["PAL703", "unused-ref"]\n'
    )
    arguments = ["--force-exclude", "--hook", "kernel.py"]
    first = run(*arguments, cwd=folder)
    assert first.returncode == 1
    assert not (modules_after(arguments, folder) - modules_of_every_run()) & NEVER_CACHED
    again = run(*arguments, cwd=folder)
    assert (again.returncode, again.stdout) == (first.returncode, first.stdout)


@pytest.mark.slow
def test_only_files_of_projects_are_kept(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    stray, project = tmp_path_factory.mktemp("stray"), tmp_path_factory.mktemp("project")
    (project / "pallas-lint.toml").write_text("")
    kept: list[set[str]] = []
    for place in (stray, project):
        (place / "kernel.py").write_text(KERNEL)
        arguments = [str(place / "kernel.py"), "--isolated", *OLD]
        assert run(*arguments, cwd=folder).returncode == 1
        kept.append(modules_after(arguments, folder) & {"tree_sitter"})
    assert kept == [{"tree_sitter"}, set()]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_output_encoding_will_do(folder: Path, encoding: str) -> None:
    (folder / "kernel.py").write_text(KERNEL.replace("(i * 8, 0))],", "(i * 8, 0))],  # 日本 🚀"), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": f"{encoding}:strict"}
    for output_format in ("full", "concise", "json"):
        ran = run("--isolated", *OLD, "--output-format", output_format, cwd=folder, env=environment)
        assert ran.returncode == 1, ran.stderr
        assert ran.stderr == b""
    json.loads(ran.stdout)


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(folder: Path) -> None:
    for number in range(150):
        (folder / f"k{number}.py").write_text(KERNEL)
    process = subprocess.Popen(
        [*COMMAND, "--isolated", *OLD], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(300) == 1


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT to send")
def test_ctrl_c_ends_it_quietly(folder: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "-", "--isolated"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A shell that starts the tests in the background has them ignore the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdin is not None
    process.stdin.write(b"#" * (1 << 20))  # more than a pipe holds: once it is written, the program surely reads
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert (out, err) == (b"", b"pallas-lint: interrupted\n")
