"""CPU time of pallas-lint and of other linters on the Pallas files of an installed jax, in one run.

    python benchmarks/run.py --setup FOLDER    make an environment with everything in FOLDER, and measure there
    python benchmarks/run.py                   measure with what the running Python has installed

What is missing is left out and named. Times are user + system CPU seconds of the whole process and its children, best
of N: they move far less with the machine's load than wall-clock times do.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import venv
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
PEERS = ("fixit", "flake8", "pylint", "ruff")
PARTS = ("experimental/pallas/ops", "_src/pallas")
TYPICAL_LINES = 346  # one file to lint while it is written
JAX = "0.12.0.1"  # the version that findings are judged for; files of another release do as well
OURS = ["-m", "pallas_lint", "--isolated", "--jobs", "1", "--jax-version", JAX, "--output-format", "json"]
PARSE = "import sys, libcst\nfor name in sys.argv[1:]:\n    libcst.parse_module(open(name, 'rb').read())"


class Case(NamedTuple):
    """One line of the table: what runs, on which files, and what has to happen before each run."""

    name: str
    command: list[str]
    files: list[Path]
    before: Callable[[], object] = lambda: None
    per_line: bool = True


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        files = copied(package, work / "kernels", PARTS[:1] if options.quick else PARTS)
        report(cases(files, work), files, options.best_of, work)


def in_environment(folder: Path) -> int:
    """Install everything into a new environment and run there."""
    venv.create(folder, with_pip=True, clear=False)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT), *PEERS], check=True)
    # Its files are read, nothing of it is run.
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "jax"], check=True)
    rest = [argument for argument in sys.argv[1:] if argument not in ("--setup", str(folder))]
    return subprocess.run([python, __file__, *rest]).returncode


def installed_jax() -> Path:
    """The folder of the installed jax package."""
    spec = importlib.util.find_spec("jax")
    if spec is None or spec.origin is None:
        sys.exit(f"no jax here. Either `pip install jax {' '.join(PEERS)}`, or run with --setup FOLDER")
    return Path(spec.origin).parent


def copied(package: Path, target: Path, parts: tuple[str, ...]) -> list[Path]:
    """The Pallas files, copied out of reach of any configuration."""
    files = []
    for part in parts:
        for file in sorted((package / part).rglob("*.py")):
            if b"pallas" in file.read_bytes():
                copy = target / file.relative_to(package)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
                files.append(copy)
    if not files:
        sys.exit(f"no Pallas files in {package}")
    return files


def lines(files: list[Path]) -> int:
    """How many lines they have together."""
    return sum(file.read_bytes().count(b"\n") for file in files)


def cases(files: list[Path], work: Path) -> list[Case]:
    """What is measured; ours first."""
    one = [min(files, key=lambda file: abs(lines([file]) - TYPICAL_LINES))]
    ours = [sys.executable, *OURS]
    found = [
        Case("pallas-lint", [*ours, "--no-cache"], files),
        Case("pallas-lint, cached", ours, files, lambda: cpu([*ours, *map(str, files)], work)),
        Case("libcst, parsing alone", [sys.executable, "-c", PARSE], files),
    ]
    if importlib.util.find_spec("ruff"):
        found.append(
            Case("ruff check", [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "-q"], files)
        )
    if importlib.util.find_spec("flake8"):
        found.append(Case("flake8", [sys.executable, "-m", "flake8", "--isolated", "-j1", "-q"], files))
    if importlib.util.find_spec("pylint"):
        found.append(Case("pylint, errors only", [sys.executable, "-m", "pylint", "-E", "-j1"], files))
    if importlib.util.find_spec("fixit"):
        found.append(Case("fixit", [sys.executable, "-m", "fixit", "lint"], files))
    found += [
        Case("Python alone", [sys.executable, "-I", "-c", "pass"], [], per_line=False),
        Case("pallas-lint --version", [sys.executable, "-m", "pallas_lint", "--version"], [], per_line=False),
        Case(f"pallas-lint, one file of {lines(one)} lines", [*ours, "--no-cache"], one, per_line=False),
        Case("the same, cached", ours, one, lambda: cpu([*ours, str(one[0])], work), per_line=False),
    ]
    missing = [name for name in PEERS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"left out, not installed: {', '.join(missing)}", file=sys.stderr)
    return found


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


def report(measured: list[Case], files: list[Path], rounds: int, work: Path) -> None:
    """Run the cases and print the tables as Markdown."""
    kloc = lines(files) / 1000
    names = ("libcst", *PEERS, "jax")
    versions = ", ".join(f"{name} {version}" for name in names if (version := installed_version(name)))
    print(f"{len(files)} files, {lines(files)} lines. Python {platform.python_version()}, {versions}.")
    print(f"CPU time, best of {rounds}.\n")
    best: dict[str, float] = {}
    for _ in range(rounds):  # in turns, so that a busy minute of the machine falls on all of them
        for case in measured:
            case.before()
            seconds = cpu([*case.command, *map(str, case.files)], work)
            best[case.name] = min(best.get(case.name, seconds), seconds)
    print("| | ms per 1000 lines | seconds in all | of pallas-lint |")
    print("|---|---:|---:|---:|")
    base = best[measured[0].name]
    for case in measured:
        if case.per_line:
            seconds = best[case.name]
            print(f"| {case.name} | {1000 * seconds / kloc:.1f} | {seconds:.2f} | {seconds / base:.2f} x |")
    print("\n| | ms |\n|---|---:|")
    for case in measured:
        if not case.per_line:
            print(f"| {case.name} | {1000 * best[case.name]:.0f} |")


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
