"""CPU time of pallas-lint and of other linters on the Pallas files of an installed jax and of other trees, in one run.

    python benchmarks/run.py --setup FOLDER    make an environment with everything in FOLDER, and measure there
    python benchmarks/run.py                   measure with what the running Python has installed
    python benchmarks/run.py TREE...           the Pallas files of these trees too, each in a table of its own
    python benchmarks/run.py --beside PYTHON   the pallas-lint of another environment too, on the same files

What is missing is left out and named. Times are user + system CPU seconds of the whole process and its children, best
of N: they move far less with the machine's load than wall-clock times do.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.texts import installed_jax

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("fixit", "flake8", "pylint", "ruff")
PARTS = ("experimental/pallas/ops", "_src/pallas")
TYPICAL_LINES = 346  # one file to lint while it is written
JAX = "0.12.0.1"  # the version that findings are judged for; files of another release do as well
OURS = ["-m", "pallas_lint", "--isolated", "--jobs", "1", "--jax-version", JAX, "--output-format", "json"]
OURS_NAME = "pallas-lint"
PARSE_NAME = "libcst, parsing alone"
PARSE = "import sys, libcst\nfor name in sys.argv[1:]:\n    libcst.parse_module(open(name, 'rb').read())"


class Case(NamedTuple):
    """One line of the table: what runs, on which files, and what has to happen before each run."""

    name: str
    command: list[str]
    files: list[Path]
    before: Callable[[], object] = lambda: None


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "trees", nargs="*", type=Path, metavar="TREE", help="folders whose Pallas files are measured too"
    )
    parser.add_argument("--beside", action="append", metavar="PYTHON", help="another Python with pallas-lint in it")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"only these of {', '.join(PEERS)}, and ours")
    parser.add_argument("--setup", type=Path, metavar="FOLDER", help="make an environment here and measure in it")
    parser.add_argument(
        "--jax", type=Path, metavar="FOLDER", help="the jax package whose files are read (default: the installed one)"
    )
    parser.add_argument("--best-of", type=int, default=3, metavar="N", help="runs of each command (default: 3)")
    parser.add_argument("--quick", action="store_true", help=f"only the files of jax/{PARTS[0]}")
    options = parser.parse_args()
    if options.setup is not None:
        sys.exit(in_environment(options.setup))
    package = options.jax or installed_jax()
    if package is None:
        sys.exit(f"no jax here. Either `pip install jax {' '.join(PEERS)}`, or run with --setup FOLDER")
    jax_parts = [package / part for part in (PARTS[:1] if options.quick else PARTS)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        pythons = [sys.executable, *(options.beside or ())]
        peers = [name for name in PEERS if options.only is None or name in options.only]
        missing = [name for name in peers if find_spec(name) is None]
        if missing:
            print(f"left out, not installed: {', '.join(missing)}", file=sys.stderr)
        names = ("libcst", *peers, "jax")
        versions = ", ".join(f"{name} {version}" for name in names if (version := installed_version(name)))
        print(f"Python {platform.python_version()}, {versions}. CPU time, best of {options.best_of}.")
        jax = copied(package, jax_parts, work / "jax")
        table("jax's Pallas files", per_line(jax, pythons, peers, work), jax, options.best_of, work)
        for number, tree in enumerate(options.trees):
            files = copied(tree, [tree], work / str(number))
            table(tree.resolve().name, per_line(files, pythons, peers, work), files, options.best_of, work)
        table("One file", single(jax, pythons, work), None, options.best_of, work)


def in_environment(folder: Path) -> int:
    """Install everything into a new environment and run there."""
    venv.create(folder, with_pip=True, clear=False)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT), *PEERS], check=True)
    # Its files are read, nothing of it is run.
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "jax"], check=True)
    rest = [argument for argument in sys.argv[1:] if argument not in ("--setup", str(folder))]
    return subprocess.run([python, __file__, *rest]).returncode


def copied(base: Path, folders: Sequence[Path], target: Path) -> list[Path]:
    """The Pallas files below some folders of `base`, copied out of reach of any configuration."""
    files = []
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            if b"pallas" in file.read_bytes():
                copy = target / file.relative_to(base)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
                files.append(copy)
    if not files:
        sys.exit(f"no Pallas files in {base}")
    return files


def lines(files: list[Path]) -> int:
    """How many lines they have together."""
    return sum(file.read_bytes().count(b"\n") for file in files)


def per_line(files: list[Path], pythons: Sequence[str], peers: Sequence[str], work: Path) -> list[Case]:
    """What is measured on many files; libcst's parser first, ours next."""
    found = [Case(PARSE_NAME, [sys.executable, "-c", PARSE], files)]
    for python in pythons:
        name, ours = ours_of(python)
        found.append(Case(name, [*ours, "--no-cache"], files))
        found.append(Case(f"{name}, cached", ours, files, warmed(ours, files, work)))
    commands = {
        "ruff": ["ruff", "check", "--isolated", "--no-cache", "-q"],
        "flake8": ["flake8", "--isolated", "-j1", "-q"],
        "pylint": ["pylint", "-E", "-j1"],
        "fixit": ["fixit", "lint"],
    }
    named = {"ruff": "ruff check", "pylint": "pylint, errors only"}
    return found + [
        Case(named.get(peer, peer), [sys.executable, "-m", *commands[peer]], files) for peer in peers if find_spec(peer)
    ]


def single(files: list[Path], pythons: Sequence[str], work: Path) -> list[Case]:
    """What is measured on one file, and on none."""
    one = [min(files, key=lambda file: abs(lines([file]) - TYPICAL_LINES))]
    found = [Case("Python alone", [sys.executable, "-I", "-c", "pass"], [])]
    for python in pythons:
        name, ours = ours_of(python)
        found.append(Case(f"{name} --version", [python, "-m", "pallas_lint", "--version"], []))
        found.append(Case(f"{name}, one file of {lines(one)} lines", [*ours, "--no-cache"], one))
        found.append(Case(f"{name}, the same, cached", ours, one, warmed(ours, one, work)))
    return found


def ours_of(python: str) -> tuple[str, list[str]]:
    """The pallas-lint of an environment: what it is called in tables, and its command."""
    return OURS_NAME if python == sys.executable else f"{OURS_NAME} of {python}", [python, *OURS]


def warmed(ours: list[str], files: list[Path], work: Path) -> Callable[[], object]:
    """Has a run over the files fill the cache."""
    return lambda: cpu([*ours, *map(str, files)], work)


def cpu(command: list[str], folder: Path) -> float:
    """CPU seconds of a command and its children. Findings are no failure, a crash is."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    failed = process.returncode < 0 or ("pallas_lint" in command and process.returncode > 1)
    if failed or b"Traceback (most recent call last)" in (folder / "output").read_bytes():
        sys.exit(f"{' '.join(command[:6])} … failed:\n{(folder / 'output').read_text(errors='replace')[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def table(title: str, measured: list[Case], files: list[Path] | None, rounds: int, work: Path) -> None:
    """Run the cases and print their table as Markdown; `files` are those that each of them reads, if all do."""
    best: dict[str, float] = {}
    for _ in range(rounds):  # in turns, so that a busy minute of the machine falls on all of them
        for case in measured:
            case.before()
            seconds = cpu([*case.command, *map(str, case.files)], work)
            best[case.name] = min(best.get(case.name, seconds), seconds)
    if files is None:
        print(f"\n{title}\n\n| | ms |\n|---|---:|")
        for name, seconds in best.items():
            print(f"| {name} | {1000 * seconds:.0f} |", flush=True)
        return
    print(f"\n{title}: {len(files)} files, {lines(files)} lines\n")
    print("| | ms per 1000 lines | seconds in all | of pallas-lint | of libcst's parser |")
    print("|---|---:|---:|---:|---:|")
    for name, seconds in best.items():
        per_line = 1000 * seconds / (lines(files) / 1000)
        ratios = [f"{seconds / best[base]:.2f} x" for base in (OURS_NAME, PARSE_NAME)]
        print(f"| {name} | {per_line:.1f} | {seconds:.2f} | {' | '.join(ratios)} |", flush=True)


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
